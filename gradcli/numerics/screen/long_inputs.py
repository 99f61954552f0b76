"""Measures directions through inputs of many entries, in which rounding of the values hides single entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcli.numerics.claims.compare import Impression, Reading
from gradcli.numerics.claims.site import QuickReading, Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
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


def measured(site: Site, places: slice, focus: Focus, start: float, *, grouped: bool) -> tuple[QuickReading, bool]:
    """Two or three pairs of values along a random direction, and whether they meet the claim.

    Args:
        start: the largest step is between this and 2.2 times this.
        grouped: whether these are a group of small scale, which may miss the claim by rounding of the values.
    """

    def met(reading: QuickReading) -> bool:
        return site.is_met(reading, places, NOISE_FACTOR * reading.short.rounding if grouped else 0.0)

    quick_reading = site.quick_reading(random_direction(site.rng, focus.drawn), focus, start, met)
    return quick_reading, met(quick_reading)


def joint_reading(site: Site, places: slice, groups: Sequence[Focus]) -> Reading | None:
    """One direction through several groups of small scale, if it meets the claim; otherwise None.

    It may miss the claim by no more than the group of the smallest scale may alone. Rounding of the values is the same
    for all groups, so that moving them together hides nothing that each alone would show.
    """
    focus = Focus(drawn=np.sum([group.drawn for group in groups], axis=0), judged=groups[-1].judged)
    quick_reading, met = measured(site, places, focus, GROUP_START, grouped=True)
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
