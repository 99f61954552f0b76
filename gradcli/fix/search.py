"""From a failing target to a patch that is proven: candidates in stages, screened by probes, proven by the check."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

from gradcli.diagnosis.slips.conditions import Conditions
from gradcli.diagnosis.slips.hooks import running
from gradcli.diagnosis.slips.standing import brings_left_over
from gradcli.edits.captured import Captured, captured_in
from gradcli.edits.constants import undoubled
from gradcli.edits.draft import Draft
from gradcli.edits.expressions import Candidate
from gradcli.edits.idiom import Idiom, idiom_of
from gradcli.errors import GradcliError
from gradcli.findings import FindingKind as K
from gradcli.fix.available import setting_of
from gradcli.fix.elsewhere import compared_precisions, is_differentiable, probes_at_other_sizes
from gradcli.fix.examine import Examination, examined
from gradcli.fix.forward_mode import with_right_jvp
from gradcli.fix.once import marked, once_differentiable
from gradcli.fix.probes import Probes, probes_of, probes_with
from gradcli.fix.recompute import recomputing
from gradcli.fix.stages import stages
from gradcli.patches import Patch
from gradcli.runner.arguments.prepare import Prepared
from gradcli.runner.case import check_object
from gradcli.runner.outcome.proof import Proof, brings_sizes, proof_of, tells_numbers, tells_sizes
from gradcli.runner.outcome.ranks import WRONG_AT, WRONG_THERE, OtherNumbers, OtherRanks
from gradcli.runner.outcome.sharing import Broken, Spared, sparing_others
from gradcli.verdict import Verdict
from gradcli.watchdog.case import watched

SECONDS = 20.0
"""Processor time for a search; most patches take less than a twentieth of it."""
_PROOFS = 12
"""Candidates of one stage that are put to the whole check."""
_BRANCHES = 2
"""Drafts with one mistake fixed in which the search for the next one goes on."""
_ROUNDS = 3
"""Mistakes that are fixed one after the other."""


@final
@dataclass
class Search:
    """The state of one search: what to fix, the highest order that is wrong, and until when."""

    ready: Prepared
    target: object
    seed: int
    ends: float
    refused: frozenset[str] = frozenset()
    wrong_order: int = 1
    missed: list[tuple[Draft, Draft]] = field(default_factory=list)
    """Drafts, each before and after an edit that makes the gradient right where it was tried, but is not proven."""
    breaking: list[tuple[Draft, Draft, str]] = field(default_factory=list)
    """Drafts, each before and after an edit that is proven for the target, and a Function that fails with it."""
    _doubtful: list[tuple[Draft, Draft, Proof]] = field(default_factory=list)
    _limited: list[tuple[Draft, Draft, str]] = field(default_factory=list)
    """Drafts, each before and after an edit that is wrong at another value of a number, and that value."""
    _originals: Sequence[Draft] = ()
    _varied: dict[Captured, Probes] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether its time is over."""
        return time.process_time() > self.ends

    def patch(self, seen: Examination, drafts: Sequence[Draft]) -> Patch | None:
        """The first patch that is proven. Each kind of patch is tried in every file before the next kind."""
        steps: tuple[tuple[Callable[[Examination, Draft], tuple[Draft, Proof] | None], str], ...] = (
            (self._corrected, ""),
            (lambda seen, draft: self._fixed(seen, draft, _ROUNDS), ""),
            (self._corrected_here, ""),
            (self._pushed_forward, ""),
            (self._recomputed, "recomputes"),
            (self._right_at_these_numbers, ""),
            (self._marked, "once"),
        )
        self._originals = drafts
        for (step, mark), draft in itertools.product(steps, drafts):
            found = step(seen, draft)
            if found is None or found[0].file.text in self.refused:
                continue
            (made, proof), own = found, draft.file
            flags = {mark: True} if mark else {}
            if mark == "once" and any(f.order < 2 for f in seen.findings):
                flags["corrects"] = True
            proven, unproven = proof.sentences, proof.unproven
            return Patch(
                file=own.path, before=own.text, after=made.file.text, proven=proven, unproven=unproven, **flags
            )
        return None

    def _corrected(self, seen: Examination, draft: Draft) -> tuple[Draft, Proof] | None:
        """The first correction that came with a name and is proven."""
        for text in dict.fromkeys(f.corrected for f in seen.findings if f.corrected is not None):
            made = None if text in self.refused else draft.at(text)
            if made is not None and self._is_limited(draft, made):
                continue
            proof = None if made is None else proof_of(self.ready, self.target, made.codes, check=check_object)
            if made is None or proof is None:
                self.missed += [] if made is None else [(draft, made)]
                continue
            if not self._is_enough(proof, draft, made):
                continue
            found = self._sparing_others(draft, made, proof)
            if found is None:
                continue
            told = tells_numbers(self.ready, self.target, draft, made, check=check_object)
            if told and self._other_ranks.hold(made.codes):
                return found
            self._doubtful.append((draft, found[0], self._qualified(found[1], made)))
        return None

    def _pushed_forward(self, seen: Examination, draft: Draft) -> tuple[Draft, Proof] | None:
        """Another jvp, where that alone is wrong."""
        if any(f.kind is not K.JVP_MISMATCH for f in seen.findings):
            return None
        for made in with_right_jvp(draft, self.ready.info.jvp, self._idiom(draft).namespace):
            proof = proof_of(self.ready, self.target, made.codes, check=check_object)
            if proof is not None and self._is_enough(proof, draft, made):
                return self._sparing_others(draft, made, proof)
        return None

    def _corrected_here(self, seen: Examination, draft: Draft) -> tuple[Draft, Proof] | None:  # noqa: ARG002 - a step
        """A correction that came with a name, and is right only for the present values of captured numbers."""
        return next(((made, proof) for before, made, proof in self._doubtful if before is draft), None)

    def _is_limited(self, draft: Draft, made: Draft) -> bool:
        """Whether an edit is wrong at another value of a number: it is offered if nothing else is found."""
        value = self._other_numbers.wrong_with(made.codes)
        self._limited += [] if value is None else [(draft, made, value)]
        return value is not None

    def _right_at_these_numbers(self, seen: Examination, draft: Draft) -> tuple[Draft, Proof] | None:  # noqa: ARG002 - a step
        """An edit that is wrong at another value of a number, which the proof says."""
        own = [each for each in self._limited if each[0].backward.function is draft.backward.function]
        for before, made, value in own[:_BRANCHES]:
            proof = proof_of(self.ready, self.target, made.codes, check=check_object)
            enough = proof is not None and self._is_enough(proof, before, made)
            found = self._sparing_others(before, made, proof) if proof is not None and enough else None
            if found is not None:
                qualified = self._qualified(found[1], made)
                return found[0], replace(qualified, unproven=(*qualified.unproven, WRONG_AT.format(value)))
        return None

    def _is_enough(self, proof: Proof, draft: Draft, made: Draft) -> bool:
        """Whether a proof reaches the order that was wrong, and tells sizes from numbers if the edit brings one in.

        A backward that could be differentiated must still be, without an exception, and run in the precisions that it
        ran in: the check takes an exception in one that the source compares a dtype with for a refusal.
        """
        reached = max(proof.orders, default=1)
        if reached < self.wrong_order or (reached < 2 and reached < self._order_before):
            return False
        before = self._precisions_before
        with running(made.codes):
            if before and not before <= compared_precisions(self.ready, self.target):
                return False
        if not proof.sizes_tried and brings_sizes(self.ready, draft.file.text, made.file.text):
            return False
        return tells_sizes(self.ready, self.target, made.codes, check=check_object)

    def _sparing_others(self, draft: Draft, made: Draft, proof: Proof) -> tuple[Draft, Proof] | None:
        """A proven patch with which no other Function fails that runs the edited code; None if there is none.

        A draft in which one mistake is already fixed is compared with the file as it is.
        """
        own = [d for d in self._originals if d.backward.function is draft.backward.function]
        found = sparing_others(self.ready, self.target, (own or [draft])[0], made, check=check_object)
        if isinstance(found, Broken):
            self.breaking.append((draft, made, found.name))
        if not isinstance(found, Spared) or found.draft.file.text in self.refused:
            return None
        sentences = (*proof.sentences, *found.proven)
        return found.draft, replace(proof, sentences=sentences, unproven=found.unproven)

    def _qualified(self, proof: Proof, made: Draft) -> Proof:
        """The proof of a patch that may not hold at other numbers of axes: it says so where that is the case."""
        if self._other_ranks.hold(made.codes):
            return proof
        return replace(proof, unproven=(*proof.unproven, WRONG_THERE))

    def _recomputed(self, seen: Examination, draft: Draft) -> tuple[Draft, Proof] | None:
        """A backward that differentiates forward by autograd, where that passes."""
        if not self._has_autograd:
            return None
        given = [a for subject in seen.subjects[:1] for a in subject.arguments]
        tensors = [a for a in given if a.is_tensor]
        plain = {p.name for p in self.ready.info.parameters} - {a.name for a in tensors}
        smooth = all(a.requires_grad for a in tensors)
        made = recomputing(draft, self._idiom(draft).namespace, plain, all_differentiable=smooth)
        proof = None if made is None else proof_of(self.ready, self.target, made.codes, check=check_object)
        return None if made is None or proof is None else self._sparing_others(draft, made, proof)

    def _marked(self, seen: Examination, draft: Draft) -> tuple[Draft, Proof] | None:
        """A backward marked as differentiable once, if only higher orders are wrong and no order was given.

        Where the first order was wrong as well: an edit by which it is right.
        """
        if not self._has_autograd or self.ready.case.settings.order_asked:
            return None
        if all(f.order >= 2 for f in seen.findings):
            return self._marked_draft(draft)
        for made in [after for before, after in self.missed if before is draft][:_BRANCHES]:
            with running(made.codes):
                again = self._examined_again()
            if again is not None and again.findings and all(f.order >= 2 for f in again.findings):
                found = self._marked_draft(made)
                if found is not None:
                    return found
        return None

    def _examined_again(self) -> Examination | None:
        """What is wrong with the code that runs now; None if the user's code raises."""
        try:
            return examined(self.ready)
        except GradcliError:
            return None

    def _marked_draft(self, draft: Draft) -> tuple[Draft, Proof] | None:
        made = once_differentiable(draft, self.ready.backend.name, self._idiom(draft).namespace)
        if made is None:
            return None
        framework: Any = self.ready.backend.framework  # type: ignore[attr-defined]  # every backend here has one
        with marked(draft, framework.namespace.autograd.function.once_differentiable):
            proof = proof_of(self.ready, self.target, made.codes, check=check_object)
            return None if proof is None else self._sparing_others(draft, made, proof)

    @cached_property
    def _order_before(self) -> int:
        """2 if the backward that is to be fixed can be differentiated, and second derivatives are checked, else 1."""
        wanted = self.ready.case.settings.order >= 2
        return 2 if wanted and is_differentiable(self.ready, self.target, self.seed) else 1

    @cached_property
    def _precisions_before(self) -> frozenset[str]:
        return compared_precisions(self.ready, self.target)

    @cached_property
    def _other_numbers(self) -> OtherNumbers:
        return OtherNumbers(ready=self.ready, target=self.target, check=check_object)

    @cached_property
    def _other_ranks(self) -> OtherRanks:
        return OtherRanks(ready=self.ready, target=self.target, check=check_object)

    @cached_property
    def _other_sizes(self) -> Probes | None:
        return probes_at_other_sizes(self.ready, self.target, self.seed)

    def _holds_at_other_sizes(self, draft: Draft, made: Draft, wrong: frozenset[int] | None) -> bool:
        """Whether a candidate fixes the same at other sizes; true if the draft itself is wrong otherwise there."""
        probes = self._other_sizes
        if probes is None:
            return True
        with running(draft.codes):
            if probes.wrong() != wrong:
                return True
        with running(made.codes):
            return probes.left(wrong) is not None

    @property
    def _has_autograd(self) -> bool:
        return self.ready.backend.name in ("torch", "engine")

    def _idiom(self, draft: Draft) -> Idiom:
        return idiom_of(draft, self.ready.backend.name)

    def _fixed(self, seen: Examination, draft: Draft, rounds: int) -> tuple[Draft, Proof] | None:
        """The draft with one mistake after the other fixed, and the proof of the last version."""
        with running(draft.codes):
            probes, wrong = self._probes(seen)
            setting = setting_of(self.ready, draft, probes, wrong or frozenset())
        if setting is None:
            return None
        partial: list[tuple[float, Candidate]] = []
        framework: Any = self.ready.backend.framework  # type: ignore[attr-defined]  # every backend here has one
        conditions = Conditions(draft, probes.run, framework)
        deferred: list[Candidate] = []
        for stage in stages(setting, probes, wrong, seen, deferred):
            if self.is_over:
                break
            proofs = 0
            for candidate, left in self._screened(stage, draft, probes, wrong):
                if conditions.are_settled_by(candidate.changes):
                    continue
                if left:
                    partial.append((candidate.cost, candidate))
                    continue
                if proofs == _PROOFS or self.is_over:
                    break
                if candidate not in deferred and not self._holds_otherwise(seen, draft, candidate):
                    deferred.append(candidate)
                    continue
                made = draft.with_changes(undoubled(candidate.changes, draft.tree))
                if made is None or made.file.text in self.refused:
                    continue
                if proofs and not self._holds_at_other_sizes(draft, made, wrong):
                    continue
                limited = self._is_limited(draft, made)
                proofs += not limited
                proof = None if limited else proof_of(self.ready, self.target, made.codes, check=check_object)
                enough = proof is not None and self._is_enough(proof, draft, made)
                found = self._sparing_others(draft, made, proof) if proof is not None and enough else None
                if found is not None:
                    return found[0], self._qualified(found[1], made) if candidate in deferred else found[1]
                if not enough:
                    partial += [(candidate.cost + 1, candidate)] if wrong else []
                    self.missed.append((draft, made))
        return self._continued(draft, partial, wrong, rounds)

    def _holds_otherwise(self, seen: Examination, draft: Draft, candidate: Candidate) -> bool:
        """Whether an edit is right at other values of the numbers that the functions take from around them.

        Also where inputs have another number of axes. Edits that are not come later: they are right only if such
        numbers depend on each other, as `SQRT_2` and `INVERSE_OF_SQRT_2` do, or if the number of axes is meant.
        """
        codes = draft.codes_with(candidate.changes) or {}
        if not self._other_ranks.hold(codes):
            return False
        for number in captured_in(draft):
            there = self._varied.get(number)
            if there is None:
                with running(draft.codes):
                    there = self._varied[number] = probes_with(number, seen.subjects[-1], self.seed)
            with running(codes):
                if there.wrong():
                    return False
        return True

    def _probes(self, seen: Examination) -> tuple[Probes, frozenset[int] | None]:
        """Probes at which something is wrong, if there are any, and which inputs' gradients are wrong there."""
        probes = probes_of(seen.subjects[-1:], self.seed)
        wrong = probes.wrong()
        if wrong is not None and not wrong and len(seen.subjects) > 1:
            probes = probes_of(seen.subjects[:1], self.seed).beside(probes)
            wrong = probes.wrong()
        return probes, wrong

    def _continued(
        self, draft: Draft, partial: Sequence[tuple[float, Candidate]], wrong: frozenset[int] | None, rounds: int
    ) -> tuple[Draft, Proof] | None:
        """The search continued from drafts in which one mistake is fixed and another is left."""
        tried = 0
        for _, candidate in sorted(partial, key=lambda p: p[0]) if rounds > 1 else ():
            if self.is_over or tried == _BRANCHES:
                return None
            made = draft.with_changes(candidate.changes)
            if made is None or not self._holds_at_other_sizes(draft, made, wrong):
                continue
            tried += 1
            with running(made.codes):
                again = self._examined_again()
            if again is not None and again.verdict is Verdict.FAILED:
                found = self._fixed(again, made, rounds - 1)
                if found is not None:
                    return found
        return None

    def _screened(
        self, stage: Callable[[], Iterator[Candidate]], draft: Draft, probes: Probes, wrong: frozenset[int] | None
    ) -> Iterator[tuple[Candidate, frozenset[int]]]:
        """The candidates of a stage that fix what is wrong, all of it first, the shortest first."""
        passed: list[tuple[int, float, int, Candidate, frozenset[int]]] = []
        # As in a search for inputs, a call that does not return is stopped and says nothing of the other candidates.
        with watched() as watchdog, watchdog.during("trying patches", searching=True):
            for number, candidate, left in self._tried(stage, draft, probes, wrong):
                passed.append((len(left), candidate.cost, number, candidate, left))
        for *_, candidate, left in sorted(passed, key=lambda p: p[:3]):
            yield candidate, left

    def _tried(
        self, stage: Callable[[], Iterator[Candidate]], draft: Draft, probes: Probes, wrong: frozenset[int] | None
    ) -> Iterator[tuple[int, Candidate, frozenset[int]]]:
        """The candidates of a stage that fix something, with their numbers, each code once."""
        known: set[bytes] = set()
        for number, candidate in enumerate(sorted(stage(), key=lambda c: c.cost)):
            if self.is_over:
                return
            codes = None if brings_left_over(candidate.changes, draft) else draft.codes_with(candidate.changes)
            mark = b"" if codes is None else b"".join(_mark(code) for code in codes.values())
            if codes is None or mark in known:
                continue
            known.add(mark)
            with running(codes):
                left = probes.left(wrong)
            if left is not None:
                yield number, candidate, left


def _mark(code: Any) -> bytes:
    return repr((code.co_code, code.co_names, code.co_varnames, [repr(c) for c in code.co_consts])).encode()
