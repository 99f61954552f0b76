"""The second witness is heard: where it agrees with the claim, where not, and what differences say to that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from gradcli.numerics.claim_noise import LOW_PRECISION, in_single_precision, jitter
from gradcli.numerics.compare import Impression, Judgement, Reading
from gradcli.numerics.confirm import Decision, confirm
from gradcli.numerics.estimate import Status
from gradcli.numerics.iteration import stops_early
from gradcli.numerics.noise import Mask
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, Doubt, Outcome
from gradcli.numerics.seen import STARTS, Pair, Seen, certified, glance_through, nothing_seen, unmoved, vanishing
from gradcli.numerics.site import Glance, Site
from gradcli.numerics.stencil import EPS
from gradcli.numerics.tails import parted, wrong_in_small_rows, wrong_in_the_tail
from gradcli.numerics.witness import CLEAR, Gap, Ruling, compare, settle, supports, wrong_focus

OFTEN = 0.1
"""Larger gaps are not looked into: an early stop leaves smaller ones."""
EARLY = "an iteration that stops early?"
WITNESSED = 1e-8
"""Differences that meet claim and witness to this part of a block certify both."""
SHORTEST, LONGEST = 2.0**-10, 0.02
"""Limits of the coarsest step there."""
ALIKE = 1e-12
"""Claim and witness that differ by less for one cotangent have no error that it hides: one of 1e-6 would have to cancel
to a millionth of itself."""
ROUGHLY = 1e-2
"""Where the map's values are rough, a bound of this part of a block is enough beside a witness that agrees."""
ROUNDINGS = 8.0
"""There differences may miss what both say by so much of the values' rounding over the shortest step."""
DETACHED = (
    "forward's body is not what it computes: its own derivative differs from the differences of forward (it detaches, "
    "rounds or leaves the framework)"
)


@dataclass(slots=True)
class Hearing:
    """What the witness settles, and what it leaves to differences alone.

    `detached` are the pairs of which differences say that the witness is wrong, `contested` those with a gap that they
    could not lay at either's door. `significance` is given where it is not the caller's.
    """

    found: dict[Pair, Seen] = field(default_factory=dict)
    detached: set[Pair] = field(default_factory=set)
    contested: dict[Pair, Gap] = field(default_factory=dict)
    significance: float | None = None

    def temper(self, pair: Pair, seen: Seen) -> Seen:
        """Say beside a verdict from differences what the witness said, and withhold one too coarse to overrule it."""
        if pair in self.detached:
            return replace(seen, note=DETACHED)
        gap = self.contested.get(pair)
        if gap is None or seen.impression is not Impression.AGREES:
            return seen
        if seen.resolution is not None and seen.resolution < gap.error:
            return replace(seen, note=DETACHED)
        note = (
            f"the claim differs by {gap.error:.1e} from the derivative of forward's own body, "
            "and differences of forward are too coarse to tell which of the two is right"
        )
        return replace(seen, judgement=replace(seen.judgement, impression=Impression.WEAK), note=note)


def hear(site: Site, pairs: Sequence[Pair], significance: float) -> Hearing:
    """Compare the claim with the witness of a site that has one, and let differences certify or arbitrate."""
    heard = Hearing()
    agreed: dict[Pair, Gap] = {}
    apart: dict[Pair, Gap] = {}
    gaps = {pair: compare(site, *pair) for pair in pairs}
    if site.sparing and any(gap.error > ALIKE for gap in gaps.values()):
        site.ask_again()
        gaps = {pair: compare(site, *pair) for pair in pairs}
    for pair, gap in gaps.items():
        (agreed if gap.equal or gap.error <= significance else apart)[pair] = gap
    if any(gap.error < CLEAR for gap in apart.values()):
        significance = _forgive(site, agreed, apart, significance)
        heard.significance = significance
    for pair, gap in apart.items():
        dispute = settle(site, *pair, gap)
        if dispute.ruling is Ruling.WITNESS_WRONG:
            heard.detached.add(pair)
        elif dispute.ruling is Ruling.NEITHER:
            heard.contested[pair] = gap
        elif dispute.reading is not None:
            seen = _claim_wrong(site, pair, gap, dispute.reading, significance)
            if seen is not None:
                heard.found[pair] = seen
    heard.found |= wrong_in_the_tail(site, agreed)
    agreed = {pair: gap for pair, gap in agreed.items() if pair not in heard.found}
    if agreed:
        heard.found |= _certify(site, agreed, significance)
        heard.found |= wrong_in_small_rows(site, heard.found)
    return heard


def _forgive(site: Site, agreed: dict[Pair, Gap], apart: dict[Pair, Gap], significance: float) -> float:
    """Count small gaps as agreement where the gradients' own noise, or a low precision, explains them.

    Returns:
        The significance that the values' precision leaves.
    """
    noise = jitter(site)
    low = in_single_precision(site)
    significance = max(significance, LOW_PRECISION) if low else significance
    for pair, gap in list(apart.items()):
        if gap.error >= CLEAR:
            continue
        noisy = compare(site, *pair, noise)
        if noisy.equal or noisy.error <= significance:
            agreed[pair] = noisy
            del apart[pair]
    return significance


