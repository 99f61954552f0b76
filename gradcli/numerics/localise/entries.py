"""Locates the wrong entries of a large claimed gradient by directional derivatives.

docs/numerics.md, section 8, has the idea: entries are weighted by the digits of their index, or divided at random.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import QuickReading, Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.stencil import TRUNCATION_FACTOR
from gradcli.numerics.differences.three_pairs import BOUNDED_STEP
from gradcli.numerics.localise.rows import LARGEST_COUNT, LARGEST_SEARCH, wrong_pairs
from gradcli.numerics.maps.floats import EPS, Indices, Mask, Vector
from gradcli.numerics.maps.sizes import COARSE, MEASURABLE, SIGNIFICANT
from gradcli.numerics.sampling.directions import TRIES, Focus, random_direction, within

SEARCH_STEP = BOUNDED_STEP / 2
"""The first step of two pairs, whose truncation error, of the order t⁴, is larger than that of three."""
SUMMED = 16.0
"""The rounding errors of a sum, in units of ε times the norm of its terms. 7 was measured for 10^5 to 10^6 terms."""
PATIENCE = 8
"""After this many divisions without an entry found, a few random entries show whether most of them are wrong."""
SHARP = 0.1
"""A digit must be a whole number to within this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """The wrong entries of a block, as sorted flat indices. All others together have been found right.

    `additive`: whether the slope along all entries is the sum of those along the wrong ones and along the others.
    """

    entries: Indices
    additive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """The errors (claimed - measured slope) of some entries: the plain one, then one weighted by each digit (rows)."""

    entries: Indices
    values: Vector
    tolerance: Vector

    def without(self, part: _Gaps, entries: Indices) -> _Gaps:
        """The errors of the entries that are left when a part is removed. Slopes are linear in the direction."""
        return _Gaps(entries=entries, values=self.values - part.values, tolerance=self.tolerance + part.tolerance)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Digit:
    """One digit of an entry's index along one axis: (index // divisor) % base."""

    axis: int
    divisor: int
    base: int
    of_entry: Indices


def locate(site: Site, input_: int, output: int) -> Located | None:
    """Locate the wrong entries of one input block, if they are few or lie in one slice of an axis.

    If there is one wrong entry, weighting every entry by 1 + digit / (2 base), for a digit of its index along an axis,
    multiplies the error by that factor; so the digits can be read off. If only the digits along one axis are whole
    numbers, the wrong entries lie in one slice of that axis. Otherwise the entries are divided at random until every
    part has one wrong entry or none. Of two parts only one is measured; the other is the difference. First come the
    entries that would be wrong if every output depended on one entry alone (`wrong_pairs`).

    Args:
        output: the output block in whose rows the error shows.

    Returns:
        The entries; None if there are too many.
    """
    return _Search(site, input_, output).run()


def proven(site: Site, input_: int, output: int, entries: Indices) -> Located | None:
    """Prove by finite differences along three directions that the given entries are wrong and all others are right.

    Args:
        output: the output block in whose rows the error shows.
        entries: the suspected entries, as flat indices in the input block.

    Returns:
        None if there are more than `LARGEST_COUNT` or none, if they are not wrong, or if the others are not right.
    """
    if not 0 < entries.size <= LARGEST_COUNT:
        return None
    return _Search(site, input_, output).proven(entries, sample=False)


def _extrapolated(quick_reading: QuickReading) -> Reading:
    """The reading, with a truncation bound from the assumption that errors fall equally fast from order to order.

    With W the sum of the absolute terms of the slope and d the change by the largest step, the bound is (4 d)² / W.
    A change of slope at x is not added, because it is mostly curvature.
    """
    reading, short = quick_reading.rough(), quick_reading.short
    with np.errstate(all="ignore"):
        whole = reading.rounding / (16 * EPS)
        next_order = np.where(whole > 0, TRUNCATION_FACTOR**2 * short.shift**2 / whole, np.inf)
        bound = next_order + short.rounding
    return replace(reading, bound=np.fmin(reading.bound, bound))


