"""A quick look at a candidate: what backward returns at a few inputs, beside the right gradients known there."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.bench import summed_down
from gradcli.diagnosis.table import Gradient
from gradcli.edits.captured import Captured
from gradcli.errors import OverrunError, UserCodeError
from gradcli.frozen import dataclass

Array = NDArray[Any]
AGREES = 1e-7
"""The significance of a check: a relative error below it is none."""
_MOST_MEASURED = 64
"""Real coordinates of an input that are measured one by one where there is no table."""
_ROWS = (1, 2)
"""The random ones among the cotangents of the facts: for all ones the gradient of a softmax is zero."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A subject with a cotangent, and for each active input the right gradient, None where it is not known.

    With a `number` that functions take from around them, it is that at another value of the number.
    """

    facts: Facts
    row: int
    right: tuple[Gradient, ...]
    slack: tuple[Gradient, ...]
    number: Captured | None = None

    def there(self) -> AbstractContextManager[None]:
        """A context in which the number has its other value."""
        return nullcontext() if self.number is None else self.number.varied()

    @property
    def subject(self) -> Subject:
        """Where it is."""
        return self.facts.subject

    def returned(self) -> tuple[Gradient, ...] | None:
        """What backward returns for each argument now; None where it fails."""
        cotangent = self.facts.cotangents[self.row]
        try:
            with np.errstate(all="ignore"), self.there():
                raw = self.subject.raw_backward(self.subject.codomain.unflatten(cotangent))
                if not raw.available:
                    return self.facts.returned_for(cotangent)
        except UserCodeError:  # forward fails with what a candidate saves
            return None
        if isinstance(raw.error, OverrunError):
            raise raw.error
        if raw.error is not None or raw.container is not None or raw.nested_unlike:
            return None
        return tuple(g.value if g.is_tensor else None for g in raw.gradients)

    def is_right(self, place: int, gradient: Gradient, *, exact: bool) -> bool:
        """Whether a gradient of the active input number `place` is the right one, as far as it is known.

        One that is larger by broadcasting is summed to its input's shape, as the framework does, unless it is to be
        `exact`: a patch should not leave that to it.
        """
        right, slack = self.right[place], self.slack[place]
        if right is not None and gradient is not None and not exact:
            gradient = summed_down(gradient, right.shape)
        if right is None or slack is None:
            return True
        if gradient is None:
            return not np.any(np.abs(right) > slack)
        if gradient.shape != right.shape or not np.isfinite(gradient).all():
            return False
        return bool((np.abs(gradient - right) <= slack).all())


@final
@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of a case, those at the failing inputs first."""

    each: tuple[Probe, ...]

    def beside(self, others: "Probes") -> "Probes":
        """These probes, then others."""
        return Probes((*self.each, *others.each))

    def run(self) -> None:
        """Run backward at every probe."""
        for probe in self.each:
            probe.returned()

    def wrong(self) -> frozenset[int] | None:
        """The active inputs whose gradient is wrong now at a probe; None where backward fails at one."""
        found: set[int] = set()
        for probe in self.each:
            gradients = probe.returned()
            if gradients is None:
                return None
            found |= _wrong(probe, gradients, frozenset())
        return frozenset(found)

    def better(self, wrong: frozenset[int] | None) -> frozenset[int] | None:
        """The inputs still wrong, where fewer are than `wrong` and none beside them; None where it is no better."""
        left: frozenset[int] = frozenset()
        for probe in self.each:
            gradients = probe.returned()
            if gradients is None:
                return None
            left |= _wrong(probe, gradients, wrong or frozenset())
            if wrong is not None and not left < wrong:
                return None
        return left

    def left(self, wrong: frozenset[int] | None) -> frozenset[int] | None:
        """The inputs still wrong with a candidate; None where it is of no use."""
        try:
            if wrong:
                return self.better(wrong)
            found = self.wrong()
            return found if found is not None and not found else None
        except OverrunError:
            return None


