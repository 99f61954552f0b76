"""The result of one measurement for a pair of blocks, and how such results are obtained and compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import Decision, Impression, Judgement, QuickReading, Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Status
from gradcli.numerics.differences.three_pairs import QUICK_STEP
from gradcli.numerics.maps.floats import EPS, Mask
from gradcli.numerics.maps.sizes import CERTIFIED, COMPUTED, MEASURABLE, NOTHING
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, BlockOutcome, Doubt, Outcome, Pair
from gradcli.numerics.reference.discrepancy import Discrepancy
from gradcli.numerics.sampling.directions import ASIDE, Focus, random_direction, through, within

SEVERITY = (Impression.SILENT, Impression.WEAK, Impression.AGREES, Impression.KINKED, Impression.DIFFERS)
SHORTEST_START = 2.0**-10
"""The smallest first step along a direction through many entries. Truncation falls with the sixth power of the step and
rounding grows as its inverse, so that still smaller steps would only add rounding."""
STARTS = tuple(QUICK_STEP * 2.0**-k for k in (0, 9, 18, 27))
"""The first steps at which three pairs of values are tried in turn. The smaller ones are for functions that have a kink
or a short period within the larger ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """The most informative measurement of one pair of blocks at one point.

    Attributes:
        site: the point.
        judgement: the result.
        reading: the measured direction.
        reference: what the claim was compared with, `DIFFERENCES` or `AUTODIFF`.
        decision: the outcome, if a difference has been confirmed or refuted already.
        discrepancy: how claim and reference compare, if there is a reference that was used.
        note: a sentence for the report.
        allowed: the significance that was used, where the precision of the values may have raised it.
        quiet: whether claim and derivative are both found to be zero.
    """

    site: Site
    judgement: Judgement
    reading: Reading
    reference: str = DIFFERENCES
    decision: Decision | None = None
    discrepancy: Discrepancy | None = None
    note: str | None = None
    allowed: float | None = None
    quiet: bool = False

    @property
    def impression(self) -> Impression:
        """The result of the measurement."""
        return self.judgement.impression

    @property
    def resolution(self) -> float | None:
        """Every relative error above this would have been detected along the measured direction; None if not known."""
        return self.judgement.resolution

    @property
    def witnessed(self) -> bool:
        """Whether a reference agrees with the claim, and is either certified by finite differences or not zero."""
        return self.reference == AUTODIFF or (self.discrepancy is not None and not self.discrepancy.still)


def quick_reading_through(
    site: Site, inputs: Sequence[int], start: float = STARTS[0], enough: Callable[[QuickReading], bool] | None = None
) -> QuickReading | None:
    """Measure two or three pairs of values through some inputs at random; None if an output is not finite.

    If the two smaller pairs are `enough`, the third is not evaluated.
    """
    if not np.isfinite(site.row_values()).all():
        return None
    drawn = through(site.map.domain, site.scales, inputs)
    return site.quick_reading(random_direction(site.rng, drawn), Focus(drawn=drawn, judged=site.scales), start, enough)


def certified(site: Site, quick_reading: QuickReading, pair: Pair, part: float, *, quiet: bool) -> bool:
    """Whether three pairs of values certify a pair of blocks: its rows meet the claim and show no kink.

    Args:
        part: the error allowed, as a part of the pair's largest scaled entry.
        quiet: whether the claim is zero; the error is then compared with the largest entry of this output by any input,
            or if all are zero, with the values.
    """
    input_, output = pair
    slices = site.map.domain.slices
    rows, reading = site.rows(output), quick_reading.reading
    if quiet:
        scale = max(site.claim.entry_scale(places, output, site.scales) for places in slices)
        allowed = np.full(rows.size, part * scale) if scale > 0 else MEASURABLE * reading.size + NOTHING
    else:
        allowed = np.full(rows.size, part * site.claim.entry_scale(slices[input_], output, site.scales))
    met = quick_reading.met(allowed) | (reading.claimless & quick_reading.short.straight(allowed))
    return bool(rows.any() and met[rows].all() and not reading.claimless[rows].all())