class _Search:
    def __init__(self, site: Site, input_: int, output: int) -> None:
        self.site, self.input, self.output = site, input_, output
        self.places = site.map.domain.slices[input_]
        self.block = site.map.domain.blocks[input_]
        self.size = self.places.stop - self.places.start
        self.rows: Mask = site.rows(output)
        self.weights = random_direction(site.rng, within(site.scales, self.places))
        self.floor = MEASURABLE * site.claim.entry_scale(self.places, output, site.scales)
        self.measured = 0
        self.finely = False
        self.quick = True
        self.slopes: dict[str, Vector] = {}

    def _gap(self, entries: Indices, factors: Vector | None = None, name: str = "") -> tuple[Vector, Vector]:
        """The error (claimed - measured slope) of every row along the weights of some entries times `factors`.

        Also gives its tolerance. Two pairs of values are used while entries are only searched for (`quick`), three to
        prove the result, and `directional_derivative` if the error is not clear enough for that (`finely`).
        """
        self.measured += 1
        direction = self._direction(entries, factors)
        focus = Focus(drawn=np.abs(direction), judged=self.site.scales)
        if self.finely:
            reading = self.site.measure(direction, self.places, focus, cheap=False)
        elif self.quick:
            short = self.site.quick_reading(direction, focus, SEARCH_STEP, lambda _: True)
            reading = self._rounded(_extrapolated(short))
        else:
            reading = self.site.quick_reading(direction, focus, BOUNDED_STEP).rough()
        self.slopes[name] = reading.numeric
        ours = self.rows & ~reading.claimless & np.isfinite(reading.numeric) & np.isfinite(reading.tolerance)
        with np.errstate(all="ignore"):
            gap = np.where(ours, reading.claimed - reading.numeric, 0.0)
            return gap, np.where(ours, FAIL_FACTOR * reading.tolerance + self.floor, np.inf)

    def _direction(self, entries: Indices, factors: Vector | None) -> Vector:
        """The weights of some entries times `factors`, zero for all others."""
        direction = np.zeros(self.site.x.size)
        moves = self.places if entries.size == self.size else self.places.start + entries
        direction[moves] = self.weights[moves] if factors is None else self.weights[moves] * factors
        return direction

    def _rounded(self, reading: Reading) -> Reading:
        """The reading, with the rounding errors of long sums, whose terms have errors of random signs.

        The claimed slope is then more accurate than its worst case, and a value less accurate than its last digit. In
        a single output, large terms may cancel: the slope along all entries says how large.
        """
        rounding, bound = reading.rounding.copy(), reading.bound.copy()
        for row, form in enumerate(self.site.claim.forms, rounding.size - len(self.sizes)):
            slope = float(SUMMED * EPS * np.linalg.norm(form * reading.direction))
            rounding[row] = min(rounding[row], slope)
            bound[row] += max(SUMMED * EPS * self.sizes[row - rounding.size], slope) / (SEARCH_STEP / 4)
        return replace(reading, rounding=rounding, bound=bound)

    @cached_property
    def sizes(self) -> list[float]:
        """For every claimed row, the root of the sum of the squared terms of its value."""
        outputs, rows = self.site.outputs, self.site.claim.cotangents
        terms = [outputs] * len(self.site.claim.forms) if rows is None else [row * outputs for row in rows]
        return [float(np.linalg.norm(each)) for each in terms]

    def _wrong(self, entries: Indices, name: str = "") -> bool:
        gap, tolerance = self._gap(entries, name=name)
        return bool((np.abs(gap) > tolerance).any())

    def _weighted(self, entries: Indices, digits: list[_Digit]) -> list[tuple[Vector, Vector]]:
        whole = entries.size == self.size
        return [self._gap(entries, 1 + (d.of_entry if whole else d.of_entry[entries]) / (2 * d.base)) for d in digits]

    def _all_gaps(self, entries: Indices, digits: list[_Digit], plain: tuple[Vector, Vector] | None = None) -> _Gaps:
        """The errors of some entries; the plain one is measured unless it is known."""
        measured = [plain or self._gap(entries), *self._weighted(entries, digits)]
        return _Gaps(
            entries=entries,
            values=np.array([gap for gap, _ in measured]),
            tolerance=np.array([tolerance for _, tolerance in measured]),
        )

    def _digits(self, gap: Vector, tolerance: Vector) -> list[_Digit]:
        """The digits along every axis, in the largest base that the accuracy of the plain error allows; [] for none."""
        with np.errstate(all="ignore"):
            sharpness = float((np.abs(gap) / tolerance).max(initial=0.0))
        largest = int(min(sharpness * SHARP / 3, 4096))
        if largest < 2:
            return []
        shape = (*self.block.shape, 2) if self.block.complex else self.block.shape
        indices = np.unravel_index(np.arange(self.size), shape) if shape else (np.arange(self.size),)
        found = []
        for axis, index in enumerate(indices):
            length = int(index.max()) + 1
            parts = max(1, math.ceil(math.log(length) / math.log(largest) - 1e-9)) if length > 1 else 0
            base = math.ceil(length ** (1 / parts) - 1e-9) if parts else 1
            for k in range(parts):
                divisor = base**k
                found.append(_Digit(axis=axis, divisor=divisor, base=base, of_entry=index // divisor % base))
        return found

    def _read(self, gaps: _Gaps, digits: list[_Digit]) -> tuple[list[int | None], Vector]:
        """The digits of the wrong entry's index (None if not a whole number), and their distances from whole numbers.

        Tolerances are wide: a digit close to a whole number counts as whole even if its tolerance is larger.
        """
        plain, tolerance = gaps.values[0], gaps.tolerance[0]
        with np.errstate(all="ignore"):
            row = int(np.argmax(np.where(np.isfinite(tolerance), np.abs(plain) / tolerance, 0.0)))
            bases = np.array([digit.base for digit in digits])
            read = (gaps.values[1:, row] / plain[row] - 1) * 2 * bases
            error = np.fmax(2 * bases * (gaps.tolerance[1:, row] + 2 * tolerance[row]) / abs(plain[row]), 1e-9)
            off = np.abs(read - np.round(read))
            whole = (off <= error) & ((error < 2 * SHARP) | (off < SHARP)) & (np.round(read) >= 0)
        whole &= np.round(read) < bases
        values = zip(read.tolist(), whole.tolist(), strict=True)
        return [round(value) if fits else None for value, fits in values], off

    def _entry(self, gaps: _Gaps, digits: list[_Digit]) -> int | None:
        """The entry of the part to which all digits point; None if there is not exactly one."""
        fits = np.ones(gaps.entries.size, bool)
        for digit, value in zip(digits, self._read(gaps, digits)[0], strict=True):
            if value is None:
                return None
            fits &= digit.of_entry[gaps.entries] == value
        return int(gaps.entries[fits][0]) if np.count_nonzero(fits) == 1 else None

    def run(self) -> Located | None:
        """Try entries with outputs of their own, then to decode a single entry, then a slice; then divide."""
        index = np.arange(self.size)
        own = wrong_pairs(self.site, self.input, self.output, self._direction(index, None))
        if 0 < own.size <= LARGEST_COUNT and (found := self.proven(own, sample=False)) is not None:
            return found
        self.quick = True
        gap, tolerance = self._gap(index, name="all")
        digits = self._digits(gap, tolerance)
        if not digits:
            self.finely = True
            gap, tolerance = self._gap(index, name="all")
            digits = self._digits(gap, tolerance)
        if not (np.abs(gap) > tolerance).any():
            return None
        whole = self._all_gaps(index, digits, (gap, tolerance))
        entry = self._entry(whole, digits)
        candidates = [np.array([entry])] if entry is not None else self._slices(whole, digits)
        for entries in candidates:
            found = self.proven(entries, sample=entry is None)
            if found is not None:
                return found
        return self._several(whole, digits)

    def _several(self, whole: _Gaps, digits: list[_Digit]) -> Located | None:
        """Divide, and search again among the other entries for errors that were hidden by larger ones."""
        entries: Indices = np.zeros(0, np.intp)
        part = whole
        for _ in range(TRIES):
            more = self._split(part, digits)
            if more is None or not more.size:
                return None
            entries = np.concatenate([entries, more])
            found = self.proven(entries, sample=False)
            if found is not None or entries.size > LARGEST_COUNT:
                return found
            part = self._all_gaps(np.delete(np.arange(self.size), entries), digits)
        return None

    def _slices(self, gaps: _Gaps, digits: list[_Digit]) -> list[Indices]:
        """The slices along single axes whose digits are all whole numbers, those with the clearest digits first."""
        found = []
        values, off = self._read(gaps, digits)
        for axis in sorted({digit.axis for digit in digits}):
            ours = [k for k, digit in enumerate(digits) if digit.axis == axis]
            if len(ours) == len(digits) or any(values[k] is None for k in ours):
                continue
            inside = np.logical_and.reduce([digits[k].of_entry == values[k] for k in ours])
            found.append((float(off[ours].max()), np.flatnonzero(inside)))
        return [entries for _, entries in sorted(found, key=lambda slice_: slice_[0]) if entries.size]

    def proven(self, entries: Indices, *, sample: bool) -> Located | None:
        """The result of `_complete`, measured with three pairs of values, which are then also used from here on."""
        if self.quick:
            self.quick = False
            self._gap(np.arange(self.size), name="all")
        return self._complete(entries, sample=sample)

    def _complete(self, entries: Indices, *, sample: bool) -> Located | None:
        """Prove that the entries are wrong and the others right together; with `sample`, single entries as well."""
        entries = np.sort(entries).astype(np.intp)
        others = np.delete(np.arange(self.size), entries)
        if not entries.size or (others.size and self._wrong(others, "others")):
            return None
        if not self._wrong(entries, "wrong"):
            return None
        if sample:
            tried = self.site.rng.choice(entries, min(TRIES, entries.size), replace=False)
            if 2 * sum(self._wrong(np.array([entry])) for entry in tried.tolist()) < tried.size:
                return None
        additive = not others.size or self._adds_up()
        return Located(entries=entries, additive=additive)

    def _adds_up(self) -> bool:
        """Whether the slopes along the wrong entries and along the others add up to that along all."""
        whole, parts = self.slopes["all"], self.slopes["others"] + self.slopes["wrong"]
        usable = self.rows & np.isfinite(whole) & np.isfinite(parts)
        allowed = SIGNIFICANT * (np.abs(self.slopes["wrong"]) + COARSE * np.abs(whole)) + self.floor
        with np.errstate(all="ignore"):
            return bool((np.abs(whole - parts) <= allowed)[usable].all())

    def _split(self, whole: _Gaps, digits: list[_Digit]) -> Indices | None:
        """Divide at random until every part has one wrong entry or none; None if there are too many."""
        found: list[int] = []
        open_, splits = [whole], 0
        while open_:
            part = open_.pop()
            if not (np.abs(part.values[0]) > part.tolerance[0]).any():
                continue
            entry = self._entry(part, digits) if part.entries.size > 1 else int(part.entries[0])
            if entry is not None:
                found.append(entry)
                continue
            splits += 1
            given_up = len(found) > LARGEST_COUNT or self.measured > LARGEST_SEARCH
            if given_up or (splits == PATIENCE and not found and self._dense()):
                return None
            order = self.site.rng.permutation(part.entries)
            middle = order.size // 2
            open_ += self._halves(part, np.sort(order[:middle]), np.sort(order[middle:]), digits)
        return np.array(sorted(found), dtype=np.intp)

    def _halves(self, part: _Gaps, one: Indices, other: Indices, digits: list[_Digit]) -> list[_Gaps]:
        """The errors of two halves of a part. If one half is right, the other has the errors of the whole part."""
        plain, tolerance = self._gap(one)
        left = np.abs(part.values[0] - plain)
        if not (np.abs(plain) > tolerance).any():
            return [replace(part, entries=other)]
        if not (left > part.tolerance[0] + tolerance).any():
            return [replace(part, entries=one)]
        gaps = self._all_gaps(one, digits, (plain, tolerance))
        return [part.without(gaps, other), gaps]

    def _dense(self) -> bool:
        """Whether at least two of six random entries are wrong when measured alone."""
        tried = self.site.rng.choice(self.size, min(2 * TRIES, self.size), replace=False)
        return sum(self._wrong(np.array([entry])) for entry in tried.tolist()) >= 2
