"""Gradient and reference at one of the other inputs, and whether differences have to decide there."""

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.checks.base import Situation
from gradcli.checks.iteration import reaches_its_limit
from gradcli.checks.other_points.changes import Change
from gradcli.checks.other_points.points import Arguments
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales

ARBITRATED = 3
"""Differences are computed at so many other inputs at most, whatever they show."""
_APART, _APART_IN_ENTRY = 1e-4, 1e-3
"""Gaps of claim and witness above which differences decide: relative to the block's largest entry, to the entry."""
_ENTRIES, _STEP, _LONG_STEP, _WIDE = 3, 2.0**-16, 2.0**-8, 0.02
"""How many of the worst entries are looked at, with which steps, and the smallest gap, relative to its entry, that
plain quotients can show: these are a cheap way to tell a kink from a mistake."""
_ROUNDED, _UNSURE = tuple(1 + number * 2.0**-48 for number in (1, -1, 3, -3, 5)), 0.1
"""Factors for all entries together, which keep zeros and what is equal, and round each entry differently; and how much
of the gap of claim and witness either may change between them, so that the gap says something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Gradient and reference at one of the other inputs, for one cotangent; `other` is None without a reference.

    `data` are the positions of inputs without a gradient that changed; `witness` is the map of the reference.
    `zero` says that an input, or a row of it, was made zero.
    """

    subject: Subject
    arguments: Arguments
    data: tuple[int, ...]
    point: FloatArray
    cotangent: FloatArray
    value: FloatArray
    claimed: FloatArray
    other: FloatArray | None
    witness: VectorMap | None
    zero: bool

    @property
    def excused(self) -> bool:
        """Whether a non-finite gradient at zeros is only noted, as autodiff is not finite there either."""
        return self.zero and self.other is None

    def doubtful(self, situation: Situation, *, special: bool) -> bool:
        """Whether differences have to decide here: gradient and reference differ, for no known reason.

        Or both are wrong at `special` values.
        """
        map_ = self.subject.derivative_map(1)
        apart = self.other is None or self.apart(situation)
        if not apart and not (special and self.is_off_at_special_values()):
            return False
        try:
            known = reaches_its_limit(situation.subject, self.arguments) or self._is_coarse(map_)
            known = known or (self.witness is not None and self._changes(self.witness))
            return not known and (not apart or self._seems_wrong(map_))
        except UserCodeError:  # forward refuses what lies close by
            return False

    @property
    def most_asked(self) -> int:
        """Up to how many points differences are computed: at more where a quotient along a line shows a mistake."""
        return 2 * ARBITRATED if self.other is None and self._is_off_along_a_line() else ARBITRATED

    def _is_off_along_a_line(self) -> bool:
        """Whether a plain quotient on both sides, along a random line, differs visibly from the gradient along it."""
        line = self._random_line(np.ones(self.point.size, bool))
        found = self._gap_along(line, _STEP)
        if found is None:
            return False
        gap, _, size, noise = found
        return gap > _WIDE * size + noise

    def is_off_at_special_values(self) -> bool:
        """Whether quotients along a line through the special values alone contradict the gradient, and show no kink.

        Autodiff may be as wrong there as backward: it gives exp(|x|) (1 - tanh |x|) another slope at zero, where one
        kink makes up for the other.
        """
        special = np.zeros(self.point.size, bool)
        for value in Change.SPECIAL.values[0]:  # np.isin imports numpy.ma
            special |= self.point == value
        if not special.any() or not np.isfinite(self.claimed).all():
            return False
        line, gaps = self._random_line(special), list[float]()
        for step in (_STEP, _STEP / 8):
            found = self._gap_along(line, step)
            if found is None:
                return False
            gap, sides, size, noise = found
            if gap <= _WIDE * max(size, *map(abs, sides)) + noise or abs(sides[0] - sides[1]) > gap / 4:
                return False
            gaps.append(gap)
        return gaps[1] > gaps[0] / 2  # the quotients of a cube at zero become smaller with the step

    def is_smooth_where_not_finite(self) -> bool:
        """Whether forward shows no kink and no jump along a line through the entries whose gradient is not finite.

        Where an input was made zero, the line goes through its zeros too. The slopes do not grow as the step becomes
        shorter, and those to both sides are close, or approach each other.
        """
        line = self._random_line(~np.isfinite(self.claimed) | (self.zero & (self.point == 0)))
        wide, narrow = self._slopes(line, _LONG_STEP), self._slopes(line, _STEP)
        if wide is None or narrow is None or not np.isfinite([*wide, *narrow]).all():
            return False
        apart, largest = abs(narrow[0] - narrow[1]), max(map(abs, narrow))
        if largest > 2 * max(map(abs, wide)):
            return False
        return apart <= largest / 4 or apart <= abs(wide[0] - wide[1]) / 4

    def _gap_along(self, line: FloatArray, step: float) -> tuple[float, tuple[float, float], float, float] | None:
        """How far the mean of both quotients is from the gradient along a line; None where forward refuses a point.

        Then the quotients, the sum of the sizes of the gradient's terms, and the rounding error of the mean.
        """
        sides = self._slopes(line, step)
        if sides is None:
            return None
        noise = 64 * np.finfo(np.float64).eps * float(np.abs(self.cotangent) @ np.abs(self.value)) / step
        gap = abs(sum(sides) / 2 - float(self.claimed @ line))
        return gap, sides, float(np.abs(self.claimed) @ np.abs(line)), noise

    def _random_line(self, entries: NDArray[np.bool_]) -> FloatArray:
        scales = entry_scales(self.subject.domain, self.point)
        return np.where(entries, scales * np.random.default_rng(37).uniform(-1.0, 1.0, scales.size), 0.0)

    def _slopes(self, line: FloatArray, step: float) -> tuple[float, float] | None:
        """Plain quotients to the right and to the left; None where forward refuses what lies close by."""
        map_, here = self.subject.derivative_map(1), float(self.cotangent @ self.value)
        try:
            right, left = (float(self.cotangent @ map_.value(self.point + side * step * line)) for side in (1, -1))
        except UserCodeError:
            return None
        return (right - here) / step, (here - left) / step

    def _gap(self) -> FloatArray:
        return np.abs(self.claimed - (self.claimed if self.other is None else self.other))

    def _size(self) -> FloatArray:
        return np.maximum(np.abs(self.claimed), 0.0 if self.other is None else np.abs(self.other))

    def apart(self, situation: Situation) -> bool:
        """Whether the two differ beyond rounding, in a block or in single entries far below its largest."""
        if self.other is None or not np.any(self.claimed != self.other):
            return False
        if not np.isfinite(self.claimed).all():
            return True
        space, tolerance = situation.subject.domain, situation.tolerance(_APART)
        floor = 64 * np.finfo(np.float64).eps * float(np.abs(self.cotangent) @ np.abs(self.value))
        floors = floor / np.minimum(entry_scales(space, self.point), 1.0)
        gap, size = self._gap(), self._size()
        for place in space.slices:
            largest = float(size[place].max(initial=0.0))
            whole = gap[place] > tolerance * largest + floors[place]
            single = gap[place] > _APART_IN_ENTRY * size[place] + 1e-10 * largest + 100 * floors[place]
            if bool((whole | single).any()):
                return True
        return False

    def is_unsure(self) -> bool:
        """Whether rounding the inputs changes the gradient by much of its distance from the reference.

        So it is where a matrix that backward inverts is singular up to rounding, and forward may take its rank from it.
        """
        return self._changes(self.subject.derivative_map(1))

    def _changes(self, map_: VectorMap) -> bool:
        """Whether rounding the inputs changes the gradient of a map by much of what claim and witness are apart.

        For one input that is enough: a block of large entries may stay the same by chance.
        """
        gap, size = self._gap(), self._size()
        if not np.isfinite(gap).all():
            return False
        found = [pulled(map_, factor * self.point, self.cotangent) for factor in _ROUNDED]
        rows = np.array([each[1] for each in found if each is not None])
        if len(rows) < 2:
            return False
        scales, spread = entry_scales(self.subject.domain, self.point), np.ptp(rows, axis=0)
        for place in self.subject.domain.slices:
            apart, largest, change = (float((v * scales)[place].max(initial=0.0)) for v in (gap, size, spread))
            if apart > _APART * largest and change > _UNSURE * apart:
                return True
        return False

    def _is_coarse(self, map_: VectorMap) -> bool:
        """Whether forward rounds to 32 bits or less: its values at a nearby point are all float32 numbers.

        Where a reference says that forward is zero throughout a branch, zeros are no sign of rounding.
        """
        scales = entry_scales(map_.domain, self.point)
        values = map_.value(self.point + scales * np.random.default_rng(29).uniform(2.0**-12, 2.0**-11, scales.size))
        with np.errstate(all="ignore"):
            rounded = bool((values == values.astype(np.float32)).all())
        return rounded and (self.other is None or bool(self.other.any()) or bool(values.any()))

    def _seems_wrong(self, map_: VectorMap) -> bool:
        """Whether quotients on both sides agree with each other but not with backward, in one of the worst entries.

        At a kink any value between the slopes is right. Differences too small for plain quotients count as wrong here.
        """
        unknown = self.other is None and not np.isfinite(self.claimed).all()
        if (unknown or self.zero) and not self.is_smooth_where_not_finite():
            return False
        gap, size, scales = self._gap(), self._size(), entry_scales(map_.domain, self.point)
        here = float(self.cotangent @ self.value)
        if not np.isfinite(gap).all():
            return True
        if self.other is None:
            return True
        for entry in np.argsort(-gap * scales, kind="stable")[:_ENTRIES]:
            if not gap[entry]:
                continue
            if gap[entry] < _WIDE * size[entry]:
                return True
            step = np.zeros(self.point.size)
            step[entry] = _STEP * scales[entry]
            right = (float(self.cotangent @ map_.value(self.point + step)) - here) / step[entry]
            left = (here - float(self.cotangent @ map_.value(self.point - step))) / step[entry]
            smooth = abs(right - left) <= gap[entry] / 4
            if smooth and abs((right + left) / 2 - self.claimed[entry]) > gap[entry] / 4:
                return True
        return False


def close(values: FloatArray, others: FloatArray) -> bool:
    """Whether forward and its body give the same values."""
    return bool((np.abs(values - others) <= 1e-9 * np.abs(others)).all())


def pulled(
    map_: VectorMap, point: FloatArray, cotangent: FloatArray, *, finite: bool = True
) -> tuple[FloatArray, FloatArray] | None:
    """Value and gradient of a map; None if it raises, runs too long, or either is not finite.

    A gradient that is not finite is returned too unless it is to be `finite`.
    """
    try:
        value, rows = map_.value_and_vjps(point, cotangent[None])
        value = map_.value(point) if value is None else value
    except UserCodeError:
        return None
    return (value, rows[0]) if np.isfinite(value).all() and (not finite or np.isfinite(rows).all()) else None