def short_start(site: Site, pairs: Collection[Pair], part: float = CERTIFIED, roundings: float = 40.0) -> float:
    """The largest of three steps along a direction through many entries, as small as rounding allows.

    The truncation errors of all entries add up. They fall with the fourth power of the steps for two pairs of values,
    with the sixth for three, so that steps are as small as rounding allows: the slope has a rounding error of up to
    32 ε |u·f| / t, which at t = 40 ε |u·f| / p takes 0.8 of the error p that is allowed.

    Args:
        part: p, as a part of the largest scaled entry of each pair.
        roundings: another factor than 40.
    """
    sizes, largest = site.row_sizes(), 0.0
    for input_, output in pairs:
        scale = site.claim.entry_scale(site.map.domain.slices[input_], output, site.scales)
        with np.errstate(all="ignore"):
            largest = np.fmax(largest, np.nanmax(sizes[site.rows(output)], initial=0.0) / (part * scale))
    return float(min(STARTS[0], max(SHORTEST_START, roundings * EPS * largest)))


def vanishing(reading: Reading, rows: Mask) -> bool:
    """Whether all rows with a claim have a slope of zero, within three bounds, and a claim below 1e-12 of the value."""
    ours = rows & ~reading.claimless
    with np.errstate(all="ignore"):
        still = np.abs(reading.numeric) <= FAIL_FACTOR * reading.bound
        none = np.abs(reading.claimed) <= COMPUTED * reading.size
    return bool((still & none)[ours].all())


def unmoved(site: Site, input_: int) -> Mask:
    """The rows that stay the same bit for bit when one input moves by 0.3 and -0.2 of its magnitude (`ASIDE`)."""
    direction = random_direction(site.rng, within(site.scales, site.map.domain.slices[input_]))
    f0 = site.row_values()
    same = np.ones(f0.size, bool)
    for t in ASIDE:
        same &= site.read(site.x + t * direction) == f0
    return same


def stronger(one: PairResult, two: PairResult) -> PairResult:
    """The more severe one of two results (`SEVERITY`).

    If both agree or are weak, it is one that is off, or that of finer resolution; otherwise the first.
    """

    def key(result: PairResult) -> tuple[int, bool, float]:
        seen = result.impression in (Impression.KINKED, Impression.DIFFERS)
        coarse = np.inf if result.resolution is None else result.resolution
        return SEVERITY.index(result.impression), result.judgement.off, 0.0 if seen else -coarse

    return max((one, two), key=key)


def better_known(one: PairResult, two: PairResult) -> PairResult:
    """The one of two results that is not on a kink, or has the finer resolution."""

    def key(result: PairResult) -> tuple[bool, float]:
        return result.impression is Impression.KINKED, np.inf if result.resolution is None else result.resolution

    return min((one, two), key=key)


def undecided_outcome(pair: Pair, result: PairResult, note: str | None) -> BlockOutcome:
    """The outcome of a pair that no measurement decided; on a kink, claims between the one-sided slopes agree."""
    rows = result.site.rows(pair[1]) & ~result.reading.claimless
    broken = result.reading.broken & rows
    with np.errstate(all="ignore"):
        fine = result.reading.smooth & (result.reading.error <= result.reading.tolerance)
    settled = (broken & result.reading.within_slopes()) | fine
    judgement = result.judgement
    if broken.any() and settled[rows].all():
        text = "accepted: forward has a kink here and nearby, and the gradient lies between the two slopes"
        return BlockOutcome(
            input=pair[0], output=pair[1], outcome=Outcome.AGREES, resolution=judgement.resolution, note=text
        )
    if Status.DOMAIN in judgement.statuses or Status.UNRESOLVED in judgement.statuses:
        doubt = Doubt.DOMAIN if Status.DOMAIN in judgement.statuses else Doubt.NOISE
    else:
        doubt = Doubt.KINK if result.impression is Impression.KINKED else Doubt.NOISE
    return BlockOutcome(
        input=pair[0],
        output=pair[1],
        outcome=Outcome.UNDECIDED,
        doubt=doubt,
        max_rel_error=judgement.error / (judgement.scale or 1.0),
        note=note,
        unexplained=True,
    )
