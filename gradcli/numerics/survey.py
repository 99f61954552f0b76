"""What one point says about every pair of input and output block, at the least cost that settles each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradcli.numerics.compare import FAIL_FACTOR, PASS_RESOLUTION, Impression, Judgement, Reading
from gradcli.numerics.confirm import Decision, confirm
from gradcli.numerics.estimate import Status
from gradcli.numerics.noise import Mask
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, Outcome
from gradcli.numerics.probe import Focus, focuses, random_direction
from gradcli.numerics.site import CERTIFIED, Glance, Site
from gradcli.numerics.witness import CLEAR, Gap, Ruling, compare, settle, supports, wrong_focus

Pair = tuple[int, int]

SEVERITY = (Impression.SILENT, Impression.WEAK, Impression.AGREES, Impression.KINKED, Impression.DIFFERS)
QUIET = 1e-18
"""Claimed entries below this part of the outputs are zeros; what lies between them and rounding is measured alone."""
VANISHING = 1e-12
WITNESSED = 1e-8
"""Differences that meet claim and witness to this part of a block certify both."""
ROUGHLY = 1e-2
"""Where the map's values are rough, a bound of this part of a block is enough beside a witness that agrees."""
KINK_FACTOR = 100.0
CLEARLY = 100.0
"""A gap of this many bounds is taken for a difference, to be located and confirmed, without running the ladder."""
LONG = 400
TRIED_AT = (0.296875, -0.203125)
DETACHED = (
    "forward's body is not what it computes: its own derivative differs from the differences of forward (it detaches, "
    "rounds or leaves the framework)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
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


def survey(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, Seen]:
    """Judge pairs of input and output block at a site, with its witness first where it has one."""
    found: dict[Pair, Seen] = {}
    detached: set[Pair] = set()
    if site.testimony is not None and site.claim.finite:
        found, detached = _with_witness(site, pairs, significance)
    rest = [pair for pair in pairs if pair not in found]
    if rest:
        for pair, seen in by_differences(site.alone(), rest, significance).items():
            found[pair] = replace(seen, note=DETACHED) if pair in detached else seen
    return found


def _with_witness(site: Site, pairs: Sequence[Pair], significance: float) -> tuple[dict[Pair, Seen], set[Pair]]:
    found: dict[Pair, Seen] = {}
    agreed: dict[Pair, Gap] = {}
    detached: set[Pair] = set()
    for pair in pairs:
        gap = compare(site, *pair)
        if gap.equal or gap.error <= significance:
            agreed[pair] = gap
            continue
        dispute = settle(site, *pair, gap)
        if dispute.ruling is Ruling.WITNESS_WRONG:
            detached.add(pair)
        elif dispute.ruling is Ruling.CLAIM_WRONG and dispute.reading is not None:
            seen = _claim_wrong(site, pair, gap, dispute.reading, significance)
            if seen is not None:
                found[pair] = seen
    if agreed:
        found |= _certify(site, agreed, significance)
    return found, detached


def _claim_wrong(site: Site, pair: Pair, gap: Gap, reading: Reading, significance: float) -> Seen | None:
    """A difference that the map's own differences lay at the claim's door; a small one is confirmed at length."""
    judgement = Judgement(
        impression=Impression.DIFFERS,
        scale=gap.scale,
        error=gap.error * gap.scale,
        tolerance=gap.resolution * gap.scale if gap.error < FAIL_FACTOR * gap.resolution else 0.0,
        resolution=None,
        statuses=(Status.OK,),
    )
    if gap.error >= CLEAR:
        decision = Decision(outcome=Outcome.DIFFERS, judgement=judgement)
    else:
        places = site.map.domain.slices[pair[0]]
        focus = wrong_focus(site, *pair, gap)
        first = site.probe(places, focus, cheap=False)
        if site.judge(first, *pair, significance).impression is not Impression.DIFFERS:
            return None
        decision = replace(confirm(site, *pair, first, significance), judgement=judgement)
        if decision.outcome is Outcome.AGREES:
            return None
    return Seen(
        site=site,
        judgement=judgement,
        reading=reading,
        resolution=None,
        reference=AUTODIFF if decision.outcome is Outcome.DIFFERS else DIFFERENCES,
        decision=decision,
        gap=gap,
    )


def _certify(site: Site, agreed: dict[Pair, Gap], significance: float) -> dict[Pair, Seen]:
    """One direction through all inputs for the pairs in which claim and witness agree; one an input where it fails."""
    inputs = sorted({input_ for input_, _ in agreed})
    glance = glance_through(site, inputs)
    found = {}
    for pair, gap in agreed.items():
        if glance is not None and certified(site, glance, pair, WITNESSED, quiet=gap.still):
            found[pair] = _agreed(site, gap, glance.reading)
    for input_ in inputs:
        open_ = [pair for pair in agreed if pair[0] == input_ and pair not in found]
        if not open_:
            continue
        reading = site.probe(site.map.domain.slices[input_], cheap=len(inputs) > 1)
        for pair in open_:
            found[pair] = _weigh(site, pair, agreed[pair], reading, significance)
    return found


def _agreed(site: Site, gap: Gap, reading: Reading) -> Seen:
    judgement = Judgement(
        impression=Impression.SILENT if gap.still else Impression.AGREES,
        scale=gap.scale,
        error=gap.error * gap.scale,
        tolerance=gap.resolution * gap.scale,
        resolution=gap.resolution,
        statuses=(Status.OK,),
    )
    return Seen(
        site=site,
        judgement=judgement,
        reading=reading,
        resolution=gap.resolution,
        reference=AUTODIFF,
        gap=gap,
        quiet=gap.still,
    )


def _weigh(site: Site, pair: Pair, gap: Gap, reading: Reading, significance: float) -> Seen:
    """Claim and witness agree; what does a direction through this input alone say?"""
    judgement = site.judge(reading, *pair, significance)
    seen = Seen(site=site, judgement=judgement, reading=reading, resolution=judgement.resolution, gap=gap)
    confirmed = judgement.impression is Impression.AGREES
    if judgement.impression is Impression.WEAK:
        confirmed = supports(reading, site.rows(pair[1]), gap.scale, ROUGHLY)
    silent = judgement.impression is Impression.SILENT and gap.still and vanishing(reading, site.rows(pair[1]))
    return _agreed(site, gap, reading) if confirmed or silent else seen


def glance_through(site: Site, inputs: Sequence[int]) -> Glance | None:
    """Three pairs along a random direction through some inputs at once; None where an output is not finite."""
    if not np.isfinite(site.claim.read(site.outputs)).all():
        return None
    drawn = np.zeros(site.x.size)
    for input_ in inputs:
        places = site.map.domain.slices[input_]
        drawn[places] = site.scales[places]
    return site.glance(random_direction(site.rng, drawn), Focus(drawn=drawn, judged=site.scales))


def certified(site: Site, glance: Glance, pair: Pair, part: float, *, quiet: bool) -> bool:
    """Whether the rows of an output meet the claim to `part` of the block, and no output shows a kink.

    A block of zeros (`quiet`) is measured against the largest block of that output, or the outputs' own size.
    """
    input_, output = pair
    slices = site.map.domain.slices
    rows, reading = site.rows(output), glance.reading
    if quiet:
        scale = max(site.claim.entry_scale(places, output, site.scales) for places in slices)
        allowed = np.full(rows.size, part * scale) if scale > 0 else 1e-11 * reading.size
    else:
        allowed = np.full(rows.size, part * site.claim.entry_scale(slices[input_], output, site.scales))
    with np.errstate(all="ignore"):
        met = reading.claimless | (np.abs(glance.short.value - reading.claimed) + glance.short.rounding <= allowed)
        straight = np.abs(glance.short.kink) <= KINK_FACTOR * allowed
    return bool(rows.any() and (met & straight)[rows].all() and not reading.claimless[rows].all())


def by_differences(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, Seen]:
    """Judge pairs by differences of the map alone: two directions through everything, then two through each input."""
    found = _together(site, pairs, significance) if site.claim.finite else {}
    for input_ in sorted({input_ for input_, _ in pairs}):
        outputs = [output for i, output in pairs if i == input_ and (i, output) not in found]
        if outputs:
            found |= _one_by_one(site, input_, outputs, significance)
    return found


def _together(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, Seen]:
    """Pairs that two directions through all inputs at once certify; zeros only if moving the input changes nothing.

    A large input alone that clearly does not meet its claim is judged by the first of them.
    """
    slices = site.map.domain.slices
    open_ = [pair for pair in pairs if len(focuses(site.scales, slices[pair[0]])) == 1 or _is_long(site, pair)]
    quiet = {pair for pair in open_ if is_quiet(site, pair)}
    found: dict[Pair, Seen] = {}
    for _ in range(2):
        glance = glance_through(site, sorted({input_ for input_, _ in pairs})) if open_ else None
        if glance is None:
            return {}
        if len(pairs) == 1 and not found and _is_long(site, pairs[0]):
            clear = _clear(site, pairs[0], glance, significance)
            if clear is not None:
                return {pairs[0]: clear}
        open_ = [pair for pair in open_ if len(focuses(site.scales, slices[pair[0]])) == 1]
        open_ = [pair for pair in open_ if certified(site, glance, pair, CERTIFIED, quiet=pair in quiet)]
        found = {pair: _met(site, glance, pair, found.get(pair)) for pair in open_}
    for input_ in sorted({input_ for input_, _ in quiet & set(found)}):
        ours = [pair for pair in quiet if pair in found and pair[0] == input_]
        unmoved = _unmoved(site, input_)
        for pair in ours:
            if not unmoved[site.rows(pair[1])].all():
                del found[pair]
    return found


def is_quiet(site: Site, pair: Pair) -> bool:
    """Whether the claimed block is zero, or next to nothing beside the outputs."""
    rows = site.rows(pair[1])
    size = float(np.abs(site.claim.read(site.outputs)[rows]).max(initial=0.0))
    return site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], site.scales) <= QUIET * size


