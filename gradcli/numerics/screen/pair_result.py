"""What one measurement says of one pair of input and output block, and how measurements are weighed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import Decision, Impression, Judgement, Reading
from gradcli.numerics.claims.site import NOTHING, VANISHING, QuickReading, Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.floats import Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, Pair
from gradcli.numerics.reference.gap import Gap
from gradcli.numerics.sampling.directions import ASIDE, Focus, random_direction

SEVERITY = (Impression.SILENT, Impression.WEAK, Impression.AGREES, Impression.KINKED, Impression.DIFFERS)
LEAST = 1e-300
"""Values below this count as zero."""
KINK_FACTOR = 100.0
SHORTEST_START = 2.0**-10
"""The finest start where many entries add up: truncation falls with the sixth power of a step, rounding grows in
proportion to 1/step."""
ROUNDINGS = 8.0
"""Slopes of values that are large beside them may be missed by so many roundings over the shortest step."""
STARTS = (0.02, 0.02 * 2.0**-9, 0.02 * 2.0**-18, 0.02 * 2.0**-27)
"""Steps of a quick reading: finer ones for functions that bend, or cross a kink, within the coarse ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """The most telling measurement of one pair at one point.

    `decision` is given where a difference is confirmed already; `gap` where a witness agrees with the claim; `quiet`
    says that claim and derivative are both seen to be zero.
    """

    site: Site
    judgement: Judgement
    reading: Reading
    resolution: float | None
    reference: str = DIFFERENCES
    decision: Decision | None = None
    gap: Gap | None = None
    note: str | None = None
    quiet: bool = False

    @property
    def impression(self) -> Impression:
        """What the measurement says."""
        return self.judgement.impression

    @property
    def witnessed(self) -> bool:
        """Whether a witness says the same and can know: certified, or more than zero where nothing moves."""
        return self.reference == AUTODIFF or (self.gap is not None and not self.gap.still)


def quick_reading_through(
    site: Site, inputs: Sequence[int], start: float = STARTS[0], enough: Callable[[QuickReading], bool] | None = None
) -> QuickReading | None:
    """Three pairs along a random direction through some inputs at once; None where an output is not finite.

    The finer two pairs are all that is evaluated where they are `enough`.
    """
    if not np.isfinite(site.row_values()).all():
        return None
    drawn = drawn_through(site, inputs)
    return site.quick_reading(random_direction(site.rng, drawn), Focus(drawn=drawn, judged=site.scales), start, enough)


def drawn_through(site: Site, inputs: Sequence[int]) -> Vector:
    """The scales of some inputs, zero elsewhere."""
    if len(inputs) == len(site.map.domain.blocks):
        return site.scales
    drawn = np.zeros(site.x.size)
    for input_ in inputs:
        places = site.map.domain.slices[input_]
        drawn[places] = site.scales[places]
    return drawn


def certified(
    site: Site,
    quick_reading: QuickReading,
    pair: Pair,
    part: float,
    *,
    quiet: bool,
    scale: float | None = None,
) -> bool:
    """Whether the rows of an output meet the claim to `part` of the block, and no output shows a kink.

    A block of zeros (`quiet`) is measured against the largest block of that output, or the outputs' own size. `scale`
    is the block's largest scaled entry where that is known.
    """
    input_, output = pair
    slices = site.map.domain.slices
    rows, reading = site.rows(output), quick_reading.reading
    if quiet:
        scale = max(site.claim.entry_scale(places, output, site.scales) for places in slices)
        allowed = np.full(rows.size, part * scale) if scale > 0 else NOTHING * reading.size + LEAST
    else:
        known = site.claim.entry_scale(slices[input_], output, site.scales) if scale is None else scale
        allowed = np.full(rows.size, part * known)
    with np.errstate(all="ignore"):
        met = reading.claimless | (
            np.abs(quick_reading.short.value - reading.claimed) + quick_reading.short.rounding <= allowed
        )
        straight = np.abs(quick_reading.short.kink) <= KINK_FACTOR * allowed
    return bool(rows.any() and (met & straight)[rows].all() and not reading.claimless[rows].all())


def vanishing(reading: Reading, rows: Mask) -> bool:
    """Whether derivative and claim are zero, or within 1e-12 of the outputs, in all the rows that have a claim."""
    ours = rows & ~reading.claimless
    with np.errstate(all="ignore"):
        still = np.abs(reading.numeric) <= FAIL_FACTOR * reading.bound
        none = np.abs(reading.claimed) <= VANISHING * reading.size
    return bool((still & none)[ours].all())


def nothing_seen(quick_reading: QuickReading, rows: Mask) -> bool:
    """Whether claim and differences are nothing beside the largest output in all of some rows, which have a claim."""
    reading = quick_reading.reading
    size = np.full(rows.size, reading.size[rows].max(initial=0.0))
    none = np.abs(reading.claimed) <= VANISHING * size
    unmoved = (quick_reading.short.value == 0) & (quick_reading.short.kink == 0)
    return bool(rows.any() and (none & (unmoved | quick_reading.met(NOTHING * size)))[rows].all())


def unmoved(site: Site, input_: int) -> Mask:
    """Rows whose values stay the same bit for bit when one input moves to either side."""
    places = site.map.domain.slices[input_]
    drawn = np.zeros(site.x.size)
    drawn[places] = site.scales[places]
    direction = random_direction(site.rng, drawn)
    f0 = site.row_values()
    same = np.ones(f0.size, bool)
    for t in ASIDE:
        try:
            same &= site.read(site.x + t * direction) == f0
        except Exception:  # outside the domain: nothing is known of that side
            same &= False
    return same


def stronger(one: PairResult, two: PairResult) -> PairResult:
    """The more severe of two, with the finer resolution of both."""
    ranked = max((one, two), key=lambda seen: SEVERITY.index(seen.impression))
    known = [seen.resolution for seen in (one, two) if seen.resolution is not None]
    return replace(ranked, resolution=min(known) if known else None)


def better_known(one: PairResult, two: PairResult) -> PairResult:
    """The one with the finer resolution; kinks give way to points without them."""

    def key(seen: PairResult) -> tuple[bool, float]:
        resolution = seen.judgement.resolution
        return seen.impression is Impression.KINKED, np.inf if resolution is None else resolution

    return min((one, two), key=key)
