"""Which entries of a large claimed gradient are wrong, from directional derivatives alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import QuickReading, Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.stencil import TRUNCATION_FACTOR
from gradcli.numerics.maps.floats import EPS, Indices, Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import TRIES, Focus, random_direction, within

LARGEST_COUNT = 64
LARGEST_SEARCH = 300
"""Directions measured at most by one search."""
START = 0.004
"""Shorter steps than for certifying, because the bound is derived from the last step alone."""
QUICK_START = 0.001
"""Still shorter steps where only two pairs are taken, which leave a larger truncation error."""
LARGE, LARGE_START = 20_000, 0.006
"""For more entries than this, rounding is the larger error, and three pairs with longer steps are taken."""
ROUNDED, SUMMED = 256.0, 16.0
"""Rounding of a claim along a random direction, and of the value of a row, in units of the norm of the terms: 7 was
measured for sums of 10^5 to 10^6 terms."""
PATIENCE = 8
"""After so many splits without a single entry found, entries are sampled to see whether most of them are wrong."""
SHARP = 0.1
"""A digit of an index must be a whole number to this precision."""
SURE = 0.02
"""An entry whose digits may be off by more is measured alone, and must explain the gap of the whole part."""
INSIGNIFICANT = 1e-11
"""Gaps below this part of the largest entry are not looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """The wrong entries of a block as sorted flat indices; all others are right together.

    `additive` says that the slope through all entries is the sum of the slopes through the wrong ones and the others.
    """

    entries: Indices
    additive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """Claimed minus measured slopes of some entries: weighted plainly, and by each digit of their index (rows)."""

    entries: Indices
    values: Vector
    tolerance: Vector

    def without(self, part: _Gaps, entries: Indices) -> _Gaps:
        """What is left when a part is taken away: slopes are linear in the direction."""
        return _Gaps(entries=entries, values=self.values - part.values, tolerance=self.tolerance + part.tolerance)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Digit:
    """One digit of an entry's index along one axis: (index // divisor) % base."""

    axis: int
    divisor: int
    base: int
    of_entry: Indices


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The digits of a wrong entry's index, None where they are not whole, and by how much they are off.

    `sure` says that none could be taken for another.
    """

    values: list[int | None]
    off: Vector
    sure: bool


def locate(site: Site, input_: int, output: int) -> Located | None:
    """Find the wrong entries of one input block, where they are few or fill one slice of an axis.

    One wrong entry is decoded from a few directional derivatives: weighting every entry by a digit of its index along
    an axis multiplies the gap by that digit. If the digits along one axis come out whole and the others do not, the
    wrong entries fill one slice of that axis. Otherwise the entries are split at random until every part holds one
    wrong entry or none; of two parts only one is measured, the other is the difference.

    Args:
        site: the point.
        input_: the input block.
        output: the output block in whose rows the error shows.

    Returns:
        The entries, or None where they are too many to name.
    """
    return _Search(site, input_, output).run()


def proven(site: Site, input_: int, output: int, entries: Indices) -> Located | None:
    """Entries that are known to be wrong, if they are few, and differences of the map say so: three directions.

    Args:
        site: the point.
        input_: the input block.
        output: the output block in whose rows the error shows.
        entries: flat indices in the input block; a witness that the claim agrees with elsewhere tells them.

    Returns:
        None where they are more than `LARGEST_COUNT`, where the others are not right together along a direction, or
        where these are not wrong.
    """
    if not 0 < entries.size <= LARGEST_COUNT:
        return None
    return _Search(site, input_, output).proven(entries, sample=False)


def _enough(_quick_reading: QuickReading) -> bool:
    return True


def _extrapolated(quick_reading: QuickReading, *, straight: bool = False) -> Reading:
    """The reading with a bound from the last shift squared, beside the sum of all that adds up to the slope.

    What looks like a kink is not counted where the function is taken to be `straight`: over longer steps it is mostly
    curvature.
    """
    reading, short = quick_reading.rough(), quick_reading.short
    with np.errstate(all="ignore"):
        whole = reading.rounding / (16 * EPS)
        next_order = np.where(whole > 0, TRUNCATION_FACTOR**2 * short.shift**2 / whole, np.inf)
        bound = next_order + short.rounding + (0.0 if straight else np.abs(short.kink))
    return replace(reading, bound=np.fmin(reading.bound, bound))


class _Search:
    def __init__(self, site: Site, input_: int, output: int) -> None:
        self.site = site
        self.places = site.map.domain.slices[input_]
        self.block = site.map.domain.blocks[input_]
        self.size = self.places.stop - self.places.start
        self.rows: Mask = site.rows(output)
        self.weights = random_direction(site.rng, within(site.scales, self.places))
        self.floor = INSIGNIFICANT * site.claim.entry_scale(self.places, output, site.scales)
        self.measured = 0
        self.finely = False
        self.quick = True
        self.slopes: dict[str, Vector] = {}

    def _gap(self, entries: Indices, factors: Vector | None = None, name: str = "") -> tuple[Vector, Vector]:
        """Claimed minus measured along the weights of some entries times `factors`, with its tolerance, row by row.

        Three pairs suffice where the gaps stand out; otherwise (`finely`) the ladder is run. While entries are only
        looked for (`quick`), two pairs do: what they leave out is taken to fall from one order to the next as fast as
        from the one before, and what is found is proven with three.
        """
        self.measured += 1
        direction = self._direction(entries, factors)
        focus = Focus(drawn=np.abs(direction), judged=self.site.scales)
        if self.finely:
            reading = self.site.measure(direction, self.places, focus, cheap=False)
        elif self.quick and self.size > LARGE:
            reading = self._rounded(
                _extrapolated(self.site.quick_reading(direction, focus, LARGE_START), straight=True)
            )
        elif self.quick:
            reading = _extrapolated(self.site.quick_reading(direction, focus, QUICK_START, _enough))
        else:
            reading = self.site.quick_reading(direction, focus, START).rough()
        self.slopes[name] = reading.numeric
        ours = self.rows & ~reading.claimless & np.isfinite(reading.numeric) & np.isfinite(reading.tolerance)
        with np.errstate(all="ignore"):
            gap = np.where(ours, reading.claimed - reading.numeric, 0.0)
            return gap, np.where(ours, FAIL_FACTOR * reading.tolerance + self.floor, np.inf)

    def _direction(self, entries: Indices, factors: Vector | None) -> Vector:
        """The weights of some entries times `factors`, zero elsewhere."""
        direction = np.zeros(self.site.x.size)
        whole = entries.size == self.size
        moves = self.places if whole else self.places.start + entries
        direction[moves] = self.weights[moves] if factors is None else self.weights[moves] * factors
        return direction

    def _rounded(self, reading: Reading) -> Reading:
        """The reading with the rounding that long sums have, whose terms' errors have random signs.

        That of the claim is far below the worst there may be, that of the rows' values above a unit of the result.
        """
        site, first = self.site, reading.rounding.size - len(self.site.claim.forms)
        rounding, bound = reading.rounding.copy(), reading.bound.copy()
        for row, form in enumerate(site.claim.forms):
            terms = site.outputs if site.claim.cotangents is None else site.claim.cotangents[row] * site.outputs
            rounding[first + row] = min(rounding[first + row], ROUNDED * EPS * np.linalg.norm(form * reading.direction))
            bound[first + row] += SUMMED * EPS * np.linalg.norm(terms) / (LARGE_START / 4)
        return replace(reading, rounding=rounding, bound=bound)

    def _wrong(self, entries: Indices, name: str = "") -> bool:
        gap, tolerance = self._gap(entries, name=name)
        return bool((np.abs(gap) > tolerance).any())

    def _weighted(self, entries: Indices, digits: list[_Digit]) -> list[tuple[Vector, Vector]]:
        whole = entries.size == self.size
        return [self._gap(entries, 1 + (d.of_entry if whole else d.of_entry[entries]) / (2 * d.base)) for d in digits]

    def _all_gaps(self, entries: Indices, digits: list[_Digit]) -> _Gaps:
        plain, measured = self._gap(entries), self._weighted(entries, digits)
        return _Gaps(
            entries=entries,
            values=np.array([plain[0], *(gap for gap, _ in measured)]),
            tolerance=np.array([plain[1], *(tolerance for _, tolerance in measured)]),
        )

    def _digits(self, gap: Vector, tolerance: Vector) -> list[_Digit]:
        """Digits along every axis, as large as the precision of the plain gap allows; none if it allows none."""
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

    def _read(self, gaps: _Gaps, digits: list[_Digit]) -> _Read:
        """The value of every digit for the wrong entry.

        Tolerances are wide, so a digit that comes out nearly whole is taken for whole even if it might be another.
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
        return _Read(
            values=[round(value) if fits else None for value, fits in zip(read.tolist(), whole.tolist(), strict=True)],
            off=off,
            sure=bool((error < SURE).all()),
        )

    def _entry(self, gaps: _Gaps, digits: list[_Digit]) -> int | None:
        """The one entry of the part that all digits name."""
        read = self._read(gaps, digits)
        fits = np.ones(gaps.entries.size, bool)
        for digit, value in zip(digits, read.values, strict=True):
            if value is None:
                return None
            fits &= digit.of_entry[gaps.entries] == value
        if np.count_nonzero(fits) != 1:
            return None
        entry = gaps.entries[fits]
        return int(entry[0]) if read.sure or self._explains(entry, gaps) else None

    def _explains(self, entries: Indices, gaps: _Gaps) -> bool:
        """Whether the gap of some entries alone is that of the whole part."""
        plain, tolerance = self._gap(entries)
        return bool((np.abs(plain - gaps.values[0]) <= tolerance + gaps.tolerance[0]).all())

    def run(self) -> Located | None:
        """Decode one entry, then a slice, then split."""
        index = np.arange(self.size)
        gap, tolerance = self._gap(index, name="all")
        digits = self._digits(gap, tolerance)
        if not digits:
            self.finely = True
            gap, tolerance = self._gap(index, name="all")
            digits = self._digits(gap, tolerance)
        if not (np.abs(gap) > tolerance).any():
            return None
        weighted = self._weighted(index, digits)
        whole = _Gaps(
            entries=index,
            values=np.array([gap, *(g for g, _ in weighted)]),
            tolerance=np.array([tolerance, *(t for _, t in weighted)]),
        )
        entry = self._entry(whole, digits)
        candidates = [np.array([entry])] if entry is not None else self._slices(whole, digits)
        for entries in candidates:
            found = self.proven(entries, sample=entry is None)
            if found is not None:
                return found
        return self._several(whole, digits)

    def _several(self, whole: _Gaps, digits: list[_Digit]) -> Located | None:
        """Split; what the differences of large gaps hid is searched for again among the others."""
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
        """The slices along single axes whose digits are all whole numbers, the clearest first."""
        found = []
        read = self._read(gaps, digits)
        for axis in sorted({digit.axis for digit in digits}):
            ours = [k for k, digit in enumerate(digits) if digit.axis == axis]
            if len(ours) == len(digits) or any(read.values[k] is None for k in ours):
                continue
            inside = np.logical_and.reduce([digits[k].of_entry == read.values[k] for k in ours])
            found.append((float(read.off[ours].max()), np.flatnonzero(inside)))
        return [entries for _, entries in sorted(found, key=lambda slice_: slice_[0]) if entries.size]

    def proven(self, entries: Indices, *, sample: bool) -> Located | None:
        """What `_complete` says with three pairs a direction; where it disagrees, no shorter look is trusted again."""
        if self.quick:
            self.quick = False
            self._gap(np.arange(self.size), name="all")
        return self._complete(entries, sample=sample)

    def _complete(self, entries: Indices, *, sample: bool) -> Located | None:
        """Check that the others are right together, the entries wrong, and that slopes add up."""
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
        """Whether the slopes through the wrong entries and the others sum to that through all."""
        whole, parts = self.slopes["all"], self.slopes["others"] + self.slopes["wrong"]
        usable = self.rows & np.isfinite(whole) & np.isfinite(parts)
        allowed = 1e-7 * (np.abs(self.slopes["wrong"]) + 1e-3 * np.abs(whole)) + self.floor
        with np.errstate(all="ignore"):
            return bool((np.abs(whole - parts) <= allowed)[usable].all())

    def _split(self, whole: _Gaps, digits: list[_Digit]) -> Indices | None:
        """Split at random until every part holds one wrong entry or none."""
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
        """The gaps of two halves of a part; one of them may have all, and then has the part's digits too."""
        plain, tolerance = self._gap(one)
        left = np.abs(part.values[0] - plain)
        if not (np.abs(plain) > tolerance).any():
            return [replace(part, entries=other)]
        if not (left > part.tolerance[0] + tolerance).any():
            return [replace(part, entries=one)]
        measured = self._weighted(one, digits)
        gaps = _Gaps(
            entries=one,
            values=np.array([plain, *(gap for gap, _ in measured)]),
            tolerance=np.array([tolerance, *(slack for _, slack in measured)]),
        )
        return [part.without(gaps, other), gaps]

    def _dense(self) -> bool:
        """Whether two of a few random entries are wrong alone."""
        tried = self.site.rng.choice(self.size, min(2 * TRIES, self.size), replace=False)
        return sum(self._wrong(np.array([entry])) for entry in tried.tolist()) >= 2
