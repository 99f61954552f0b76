"""Compares claim and reference at one point; where they differ, finite differences decide which of the two is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradcli.numerics.claims.compare import Decision, Impression, Judgement, Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.persistence import along_symmetric_changes, confirm, confirm_sparse
from gradcli.numerics.localise.entries import proven
from gradcli.numerics.maps.sizes import COMPUTED
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, Doubt, Outcome, Pair
from gradcli.numerics.reference.arbitration import Dispute, Ruling, settle
from gradcli.numerics.reference.discrepancy import Discrepancy, compare, compare_all, wrong_focus
from gradcli.numerics.reference.symmetric import OTHER_SHARES, on_symmetric_changes, share_alike
from gradcli.numerics.regularity.gradient_noise import jitter
from gradcli.numerics.regularity.iteration import LOOSE, OFTEN, stops_early
from gradcli.numerics.regularity.stored_format import significance_of
from gradcli.numerics.sampling.directions import LONG
from gradcli.numerics.screen.certification import certify
from gradcli.numerics.screen.pair_result import PairResult
from gradcli.numerics.screen.small_entries import wrong_in_small_rows, wrong_in_the_tail
from gradcli.numerics.wording import of_largest

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
    """The pairs that the comparison with the reference decides, and those left to finite differences alone.

    Attributes:
        found: the results of the pairs that are decided.
        detached: the pairs for which finite differences contradict the reference.
        shared: those of them that differ only in how a symmetric matrix's gradient is divided between its triangles.
        contested: the pairs in which claim and reference differ, and finite differences do not decide which is right.
        significance: a coarser significance, if the precision of the values requires one.
    """

    found: dict[Pair, PairResult] = field(default_factory=dict)
    detached: set[Pair] = field(default_factory=set)
    shared: set[Pair] = field(default_factory=set)
    contested: dict[Pair, Discrepancy] = field(default_factory=dict)
    significance: float | None = None

    def temper(self, pair: Pair, result: PairResult) -> PairResult:
        """Adjust the result of finite differences alone to what is known of the reference.

        If the reference was contradicted, a note says so. If claim and reference differ and neither was contradicted,
        agreement at a resolution coarser than their difference becomes WEAK.
        """
        if pair in self.detached:
            return replace(result, note=OTHER_SHARES if pair in self.shared else DETACHED)
        discrepancy = self.contested.get(pair)
        if discrepancy is None or result.impression is not Impression.AGREES:
            return result
        if result.resolution is not None and result.resolution < discrepancy.scaled_error:
            return replace(result, note=DETACHED)
        note = (
            f"the gradient differs from autodiff of forward's body by {of_largest(discrepancy.error)}, "
            "and finite differences are too coarse to tell which of the two is right"
        )
        return replace(result, judgement=replace(result.judgement, impression=Impression.WEAK), note=note)


def compare_with_witness(site: Site, pairs: Sequence[Pair], significance: float) -> WitnessComparison:
    """Compare the claim with the reference; finite differences certify both, or decide between them."""
    compared = WitnessComparison()
    agreed: dict[Pair, Discrepancy] = {}
    apart: dict[Pair, Discrepancy] = {}
    discrepancies = compare_all(site, pairs)
    if site.few_rows and any(discrepancy.error > COMPUTED for discrepancy in discrepancies.values()):
        site.ask_again()
        discrepancies = compare_all(site, pairs)
    for pair, discrepancy in discrepancies.items():
        (agreed if discrepancy.equal or discrepancy.error <= significance else apart)[pair] = discrepancy
    if any(discrepancy.error < LOOSE for discrepancy in apart.values()):
        compared.significance = significance = significance_of(site, significance)
        explained = _explained(site, apart, significance)
        agreed |= explained
        apart = {pair: discrepancy for pair, discrepancy in apart.items() if pair not in explained}
    for pair, discrepancy in apart.items():
        dispute = settle(site, *pair, discrepancy)
        if dispute.ruling is Ruling.WITNESS_WRONG:
            compared.detached.add(pair)
            if share_alike(site, *pair):
                compared.shared.add(pair)
        elif dispute.ruling is Ruling.NEITHER:
            compared.contested[pair] = discrepancy
        elif dispute.reading is not None:
            result = _claim_wrong(site, pair, discrepancy, dispute, dispute.reading, significance)
            if result is not None:
                compared.found[pair] = result
    compared.found |= wrong_in_the_tail(site, agreed)
    agreed = {pair: _with_noise(site, pair, each) for pair, each in agreed.items() if pair not in compared.found}
    if agreed:
        compared.found |= certify(site, agreed, significance)
        compared.found |= wrong_in_small_rows(site, compared.found)
    return compared


def _with_noise(site: Site, pair: Pair, discrepancy: Discrepancy) -> Discrepancy:
    """The comparison with the noise of claim and reference, if that explains a difference that rounding does not."""
    noisy = discrepancy if discrepancy.equal else compare(site, *pair, jitter(site))
    return noisy if noisy.equal else discrepancy


def _explained(site: Site, apart: dict[Pair, Discrepancy], significance: float) -> dict[Pair, Discrepancy]:
    """The pairs whose small difference (below `LOOSE`) noise of the gradients or few digits of the values explain."""
    explained = {}
    for pair, discrepancy in apart.items():
        if discrepancy.error >= LOOSE:
            continue
        noisy = compare(site, *pair, jitter(site))
        if noisy.equal or noisy.error <= significance:
            explained[pair] = noisy
    return explained


def _claim_wrong(
    site: Site, pair: Pair, discrepancy: Discrepancy, dispute: Dispute, reading: Reading, significance: float
) -> PairResult | None:
    """The result for a pair whose claim finite differences found wrong; None if a small difference is not confirmed.

    Differences below `LOOSE` must pass all tests of `confirm`; those below `OFTEN` must not be due to an early stop.
    """
    judgement = discrepancy.judged(Impression.DIFFERS)
    symmetric = on_symmetric_changes(site, *pair, significance)
    if symmetric is not None:
        decision = along_symmetric_changes(symmetric)
    elif dispute.wide:
        decision = Decision(outcome=Outcome.DIFFERS, judgement=judgement, note=LARGE)
    elif discrepancy.error >= LOOSE and not (discrepancy.error < OFTEN and stops_early(site, reading)):
        decision = Decision(outcome=Outcome.DIFFERS, judgement=judgement)
    elif discrepancy.error >= LOOSE:
        note = (
            f"the gradient differs from finite differences by {of_largest(discrepancy.error)}, but finite differences "
            "also differ from each other: if an iteration in forward stops early, tighten its tolerance or fix the "
            "number of iterations"
        )
        decision = Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE, note=note, judgement=judgement)
    else:
        confirmed = _confirmed(site, pair, discrepancy, judgement, significance)
        if confirmed is None:
            return None
        decision = confirmed
    return PairResult(
        site=site,
        judgement=judgement,
        reading=reading,
        reference=AUTODIFF if decision.outcome is Outcome.DIFFERS else DIFFERENCES,
        decision=decision,
        discrepancy=discrepancy,
    )


def _confirmed(
    site: Site, pair: Pair, discrepancy: Discrepancy, judgement: Judgement, significance: float
) -> Decision | None:
    """The decision on a small difference, by small steps or, if noise leaves it open, by large ones.

    None if small steps agree with the claim, or if no steps show the difference.
    """
    if site.map.domain.blocks[pair[0]].size > LONG:
        located = proven(site, *pair, np.flatnonzero(discrepancy.wrong.any(axis=0)))
        if (sparse := confirm_sparse(site, *pair, located, significance)) is not None:
            return replace(sparse, judgement=judgement)
    first = site.probe(site.map.domain.slices[pair[0]], wrong_focus(site, *pair, discrepancy), cheap=False)
    decision = None
    if site.judge(first, *pair, significance).impression is Impression.DIFFERS:
        decision = replace(confirm(site, *pair, first, significance), judgement=judgement)
    if decision is not None and (decision.outcome is not Outcome.UNDECIDED or decision.doubt is not Doubt.NOISE):
        return None if decision.outcome is Outcome.AGREES else decision
    return decision