def _met(site: Site, glance: Glance, pair: Pair, before: Seen | None) -> Seen:
    rows = site.rows(pair[1]) & ~glance.reading.claimless
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], site.scales)
    tolerance = float(glance.reading.tolerance[rows].max(initial=0.0))
    resolution = 2 * FAIL_FACTOR * tolerance / scale if scale > 0 else None
    known = [r for r in (resolution, None if before is None else before.resolution) if r is not None]
    sure = resolution is not None and resolution <= PASS_RESOLUTION
    judgement = Judgement(
        impression=Impression.AGREES if sure else Impression.SILENT,
        scale=scale,
        error=float(glance.reading.error[rows].max(initial=0.0)),
        tolerance=tolerance,
        resolution=resolution,
        statuses=(Status.OK,),
    )
    return Seen(
        site=site,
        judgement=judgement,
        reading=glance.reading,
        resolution=min(known, default=None),
        quiet=not sure and is_quiet(site, pair),
    )


def _unmoved(site: Site, input_: int) -> Mask:
    """Rows whose values stay the same bit for bit when one input moves to either side."""
    places = site.map.domain.slices[input_]
    drawn = np.zeros(site.x.size)
    drawn[places] = site.scales[places]
    direction = random_direction(site.rng, drawn)
    f0 = site.claim.read(site.outputs)
    same = np.ones(f0.size, bool)
    for t in TRIED_AT:
        try:
            same &= site.read(site.x + t * direction) == f0
        except Exception:  # outside the domain: nothing is known of that side
            same &= False
    return same


