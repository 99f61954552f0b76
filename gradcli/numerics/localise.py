"""Which entries of a large claimed gradient are wrong, from directional derivatives alone."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gradcli.numerics.compare import FAIL_FACTOR
from gradcli.numerics.probe import Focus, random_direction, within
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector

Indices = npt.NDArray[np.intp]

LARGEST_COUNT = 64
LARGEST_SEARCH = 400
"""Directions measured at most by one search."""
LARGEST_SLICES = 8
SAMPLED = 4


def locate(site: Site, input_: int, output: int) -> Indices | None:
    """Find the wrong entries of one input block, as flat indices within it.

    One wrong entry is decoded from the ratio of three directional derivatives; several are found by halving the block;
    many, if they fill a few rows or columns of it, by halving each of its axes.

    Args:
        site: the point.
        input_: the input block.
        output: the output block in whose rows the error shows.

    Returns:
        Sorted indices, or None where the wrong entries are too many to name.
    """
    search = _Search(site, input_, output)
    for attempt in (search.decode, search.halve, search.slices):
        found = attempt()
        if found is not None:
            return found
    return None


class _Search:
    def __init__(self, site: Site, input_: int, output: int) -> None:
        self.site = site
        self.places = site.map.domain.slices[input_]
        self.block = site.map.domain.blocks[input_]
        self.size = self.places.stop - self.places.start
        self.rows = site.rows(output)
        self.weights = random_direction(site.rng, within(site.scales, self.places))
        self.measured = 0

    def gap(self, factors: Vector) -> tuple[Vector, Vector]:
        """Claimed minus measured along the weights times `factors` (one an entry of the block), with its tolerance."""
        self.measured += 1
        direction = np.zeros(self.site.x.size)
        direction[self.places] = self.weights[self.places] * factors
        focus = Focus(drawn=np.abs(direction), judged=self.site.scales)
        reading = self.site.measure(direction, self.places, focus)
        ours = self.rows & reading.smooth & ~reading.claimless
        with np.errstate(all="ignore"):
            return np.where(ours, reading.claimed - reading.numeric, 0.0), np.where(ours, reading.tolerance, np.inf)

    def wrong(self, entries: Indices) -> bool:
        """Whether moving some entries alone shows an error."""
        factors = np.zeros(self.size)
        factors[entries] = 1.0
        gap, tolerance = self.gap(factors)
        return bool((np.abs(gap) > FAIL_FACTOR * tolerance).any())

    def decode(self) -> Indices | None:
        """Take the error for one entry: weighting the entries by a digit of their index multiplies it by that digit.

        With index = high base + low, weights 1 + low / 2 base: the gap of the weighted direction over the plain one is
        1 + low / 2 base for the wrong entry; likewise for high. Both digits must come out whole, the entry must be
        wrong alone, and the rest right without it.
        """
        base = math.isqrt(max(self.size - 1, 0)) + 1
        index = np.arange(self.size)
        plain, tolerance = self.gap(np.ones(self.size))
        with np.errstate(all="ignore"):
            row = int(np.argmax(np.where(tolerance > 0, np.abs(plain) / tolerance, 0.0)))
        if not abs(plain[row]) > 8 * base * tolerance[row]:
            return None
        digits = []
        for digit in (index % base, index // base):
            weighted, _ = self.gap(1 + digit / (2 * base))
            digits.append((weighted[row] / plain[row] - 1) * 2 * base)
        low, high = (round(float(d)) if math.isfinite(d) else -1 for d in digits)
        entry = high * base + low
        if max(abs(d - round(float(d))) for d in digits) > 0.4 or not 0 <= entry < self.size:
            return None
        rest = np.delete(index, entry)
        if self.wrong(np.array([entry])) and not (rest.size and self.wrong(rest)):
            return np.array([entry], dtype=np.intp)
        return None

    def _among(self, groups: Indices, most: int) -> list[int] | None:
        """The numbers of the wrong groups (rows of entries), by halving; None beyond `most` or the search's limit."""
        found: list[int] = []
        open_ = [(0, len(groups))]
        limit = self.measured + LARGEST_SEARCH
        while open_:
            start, stop = open_.pop()
            if not self.wrong(groups[start:stop].ravel()):
                continue
            if stop - start == 1:
                found.append(start)
            else:
                middle = (start + stop) // 2
                open_ += [(middle, stop), (start, middle)]
            if len(found) > most or self.measured > limit:
                return None
        return found

    def halve(self) -> Indices | None:
        """Find wrong entries by halving stretches of the block."""
        found = self._among(np.arange(self.size)[:, None], LARGEST_COUNT)
        return None if found is None else np.array(sorted(found), dtype=np.intp)

    def slices(self) -> Indices | None:
        """Find an axis along which a few slices hold all wrong entries, most of each slice being wrong."""
        parts = 2 if self.block.complex else 1
        index = np.arange(self.size).reshape(*self.block.shape, parts)
        for axis, length in enumerate(self.block.shape):
            if length < 2 or len(self.block.shape) < 2:
                continue
            groups = np.moveaxis(index, axis, 0).reshape(length, -1)
            found = self._among(groups, LARGEST_SLICES)
            if not found or len(found) == length:
                continue
            entries = groups[found].ravel()
            sample = self.site.rng.choice(entries, min(SAMPLED, entries.size), replace=False)
            if 2 * sum(self.wrong(np.array([entry])) for entry in sample.tolist()) > sample.size:
                return np.sort(entries)
        return None


def wrong_rows(site: Site, input_: int, output: int) -> Indices:
    """Find outputs of one block whose claimed rows are wrong, by halving the cotangent; at most 32.

    Only backward runs are needed: one measured direction gives J v for every output. Empty where the outputs are not
    measured one by one.
    """
    claim, places = site.claim, site.map.domain.slices[input_]
    outside = site.map.codomain.slices[output]
    reading = site.probe(places, cheap=False)
    first = outside.start
    if claim.full or claim.watch:
        numeric, bound = reading.numeric[: site.map.codomain.size], reading.bound[: site.map.codomain.size]
    else:
        return np.zeros(0, np.intp)
    found: list[int] = []
    open_, asked = [(first, outside.stop)], 0
    while open_ and asked < LARGEST_SEARCH and len(found) < LARGEST_COUNT // 2:
        start, stop = open_.pop()
        cotangent = np.zeros(site.map.codomain.size)
        cotangent[start:stop] = random_direction(site.rng, np.ones(stop - start))
        asked += 1
        form = np.asarray(site.map.vjp(site.x, cotangent), dtype=np.float64)
        with np.errstate(all="ignore"):
            gap = abs(float(form @ reading.direction) - float(cotangent[start:stop] @ numeric[start:stop]))
            tolerance = float(np.abs(cotangent[start:stop]) @ bound[start:stop]) + 1e-15 * float(
                np.abs(form) @ np.abs(reading.direction)
            )
        if gap > FAIL_FACTOR * tolerance:
            if stop - start == 1:
                found.append(start - first)
            else:
                middle = (start + stop) // 2
                open_ += [(middle, stop), (start, middle)]
    return np.array(sorted(found), dtype=np.intp)
