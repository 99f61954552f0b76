"""What a check of the battery is, and what it is given."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence, Finding, Location
from gradcli.settings import Settings
from gradcli.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A Function at its inputs, with the run's settings and the case's own seed."""

    subject: Subject
    settings: Settings
    seed: int

    def cotangents(self, number: int = 0) -> list[NDArray[Any]]:
        """Seeded signed cotangents, one array for each differentiable output; another set for each `number`."""
        space = self.subject.codomain
        generator = np.random.default_rng([self.seed, 17, number])
        flat: FloatArray = generator.choice([-1.0, 1.0], space.size) * (0.5 + 0.5 * generator.random(space.size))
        return list(space.unflatten(flat))

    def input_name(self, position: int) -> str:
        """The name of forward's argument at `position`."""
        return self.subject.arguments[position].name


class Check(ABC):
    """One property that every right Function has."""

    name: str
    sentence: str

    @abstractmethod
    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Yield what was found; nothing where the check does not apply."""

    def passed(self, note: str | None = None) -> Evidence:
        """The property holds."""
        return Evidence(check=self.name, verdict=Verdict.PASSED, reference="algebra", note=note)

    def failed(
        self,
        kind: FindingKind,
        message: str,
        *,
        input: str | None = None,
        output: int | None = None,
        order: int = 1,
        hint: str | None = None,
        raised: UserCodeError | None = None,
    ) -> Evidence:
        """The property is broken, and the evidence proves the name `kind`; `raised` tells the line where it showed."""
        place = None
        if raised is not None and raised.file is not None and raised.line is not None:
            place = Location(file=raised.file, line=raised.line)
        finding = Finding(
            kind=kind, message=message, order=order, input=input, output=output, hint=hint, location=place
        )
        return Evidence(
            check=self.name,
            verdict=Verdict.FAILED,
            order=order,
            input=input,
            output=output,
            reference="algebra",
            finding=finding,
        )


def relative_gap(first: NDArray[Any] | None, second: NDArray[Any] | None) -> float:
    """The largest difference of two gradients relative to their largest entry; None counts as zeros, NaN equals NaN."""
    if first is None and second is None:
        return 0.0
    left = np.zeros_like(second) if first is None else first
    right = np.zeros_like(left) if second is None else second
    if left.shape != right.shape:
        return float("inf")
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    if bool(np.all(same)):
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.max(np.where(same, 0.0, np.abs(left - right)))
        scale = max(float(np.max(np.abs(left), initial=0.0)), float(np.max(np.abs(right), initial=0.0)))
    return float(gap / scale) if np.isfinite(gap) and scale > 0 else float("inf")