def _claim_wrong(site: Site, pair: Pair, gap: Gap, reading: Reading, significance: float) -> Seen | None:
    """A difference that the map's own differences lay at the claim's door; a small one is confirmed at length."""
    judgement = parted(gap)
    if gap.error >= CLEAR and not (gap.error < OFTEN and stops_early(site, reading)):
        decision = Decision(outcome=Outcome.DIFFERS, judgement=judgement)
    elif gap.error >= CLEAR:
        note = (
            f"the claim differs from the computed function by {gap.error:.1e}, and its slopes from each other: {EARLY}"
        )
        decision = Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE, note=note, judgement=judgement)
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
    found: dict[Pair, Seen] = {}

    def meets(glance: Glance, pair: Pair) -> bool:
        gap = agreed[pair]
        return certified(site, glance, pair, WITNESSED, quiet=gap.still, scale=gap.scale)

    brief = not any(gap.still for gap in agreed.values())
    enough = partial(_all_meet, meets, list(agreed)) if brief else None
    for start in (_short_start(site, agreed), *STARTS) if brief else STARTS:
        open_ = [pair for pair in agreed if pair not in found]
        glance = glance_through(site, inputs, start, enough) if open_ else None
        if glance is None:
            break
        for pair in open_:
            if meets(glance, pair):
                found[pair] = _agreed(site, agreed[pair], glance.reading)
        enough = None
    for input_ in inputs:
        open_ = [pair for pair in agreed if pair[0] == input_ and pair not in found]
        if not open_:
            continue
        if len(inputs) > 1:
            glance = glance_through(site, [input_])
            found |= {} if glance is None else _alone(site, glance, {pair: agreed[pair] for pair in open_})
            open_ = [pair for pair in open_ if pair not in found]
        if open_:
            reading = site.probe(site.map.domain.slices[input_], cheap=False)
            found |= {pair: _weigh(site, pair, agreed[pair], reading, significance) for pair in open_}
    return found


def _alone(site: Site, glance: Glance, agreed: dict[Pair, Gap]) -> dict[Pair, Seen]:
    """The pairs of one input that three pairs certify, as far as rounding lets them see, or show to be zero."""
    found: dict[Pair, Seen] = {}
    for pair, gap in agreed.items():
        rows = site.rows(pair[1]) & ~glance.reading.claimless
        none = nothing_seen(glance, rows)
        if (none and gap.still) or _roughly(glance, rows, gap):
            found[pair] = _agreed(site, gap, glance.reading)
        elif none:
            judgement = replace(_judgement(gap), impression=Impression.SILENT, resolution=None)
            found[pair] = Seen(
                site=site, judgement=judgement, reading=glance.reading, resolution=None, gap=gap, quiet=True
            )
    return found


def _roughly(glance: Glance, rows: Mask, gap: Gap) -> bool:
    """Whether nothing but the rounding of the values keeps differences from certifying what a witness agrees on."""
    short = glance.short
    allowed = np.maximum(WITNESSED * gap.scale, ROUNDINGS * short.rounding)
    seen: Mask = rows & short.certifies(glance.reading.claimed, np.minimum(allowed, ROUGHLY * gap.scale))
    return bool(rows.any() and seen[rows].all())


def _short_start(site: Site, agreed: dict[Pair, Gap]) -> float:
    """The coarsest of three steps along one direction through all entries.

    Truncation leaves something of every entry in u·f, and is held against a single one: steps are as short as they may
    be if rounding, about 8 eps |u·f| / t at the finest, is to stay below a quarter of what is allowed.
    """
    values = np.abs(site.row_values())
    needed = [
        float(values[site.rows(output)].max(initial=0.0)) / (WITNESSED * gap.scale)
        for (_, output), gap in agreed.items()
    ]
    return min(LONGEST, max(SHORTEST, 4 * 32 * EPS * max(needed)))


def _all_meet(meets: Callable[[Glance, Pair], bool], pairs: Sequence[Pair], glance: Glance) -> bool:
    return all(meets(glance, pair) for pair in pairs)


def _judgement(gap: Gap) -> Judgement:
    return Judgement(
        impression=Impression.SILENT if gap.still else Impression.AGREES,
        scale=gap.scale,
        error=gap.error * gap.scale,
        tolerance=gap.resolution * gap.scale,
        resolution=gap.resolution,
        statuses=(Status.OK,),
    )


def _agreed(site: Site, gap: Gap, reading: Reading) -> Seen:
    return Seen(
        site=site,
        judgement=_judgement(gap),
        reading=reading,
        resolution=gap.resolution,
        reference=AUTODIFF,
        gap=gap,
        quiet=gap.still,
    )


def _weigh(site: Site, pair: Pair, gap: Gap, reading: Reading, significance: float) -> Seen:
    """Claim and witness agree; what does a direction through this input alone say?"""
    judgement, rows = site.judge(reading, *pair, significance), site.rows(pair[1])
    silent = judgement.impression is Impression.SILENT and vanishing(reading, rows)
    confirmed = judgement.impression is Impression.AGREES
    if judgement.impression is Impression.WEAK:
        # Values in a low precision are noisy to the ladder, but what does not depend on an input at all stays as it is.
        apart = gap.still and bool(unmoved(site, pair[0])[rows].all())
        confirmed = apart or supports(reading, rows, gap.scale, ROUGHLY)
    if confirmed or (silent and gap.still):
        return _agreed(site, gap, reading)
    return Seen(site=site, judgement=judgement, reading=reading, resolution=judgement.resolution, gap=gap, quiet=silent)
