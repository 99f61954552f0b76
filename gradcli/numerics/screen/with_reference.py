"""Claim and witness are compared; where they differ, finite differences decide which of the two is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradcli.numerics.claims.compare import Decision, Impression, Judgement, Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.persistence import along_symmetric_changes, confirm, confirm_sparse
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.localise.entries import LARGEST_COUNT, proven
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, Doubt, Outcome, Pair
from gradcli.numerics.reference.arbitration import Dispute, Ruling, ruled_over_wide_steps, settle
from gradcli.numerics.reference.gap import ALIKE, Gap, compare, compare_all, excess, wrong_focus
from gradcli.numerics.reference.symmetric import NOTE, on_symmetric_changes, share_alike
from gradcli.numerics.regularity.formats import significance_of
from gradcli.numerics.regularity.gradient_noise import jitter, jitter_of
from gradcli.numerics.regularity.iteration import LOOSE, stops_early
from gradcli.numerics.sampling.directions import LONG
from gradcli.numerics.screen.certification import certify
from gradcli.numerics.screen.pair_result import PairResult
from gradcli.numerics.screen.small_entries import parted, wrong_in_small_rows, wrong_in_the_tail
from gradcli.numerics.wording import of_largest

OFTEN = 0.1
"""Larger gaps are not examined for an early stop, which leaves smaller ones."""
LARGE = (
    "the outputs change little relative to their magnitude, so the error shows only in finite differences with steps "
    "as large as the input"
)
DETACHED = (
    "autodiff of forward's body disagrees with finite differences of forward (forward detaches, rounds, or computes "
    "outside the framework), so finite differences alone give the verdict"
)


@dataclass(slots=True)
class WitnessComparison:
    """What the witness settles, and what it leaves to differences alone.

    `detached` are the pairs of which differences say that the witness is wrong, `shared` those of them in which it only
    shares a symmetric matrix's gradient between the triangles in another way, `contested` those with a gap that they
    could not lay at either's door. `significance` is given where it is not the caller's.
    """

    found: dict[Pair, PairResult] = field(default_factory=dict)
    detached: set[Pair] = field(default_factory=set)
    shared: set[Pair] = field(default_factory=set)
    contested: dict[Pair, Gap] = field(default_factory=dict)
    significance: float | None = None

    def temper(self, pair: Pair, seen: PairResult) -> PairResult:
        """Say beside a verdict from differences what the witness said, and withhold one too coarse to overrule it."""
        if pair in self.detached:
            return replace(seen, note=NOTE if pair in self.shared else DETACHED)
        gap = self.contested.get(pair)
        if gap is None or seen.impression is not Impression.AGREES:
            return seen
        if seen.resolution is not None and seen.resolution < gap.scaled_error:
            return replace(seen, note=DETACHED)
        note = (
            f"the gradient differs from autodiff of forward's body by {of_largest(gap.error)}, "
            "and finite differences are too coarse to tell which of the two is right"
        )
        return replace(seen, judgement=replace(seen.judgement, impression=Impression.WEAK), note=note)


def compare_with_witness(site: Site, pairs: Sequence[Pair], significance: float) -> WitnessComparison:
    """Compare the claim with the witness of a site that has one, and let differences certify or arbitrate."""
    compared = WitnessComparison()
    agreed: dict[Pair, Gap] = {}
    apart: dict[Pair, Gap] = {}
    gaps = compare_all(site, pairs)
    if site.few_rows and any(gap.error > ALIKE for gap in gaps.values()):
        site.ask_again()
        gaps = compare_all(site, pairs)
    for pair, gap in gaps.items():
        (agreed if gap.equal or gap.error <= significance else apart)[pair] = gap
    if any(gap.error < LOOSE for gap in apart.values()):
        significance = _forgive(site, agreed, apart, significance)
        compared.significance = significance
    for pair, gap in apart.items():
        dispute = settle(site, *pair, gap)
        if dispute.ruling is Ruling.WITNESS_WRONG:
            compared.detached.add(pair)
            if share_alike(site, *pair):
                compared.shared.add(pair)
        elif dispute.ruling is Ruling.NEITHER:
            compared.contested[pair] = gap
        elif dispute.reading is not None:
            seen = _claim_wrong(site, pair, gap, dispute, dispute.reading, significance)
            if seen is not None:
                compared.found[pair] = seen
    compared.found |= wrong_in_the_tail(site, agreed)
    agreed = {pair: gap for pair, gap in agreed.items() if pair not in compared.found}
    if agreed:
        compared.found |= certify(site, agreed, significance)
        compared.found |= wrong_in_small_rows(site, compared.found)
    return compared


def _forgive(site: Site, agreed: dict[Pair, Gap], apart: dict[Pair, Gap], significance: float) -> float:
    """Count small gaps as agreement where the gradients' own noise, or a low precision, explains them.

    Returns:
        The significance that the values' precision leaves.
    """
    noise = None
    significance = significance_of(site, significance)
    for pair, gap in list(apart.items()):
        if gap.error >= LOOSE or (gap.error > significance and _stays_wrong(site, pair, gap)):
            continue
        noise = jitter(site) if noise is None else noise
        noisy = compare(site, *pair, noise)
        if noisy.equal or noisy.error <= significance:
            agreed[pair] = noisy
            del apart[pair]
    return significance


def _stays_wrong(site: Site, pair: Pair, gap: Gap) -> bool:
    """Whether some of the few entries that are wrong in a large block are so beyond their own noise as well.

    No noise elsewhere can excuse them. The row in which they part most is asked, of the others nothing is said.
    """
    columns = np.flatnonzero(gap.wrong.any(axis=0))
    if site.map.domain.blocks[pair[0]].size <= LONG or columns.size > LARGEST_COUNT:
        return False
    row, beyond = excess(site, *pair, columns)
    number = int(np.flatnonzero(site.claim.block == pair[1])[row])
    noise = jitter_of(site, number, site.map.domain.slices[pair[0]].start + columns)
    return bool((beyond > NOISE_FACTOR * noise).any())


def _claim_wrong(
    site: Site, pair: Pair, gap: Gap, dispute: Dispute, reading: Reading, significance: float
) -> PairResult | None:
    """A difference that the map's own differences lay at the claim's door; a small one is confirmed at length."""
    judgement = parted(gap)
    symmetric = on_symmetric_changes(site, *pair, significance)
    if symmetric is not None:
        decision = along_symmetric_changes(symmetric)
    elif dispute.wide:
        decision = Decision(outcome=Outcome.DIFFERS, judgement=judgement, note=LARGE)
    elif gap.error >= LOOSE and not (gap.error < OFTEN and stops_early(site, reading)):
        decision = Decision(outcome=Outcome.DIFFERS, judgement=judgement)
    elif gap.error >= LOOSE:
        note = (
            f"the gradient differs from finite differences by {of_largest(gap.error)}, but finite differences also "
            "differ from each other: if an iteration in forward stops early, tighten its tolerance or fix the number "
            "of iterations"
        )
        decision = Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE, note=note, judgement=judgement)
    else:
        confirmed = _confirmed(site, pair, gap, judgement, significance)
        if confirmed is None:
            return None
        decision = confirmed
    return PairResult(
        site=site,
        judgement=judgement,
        reading=reading,
        resolution=None,
        reference=AUTODIFF if decision.outcome is Outcome.DIFFERS else DIFFERENCES,
        decision=decision,
        gap=gap,
    )


def _confirmed(site: Site, pair: Pair, gap: Gap, judgement: Judgement, significance: float) -> Decision | None:
    """What confirming a small difference at length comes to: over fine steps, or over wide ones; None if to nothing."""
    if site.map.domain.blocks[pair[0]].size > LONG:
        located = proven(site, *pair, np.flatnonzero(gap.wrong.any(axis=0)))
        if (sparse := confirm_sparse(site, *pair, located, significance)) is not None:
            return replace(sparse, judgement=judgement)
    first = site.probe(site.map.domain.slices[pair[0]], wrong_focus(site, *pair, gap), cheap=False)
    decision = None
    if site.judge(first, *pair, significance).impression is Impression.DIFFERS:
        decision = replace(confirm(site, *pair, first, significance), judgement=judgement)
    if decision is not None and (decision.outcome is not Outcome.UNDECIDED or decision.doubt is not Doubt.NOISE):
        return None if decision.outcome is Outcome.AGREES else decision
    if ruled_over_wide_steps(site, *pair) is Ruling.CLAIM_WRONG:
        return Decision(outcome=Outcome.DIFFERS, judgement=judgement, note=LARGE)
    return decision