def _wrong(probe: Probe, gradients: Sequence[Gradient], exact: frozenset[int]) -> frozenset[int]:
    active = probe.subject.active
    padded = [gradients[p] if p < len(gradients) else None for p in active]
    return frozenset(place for place, g in enumerate(padded) if not probe.is_right(place, g, exact=place in exact))


def probes_of(subjects: Sequence[Subject], seed: int) -> Probes:
    """Probes at these subjects, and close by."""
    made: list[Probe] = []
    for subject in subjects:
        # Bound anew, as at inputs that gradcli chose: there a call may take a second, and a candidate may not end.
        facts = Facts(subject.rebind(subject.arguments), seed)
        for there in (facts, facts.elsewhere):
            if there is not None:
                made += [p for row in _ROWS if (p := _probe(there, row)) is not None]
    return Probes(tuple(made))


def probes_with(number: Captured, subject: Subject, seed: int) -> Probes:
    """Probes at a subject where a captured number has another value; none where forward does not take that."""
    try:
        with number.varied():
            found = probes_of([subject], seed).each
    except UserCodeError:
        return Probes(())
    return Probes(tuple(replace(probe, number=number) for probe in found))


def _probe(facts: Facts, row: int) -> Probe | None:
    subject = facts.subject
    known = [_right(facts, place, row) for place in range(len(subject.active))]
    if all(each is None for each in known):
        return None
    right = tuple(None if k is None else k[0] for k in known)
    return Probe(facts=facts, row=row, right=right, slack=tuple(None if k is None else k[1] for k in known))


def _right(facts: Facts, place: int, row: int) -> tuple[Array, Array] | None:
    """The right gradient and how far from it another may be: from forward's body, else from differences."""
    found = _of_body(facts, place, row)
    if found is not None:
        return found
    table = facts.table(place)
    if table is None or not table.known.all():
        return _by_entries(facts, place, row) if table is None else None
    u = facts.cotangents[row]
    shape = facts.subject.domain.blocks[place].shape
    right = u @ table.numeric
    slack = np.abs(u) @ (3 * table.bound) + AGREES * np.abs(table.numeric).max(initial=0.0)
    return right.reshape(shape), slack.reshape(shape)


def _by_entries(facts: Facts, place: int, row: int) -> tuple[Array, Array] | None:
    """The right gradient measured entry by entry, as of complex numbers; None where a few hundred calls are too few."""
    block = facts.subject.domain.blocks[place]
    if block.size > _MOST_MEASURED:
        return None
    try:
        measured = np.array([facts.entry_slope(place, number, row) for number in range(block.size)])
    except UserCodeError:  # at inputs that gradcli chose
        return None
    if not np.isfinite(measured).all():
        return None
    values, bounds = np.ascontiguousarray(measured[:, 0]), np.ascontiguousarray(measured[:, 1])
    right = values.view(np.complex128) if block.complex else values
    slack = np.hypot(bounds[::2], bounds[1::2]) if block.complex else bounds
    size = AGREES * np.abs(right).max(initial=0.0)
    return right.reshape(block.shape), (3 * slack + size).reshape(block.shape)


def _of_body(facts: Facts, place: int, row: int) -> tuple[Array, Array] | None:
    body = facts.subject.body_map(1)
    if body is None:
        return None
    try:
        rows = [_block(facts, body.vjp(facts.subject.point, u), place) for u in facts.cotangents]
    except UserCodeError:
        return None
    if facts.judged(place, rows) is False and any(np.any(r) for r in rows):
        return None
    size = max(float(np.abs(each).max(initial=0.0)) for each in rows)
    return rows[row], np.full(rows[row].shape, AGREES * max(size, 1e-30))


def _block(facts: Facts, flat: FloatArray, place: int) -> Array:
    return np.asarray(facts.subject.domain.unflatten(np.asarray(flat, dtype=np.float64))[place])
