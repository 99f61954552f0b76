"""The Function's own jvp must be the derivative whose transpose backward is."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.checks.base import Check, Situation
from gradcli.checks.gradient import comparable
from gradcli.errors import OverrunError, UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

_MARGIN = 3.0
_ROWS = 256
"""Outputs of more entries are compared along random directions instead of entry by entry."""
_PROJECTIONS = 8
_NONE_RETURNED = "INTERNAL ASSERT FAILED"
"""What PyTorch 2.13 says of a jvp that returns None for a single output."""

Tangents = tuple[NDArray[Any] | None, ...]


@final
class ForwardModeCheck(Check):
    """jvp agrees with backward, which was verified before, along each input and along all of them."""

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
        tangents: dict[str | None, FloatArray] = {}
        for place, part in enumerate(subject.domain.slices):
            tangent = tangents[subject.domain.blocks[place].name] = np.zeros_like(whole)
            tangent[part] = whole[part]
        yield self._judged(situation, seeds, rows, {**tangents, None: whole})

    def _judged(
        self, situation: Situation, seeds: FloatArray, rows: FloatArray, tangents: Mapping[str | None, FloatArray]
    ) -> Evidence:
        """The result of jvp along each tangent; if it raises, or always returns None, that is a note."""
        pushed: dict[str | None, Tangents] = {}
        refusals: dict[str | None, UserCodeError] = {}
        for name, tangent in tangents.items():
            try:
                found = situation.subject.pushed([np.asarray(p) for p in situation.subject.domain.unflatten(tangent)])
            except OverrunError:
                raise
            except UserCodeError as error:
                refusals[name] = error
                continue
            if found is not None:
                pushed[name] = found
        nothing = all(part is None for found in pushed.values() for part in found)
        if nothing and (pushed or refusals):
            reasons = map(_reason, refusals.values())
            return self.passed(f"forward mode was not checked: {next(reasons, 'jvp returns None')}")
        for name, found in pushed.items():
            problem = self._compared(situation, seeds, rows, tangents[name], found, name)
            if problem is not None:
                return problem
        notes = (f"forward mode {_along(name)} was not checked: {_reason(error)}" for name, error in refusals.items())
        return self.passed(next(notes, None))

    def _seeds(self, size: int, generator: np.random.Generator) -> FloatArray:
        if size <= _ROWS:
            return np.eye(size)
        signs: FloatArray = generator.choice([-1.0, 1.0], (_PROJECTIONS, size)) * (
            0.5 + 0.5 * generator.random((1, size))
        )
        return signs

    def _compared(
        self,
        situation: Situation,
        seeds: FloatArray,
        rows: FloatArray,
        tangent: FloatArray,
        given: Tangents,
        name: str | None,
    ) -> Evidence | None:
        subject = situation.subject
        along = _along(name)
        blocks = subject.codomain.blocks
        found = [np.zeros(b.shape, b.dtype) if t is None else t for t, b in zip(given, blocks, strict=True)]
        wrong_shape = self._misshapen(situation, found)
        if wrong_shape is not None:
            return self.failed(FindingKind.JVP_MISMATCH, wrong_shape, input=name)
        got, wanted = seeds @ subject.codomain.flatten(found), rows @ tangent
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
            f"jvp {along} gives {got[worst]:.6g} for {entry}, but backward and finite differences of forward give "
            f"{wanted[worst]:.6g}",
            input=name,
        )

    def _entry(self, situation: Situation, row: int, *, exact: bool) -> str:
        if not exact:
            return "a weighted sum of the output's entries"
        place = situation.subject.codomain.locate(row)
        index = f"[{', '.join(map(str, place.index))}]" if place.index else ""
        return f"{situation.subject.codomain.blocks[place.block].name}{index}"

    def _misshapen(self, situation: Situation, found: Sequence[NDArray[Any]]) -> str | None:
        for block, tangent in zip(situation.subject.codomain.blocks, found, strict=True):
            if tangent.shape != block.shape:
                shapes = f"{list(tangent.shape)} for {block.name} of shape {list(block.shape)}"
                return f"jvp returns a tangent of shape {shapes}"
        return None


def _along(name: str | None) -> str:
    return "with tangents for all inputs" if name is None else f"with a tangent for {name}"


def _reason(error: UserCodeError) -> str:
    """Why a jvp gave no tangents, on one line."""
    text = str(error)
    return "jvp returns None" if _NONE_RETURNED in text else text.splitlines()[0]
