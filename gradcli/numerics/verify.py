"""The verdict protocol: is the claimed gradient the transpose of the map's derivative at this point?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradcli.numerics.compare import Impression, Judgement, Reading
from gradcli.numerics.confirm import Decision, confirm
from gradcli.numerics.estimate import Status
from gradcli.numerics.evidence import largest_entry, make_table, telling_column, with_evidence
from gradcli.numerics.kink_notes import kink_notes
from gradcli.numerics.nonfinite import judge_nonfinite
from gradcli.numerics.outcome import BlockOutcome, Doubt, KinkNote, Outcome, Table, Verification
from gradcli.numerics.probe import focuses, moved
from gradcli.numerics.silence import CONFIRMING, look_elsewhere, vanishing
from gradcli.numerics.site import BudgetExceededError, Site
from gradcli.numerics.space import Vector
from gradcli.numerics.vector_map import CountedMap, VectorMap

__all__ = ["BlockOutcome", "Doubt", "KinkNote", "Outcome", "Table", "Verification", "verify"]

MOVES = 3
BUDGET = 100_000

SEVERITY = (Impression.SILENT, Impression.WEAK, Impression.AGREES, Impression.KINKED, Impression.DIFFERS)


def verify(
    map: VectorMap,
    x: Vector,
    *,
    seed: int,
    significance: float = 1e-7,
    tables: bool = False,
    inputs: Sequence[int] | None = None,
    budget: int = BUDGET,
) -> Verification:
    """Compare the claimed gradient of a map with its numerical derivative, block by block.

    Args:
        map: the map; only `value` is believed.
        x: the point, length n; it is rounded to a grid first, which moves an entry by 3e-14 of its size at most.
        seed: everything random follows from it.
        significance: a difference below this part of the largest entry of the block is noted, not reported as DIFFERS.
        tables: also give the table of small blocks that agree.
        inputs: the input blocks to check, all by default.
        budget: forward evaluations allowed; blocks not reached by then are UNDECIDED with doubt BUDGET.

    Returns:
        A `Verification` with one `BlockOutcome` for every chosen input block and every output block.

    Raises:
        ValueError: x has the wrong length.
        Exception: whatever the map raises at x itself.
    """
    if np.shape(x) != (map.domain.size,):
        raise ValueError(f"expected a point of length {map.domain.size}, got shape={np.shape(x)}")
    counted = CountedMap(map)
    chosen = range(len(map.domain.blocks)) if inputs is None else inputs
    rng = np.random.default_rng([0x6772, seed % 2**63])
    protocol = _Protocol(counted, np.asarray(x, dtype=np.float64), rng, significance, tables, tuple(chosen), budget)
    return protocol.run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The most telling direction measured for one block at one point."""

    judgement: Judgement
    reading: Reading
    resolution: float | None


