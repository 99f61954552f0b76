"""Measures directions through inputs of many entries, in which rounding of the values hides single entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import numpy as np

from gradcli.numerics.claims.compare import Impression, QuickReading, Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.differences.three_pairs import ThreePairs
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.outcome import Pair
from gradcli.numerics.sampling.directions import Focus, random_direction
from gradcli.numerics.screen.pair_result import PairResult

CLEARLY = 100.0
"""In a large block, an error of more than this many bounds of three pairs of values is a difference, which is located
and confirmed without a more accurate measurement first."""
GROUP_START = 0.2
"""Entries of small scale are moved by up to 0.44 of their scale: at most 2.2 times this, so that none crosses zero,
where many functions have a kink. They may miss the claim by rounding of the values, which are large compared with them;
if they miss it by more, they are measured with smaller steps."""


@final
class SmallerPair:
    """Sees the outputs at four or six points, and keeps their change from the fourth to the third.

    Two pairs of values are evaluated first, the wider one of them before the other.
    """

    def __init__(self) -> None:
        self._number = 0
        self._third: Vector | None = None
        self.change: Vector | None = None

    def __call__(self, outputs: Vector) -> None:
        """The outputs at the next point."""
        self._number += 1
        if self._number == 3:
            self._third = outputs.copy()
        elif self._number == 4 and self._third is not None:
            self._third -= outputs
            self.change = self._third


def measured(
    site: Site,
    places: slice,
    focus: Focus,
    start: float,
    *,
    first: QuickReading | None = None,
    seen: Callable[[Vector], None] | None = None,
) -> tuple[QuickReading, bool]:
    """Two or three pairs of values along a random direction, and whether they meet the claim.

    Args:
        start: the largest step is between this and 2.2 times this.
        first: for a group of small scale, the reading along all entries, which says by how much the group may miss the
            claim (`missed`).
        seen: is given the outputs at each point.
    """

    noise = noise_of(first) if first is not None and site.is_met(first, places) else np.zeros(site.claim.rows)

    def met(reading: QuickReading) -> bool:
        short = reading.short
        return site.is_met(reading, places, 0.0 if first is None else missed(short, noise, first.short.gain))

    quick_reading = site.quick_reading(random_direction(site.rng, focus.drawn), focus, start, met, seen)
    return quick_reading, met(quick_reading)


def noise_of(reading: QuickReading) -> Vector:
    """The noise of the values of each row by which its slope missed the claim.

    A sum of terms that cancel has more noise than its own digits say.
    """
    return np.nan_to_num(reading.reading.error, posinf=0.0) / reading.short.gain


def missed(short: ThreePairs, noise: Vector, gain: float) -> Vector:
    """By how much the slopes along a group may miss the claim: by rounding of the values, and by other noise in them.

    The noise is what the slope along all entries, which met the claim, missed it by over its `gain`. That may also be
    the error of a wrong entry, which the group would show at half its size or more: a quarter of it is not allowed for.
    """
    allowed: Vector = NOISE_FACTOR * (short.rounding + noise * min(short.gain, gain / (4 * NOISE_FACTOR)))
    return allowed


def joint_reading(site: Site, places: slice, groups: Sequence[Focus], first: QuickReading) -> Reading | None:
    """One direction through several groups of small scale, if it meets the claim; otherwise None.

    It may miss the claim by no more than the group of the smallest scale may alone. Rounding of the values is the same
    for all groups, so that moving them together hides nothing that each alone would show.

    Args:
        groups: the groups, of which some may share entries.
        first: as in `measured`.
    """
    judged = min((group.judged for group in groups), key=lambda scales: float(scales[0]))
    focus = Focus(drawn=np.maximum.reduce([group.drawn for group in groups]), judged=judged)
    quick_reading, met = measured(site, places, focus, GROUP_START, first=first)
    return quick_reading.reading if met else None


def clearly_wrong(
    site: Site, pairs: Sequence[Pair], quick_reading: QuickReading, significance: float
) -> dict[Pair, PairResult]:
    """The pairs that differ by more than `CLEARLY` bounds of three pairs of values, with their results."""
    reading, found = quick_reading.rough(), {}
    for pair in pairs:
        judgement = site.judge(reading, *pair, significance)
        if judgement.impression is Impression.DIFFERS and judgement.error >= CLEARLY * judgement.tolerance:
            found[pair] = PairResult(site=site, judgement=judgement, reading=reading)
    return found
