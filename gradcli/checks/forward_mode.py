"""A jvp of the Function's own must be the derivative that backward is the transpose of."""

from collections.abc import Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.checks.base import Check, Situation
from gradcli.checks.gradient import comparable
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

_MARGIN = 3.0
_ROWS = 256
"""Outputs of more entries are compared along random directions instead of entry by entry."""
_PROJECTIONS = 8


@final
class ForwardModeCheck(Check):
    """jvp agrees with backward, which has been checked by then, along each input and all of them."""

    name = "forward-mode"
    sentence = "the Function's own jvp agrees with its backward"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare J v from jvp with J v from the rows of backward."""
        subject = situation.subject
        if subject.info.jvp is None or not comparable(situation):
            return
        generator = np.random.default_rng([situation.seed, 23])
        seeds = self._seeds(subject.codomain.size, generator)
        rows = subject.derivative_map(1).vjp_many(subject.point, seeds)
        if not np.isfinite(rows).all():
            return
        whole: FloatArray = generator.choice([-1.0, 1.0], subject.domain.size) * (
            0.5 + 0.5 * generator.random(subject.domain.size)
        )
        for place, part in enumerate(subject.domain.slices):
            tangent = np.zeros_like(whole)
            tangent[part] = whole[part]
            problem = self._along(situation, seeds, rows, tangent, subject.domain.blocks[place].name)
            if problem is not None:
                yield problem
                return
        problem = self._along(situation, seeds, rows, whole, None)
        yield self.passed() if problem is None else problem

    def _seeds(self, size: int, generator: np.random.Generator) -> FloatArray:
        if size <= _ROWS:
            return np.eye(size)
        signs: FloatArray = generator.choice([-1.0, 1.0], (_PROJECTIONS, size)) * (
            0.5 + 0.5 * generator.random((1, size))
        )
        return signs

    def _along(
        self, situation: Situation, seeds: FloatArray, rows: FloatArray, tangent: FloatArray, name: str | None
    ) -> Evidence | None:
        subject = situation.subject
        along = "along all inputs" if name is None else f"along {name}"
        try:
            found = subject.pushed([np.asarray(part) for part in subject.domain.unflatten(tangent)])
        except UserCodeError as error:
            return self.failed(
                FindingKind.JVP_MISMATCH, f"forward mode fails {along}: {error}", input=name, raised=error
            )
        if found is None:
            return None
        wrong_shape = self._misshapen(situation, found)
        if wrong_shape is not None:
            return self.failed(FindingKind.JVP_MISMATCH, wrong_shape, input=name)
        got, wanted = seeds @ subject.codomain.flatten(list(found)), rows @ tangent
        scale = np.abs(rows) @ np.abs(tangent)
        relative = max(situation.significance, 32 * subject.first_call.unit_roundoff)
        allowed = _MARGIN * relative * np.maximum(scale, np.max(scale, initial=0.0))
        allowed = allowed + 64 * np.finfo(float).eps * np.abs(seeds) @ np.abs(
            subject.derivative_map(1).value(subject.point)
        )
        gap = np.abs(got - wanted)
        if bool(np.all(gap <= allowed)):
            return None
        worst = int(np.argmax(np.where(np.isfinite(gap), gap - allowed, np.inf)))
        entry = self._entry(situation, worst, exact=len(seeds) == subject.codomain.size)
        return self.failed(
            FindingKind.JVP_MISMATCH,
            f"jvp {along} gives {got[worst]:.6g} for {entry}, where backward and the differences of forward give "
            f"{wanted[worst]:.6g}",
            input=name,
        )

    def _entry(self, situation: Situation, row: int, *, exact: bool) -> str:
        if not exact:
            return "a sum over the output"
        place = situation.subject.codomain.locate(row)
        index = f"[{', '.join(map(str, place.index))}]" if place.index else ""
        return f"{situation.subject.codomain.blocks[place.block].name}{index}"

    def _misshapen(self, situation: Situation, found: tuple[NDArray[Any], ...]) -> str | None:
        for block, tangent in zip(situation.subject.codomain.blocks, found, strict=True):
            if tangent.shape != block.shape:
                shapes = f"{list(tangent.shape)} for {block.name} of shape {list(block.shape)}"
                return f"jvp returns a tangent of shape {shapes}"
        return None
