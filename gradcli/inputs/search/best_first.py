"""Best-first search over which argument is what, then the choice among the inputs that forward accepts."""

import heapq
import itertools
from dataclasses import replace
from typing import final

from gradcli.cases import InputSpec
from gradcli.inputs.hints.equal_parts import left_out_of, parts_of
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.search.backward_inputs import Fitting, as_matrices, as_vector, squared, with_tensor
from gradcli.inputs.search.candidates import Skeleton
from gradcli.inputs.search.choice import (
    DEGENERATE,
    Accepted,
    as_documented,
    best_score,
    chosen_among,
    cost_of_narrowing,
    cost_of_shapes,
    fitting,
    is_degenerate,
    notes_on_numbers,
    notes_on_sums,
    of_documented_shape,
    of_same_sizes,
    overruled_by,
    reply_avoided,
    with_tensors,
)
from gradcli.inputs.search.domains import (
    computes_of_matrices,
    square_domain,
    with_convergence,
    with_guards_at_rest,
    with_ordered_limits,
    with_probabilities,
)
from gradcli.inputs.search.error_messages import Failure, Mentions, lacked_by_a_constant, lacks_axis
from gradcli.inputs.search.optional_arguments import OptionalArguments
from gradcli.inputs.search.refinement import (
    refined,
    with_labels_for_each_row,
    with_statistics_of_features,
    without_ignored_ends,
)
from gradcli.inputs.search.replies import (
    RAISING_BACKWARD,
    Attempt,
    Attempted,
    Reply,
    ended,
    has_more_axes,
    is_transposed,
    lacks_ignored_end,
    penalty_of,
    reply_at,
)  # fmt: skip
from gradcli.inputs.search.returned_gradients import with_vector
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.inputs.search.unification import Solution, Unifier

MORE_SKELETONS, ENOUGH_SOLUTIONS = 24, 8
IDLE_NUMBER_BONUS = 4.0
"""An argument that changes no output may be a number that only backward uses: tried after a few other sizes."""
TENSOR_BONUS = 2.0
"""Where a constant lacks an attribute, a tensor was meant."""
LIKELIER_TRIES = 1_000
"""Where backward raises: tries for likelier inputs."""
BACKWARD_TRIES = 200
"""Where backward still raises: tries with sizes made equal."""
MORE_TRIES, RETRIES, POLISHING_TRIES = 200, 120, 80
"""Tries allowed after the first inputs are found: for likelier ones, for cheaper ones, and for smaller sizes."""
_PROGRESS_GAIN = 2.5
_LEVEL_COSTS = (0.0, 1.0, 3.0)


