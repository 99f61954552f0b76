"""Tables of gradient entries, returned and by differences, for readers; no verdict depends on them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from gradcli.backends.base import Subject
from gradcli.errors import UserCodeError
from gradcli.figures import GradientEntry, GradientTable, in_bounds
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import Estimate, Status
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales, signed_cotangents, snap
from gradcli.results import Evidence
from gradcli.verdict import Verdict
from gradcli.watchdog.limit import TimeLimit

ALL, LARGEST = 4, 3
"""An input with at most `ALL` entries is shown whole, of a larger one the `LARGEST` largest entries."""
CELLS = 64
"""Cells of a map of the errors: two lines of a screen."""
SECONDS = 2.0
"""Processor time for measuring entries, then cells, over all tables of a case."""
NO_SIGNAL = 1e-9
"""A grad_output of ones shows nothing if it gives no more than this part of what other numbers give (softmax)."""
_COMPARING = ("gradient", "higher-order")
_WHY = {
    Status.KINK: "a kink",
    Status.JUMP: "a jump",
    Status.CUSP: "a cusp",
    Status.STAIRCASE: "forward is constant between jumps",
    Status.DOMAIN: "the edge of the domain",
    Status.UNRESOLVED: "no bound",
}
_LATE = "not measured, to save time"


def gradient_tables(subject: Subject, evidence: Iterable[Evidence], *, seed: int) -> tuple[GradientTable, ...]:
    """A table for each order that was checked and each input of it: a few entries, then a map of the errors."""
    compared = [e for e in evidence if e.check in _COMPARING and e.verdict is not Verdict.SKIPPED]
    limit = TimeLimit(SECONDS)
    drafts = []
    for order in sorted({e.order for e in compared}):
        about = [e for e in compared if e.order == order]
        try:
            drafts += list(_drafts(subject, order, about, seed, limit))
        except UserCodeError:  # the checks have said so where it matters
            continue
    return tuple(draft.table() for draft in drafts)


def _drafts(subject: Subject, order: int, about: list[Evidence], seed: int, limit: TimeLimit) -> Iterator["_Draft"]:
    map_ = subject.derivative_map(order)
    if not (map_.domain.size and map_.codomain.size):
        return
    point, at_ones = _place(subject, map_, order, seed)
    meter = _Meter(map_, point, seed, limit)
    for block in range(len(map_.domain.blocks)):
        name = map_.domain.blocks[block].name
        references = sorted({e.reference for e in about if e.input == name and e.reference is not None})
        if map_.domain.blocks[block].size:
            yield _Draft(meter, block, order, at_ones, tuple(references))


def _place(subject: Subject, map_: VectorMap, order: int, seed: int) -> tuple[Vector, bool]:
    """The point of the tables, and whether grad_output is ones there: not where ones hide what other numbers show."""
    if order == 1:
        return subject.point, True
    own = subject.point.size
    ones = np.concatenate([subject.point, np.ones(map_.domain.size - own)])
    other = subject.base_point(order, seed)
    cotangent = signed_cotangents(np.random.default_rng([seed, 61]), map_.codomain.size, 1)[0]
    shown, there = (float(np.abs(map_.vjp(at, cotangent)[:own]).max(initial=0.0)) for at in (ones, other))
    return (other, False) if there > 0 and shown <= NO_SIGNAL * there else (ones, True)


@final
class _Meter:
    """Slopes of <u, f> at a point, one at a time, until time is up."""

    def __init__(self, map_: VectorMap, point: Vector, seed: int, limit: TimeLimit) -> None:
        self.map = map_
        self.scales = entry_scales(map_.domain, point)
        self.point = snap(point, self.scales)
        self._limit = limit
        self._generator = np.random.default_rng([seed, 47])
        self._noise: Vector | None = None
        cotangents = np.vstack(
            [np.ones(map_.codomain.size), signed_cotangents(self._generator, map_.codomain.size, 1)[0]]
        )
        claims = map_.vjp_many(self.point, cotangents)
        sizes = np.abs(claims).max(axis=1, initial=0.0)
        self.of_ones = not sizes[0] <= NO_SIGNAL * sizes[1]
        self.claim: Vector = claims[0 if self.of_ones else 1]
        self._cotangent = cotangents[0 if self.of_ones else 1]
        self._centre = np.array([self._cotangent @ map_.value(self.point)])

    def slope(self, direction: Vector) -> Estimate | None:
        """The slope along a direction, in units of the entries' scales; None once time is up."""
        if self._limit.is_over:
            return None
        found = directional_derivative(
            lambda x: np.array([self._cotangent @ self.map.value(x)]),
            self.point,
            direction * self.scales,
            rng=self._generator,
            f0=self._centre,
            noise=self._noise,
        )
        self._noise = found.noise if self._noise is None else self._noise
        return found


