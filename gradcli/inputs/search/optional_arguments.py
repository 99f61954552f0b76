"""Arguments that default to None: they are given if forward accepts a tensor for them, one by one or together."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import final

from gradcli.inputs.hints.added_terms import added_terms
from gradcli.inputs.hints.argument_names import (
    ADDED_NAMES,
    PARAMETER_NAMES,
    SMALL_NAMES,
    STATE_NAMES,
    excludes_tensors,
)
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.search.candidates import OMITTED, Choice, Skeleton
from gradcli.inputs.search.choice import of_documented_shape
from gradcli.inputs.search.domains import with_value
from gradcli.inputs.search.replies import RAISING_BACKWARD, Reply, ended, penalty_of
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.inputs.search.unification import Solution, Unifier
from gradcli.sources import tree_of
from gradcli.targets import Trial

OPTIONAL_TRIES = 80
TOGETHER = 3
"""So many arguments that forward takes none of alone are tried together."""
_FRACTION = 0.7
_CHOICES_ALONE, _CHOICES_TOGETHER = 6, 3


@final
class OptionalArguments:
    """Extends inputs that forward accepts by arguments that default to None.

    If backward then fails, either no tensor is meant there, as for a mask, or this is the mistake to be found. The name
    of the argument decides: a bias is given in any case, and a weight, or what has its documented shape, if backward
    returns a gradient for it, even a wrong one; else it may be the weight of a loss. Where another parameter has a
    gradient, what forward only adds is a bias by any name. `notes` lists what is left out.
    """

    def __init__(
        self, trials: Trials, unifier: Callable[[Skeleton], Unifier], attempted: Callable[[Guess], Trial],
        hints: SourceHints,
    ) -> None:  # fmt: skip
        self._trials = trials
        self._hints = hints
        self._unifier = unifier
        self._attempted = attempted
        self._left: dict[int, str] = {}

    def given(self, best: Solution) -> Solution:
        """The same inputs with the optional arguments that they can have."""
        for index in self._left_out(best):
            best = self._with(best, [index], OPTIONAL_TRIES)
        left = self._left_out(best)
        if 1 < len(left) <= TOGETHER:
            best = self._with(best, left, 4 * OPTIONAL_TRIES)
        self._left = {index: note for index, note in self._left.items() if best.guess.skeleton[index] == OMITTED}
        return best

    def at_defaults(self, best: Solution) -> Solution:
        """The same inputs with every default passed, if backward fails without them and works with them.

        Code that reads needs_input_grad of an argument, or returns a gradient for it, expects it to be passed.
        """
        skeleton = tuple(
            Choice.of_value(slot.parameter.default) if choice == OMITTED else choice
            for choice, slot in zip(best.guess.skeleton, self._trials.slots, strict=True)
        )
        penalty = penalty_of(best.guess, self._attempted(best.guess))
        if skeleton == best.guess.skeleton or penalty < RAISING_BACKWARD:
            return best
        given = replace(best.guess, skeleton=skeleton)
        self._trials.budget.allow(OPTIONAL_TRIES)
        if self._trials.judge(given) is not None or penalty_of(given, self._attempted(given)) >= penalty:
            return best
        return replace(best, guess=given)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on each argument that forward takes and that was left out because of backward."""
        return tuple(self._left.values())

    def _left_out(self, best: Solution) -> list[int]:
        pairs = enumerate(zip(best.guess.skeleton, self._trials.slots, strict=True))
        return [i for i, (choice, slot) in pairs if choice == OMITTED and slot.parameter.default is None]

    def _with(self, best: Solution, indices: Sequence[int], tries: int) -> Solution:
        before = self._attempted(best.guess)
        first: tuple[Solution, Reply] | None = None
        for solution in self._solutions(best, indices, tries):
            reply = self._reply(solution.guess, before)
            if reply is Reply.FITS:
                return solution
            first = first or (solution, reply)
        if first is None:
            return best
        solution, reply = first
        names = [self._trials.slots[index].name.lower() for index in indices]
        if all(map(self._is_bias, indices)) or ended(before) is Reply.RAISES:
            return solution
        meant = of_documented_shape(solution.guess, self._trials.slots, self._hints.documented).issuperset(indices)
        if reply is Reply.REFUSED and (meant or PARAMETER_NAMES.issuperset(names)):
            return solution
        flags = {spec.name: spec.as_flag() for spec in self._trials.specs(solution.guess)}
        for index in indices:
            flag = flags[self._trials.slots[index].name]
            self._left[index] = f"not checked with {flag}: forward accepts it, but backward {reply.value}"
        return best

    def _is_bias(self, index: int) -> bool:
        """Whether an argument needs a gradient: by its name, or as it is only added to what has other parameters."""
        slot = self._trials.slots[index]
        if slot.name.lower() in ADDED_NAMES:
            return True
        if slot.suggested or STATE_NAMES.fullmatch(slot.name.lower()) or slot.name in self._hints.values.domains:
            return False
        others = [each for each in range(1, len(self._trials.slots)) if each != index]
        learns = any(self._hints.gradient_of(each) is True for each in others)
        return learns and slot.name in added_terms(tree_of(self._hints.forward), [slot.name])

    def _reply(self, guess: Guess, before: Trial) -> Reply:
        """What backward does with an optional argument: it fits where it does no worse than without."""
        trial = self._attempted(guess)
        reply, without = ended(trial), ended(before)
        if reply is without is Reply.FITS and _nones(trial) > _nones(before):
            return Reply.NONE
        return Reply.FITS if reply is without is Reply.REFUSED else reply

    def _solutions(self, best: Solution, indices: Sequence[int], tries: int) -> Iterator[Solution]:
        """Inputs with tensors at `indices` that forward accepts, those with an axis or more first."""
        most = _CHOICES_ALONE if len(indices) == 1 else _CHOICES_TOGETHER
        budget = self._trials.budget
        budget.allow(tries)
        found = False
        for chosen in itertools.product(*(self._choices(index)[:most] for index in indices)):
            if self._trials.exhausted:
                return
            if found and any(self._is_unlikely(index, choice) for index, choice in zip(indices, chosen, strict=True)):
                continue
            new = dict(zip(indices, chosen, strict=True))
            skeleton = tuple(new.get(index, choice) for index, choice in enumerate(best.guess.skeleton))
            unifier = self._unifier(skeleton)
            start = unifier.continued(Unifier(self._trials, best.guess.skeleton), best.state)
            outcome = unifier.solve(12 + 8 * sum(choice.rank for choice in chosen), start)
            if isinstance(outcome, Solution) and not self._may_be_numbers(outcome.guess, indices):
                found = True
                yield outcome

    def _is_unlikely(self, index: int, choice: Choice) -> bool:
        """Whether forward accepts likelier arguments: a number for a tensor, or indices for what has a gradient."""
        is_parameter = self._trials.slots[index].name.lower() in PARAMETER_NAMES
        return choice.rank == 0 or (is_parameter and choice.kind != "float")

    def _may_be_numbers(self, guess: Guess, indices: Sequence[int]) -> bool:
        """Whether forward takes fractions in the place of indices or a mask, which nothing else says that it wants.

        If forward accepts them, as a number or as a tensor, the argument is more likely a limit, a scale or a shift
        than an index. A number may be refused only because it cannot be saved for backward as a tensor.
        """
        slots = self._trials.slots
        doubtful = [
            index
            for index in indices
            if (kind := guess.skeleton[index].kind) in ("index", "mask")
            and kind not in slots[index].suggested
            and not any(type(value) is int for value in self._hints.compared_with(slots[index].name))
        ]
        fractions = ((with_value(guess, index, _FRACTION), _as_float(guess, index)) for index in doubtful)
        return any(self._trials.judge(each) is None for each in itertools.chain.from_iterable(fractions))

    def _choices(self, index: int) -> list[Choice]:
        """The tensors an argument may be; none where it is annotated as no tensor, or called as an accuracy is."""
        slot = self._trials.slots[index]
        is_small = SMALL_NAMES.search(slot.name.lower()) and self._hints.gradient_of(index) is not True
        if is_small or excludes_tensors(slot.parameter.annotation or ""):
            return []
        return [choice for _, choice in slot.choices if choice.is_free and choice.kind != "complex"]


def _nones(trial: Trial) -> int:
    return sum(gradient is None for gradient in trial.gradients or ())


def _as_float(guess: Guess, index: int) -> Guess:
    choice = replace(guess.skeleton[index], kind="float")
    return replace(guess, skeleton=(*guess.skeleton[:index], choice, *guess.skeleton[index + 1 :]))
