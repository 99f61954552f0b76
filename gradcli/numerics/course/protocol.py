"""The protocol of one verification: judge every pair at the point, confirm differences, try other points if needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import final

import numpy as np

from gradcli.numerics.claims.compare import Decision, Impression
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.isolated_points import certain, ties, wrong_at_this_point
from gradcli.numerics.confirm.large_scale import (
    agreed_in_half_precision,
    is_zero_of_an_iteration,
    undecided_by_values,
    with_large_steps,
)
from gradcli.numerics.confirm.persistence import confirm, confirm_sparse
from gradcli.numerics.course.small_rows import cut_to_small_rows, suspect_rows
from gradcli.numerics.course.zero_gradient import OfRows, look_elsewhere, without_large_outputs
from gradcli.numerics.differences.estimate import Status
from gradcli.numerics.localise.entries import locate
from gradcli.numerics.localise.evidence import EvidenceBudget, largest_entry, with_evidence
from gradcli.numerics.maps.floats import Indices, Vector
from gradcli.numerics.maps.pieces import all_finite
from gradcli.numerics.maps.vector_map import BudgetExceededError, CountedMap, VectorMap
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, BlockOutcome, Doubt, KinkNote, Outcome, Pair, Verification
from gradcli.numerics.reference.discrepancy import same_values
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.regularity.kinks import kink_notes
from gradcli.numerics.regularity.nonfinite import judge_nonfinite
from gradcli.numerics.sampling.directions import LONG, TRIES, moved
from gradcli.numerics.screen.pair_result import PairResult, better_known, undecided_outcome
from gradcli.numerics.screen.survey import survey
from gradcli.numerics.wording import OPEN, STOPS_EARLY, accepted, joined

NOISY = frozenset({Status.NOISE, Status.STAIRCASE})

AS_COMPUTED = f"{STOPS_EARLY}: if it stops early, the derivatives shown are less accurate than their error bounds say"
ZERO_AT_ALL = "the gradient and the derivative of forward are zero at all {0} points tried"
BELOW_ROUNDING = "the gradient and the derivative are below rounding errors, here and at all other points tried"
CLOSE_BY = "compared at a nearby point instead, with inputs that differ by about a thousandth of their magnitude"


@final
class Protocol:
    """One verification. `run` gives its result."""

    def __init__(
        self,
        map_: CountedMap,
        witness: VectorMap | None,
        witness_values: bool,
        x: Vector,
        rng: np.random.Generator,
        significance: float,
        inputs: tuple[int, ...],
        entries: int | None,
    ) -> None:
        self.map, self.witness, self.witness_values, self.x, self.rng = map_, witness, witness_values, x, rng
        self.significance, self.inputs = significance, inputs
        self.evidence = EvidenceBudget(left=entries)
        self.outcomes: dict[Pair, BlockOutcome] = {}
        self.refuted: set[int] = set()
        self.silent: dict[Pair, PairResult] = {}
        self.elsewhere: dict[Pair, Site] = {}
        self.suspects: dict[Pair, tuple[Vector, Indices]] = {}
        self.kinks: tuple[KinkNote, ...] = ()
        self.notes: list[str] = []
        self.moved = False
        self.of_rows: OfRows | None = None

    def run(self) -> Verification:
        """Decide every pair of blocks."""
        self._settle_empty_blocks()
        point = self.x
        if self._pending():
            site = Site.at(self.map, self.x, self.rng, witness=self.witness)
            site.evaluate()
            if self.witness_values and self.witness is not None and not same_values(self.witness, site):
                site = site.alone()
            point = site.x
            self._settle_without_graph(site)
            try:
                self._decide(site)
                self._take_large_steps(site)
                self._name_reasons(site)
            except BudgetExceededError:
                self.notes.append(f"all {self.map.budget} evaluations of forward that are allowed were used up")
                self.silent.clear()
                for pair in self._pending():
                    self._settle(pair, Outcome.UNDECIDED, Doubt.BUDGET)
        return Verification(
            blocks=tuple(self.outcomes[pair] for pair in self._pairs()),
            kinks=self.kinks,
            point=point,
            moved=self.moved,
            evaluations=self.map.values,
            vjps=self.map.vjps,
            notes=tuple(self.notes),
        )

    def _pairs(self) -> list[Pair]:
        pairs = [(i, o) for i in self.inputs for o in range(len(self.map.codomain.blocks))]
        return [pair for pair in pairs if pair[1] not in self.refuted or pair in self.outcomes]

    def _pending(self) -> list[Pair]:
        return [pair for pair in self._pairs() if pair not in self.outcomes and pair not in self.silent]

    def _settle(self, pair: Pair, outcome: Outcome, doubt: Doubt | None, note: str | None = None) -> None:
        self.outcomes[pair] = BlockOutcome(input=pair[0], output=pair[1], outcome=outcome, doubt=doubt, note=note)

    def _settle_empty_blocks(self) -> None:
        for pair in self._pairs():
            if not (self.map.domain.blocks[pair[0]].size and self.map.codomain.blocks[pair[1]].size):
                self._settle(pair, Outcome.UNDECIDED, Doubt.NO_SIGNAL, "the input or the output is empty")

    def _settle_without_graph(self, site: Site) -> None:
        """Settle outputs that carry no graph although they change, by the one pair that shows it."""
        sizes = self.map.codomain.sizes
        zero = [o for o, size in enumerate(sizes) if size and not site.claim.of_block(o).any()]
        if self.map.below is None or not zero:
            return
        from gradcli.numerics.course.without_graph import refuted_without_graph

        found = refuted_without_graph(site, self.map.below, zero)
        self.outcomes |= {pair: outcome for pair, outcome in found.items() if pair[0] in self.inputs}
        self.refuted = {output for input_, output in found if input_ in self.inputs}

    def _decide(self, site: Site) -> None:
        """Judge all pairs by small steps at the point, and those on kinks or with NaN at points close by."""
        for pair in self._pending() if not all_finite(site.outputs) else ():
            if not site.rows(pair[1]).any():
                self._settle(pair, Outcome.UNDECIDED, Doubt.DOMAIN, "the output is NaN or infinite in every entry")
        singular = {} if site.claim.finite else self._judge_nonfinite(site.alone())
        self._settle_half_precision(site, singular)
        kinked: dict[Pair, PairResult] = {}
        pending = [pair for pair in self._pending() if pair not in singular]
        results = survey(site, pending, self.significance) if pending else {}
        for pair in pending:
            if results[pair].impression in (Impression.KINKED, Impression.WEAK) and results[pair].decision is None:
                kinked[pair] = results[pair]
            else:
                self._conclude(pair, results[pair], None)
        kinked = self._left_by_large_steps(site, kinked)
        singular |= ties(site, self.outcomes)
        if kinked or singular:
            self._elsewhere(site, kinked, singular)
        self._resolve_silence(site)

    def _settle_half_precision(self, site: Site, singular: Mapping[Pair, BlockOutcome]) -> None:
        """Judge pairs whose values are float16 or bfloat16 numbers by large steps: small ones show only rounding."""
        for pair in [pair for pair in self._pending() if pair not in singular and site.claim.finite]:
            agreed = agreed_in_half_precision(site, pair)
            if agreed is not None:
                self.outcomes[pair] = agreed

    def _take_large_steps(self, site: Site) -> None:
        """Try large steps where values are too rough for small ones, for each pair at the point where it was judged."""
        for pair, outcome in [each for each in self.outcomes.items() if each[0][1] not in self.refuted]:
            self.outcomes[pair] = with_large_steps(self.elsewhere.get(pair, site), outcome, self.significance)
        self._resolve_zeros(site)

    def _resolve_zeros(self, site: Site) -> None:
        """Try other points for claims of zero that even large steps leave UNDECIDED (`is_zero_of_an_iteration`)."""
        undecided = [p for p, o in self.outcomes.items() if p not in self.elsewhere and undecided_by_values(o)]
        if not undecided:
            return
        site = site.alone()
        zeros = [pair for pair in undecided if is_zero_of_an_iteration(site, self.outcomes[pair])]
        for pair, other in (look_elsewhere(site, zeros, self.significance) if zeros else {}).items():
            if other.result is not None:
                self._conclude_elsewhere(pair, other.result, other.note)
                self.silent.pop(pair, None)
                self.outcomes[pair] = with_large_steps(other.result.site, self.outcomes[pair], self.significance)

    def _name_reasons(self, site: Site) -> None:
        """Say why pairs are undecided that have no other reason: an iteration that stops early, if forward iterates."""
        for pair, outcome in self.outcomes.items():
            if outcome.outcome is not Outcome.UNDECIDED or not outcome.unexplained:
                continue
            reason = OPEN if outcome.note else None
            if outcome.doubt is Doubt.NOISE and iterates(self.elsewhere.get(pair, site).alone()):
                reason = f"{STOPS_EARLY}, so its values jump, and {OPEN}"
            self.outcomes[pair] = replace(outcome, note=joined(reason, outcome.note))

    def _judge_nonfinite(self, site: Site) -> dict[Pair, BlockOutcome]:
        """Judge pairs whose claim is not finite; return the outcomes of those without a derivative at the point."""
        singular = {}
        for pair in self._pending():
            found = judge_nonfinite(site, *pair)
            if found is not None and found.outcome is Outcome.DIFFERS:
                self.outcomes[pair] = found
            elif found is not None:
                singular[pair] = found
                self.notes.append(f"input {pair[0]}, output {pair[1]}: {found.note}")
        return singular

    def _conclude(self, pair: Pair, result: PairResult, note: str | None) -> None:
        """Make an outcome of what is known by now. Large steps may still change it (`_take_large_steps`)."""
        note = joined(note, result.note)
        if result.decision is not None:
            self._record(pair, result, result.decision, note)
        elif result.impression is Impression.AGREES:
            self._agree(pair, result, note)
        elif result.impression is Impression.DIFFERS:
            self._record(pair, result, self._confirmed(pair, result), note)
        elif result.impression is Impression.SILENT:
            self.silent[pair] = result
        else:
            self.outcomes[pair] = undecided_outcome(pair, result, note)

    def _confirmed(self, pair: Pair, result: PairResult) -> Decision:
        """Confirm a difference: by its wrong entries, if a large block has only a few; otherwise along directions."""
        searched = False
        if self.map.domain.blocks[pair[0]].size > LONG and result.discrepancy is None and self.evidence.allow_search:
            decision = confirm_sparse(result.site, *pair, locate(result.site, *pair), self.significance)
            searched = True
            if decision is not None:
                return decision
        return replace(confirm(result.site, *pair, result.reading, self.significance), searched=searched)

    def _agree(self, pair: Pair, result: PairResult, note: str | None) -> None:
        """Accept a claim, unless a single entry is off, and keep the rows that are to be verified on their own."""
        site, judgement = result.site, result.judgement
        largest = largest_entry(site, *pair)
        relative = judgement.error / judgement.scale if judgement.scale else 0.0
        measured = judgement.off and result.reference == DIFFERENCES
        if measured:
            from gradcli.numerics.confirm.single_column import confirm_column  # smooth functions need none of it

            if (decision := confirm_column(site, *pair, self.significance)) is not None:
                self._record(pair, result, decision, note)
                return
        if judgement.off or (result.discrepancy is not None and not result.discrepancy.equal):
            note = note or accepted(relative, result.allowed or self.significance)
        suspects = suspect_rows(site, pair, result.reading)
        if suspects.rows.size:
            self.suspects[pair] = site.x, suspects.rows
        self.outcomes[pair] = BlockOutcome(
            input=pair[0],
            output=pair[1],
            outcome=Outcome.AGREES,
            max_abs_error=relative * largest,
            max_rel_error=relative,
            bound=judgement.tolerance / (judgement.scale or 1.0) * largest,
            resolution=result.resolution,
            note=joined(note, suspects.note),
            reference=result.reference,
        )

    def _record(self, pair: Pair, result: PairResult, decision: Decision, note: str | None) -> None:
        """Take a confirmed or refuted difference; the reference overrules an inconclusive confirmation."""
        witnessed = result.discrepancy is not None and result.decision is None
        overruled = witnessed and decision.outcome is Outcome.UNDECIDED and not decision.here_only
        reference = AUTODIFF if overruled else result.reference
        agreed = result.discrepancy if overruled else None
        judgement = decision.judgement if agreed is None else agreed.judged(Impression.AGREES)
        scale, largest = judgement.scale or 1.0, largest_entry(result.site, *pair)
        known = overruled or decision.outcome is not Outcome.UNDECIDED
        outcome = BlockOutcome(
            input=pair[0],
            output=pair[1],
            outcome=Outcome.AGREES if overruled else decision.outcome,
            doubt=None if overruled else decision.doubt,
            max_abs_error=judgement.error / scale * (largest or scale),
            max_rel_error=judgement.error / scale,
            bound=judgement.tolerance / scale * (largest or scale) if known else None,
            resolution=judgement.resolution if known else None,
            note=joined(note, decision.note),
            reference=reference,
            unexplained=not decision.note,
        )
        if outcome.outcome is Outcome.DIFFERS:
            if reference == DIFFERENCES and result.site.known_iterating:  # as far as confirming it has shown
                outcome = replace(outcome, note=joined(outcome.note, AS_COMPUTED))
            outcome = self.evidence.added(result.site, outcome, decision, self.significance)
            if reference == DIFFERENCES:
                outcome = self._if_it_matters(result.site, outcome)
            elif decision.in_small_entries:
                outcome = cut_to_small_rows(outcome)
        elif not overruled and decision.here_only:
            outcome = with_evidence(result.site, outcome, decision)
            outcome = replace(outcome, special=wrong_at_this_point(result.site, outcome))
        self.outcomes[pair] = outcome

    def _if_it_matters(self, site: Site, outcome: BlockOutcome) -> BlockOutcome:
        """AGREES if no entry is off by more than the significance, although the errors add up along a direction."""
        table = outcome.table
        if table is None or not table.complete or outcome.max_rel_error > self.significance:
            return outcome
        scales = site.scales[self.map.domain.slices[outcome.input]][table.columns]
        error, largest = np.abs(table.claimed - table.numeric) * scales, np.abs(table.claimed) * scales
        if not float(error.max(initial=0.0)) <= self.significance * float(largest.max(initial=0.0)):
            return outcome
        note = accepted(outcome.max_rel_error, self.significance)
        resolution = max(outcome.resolution or 0.0, outcome.max_rel_error)
        return replace(outcome, outcome=Outcome.AGREES, note=note, resolution=resolution)

    def _resolve_silence(self, site: Site) -> None:
        """Decide the pairs whose claim and derivative are zero at the point, or below rounding, at other points."""
        witnessed = [pair for pair, result in self.silent.items() if result.witnessed]
        unwitnessed = [pair for pair in self.silent if pair not in witnessed]
        for where, pairs in ((site, witnessed), (site.alone() if unwitnessed else site, unwitnessed)):
            for pair, other in (look_elsewhere(where, pairs, self.significance) if pairs else {}).items():
                here = self.silent.pop(pair)
                found, zero = without_large_outputs(where, here, pair, other, self.of_rows)
                if found is not None:
                    self.outcomes[pair] = found
                elif other.result is not None:
                    self._conclude_elsewhere(pair, other.result, other.note)
                elif other.enough and here.quiet and zero:
                    self.outcomes[pair] = BlockOutcome(
                        input=pair[0],
                        output=pair[1],
                        outcome=Outcome.AGREES,
                        zero_everywhere=True,
                        note=ZERO_AT_ALL.format(other.zeros + 1),
                        reference=here.reference,
                    )
                else:
                    self._settle(pair, Outcome.UNDECIDED, Doubt.NO_SIGNAL, BELOW_ROUNDING)

    def _conclude_elsewhere(self, pair: Pair, result: PairResult, note: str) -> None:
        self.moved, self.elsewhere[pair] = True, result.site
        self._conclude(pair, result, note)

    def _left_by_large_steps(self, site: Site, weak: Mapping[Pair, PairResult]) -> dict[Pair, PairResult]:
        """Accept noisy pairs that agree over large steps, and return the others: nearby points would be as noisy."""
        for pair, result in weak.items():
            outcome = undecided_outcome(pair, result, result.note)
            if outcome.doubt is Doubt.NOISE and NOISY.intersection(result.judgement.statuses):
                outcome = with_large_steps(site, outcome, self.significance, only_agreement=True)
                if outcome.outcome is Outcome.AGREES:
                    self.outcomes[pair] = outcome
        return {pair: result for pair, result in weak.items() if pair not in self.outcomes}

    def _elsewhere(self, site: Site, kinked: dict[Pair, PairResult], singular: dict[Pair, BlockOutcome]) -> None:
        """Judge pairs on kinks, with NaN or weak results at a point moved by 1e-3 of the scale, up to three times."""
        self._name_kinks(site, kinked)
        last = dict(kinked)
        pending = {*kinked, *singular}
        there = site
        for _ in range(TRIES):
            candidate = there.moved_to(moved(self.rng, there.x, site.scales))
            if candidate is None:
                continue
            there = candidate
            usable = [pair for pair in sorted(pending) if there.rows(pair[1]).any() and there.claim.finite]
            for pair, result in survey(there, usable, self.significance).items() if usable else ():
                if result.impression in (Impression.KINKED, Impression.WEAK) and result.decision is None:
                    last[pair] = better_known(last.get(pair, result), result)
                    continue
                pending.remove(pair)
                self.moved = True
                text = str(singular[pair].note) if pair in singular else ""
                self._conclude(pair, result, joined(CLOSE_BY, text))
            if not pending:
                break
        for pair in sorted(pending):
            if pair in singular:
                self.outcomes[pair] = singular[pair]
            else:
                self.outcomes[pair] = undecided_outcome(pair, last[pair], last[pair].note)
        self._name_special_points(site, singular)

    def _name_kinks(self, site: Site, pending: dict[Pair, PairResult]) -> None:
        kinked = {i for (i, _), result in pending.items() if result.impression is Impression.KINKED}
        for input_ in sorted(kinked):
            self.kinks += kink_notes(site.alone(), self.map.domain.slices[input_])
        if outside := [k.coordinate for k in self.kinks if not k.between]:
            self.notes.append(
                "forward has a kink here, and the gradient does not lie between its left and right slopes, in "
                f"entries {outside}"
            )

    def _name_special_points(self, site: Site, singular: dict[Pair, BlockOutcome]) -> None:
        """Add to the outcomes the entries whose claim is certainly wrong on the kink itself."""
        named = [*self.kinks, *(block.special for block in singular.values() if block.special is not None)]
        for kink in named:
            if kink.between or kink.output is None or not certain(site, kink):
                continue
            for pair, outcome in self.outcomes.items():
                inside, outside = self.map.domain.slices[pair[0]], self.map.codomain.slices[pair[1]]
                here = inside.start <= kink.coordinate < inside.stop and outside.start <= kink.output < outside.stop
                if here and outcome.outcome is not Outcome.DIFFERS and outcome.special is None:
                    self.outcomes[pair] = replace(outcome, special=kink)