def vanishing(reading: Reading, rows: Mask) -> bool:
    """Whether derivative and claim are zero, or within 1e-12 of the outputs, in all the rows that have a claim."""
    ours = rows & ~reading.claimless
    with np.errstate(all="ignore"):
        still = np.abs(reading.numeric) <= FAIL_FACTOR * reading.bound
        none = np.abs(reading.claimed) <= VANISHING * reading.size
    return bool((still & none)[ours].all())


def _is_long(site: Site, pair: Pair) -> bool:
    """Whether an input is so large that wrong entries are located before a difference is confirmed."""
    return site.map.domain.blocks[pair[0]].size > LONG


def _clear(site: Site, pair: Pair, glance: Glance, significance: float) -> Seen | None:
    """A difference that three pairs show beyond doubt about their own error."""
    reading = glance.rough()
    judgement = site.judge(reading, *pair, significance)
    if judgement.impression is not Impression.DIFFERS or judgement.error < CLEARLY * judgement.tolerance:
        return None
    return Seen(site=site, judgement=judgement, reading=reading, resolution=None)


def _one_by_one(site: Site, input_: int, outputs: Sequence[int], significance: float) -> dict[Pair, Seen]:
    """Measure two directions through one input block, or one for every group of scales."""
    places = site.map.domain.slices[input_]
    best: dict[Pair, Seen] = {}
    chosen = focuses(site.scales, places)
    for focus in chosen if len(chosen) > 1 else chosen * 2:
        if _is_long(site, (input_, outputs[0])):
            glance = site.glance(random_direction(site.rng, focus.drawn), focus)
            clear = {(input_, o): _clear(site, (input_, o), glance, significance) for o in outputs}
            told = {pair: seen for pair, seen in clear.items() if seen is not None}
            if len(told) == len(outputs):
                return told
        reading = site.probe(places, focus)
        for output in outputs:
            judgement = site.judge(reading, input_, output, significance)
            seen = Seen(
                site=site,
                judgement=judgement,
                reading=reading,
                resolution=judgement.resolution,
                quiet=judgement.impression is Impression.SILENT and vanishing(reading, site.rows(output)),
            )
            before = best.get((input_, output))
            combine = stronger if len(chosen) == 1 else _beside
            best[input_, output] = seen if before is None else combine(before, seen)
    return best


def _beside(whole: Seen, group: Seen) -> Seen:
    """What a direction through some small entries adds to one through all: an objection, or the only signal."""
    if whole.impression is Impression.SILENT or group.impression in (Impression.KINKED, Impression.DIFFERS):
        return stronger(whole, group)
    return whole


def stronger(one: Seen, two: Seen) -> Seen:
    """The more severe of two, with the finer resolution of both."""
    ranked = max((one, two), key=lambda seen: SEVERITY.index(seen.impression))
    known = [seen.resolution for seen in (one, two) if seen.resolution is not None]
    return replace(ranked, resolution=min(known) if known else None)


def better_known(one: Seen, two: Seen) -> Seen:
    """The one with the finer resolution; kinks give way to points without them."""

    def key(seen: Seen) -> tuple[bool, float]:
        resolution = seen.judgement.resolution
        return seen.impression is Impression.KINKED, np.inf if resolution is None else resolution

    return min((one, two), key=key)