class _Protocol:
    def __init__(
        self,
        map_: CountedMap,
        x: Vector,
        rng: np.random.Generator,
        significance: float,
        tables: bool,
        inputs: tuple[int, ...],
        budget: int,
    ) -> None:
        self.map, self.x, self.rng = map_, x, rng
        self.significance, self.tables, self.inputs, self.budget = significance, tables, inputs, budget
        self.outcomes: dict[tuple[int, int], BlockOutcome] = {}
        self.kinks: tuple[KinkNote, ...] = ()
        self.notes: list[str] = []
        self.moved = False

    def run(self) -> Verification:
        self._settle_empty_blocks()
        point = self.x
        if self._pending():
            site = Site.at(self.map, self.x, self.rng, self.budget)
            point = site.x
            try:
                self._decide(site)
            except BudgetExceededError:
                self.notes.append(f"the evaluations allowed ({self.budget}) were used up")
                for input_, output in self._pending():
                    self._settle(input_, output, Outcome.UNDECIDED, Doubt.BUDGET)
        blocks = tuple(self.outcomes[pair] for pair in self._pairs())
        return Verification(
            blocks=blocks,
            kinks=self.kinks,
            point=point,
            moved=self.moved,
            evaluations=self.map.values,
            vjps=self.map.vjps,
            notes=tuple(self.notes),
        )

    def _pairs(self) -> list[tuple[int, int]]:
        return [(i, o) for i in self.inputs for o in range(len(self.map.codomain.blocks))]

    def _pending(self) -> list[tuple[int, int]]:
        return [pair for pair in self._pairs() if pair not in self.outcomes]

    def _settle(self, input_: int, output: int, outcome: Outcome, doubt: Doubt | None, note: str | None = None) -> None:
        self.outcomes[input_, output] = BlockOutcome(
            input=input_, output=output, outcome=outcome, doubt=doubt, note=note
        )

    def _settle_empty_blocks(self) -> None:
        for input_, output in self._pairs():
            if not (self.map.domain.blocks[input_].size and self.map.codomain.blocks[output].size):
                self._settle(input_, output, Outcome.UNDECIDED, Doubt.NO_SIGNAL, "the block is empty")

    def _decide(self, site: Site) -> None:
        for input_, output in self._pending():
            if not site.rows(output).any():
                self._settle(input_, output, Outcome.UNDECIDED, Doubt.DOMAIN, "no output is finite at this point")
        singular = self._judge_nonfinite(site)
        kinked: dict[tuple[int, int], _Seen] = {}
        for input_ in self.inputs:
            outputs = [o for i, o in self._pending() if i == input_ and (i, o) not in singular]
            if not outputs:
                continue
            for output, seen in self._examine(site, input_, outputs).items():
                if seen.judgement.impression in (Impression.KINKED, Impression.WEAK):
                    kinked[input_, output] = seen
                else:
                    self._conclude(site, input_, output, seen, None)
        self._check_mixed(site)
        if kinked or singular:
            self._elsewhere(site, kinked, singular)

    def _judge_nonfinite(self, site: Site) -> dict[tuple[int, int], BlockOutcome]:
        """Settle blocks whose claim is wrongly not finite; give those that are so where f has no derivative either."""
        singular = {}
        for input_, output in [] if site.claim.finite else self._pending():
            found = judge_nonfinite(site, input_, output)
            if found is not None and found.outcome is Outcome.DIFFERS:
                self.outcomes[input_, output] = found
            elif found is not None:
                singular[input_, output] = found
                self.notes.append(f"input {input_}, output {output}: {found.note}")
        return singular

    def _examine(self, site: Site, input_: int, outputs: list[int]) -> dict[int, _Seen]:
        """Measure two directions through one input block, or one for every group of scales."""
        places = self.map.domain.slices[input_]
        best: dict[int, _Seen] = {}
        chosen = focuses(site.scales, places)
        for number, focus in enumerate(chosen if len(chosen) > 1 else chosen * 2):
            reading = site.probe(places, focus)
            for output in outputs:
                judgement = site.judge(reading, input_, output, self.significance)
                seen = _Seen(judgement=judgement, reading=reading, resolution=judgement.resolution)
                best[output] = seen if number == 0 else _stronger(best[output], seen)
        return best

    def _check_mixed(self, site: Site) -> None:
        """Move all inputs at once; blocks that agreed alone must agree together."""
        agreed = [pair for pair, block in self.outcomes.items() if block.outcome is Outcome.AGREES]
        if len({i for i, _ in agreed}) < 2 or not site.claim.finite:
            return
        reading = site.probe(slice(0, site.x.size))
        for output in sorted({o for _, o in agreed}):
            scale = max(site.claim.entry_scale(p, output, site.scales) for p in self.map.domain.slices)
            failing = reading.differing(scale, self.significance * max(1.0, site.x.size**0.5 / 300.0))
            if not (failing & site.rows(output)).any():
                continue
            for input_ in sorted({i for i, o in agreed if o == output}):
                again = self._examine(site, input_, [output])[output]
                if again.judgement.impression is Impression.DIFFERS:
                    self._conclude(site, input_, output, again, None)

    def _conclude(self, site: Site, input_: int, output: int, seen: _Seen, note: str | None) -> None:
        impression = seen.judgement.impression
        if impression is Impression.AGREES:
            self._agree(site, input_, output, seen, note)
        elif impression is Impression.DIFFERS:
            decision = confirm(site, input_, output, seen.reading, self.significance)
            self._record(site, input_, output, decision, note)
        elif impression is Impression.SILENT:
            self._silent(site, input_, output, seen)
        else:
            self._doubt(site, input_, output, seen, note)

    def _agree(self, site: Site, input_: int, output: int, seen: _Seen, note: str | None) -> None:
        judgement = seen.judgement
        largest = largest_entry(site, input_, output)
        relative = judgement.error / judgement.scale if judgement.scale else 0.0
        if judgement.off:
            focus = telling_column(site, input_, output, self.significance)
            if focus is not None:
                reading = site.probe(self.map.domain.slices[input_], focus, cheap=False)
                if site.judge(reading, input_, output, self.significance).impression is Impression.DIFFERS:
                    decision = confirm(site, input_, output, reading, self.significance)
                    self._record(site, input_, output, decision, note)
                    return
            note = note or (
                f"differs by {relative:.1e} of the largest entry, below the significance of {self.significance:.0e}"
            )
        outcome = BlockOutcome(
            input=input_,
            output=output,
            outcome=Outcome.AGREES,
            max_abs_error=relative * largest,
            max_rel_error=relative,
            bound=judgement.tolerance / (judgement.scale or 1.0) * largest,
            resolution=seen.resolution,
            note=note,
        )
        if self.tables:
            outcome = replace(outcome, table=make_table(site, input_, output, only_complete=True))
        self.outcomes[input_, output] = outcome

    def _record(self, site: Site, input_: int, output: int, decision: Decision, note: str | None) -> None:
        judgement, largest = decision.judgement, largest_entry(site, input_, output)
        scale = judgement.scale or 1.0
        notes = "; ".join(text for text in (note, decision.note) if text) or None
        outcome = BlockOutcome(
            input=input_,
            output=output,
            outcome=decision.outcome,
            doubt=decision.doubt,
            max_abs_error=judgement.error / scale * (largest or scale),
            max_rel_error=judgement.error / scale,
            bound=judgement.tolerance / scale * (largest or scale),
            resolution=judgement.resolution,
            note=notes,
        )
        at_point = decision.doubt is Doubt.KINK and decision.note is not None
        if decision.outcome is Outcome.DIFFERS or at_point:
            outcome = with_evidence(site, outcome)
        self.outcomes[input_, output] = outcome

    def _silent(self, site: Site, input_: int, output: int, here: _Seen) -> None:
        other = look_elsewhere(site, input_, output, self.significance)
        if other.site is not None and other.judgement is not None and other.reading is not None:
            seen = _Seen(judgement=other.judgement, reading=other.reading, resolution=other.judgement.resolution)
            note = f"no signal at this point; decided at {other.where}"
            self.moved = True
            self._conclude(other.site, input_, output, seen, note)
        elif other.zeros >= CONFIRMING and vanishing(here.reading, site.rows(output)):
            self.outcomes[input_, output] = BlockOutcome(
                input=input_,
                output=output,
                outcome=Outcome.AGREES,
                zero_everywhere=True,
                note=f"zero everywhere it was tried ({other.zeros + 1} points)",
            )
        else:
            note = "claim and derivative lie below rounding here and at the other points tried"
            self._settle(input_, output, Outcome.UNDECIDED, Doubt.NO_SIGNAL, note)

    def _elsewhere(
        self,
        site: Site,
        kinked: dict[tuple[int, int], _Seen],
        singular: dict[tuple[int, int], BlockOutcome],
    ) -> None:
        """Move the point by 1e-3 of its scale, at most three times, and give the verdict there."""
        self._name_kinks(site, kinked)
        last = dict(kinked)
        pending = {*kinked, *singular}
        there = site
        for _ in range(MOVES):
            candidate = there.moved_to(moved(self.rng, there.x, site.scales))
            if candidate is None:
                continue
            there = candidate
            for input_, output in sorted(pending):
                if not there.rows(output).any() or not there.claim.finite:
                    continue
                seen = self._examine(there, input_, [output])[output]
                if seen.judgement.impression in (Impression.KINKED, Impression.WEAK):
                    last[input_, output] = _better_known(last.get((input_, output), seen), seen)
                    continue
                pending.remove((input_, output))
                self.moved = True
                self._conclude(there, input_, output, seen, "decided at a point moved by 1e-3 of the scale")
            if not pending:
                return
        for pair in sorted(pending):
            if pair in singular:
                self.outcomes[pair] = singular[pair]
            else:
                self._doubt(site, *pair, last[pair], None)

    def _name_kinks(self, site: Site, pending: dict[tuple[int, int], _Seen]) -> None:
        kinked = {i for (i, _), seen in pending.items() if seen.judgement.impression is Impression.KINKED}
        for input_ in sorted(kinked):
            self.kinks += kink_notes(site, self.map.domain.slices[input_])
        outside = [k.coordinate for k in self.kinks if not _between(k)]
        if outside:
            self.notes.append(f"on a kink the claim lies outside the one-sided slopes at coordinates {outside}")

    def _doubt(self, site: Site, input_: int, output: int, seen: _Seen, note: str | None) -> None:
        """Settle a block that stayed kinked or weak: accept a claim between the one-sided slopes."""
        rows = site.rows(output) & ~seen.reading.claimless
        broken = seen.reading.broken & rows
        with np.errstate(all="ignore"):
            fine = seen.reading.smooth & (seen.reading.error <= seen.reading.tolerance)
        settled = (broken & seen.reading.within_slopes()) | fine
        judgement = seen.judgement
        if broken.any() and settled[rows].all():
            text = "the function has a kink here and nearby; the claim lies between the one-sided slopes"
            self.outcomes[input_, output] = BlockOutcome(
                input=input_, output=output, outcome=Outcome.AGREES, resolution=judgement.resolution, note=text
            )
            return
        if Status.DOMAIN in judgement.statuses or Status.UNRESOLVED in judgement.statuses:
            doubt = Doubt.DOMAIN if Status.DOMAIN in judgement.statuses else Doubt.NOISE
        else:
            doubt = Doubt.KINK if judgement.impression is Impression.KINKED else Doubt.NOISE
        scale = judgement.scale or 1.0
        self.outcomes[input_, output] = BlockOutcome(
            input=input_,
            output=output,
            outcome=Outcome.UNDECIDED,
            doubt=doubt,
            max_rel_error=judgement.error / scale,
            bound=judgement.tolerance / scale,
            resolution=judgement.resolution,
            note=note,
        )


def _between(kink: KinkNote) -> bool:
    slack = 1e-6 * (abs(kink.left) + abs(kink.right))
    return min(kink.left, kink.right) - slack <= kink.claimed <= max(kink.left, kink.right) + slack


def _stronger(one: _Seen, two: _Seen) -> _Seen:
    ranked = max((one, two), key=lambda seen: SEVERITY.index(seen.judgement.impression))
    known = [seen.resolution for seen in (one, two) if seen.resolution is not None]
    return replace(ranked, resolution=min(known) if known else None)


def _better_known(one: _Seen, two: _Seen) -> _Seen:
    """The one with the finer resolution; kinks give way to points without them."""

    def key(seen: _Seen) -> tuple[bool, float]:
        resolution = seen.judgement.resolution
        return seen.judgement.impression is Impression.KINKED, np.inf if resolution is None else resolution

    return min((one, two), key=key)