@dataclass(slots=True)
class _Draft:
    """The table of one input at one order, being measured: entries on construction, the map of errors in `table`."""

    meter: _Meter
    block: int
    order: int
    at_ones: bool
    references: tuple[str, ...]
    entries: tuple[GradientEntry, ...] = ()

    def __post_init__(self) -> None:
        claim, block = self._claim, self.meter.map.domain.blocks[self.block]
        sizes = np.abs(claim.view(np.complex128) if block.complex else claim)
        chosen = np.arange(sizes.size)
        if sizes.size > ALL:
            chosen = np.sort(np.argsort(-_ranked(sizes), kind="stable")[:LARGEST])
        self.entries = tuple(self._entry(int(k)) for k in chosen)

    @property
    def _start(self) -> int:
        start: int = self.meter.map.domain.slices[self.block].start
        return start

    @property
    def _claim(self) -> Vector:
        return self.meter.claim[self.meter.map.domain.slices[self.block]]

    def table(self) -> GradientTable:
        """The table, with a map where not all entries are shown."""
        block = self.meter.map.domain.blocks[self.block]
        return GradientTable(
            input=block.name,
            order=self.order,
            shape=block.shape,
            of_ones=self.meter.of_ones,
            at_ones=self.at_ones,
            references=self.references,
            entries=self.entries,
            entries_total=block.entries,
            errors=tuple(self._cells()) if block.entries > len(self.entries) else (),
        )

    def _entry(self, number: int) -> GradientEntry:
        block = self.meter.map.domain.blocks[self.block]
        parts = 2 if block.complex else 1
        own = slice(parts * number, parts * (number + 1))
        measured = [self._along(np.array([k])) for k in range(own.start, own.stop)]
        claimed = self._claim[own].tolist()
        values = [value for _, value, _ in measured]
        reasons = [why for *_, why in measured if why is not None]
        return GradientEntry(
            index=tuple(int(i) for i in np.unravel_index(number, block.shape)) if block.shape else (),
            analytic=complex(*claimed) if block.complex else claimed[0],
            numeric=complex(*values) if block.complex else values[0],
            bound=max(bound for bound, *_ in measured),
            why=reasons[0] if reasons else None,
        )

    def _along(self, coordinates: np.ndarray[tuple[int], np.dtype[np.intp]]) -> tuple[float, float, str | None]:
        """Bound and value of the slope along one coordinate, per unit of it, or why there is none."""
        direction = np.zeros(self.meter.point.size)
        places = self._start + coordinates
        direction[places] = 0.75
        found = self.meter.slope(direction)
        if found is None:
            return np.inf, np.nan, _LATE
        why = None if found.smooth[0] else _WHY.get(Status(int(found.status[0])), "no bound")
        unit = 0.75 * float(self.meter.scales[places[0]])
        return float(found.bound[0]) / unit, float(found.value[0]) / unit, why

    def _cells(self) -> Iterator[float]:
        """The error along a random direction of each part of the input, in units of its bound; NaN if it has none."""
        generator = np.random.default_rng([self.order, self.block, 53])
        size = self._claim.size
        for part in np.array_split(np.arange(size), min(size, CELLS)):
            direction = np.zeros(self.meter.point.size)
            places = self._start + part
            direction[places] = generator.choice([-1.0, 1.0], part.size) * generator.integers(128, 257, part.size) / 256
            found = self.meter.slope(direction)
            if found is None or not found.smooth[0]:
                yield float("nan")
                continue
            claimed = float(self.meter.claim[places] @ (direction * self.meter.scales)[places])
            yield in_bounds(claimed, float(found.value[0]), float(found.bound[0]))


def _ranked(sizes: Vector) -> Vector:
    """Sizes for sorting, those that differ by rounding alone being equal: the same entries on every machine."""
    finite = np.where(np.isfinite(sizes), sizes, 0.0)
    largest = float(finite.max(initial=0.0)) or 1.0
    return np.where(np.isfinite(sizes), np.round(finite / largest, 9), np.inf)
