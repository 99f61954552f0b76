"""What is known of a wrong gradient: what backward returned, and slopes of forward to test explanations with.

An explanation such as "this is the gradient of weight" predicts every directional derivative of weight. It is tested on
a few random directions with error bounds, at any size, instead of on a whole Jacobian: a false explanation passes a
random direction with probability zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.cases import Argument
from gradcli.diagnosis.changed_values import blended, deranged, mirrored, moved_within, rearranged_within
from gradcli.diagnosis.table import Gradient, Table, measured
from gradcli.errors import OverrunError, UserCodeError
from gradcli.frozen import dataclass
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import Estimate
from gradcli.numerics.sampling.directions import entry_scales, snap
from gradcli.verdict import tells_apart

DIRECTIONS = 3
"""Random directions for each input; one at other inputs, where an explanation is only confirmed."""
REAL_ROWS = (0, 1)
"""The cotangents without an imaginary part: for them a wrong conjugate shows as the conjugate of the right gradient."""
_MARGIN = 3.0
ROUNDING = 1e-7
"""A relative error that rounding may have caused in a gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The derivative of <cotangent, f> along one direction, for every cotangent, with bounds.

    `noise` is the measured noise of the values, which is reused along other directions.
    """

    direction: FloatArray
    values: FloatArray
    bounds: FloatArray
    noise: FloatArray


@final
class Facts:
    """What backward returned for a few cotangents, and slopes of forward along random directions of each input."""

    def __init__(
        self, subject: Subject, seed: int, outputs: NDArray[np.intp] | None = None, *, confirms: bool = False
    ) -> None:
        """Use ones and random numbers as grad_output, zero outside of `outputs` (flat indices) if these are given."""
        self.subject = subject
        self._seed, self._outputs = seed, outputs
        self._map = subject.derivative_map(1)
        self._scales = entry_scales(subject.domain, subject.point)
        self._point = snap(subject.point, self._scales)
        generator = np.random.default_rng([seed, 23])
        size = subject.codomain.size
        random = generator.choice([-1.0, 1.0], (2, size)) * (0.5 + 0.5 * generator.random((2, size)))
        random[0] *= _real_parts(subject)
        self.cotangents: FloatArray = np.vstack([_ones(subject), random])
        if outputs is not None:
            self.cotangents *= np.isin(np.arange(size), outputs)
        self._slopes: dict[int, list[Slope]] = {}
        self._confirms = confirms
        self._entry_slopes: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}
        self._tables: dict[int, Table | None] = {}
        self.origin: Facts | None = None
        """The facts at the case's own inputs, where these are others at which the gradient turned out to be wrong."""
        self.searches: dict[str, Any] = {}
        """What searches keep at these facts between calls, each under its own name."""

    @property
    def is_costly(self) -> bool:
        """Whether a call of forward takes so long that few are made."""
        return self._map.is_costly

    @cached_property
    def returned(self) -> tuple[tuple[Gradient, ...], ...]:
        """For each cotangent, what backward returned for each argument of forward (its own shapes), None for None."""
        return tuple(self.returned_for(row) for row in self.cotangents)

    @cached_property
    def elsewhere(self) -> "Facts | None":
        """The facts at inputs moved by a few hundredths, each entry differently; None if forward rejects them.

        This rules out what holds here only because entries happen to be equal, or a matrix symmetric, unless forward is
        meant for symmetric ones alone.
        """
        generator = np.random.default_rng([self._seed, 37])
        return self.at([moved_within(self.subject.arguments[p], generator) for p in self.subject.active])

    def bound_anew(self) -> "Facts":
        """The same facts with calls limited in time, as at inputs that gradcli chose: a call may not return."""
        anew = self.subject.rebind(self.subject.arguments)
        other = Facts(anew, self._seed, self._outputs, confirms=self._confirms)
        other._slopes = self._slopes
        return other

    def of_output(self, number: int, row: int | None = None) -> "Facts":
        """The facts for cotangents that are zero outside of one output, or of an entry of it."""
        place = self.subject.codomain.slices[number]
        outputs = np.arange(place.start, place.stop)
        return Facts(self.subject, self._seed, outputs if row is None else outputs[[row]])

    def over(self, subject: Subject) -> "Facts":
        """The facts of the same target at other arguments, with random numbers from the same seed."""
        return Facts(subject, self._seed, confirms=True)

    def rearranged(self, number: int) -> "Facts | None":
        """The facts at inputs whose entries are all permuted and moved a little; None if forward rejects them.

        Every `number` gives another permutation, different for each input; odd ones also give values between those of
        two entries; of symmetric matrices, rows and columns change places. Whole numbers in untracked inputs are
        mirrored within their range, so as indices they select other entries.
        """
        generator = np.random.default_rng([self._seed, 41, number])
        arguments = list(self.subject.arguments)
        for position, argument in enumerate(arguments):
            if position not in self.subject.active and argument.is_tensor and argument.value.dtype.kind in "biu":
                arguments[position] = replace(argument, value=mirrored(argument.value, generator))
        change = blended if number % 2 else deranged
        values = [rearranged_within(arguments[p], change, generator) for p in self.subject.active]
        return self.at(values, arguments)

    def with_defaults(self) -> "Facts | None":
        """The facts with forward's defaults in place of other flags and numbers.

        None if there are no other ones, or if forward rejects the defaults or returns other shapes with them.
        """
        subject = self.subject
        defaults = {p.name: p.default for p in subject.info.parameters if p.has_default}
        arguments = [
            replace(a, value=defaults[a.name]) if not a.is_tensor and a.name in defaults else a
            for a in subject.arguments
        ]
        changed = any(a.value != b.value for a, b in zip(arguments, subject.arguments, strict=True) if not b.is_tensor)
        return self.at([arguments[p].value for p in subject.active], arguments) if changed else None

    def at(self, values: Sequence[NDArray[Any]], given: Sequence[Argument] | None = None) -> "Facts | None":
        """The facts at other values of the active inputs; None if forward rejects them or returns other shapes.

        The other arguments are those `given`, or the subject's own.
        """
        arguments = list(self.subject.arguments if given is None else given)
        if any(arguments[position].sparsity is not None for position in self.subject.active):
            return None
        for position, value in zip(self.subject.active, values, strict=True):
            arguments[position] = replace(arguments[position], value=value)
        try:
            there = self.subject.rebind(tuple(arguments))
        except UserCodeError:  # inputs that gradcli chose, which forward need not accept
            return None
        same = there.active == self.subject.active and there.codomain.blocks == self.subject.codomain.blocks
        return Facts(there, self._seed, self._outputs, confirms=True) if same else None

    def of(self, position: int) -> tuple[Gradient, ...]:
        """What backward returned for the argument at `position`, for each cotangent."""
        return tuple(row[position] if position < len(row) else None for row in self.returned)

    def slopes(self, place: int) -> tuple[Slope, ...]:
        """Slopes along DIRECTIONS random directions of the active input number `place`."""
        return self.compared(place, DIRECTIONS)

    def compared(self, place: int, count: int | None = None) -> tuple[Slope, ...]:
        """The slopes that an explanation is compared with: the first one alone where it is only confirmed."""
        count = count or (1 if self._confirms else DIRECTIONS)
        found, size = self._slopes.setdefault(place, []), self.subject.domain.blocks[place].size
        for number in range(len(found), 1 if size == 1 else count):
            generator = np.random.default_rng([self._seed, 29, place, number])
            direction = self._direction(generator, self.subject.domain.slices[place])
            found.append(self._slope(generator, direction, found[0].noise if found else None))
        return tuple(found[:count]) if size > 1 else tuple(found[:1]) * count  # all are alike for a single number

    def table(self, place: int) -> Table | None:
        """The whole Jacobian in the active input number `place`; None where it is complex or large."""
        if place not in self._tables:
            self._tables[place] = measured(self.subject, place, self.returned_for, seed=self._seed)
        return self._tables[place]

    def part_of_table(self, place: int, only: NDArray[np.intp]) -> Table | None:
        """The Jacobian for some entries of an input, unknown for the others; None as for `table`."""
        return measured(self.subject, place, self.returned_for, seed=self._seed, only=only)

    def is_felt(self, place: int) -> bool:
        """Whether forward's slope along the active input number `place` is nonzero beyond its bound."""
        return any(bool((np.abs(s.values) > _MARGIN * s.bounds).any()) for s in self.compared(place))

    def explains(self, place: int, candidate: Sequence[Gradient], *, rows: Sequence[int] | None = None) -> bool:
        """Whether `candidate` (one gradient a cotangent) is the gradient of the active input number `place`.

        `rows` are the numbers of the cotangents for which to compare it, all by default.
        """
        return self.judged(place, candidate, rows=rows) is True

    def explains_within(
        self, place: int, candidate: Sequence[Gradient], within: Callable[[NDArray[Any]], NDArray[Any]], error: float
    ) -> bool:
        """The result of `explains` for the changes alone that `within`, a projection, leaves as they are.

        False too where the slopes could miss an `error`, relative to the gradient, as large as that of other changes.
        """
        seen = self.projected_within(place, candidate, within)
        for predicted, slope, size in seen:
            scale = float(np.max(np.maximum(size, np.abs(slope.values)), initial=0.0))
            if not tells_apart(error * scale, _MARGIN * float(np.max(slope.bounds, initial=0.0))):
                return False
            if not _close(predicted, slope.values, slope.bounds, size, ROUNDING):
                return False
        return bool(seen)

    def projected_within(
        self, place: int, candidate: Sequence[Gradient], within: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> list[tuple[FloatArray, Slope, FloatArray]]:
        """Along directions that `within` leaves as they are: <candidate, direction>, the slope, and the former's size.

        Empty where a gradient is missing.
        """
        where, block = self.subject.domain.slices[place], self.subject.domain.blocks[place]
        generator = np.random.default_rng([self._seed, 43, place])
        flat = [self._flat(place, np.asarray(c)) for c in candidate if c is not None]
        found: list[tuple[FloatArray, Slope, FloatArray]] = []
        for _ in range(2 if len(flat) == len(candidate) else 0):
            direction = self._direction(generator, where)
            direction[where] = within(direction[where].reshape(block.shape)).reshape(-1)
            predicted = np.array([part @ direction[where] for part in flat])
            found.append((predicted, self._slope(generator, direction, None), _size(flat, direction[where])))
        return found

    def judged(
        self,
        place: int,
        candidate: Sequence[Gradient],
        *,
        rows: Sequence[int] | None = None,
        relative: float = ROUNDING,
    ) -> bool | None:
        """The result of `explains`; None if no slope is known accurately enough. `relative` errors are allowed."""
        chosen = range(len(candidate)) if rows is None else rows
        block = self.subject.domain.blocks[place]
        arrays = [c for c in (candidate[row] for row in chosen) if c is not None]
        if len(arrays) != len(chosen) or any(c.shape != block.shape for c in arrays):
            return False
        if not any(np.any(c) for c in arrays) or not all(np.isfinite(c).all() for c in arrays):
            return False
        flat = [self._flat(place, c) for c in arrays]
        where = self.subject.domain.slices[place]
        judgements = [
            _close(
                np.array([part @ s.direction[where] for part in flat]),
                s.values[list(chosen)],
                s.bounds[list(chosen)],
                _size(flat, s.direction[where]),
                relative,
            )
            for s in self.compared(place)
        ]
        return False if False in judgements else None if None in judgements else True

    def projections(self, place: int, gradients: Sequence[Gradient]) -> tuple[FloatArray, ...] | None:
        """<gradient, direction> for every slope of `place`, one value a cotangent; None where a gradient is missing.

        An array of objects counts as missing: a changed backward may return anything.
        """
        block = self.subject.domain.blocks[place]
        if any(g is None or g.shape != block.shape or g.dtype.kind == "O" for g in gradients):
            return None
        flat = [self._flat(place, g) for g in gradients if g is not None]
        where = self.subject.domain.slices[place]
        return tuple(np.array([part @ s.direction[where] for part in flat]) for s in self.slopes(place))

    def entry_slope(self, place: int, coordinate: int, row: int) -> tuple[float, float]:
        """The derivative of <cotangent, f> along one real coordinate of an input, and its bound.

        `row` is the number of the cotangent; the slope is measured for all of them at once.
        """
        found = self._entry_slopes.get((place, coordinate))
        if found is None:
            where = self.subject.domain.slices[place]
            direction = np.zeros(self._point.size)
            direction[where.start + coordinate] = scale = self._scales[where.start + coordinate] * 0.75
            generator = np.random.default_rng([self._seed, 31, place, coordinate])
            noise = self._slopes[place][0].noise if self._slopes.get(place) else None
            estimate = self._estimate(generator, direction, noise)
            found = self._entry_slopes[place, coordinate] = estimate.value / scale, estimate.bound / scale
        return float(found[0][row]), float(found[1][row])

    def _direction(self, generator: np.random.Generator, where: slice) -> FloatArray:
        """Sign × magnitude in [1/2, 1) × scale in one input's entries, zero elsewhere."""
        drawn = generator.integers(128, 256, self._scales.size) / 256 * generator.choice([-1.0, 1.0], self._scales.size)
        direction = np.zeros(self._scales.size)
        direction[where] = (drawn * self._scales)[where]
        return direction

    def _slope(self, generator: np.random.Generator, direction: FloatArray, noise: FloatArray | None) -> Slope:
        estimate = self._estimate(generator, direction, noise)
        return Slope(
            direction=direction,
            values=estimate.value,
            bounds=np.where(estimate.smooth, estimate.bound, np.inf),
            noise=estimate.noise,
        )

    @cached_property
    def value(self) -> FloatArray:
        """Forward at the point itself."""
        return self._map.value(self._point)

    def returns_input(self, place: int) -> bool:
        """Whether forward returns the input at a place as it is."""
        return np.array_equal(self.value, self._point[self.subject.domain.slices[place]])

    def keeps_value(self) -> bool:
        """Whether forward, whose code may have changed, still returns the `value` that it had."""
        try:
            return np.array_equal(self.value, self._map.value(self._point), equal_nan=True)
        except UserCodeError:
            return False

    def _estimate(self, generator: np.random.Generator, direction: FloatArray, noise: FloatArray | None) -> Estimate:
        return directional_derivative(
            lambda x: self.cotangents @ self._map.seen_at(x),
            self._point,
            direction,
            rng=generator,
            f0=self.cotangents @ self.value,
            noise=noise,
        )

    def returned_for(self, cotangent: FloatArray) -> tuple[Gradient, ...]:
        """What backward returned for each argument of forward, for a flat cotangent."""
        blocks = self.subject.codomain.unflatten(cotangent)
        raw = self.subject.raw_backward(blocks)
        if isinstance(raw.error, OverrunError):
            raise raw.error
        if raw.available and raw.error is None:
            return tuple(g.value if g.is_tensor else None for g in raw.gradients)
        found: list[Gradient] = [None] * len(self.subject.arguments)
        if raw.available:  # backward itself raised, as it would when the framework calls it
            return tuple(found)
        try:
            gradients = self.subject.backward(blocks)
        except OverrunError:
            raise
        except UserCodeError:
            return tuple(found)
        for position, gradient in zip(self.subject.active, gradients, strict=True):
            found[position] = gradient
        return tuple(found)

    def returned_again(self, cotangent: FloatArray) -> tuple[Gradient, ...] | None:
        """The same for what the last direct call saved, without calling forward again; None if backward raises."""
        raw = self.subject.raw_backward(self.subject.codomain.unflatten(cotangent), again=True)
        if isinstance(raw.error, OverrunError):
            raise raw.error
        if not raw.available or raw.error is not None:
            return None
        return tuple(g.value if g.is_tensor else None for g in raw.gradients)

    def _flat(self, place: int, gradient: NDArray[Any]) -> FloatArray:
        block = self.subject.domain.blocks[place]
        if block.complex:
            return np.ascontiguousarray(gradient, dtype=np.complex128).reshape(-1).view(np.float64)
        flat: FloatArray = np.asarray(gradient.real, dtype=np.float64).reshape(-1)
        return flat


def _ones(subject: Subject) -> FloatArray:
    """The cotangent of the sum of all outputs."""
    return subject.codomain.flatten(
        [np.ones(b.shape, dtype=np.complex128 if b.complex else np.float64) for b in subject.codomain.blocks]
    )


def _size(flat: Sequence[FloatArray], direction: FloatArray) -> FloatArray:
    return np.array([np.linalg.norm(part * direction) for part in flat])


def _real_parts(subject: Subject) -> FloatArray:
    """1 for real coordinates of the outputs, 0 for imaginary parts."""
    parts = [np.tile([1.0, 0.0], b.entries) if b.complex else np.ones(b.size) for b in subject.codomain.blocks]
    return np.concatenate(parts) if parts else np.zeros(0)


def _close(
    predicted: FloatArray, values: FloatArray, bounds: FloatArray, size: FloatArray, relative: float
) -> bool | None:
    """Whether predictions lie within the slopes' bounds; None if the bounds are too wide to decide."""
    reference = np.maximum(size, np.abs(values))
    usable = bounds <= 1e-3 * np.max(reference, initial=0.0)
    error = np.abs(predicted - values)
    inside = error <= _MARGIN * bounds + relative * reference
    return bool(inside[usable].all()) if usable.any() else None