@final
class BestFirstSearch:
    """The search for one number of arguments; afterwards `overruled`, `notes` and others say what was found out."""

    def __init__(self, trials: Trials, hints: SourceHints, attempt_backward: Attempt | None) -> None:
        self._trials = trials
        self._budget = trials.budget
        self._hints = hints
        self.attempted = Attempted(trials, attempt_backward)
        self._square = square_domain(hints.used, hints.names)
        self._numbers = frozenset(n for n, slot in enumerate(trials.slots) if slot.name in hints.numbers)
        counted = replace(hints, forward="").branches_on_rank
        self._counted = frozenset(n for n, slot in enumerate(trials.slots) if slot.name in counted)
        self._fit = Fitting(
            trials=trials, attempted=self.attempted, penalty=self._backward_penalty, runs=self.runs_backward,
            unifier=self._unifier,
        )  # fmt: skip
        self._unsolved: list[tuple[float, float, int, Skeleton, bool]] = []
        self._found: list[Accepted] = []
        self.overruled: tuple[InputSpec, ...] = ()
        self.reply_there = Reply.RAISES
        self.square: tuple[InputSpec, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.is_degenerate = False

    def run(self) -> Solution | None:
        """The best accepted inputs, sizes made small and optional arguments given; None where there are none."""
        self._explore()
        if not self._found:
            return None
        if self._budget.is_slow:
            return self._found[0].solution
        self._budget.allow(RETRIES)
        self._retry_cheaper()
        self._try_likelier()
        self._try_as_backward_asks()
        self._try_less_likely()
        self._try_matrices()
        chosen = chosen_among(self._found)
        self.is_degenerate = chosen.is_degenerate
        likeliest = overruled_by(chosen, self._found)
        numbers = notes_on_numbers(chosen, self._found, self._trials.slots, self._also_tensors(chosen))
        if likeliest is not None and not (numbers and of_same_sizes(likeliest, chosen)):
            self.overruled = self._trials.specs(likeliest.solution.guess)
            self.reply_there = reply_avoided(likeliest, chosen)
            square = squared(likeliest.solution.guess, self.attempted, self._trials.judge)
            self.square = () if square is None else self._trials.specs(square)
        optionals = OptionalArguments(self._trials, self._unifier, self.attempted, self._hints)
        given = optionals.given(chosen.solution)
        best = optionals.at_defaults(given)
        if best is not given:
            self.overruled, self.reply_there = self._trials.specs(given.guess), Reply.RAISES
        sums = notes_on_sums(self._found, best.guess, self._hints, self._trials, self.overruled)
        self.notes = (*optionals.notes, *numbers, *sums)
        self._budget.allow(POLISHING_TRIES)
        penalty, raised = self._backward_penalty(best.guess), self._raises(best.guess)

        def fits(each: Guess) -> bool:
            return self._backward_penalty(each) <= penalty and self._raises(each) <= raised

        smaller = refined(self._trials, best.guess, self._hints.documented, fits)
        ordered = with_ordered_limits(self._trials, self._hints, smaller)
        guess = with_probabilities(self._trials, self._hints, ordered, self.runs_backward)
        guess = with_guards_at_rest(self._trials, self._hints, guess, fits)
        guess = with_convergence(self._trials, self._hints, guess)
        if guess.skeleton != smaller.skeleton:
            self.overruled = ()  # the target is a tensor after all
        return replace(best, guess=guess)

    def _explore(self) -> None:
        start = tuple(slot.choices[0][1] for slot in self._trials.slots)
        queue: list[tuple[float, int, int, Skeleton]] = [(0.0, 0, 0, start)]
        order = itertools.count(1)
        seen, visited = {start: 0.0}, 0
        last: int | None = None
        while queue and not self._trials.exhausted:
            visited += 1
            if last is not None and visited > last:
                break
            _, _, level, skeleton = heapq.heappop(queue)
            if self._cost(skeleton) >= best_score(self._found):
                continue
            unifier = self._unifier(skeleton)
            outcome = self._solve(unifier, skeleton, level)
            failure: Failure | None = None
            if isinstance(outcome, Solution):
                self._accept(outcome)
                if last is None and not all(each.is_degenerate for each in self._found):
                    last = visited + max(MORE_SKELETONS, visited)
                    fits = any(each.fits_exactly for each in fitting(self._found))
                    self._budget.allow(MORE_TRIES * (1 if fits else 3))
                if self._is_enough() or self._budget.is_slow:
                    break
            else:
                failure = outcome
                if level == 0:
                    self._unsolved.append((self._cost(skeleton), -failure.progress, visited, skeleton, unifier.is_done))
                if level < 2 and unifier.axis_count > 1 and failure.progress > 0 and not unifier.is_done:
                    priority = self._cost(skeleton) + _LEVEL_COSTS[level + 1] - _PROGRESS_GAIN * failure.promise
                    heapq.heappush(queue, (priority, next(order), level + 1, skeleton))
            if level == 0:
                for priority, neighbour in self._neighbours(skeleton, failure):
                    if priority <= seen.get(neighbour, 1e9) - IDLE_NUMBER_BONUS:  # learnt since it was put off
                        seen[neighbour] = priority
                        heapq.heappush(queue, (priority, next(order), 0, neighbour))

    def _is_enough(self) -> bool:
        """Whether enough solutions were found; three times as many are needed if backward fits none of them."""
        exact = [each for each in self._found if each.fits_exactly and not each.is_degenerate]
        return len(self._found) >= ENOUGH_SOLUTIONS * (1 if exact else 3)

    def runs_backward(self, guess: Guess) -> bool:
        """Whether forward and backward run on a guess without an exception."""
        return self._backward_penalty(guess) < RAISING_BACKWARD

    def _try_likelier(self) -> None:
        """If backward raises on all inputs found, try more likely ones with one argument changed.

        A weight of the input's own shape, say, is less likely than a vector, though forward takes it first.
        """
        if min(each.penalty for each in self._found) < RAISING_BACKWARD:
            return
        self._budget.allow(LIKELIER_TRIES)
        likeliest = min(each.plain_score for each in self._found)
        known = {each.solution.guess.skeleton for each in self._found}
        for each in list(self._found):
            for _, skeleton in self._neighbours(each.solution.guess.skeleton, None):
                if self._cost(skeleton) < likeliest and skeleton not in known:
                    known.add(skeleton)
                    outcome = self._solve(self._unifier(skeleton), skeleton, 0)
                    if isinstance(outcome, Solution):
                        self._accept(outcome)

    def _retry_cheaper(self) -> None:
        """Search longer for sizes of skeletons that are cheaper than the best found and that a short search gave up."""
        farthest = max((-progress for _, progress, _, _, _ in self._unsolved), default=0.0)
        unsolved = sorted((each for each in self._unsolved if not each[4]), key=lambda each: each[:3])
        for cost, _, _, skeleton, _ in [each for each in unsolved if -each[1] >= 0.5 * farthest][:4]:
            if cost >= best_score(self._found) - 0.15:
                return
            outcome = self._solve(self._unifier(skeleton), skeleton, 1)
            if isinstance(outcome, Solution):
                self._accept(outcome)

    def _accept(self, solution: Solution) -> None:
        solution = self._with_vector(solution)
        guess = with_statistics_of_features(self._trials, with_labels_for_each_row(self._trials, solution.guess))
        trial, shorter = self.attempted(guess), without_ignored_ends(self._trials, guess, self._hints.documented)
        fits = shorter != guess and self.attempted(shorter).backward_error is None
        if fits and self._raises(guess):
            plain = self._score(cut := replace(solution, guess=shorter)) + cost_of_narrowing(shorter)
            self._add(cut, plain, self._backward_penalty(shorter))
        elif trial.backward_error is None or (fits and lacks_ignored_end(self._trials, guess, trial)):
            guess = shorter
        solution = replace(solution, guess=guess)
        penalty = self._backward_penalty(solution.guess)
        if (returned := self._fit.as_returned(solution)) is not None:
            solution, penalty = returned, self._backward_penalty(returned.guess)
        alone = penalty >= RAISING_BACKWARD and not any(each.fits_exactly for each in self._found)
        if alone and (whole := self._fit.in_equal_parts(solution)) is not None:  # takes hundreds of tries
            solution, penalty = whole, 0.0
        if self._raises(solution.guess) and (whole := self._fit.in_another_order(solution)) is not None:
            solution, penalty = whole, self._backward_penalty(whole.guess)
        if penalty >= RAISING_BACKWARD and (whole := self._fit.complex(solution.guess)) is not None:
            self._add(whole, self._score(whole), 0.0)
        for change in (with_tensor, as_vector) if penalty >= RAISING_BACKWARD else ():
            if (whole := self._fit.changed_by(change, solution.guess)) is not None:
                near = self._score(solution) + cost_of_narrowing(whole.guess)
                self._add(whole, min(self._score(whole), near), self._backward_penalty(whole.guess))
        if (whole := self._fit.of_other_ranks(solution.guess)) is not None:
            self._add(whole, self._score(whole), self._backward_penalty(whole.guess))
            penalty = RAISING_BACKWARD
        plain, narrow = self._score(solution), self._fit.narrowed(solution)
        if narrow is not None:
            self._add(narrow, plain + cost_of_narrowing(narrow.guess), self._backward_penalty(narrow.guess))
            penalty = max(penalty, RAISING_BACKWARD)
        if penalty < RAISING_BACKWARD and any(each.plain_score < plain for each in self._found):
            trial, alone = self.attempted(solution.guess), not any(each.fits for each in self._found)
            if trial.lacks_a_sum or (alone and trial.is_summed()):
                penalty = RAISING_BACKWARD  # a mistake to be shown at the likeliest inputs, no reason to take others
        self._add(solution, plain, penalty)

    def _with_vector(self, solution: Solution) -> Solution:
        def solved(skeleton: Skeleton) -> Solution | None:
            outcome = self._solve(self._unifier(skeleton), skeleton, 0)
            return outcome if isinstance(outcome, Solution) and self.runs_backward(outcome.guess) else None

        return with_vector(self._trials, solution.guess, self.attempted, solved) or solution

    def _add(self, solution: Solution, plain_score: float, penalty: float) -> None:
        found = Accepted(
            plain_score=plain_score,
            penalty=penalty,
            solution=solution,
            documented=of_documented_shape(solution.guess, self._trials.slots, self._hints.documented),
            reply=reply_at(trial := self.attempted(solution.guess), penalty),
            is_transposed=is_transposed(trial),
            counted=frozenset(slot for slot in self._counted if solution.guess.shapes.get(slot) == ()),
            numbers=self._numbers,
        )
        self._found.append(found)

    def _try_as_backward_asks(self) -> None:
        """If backward raises on all inputs found, try inputs in which the sizes named by its error are equal."""
        if fitting(self._found):
            return
        from gradcli.inputs.search.alike.states import merged

        for each in list(self._found):
            self._budget.allow(BACKWARD_TRIES)
            unifier, trial = self._unifier(each.solution.guess.skeleton), self.attempted(each.solution.guess)
            for steps, start in merged(unifier, each.solution, trial.backward_error):
                outcome = unifier.solve(steps, start)
                if isinstance(outcome, Solution) and self.runs_backward(outcome.guess):
                    self._accept(outcome)
                    return

    def _try_less_likely(self) -> None:
        """If backward fits none of the inputs found exactly, try those with one argument changed.

        `rate[:, None]` takes a matrix in forward, where a vector is meant. A gradient that the framework rejects is a
        mistake to be seen at the likeliest inputs, and no reason for this.
        """
        likeliest = min(self._found, key=lambda each: each.plain_score)
        fits = any(each.fits_exactly and not each.is_degenerate for each in self._found)
        if fits or likeliest.reply is Reply.REFUSED:
            return
        self._budget.allow(LIKELIER_TRIES)
        returned: Solution | None = None
        known = {each.solution.guess.skeleton for each in self._found}
        near = list[tuple[bool, float, Skeleton]]()
        for guess in [each.solution.guess for each in self._found]:
            lacks = lacks_axis(self.attempted(guess).backward_error)
            for cost, skeleton in self._neighbours(guess.skeleton, None):
                near.append((not (lacks and has_more_axes(skeleton, guess)), cost, skeleton))
        for _, _, skeleton in sorted(near, key=lambda each: each[:2]):
            if skeleton in known or self._trials.exhausted:
                continue
            known.add(skeleton)
            outcome = self._solve(self._unifier(skeleton), skeleton, 0)
            if not isinstance(outcome, Solution) or self._is_degenerate(outcome.guess):
                continue
            if self.runs_backward(outcome.guess) or self._fit.can_be_smaller(outcome):
                self._accept(outcome)
                if any(each.fits_exactly and not each.is_degenerate for each in self._found):
                    break
            elif returned is None and not self._raises(outcome.guess):
                returned = outcome
        if any(each.fits and not each.is_degenerate for each in self._found):
            return
        if returned is None:
            found = sorted(self._found, key=lambda each: each.plain_score)
            shorter = self._fit.with_axes_less([each.solution.guess for each in found])
            whole = [each for each in shorter if not self._is_degenerate(each.guess) and not self._raises(each.guess)]
            returned = min(whole, key=lambda each: not self.attempted.fits(each.guess), default=None)
        if returned is not None:
            self._accept(returned)

    def _unifier(self, skeleton: Skeleton) -> Unifier:
        return Unifier(
            self._trials, skeleton, square_domain=self._square, axes=self._hints.axes, order=self._hints.order,
            parts=parts_of(self._hints.forward), meant=self._hints.values.domains, alike=self._hints.alike,
            of_matrices=computes_of_matrices(self._hints.forward), left_out=left_out_of(self._hints.forward),
        )  # fmt: skip

    def _solve(self, unifier: Unifier, skeleton: Skeleton, level: int) -> Solution | Failure:
        has_tensor = any(choice.kind in ("float", "complex", "fixed-tensor") for choice in skeleton)
        if not (self._trials.holds_tensors or has_tensor):
            return Failure(progress=0.0)
        outcome = unifier.solve((8 + 3 * unifier.axis_count, 16 + 12 * unifier.axis_count, 400)[level])
        return outcome if isinstance(outcome, Solution) else outcome.failure

    def _try_matrices(self) -> None:
        """If all inputs found have an axis of one entry, try matrices for the vectors: `torch.kron` takes both."""
        if not all(each.is_degenerate for each in self._found):
            return
        self._budget.allow(LIKELIER_TRIES)
        for skeleton in as_matrices(min(self._found, key=lambda each: each.score).solution.guess):
            for solution in self._unifier(skeleton).of_two_sizes():
                self._accept(solution)
                return

    def _also_tensors(self, chosen: Accepted) -> list[int]:
        """The arguments that are numbers in the chosen inputs, and for which forward takes tensors as well."""
        skeleton, places = with_tensors(chosen, self._trials.slots)
        return places if places and isinstance(self._solve(self._unifier(skeleton), skeleton, 0), Solution) else []

    def _cost(self, skeleton: Skeleton) -> float:
        return sum(slot.cost(choice) for slot, choice in zip(self._trials.slots, skeleton, strict=True))

    def _neighbours(self, skeleton: Skeleton, failure: Failure | None) -> list[tuple[float, Skeleton]]:
        """Every skeleton with one argument changed, and its priority: cost, less what the failure taught."""
        mentions = Mentions(failure.message if failure is not None else "")
        gain = _PROGRESS_GAIN * min(failure.progress, 1.0) if failure is not None else 0.0
        base, found = self._cost(skeleton), []
        of_constant = failure is not None and lacked_by_a_constant(failure.error)
        for index, slot in enumerate(self._trials.slots):
            own, is_idle = slot.cost(skeleton[index]), failure is not None and failure.idle == index
            for cost, choice in slot.beside(skeleton[index], is_idle=is_idle):
                changed = (*skeleton[:index], choice, *skeleton[index + 1 :])
                bonus = mentions.bonus(choice)
                if choice.kind == "float" and skeleton[index].kind == "value" and of_constant:
                    bonus = TENSOR_BONUS
                if choice.kind == "number-tensor" and is_idle:
                    bonus = IDLE_NUMBER_BONUS
                found.append((base - own + cost - gain - bonus, changed))
        return found

    def _score(self, solution: Solution) -> float:
        """A score, lower for more likely inputs: their cost, plus penalties for special sizes."""
        guess = solution.guess
        total = self._cost(guess.skeleton) + cost_of_shapes(solution, self._trials.slots, self._hints)
        return total + DEGENERATE * self._is_degenerate(guess)

    def _is_degenerate(self, guess: Guess) -> bool:
        return is_degenerate(guess, as_documented(guess, self._trials.slots, self._hints.documented))

    def _backward_penalty(self, guess: Guess) -> float:
        return penalty_of(guess, self.attempted(guess))

    def _raises(self, guess: Guess) -> bool:
        return ended(self.attempted(guess)) is Reply.RAISES
