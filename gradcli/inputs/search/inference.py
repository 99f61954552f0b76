"""The search for inputs that forward accepts, by trying: a failing call on tiny arrays costs microseconds."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gradcli.cases import InputSpec
from gradcli.errors import InputsNotFoundError
from gradcli.frozen import dataclass
from gradcli.inputs.hints.reading import read_hints
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.search.alternatives import (
    alternatives_of,
    flags_that_backward_refuses,
    omissions_that_backward_refuses,
    other_modes,
    with_a_slope,
    with_one_more,
)
from gradcli.inputs.search.best_first import BestFirstSearch
from gradcli.inputs.search.budget import LIMIT_SECONDS, SEARCH_TRIES, Budget
from gradcli.inputs.search.candidates import Slot
from gradcli.inputs.search.choice import names_of_documented_shape, notes_on, of_documented_shape
from gradcli.inputs.search.named_axes import SIZES
from gradcli.inputs.search.not_found import failure_text, farthest, functions_called, keys_read
from gradcli.inputs.search.replies import Attempt
from gradcli.inputs.search.returned_gradients import with_returned_gradients
from gradcli.inputs.search.slots import slots_of
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.targets import TargetInfo
from gradcli.watchdog.case import current

BRIEF_TRIES = 150
"""What a number of arguments for `*args` is allowed before the other numbers have had their turn."""
ALTERNATIVE_TRIES = 80
"""What is allowed for further inputs within forward's contract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """Inputs found: `specs` are the ones to check with, `alternatives` further cases within forward's contract.

    `tries` counts calls of forward, `seconds` is the wall time, `notes` say what was found out on the way. Degenerate
    ones have an axis of one entry, or a first tensor without axes: a wrong shape may hide there. `documented` names the
    tensors that have the shapes that documentation gives.
    """

    specs: tuple[InputSpec, ...]
    tries: int
    seconds: float
    notes: tuple[str, ...] = ()
    alternatives: tuple[tuple[InputSpec, ...], ...] = ()
    is_degenerate: bool = False
    documented: frozenset[str] = frozenset()

    def as_flags(self) -> str:
        """The flags that pin these inputs, as the report shows them."""
        return " ".join(spec.as_flag() for spec in self.specs)


def infer(
    info: TargetInfo, attempt: Attempt, *, seed: int = 0, fixed: Sequence[InputSpec] = (), dtype: str = "float64",
    budget_tries: int = SEARCH_TRIES, limit_seconds: float = LIMIT_SECONDS, attempt_backward: Attempt | None = None,
) -> Inference:  # fmt: skip
    """Inputs for a target that has none given.

    Args:
        info: forward's parameters, and its source and backward's for hints.
        attempt: runs forward once under a guard; an exception is in the trial it returns.
        seed: of the random values tried.
        fixed: inputs that the user gave for some of the parameters; they are kept as they are.
        budget_tries: calls of forward after which the search ends where none of them found inputs.
        limit_seconds: seconds, without waits for a processor, after which it ends although tries are left, with a note.
        attempt_backward: as `attempt`, with gradients; breaks ties between inputs that forward accepts equally.
        dtype: in which forward is run, for the flags that an error suggests.

    Returns:
        The inputs, and other sets of inputs that forward accepts within its contract.

    Raises:
        InputsNotFoundError: says what was tried, the most informative error, and the flags to give.
        UsageError: `fixed` names a parameter that forward does not have.
    """
    began = time.perf_counter()
    given = {spec.name for spec in fixed}
    wanted = [p.name for p in info.parameters if not p.has_default and p.name not in given]
    if keys_read(info, wanted) or functions_called(info, wanted):  # never tried: a few tries are for the message
        budget_tries = min(budget_tries, BRIEF_TRIES)
    _allow_compilation(info, wanted)
    budget = Budget(limit_seconds=limit_seconds)
    failures: list[Trials] = []
    for slots, allowance in _argument_counts(list(slots_of(info, fixed)), budget_tries):
        hints = read_hints(info, [slot.name for slot in slots])
        trials = _trials(info, attempt, slots, hints, seed=seed, budget=budget)
        budget.allow(allowance)
        search = BestFirstSearch(trials, hints, attempt_backward)
        solution = search.run()
        if solution is not None:
            budget.allow(ALTERNATIVE_TRIES)
            sloped = with_a_slope(trials, hints, solution.guess, search.attempted)
            solution = replace(solution, guess=with_returned_gradients(trials, hints, sloped, search.attempted))
            specs = trials.specs(solution.guess)
            others, refused = _others(trials, hints, solution.guess, search)
            others += _longer(info, attempt, attempt_backward, slots, solution.guess, seed=seed, budget=budget)
            unchecked = () if search.overruled in others else search.overruled
            notes = notes_on(solution, slots, unchecked, reply=search.reply_there, values=hints.values)
            late = () if budget.ran_late is None else (budget.ran_late,)
            return Inference(
                specs=specs,
                tries=budget.count,
                seconds=time.perf_counter() - began,
                notes=(*notes, *search.notes, *refused, *late),
                alternatives=tuple(other for other in others if other != specs),
                is_degenerate=search.is_degenerate,
                documented=names_of_documented_shape(solution.guess, slots, hints.documented),
            )
        failures.append(trials)
        if (place := trials.lasting_place) is not None and place.is_certain:
            break
    raise _refusal(info, failures, budget, dtype)


def _refusal(info: TargetInfo, failures: Sequence[Trials], budget: Budget, dtype: str) -> InputsNotFoundError:
    """What is said where no inputs were found, caused by what the attempt that got furthest raised."""
    best, place = farthest(failures), next(filter(None, (each.lasting_place for each in failures)), None)
    refusal = InputsNotFoundError(failure_text(info, best, budget, dtype, place))
    refusal.is_lasting = place is not None and place.is_certain
    refusal.refuses_double = next((each.refuses_double for each in failures if each.refuses_double), "")
    refusal.__cause__ = None if best is None else best.error
    return refusal


def _others(
    trials: Trials, hints: SourceHints, guess: Guess, search: BestFirstSearch
) -> tuple[list[tuple[InputSpec, ...]], tuple[str, ...]]:
    """Further inputs to check with, and notes on flags and calls at which backward fails."""
    square = [search.square] if search.square else []
    if trials.budget.is_slow:
        return square, ()
    others = alternatives_of(trials, hints, guess, search.runs_backward, search.attempted)
    refused = (
        *flags_that_backward_refuses(trials, hints, guess, search.attempted),
        *omissions_that_backward_refuses(trials, guess, search.attempted),
    )
    return [*square, *others], refused


def _longer(
    info: TargetInfo, attempt: Attempt, attempt_backward: Attempt | None, slots: Sequence[Slot], guess: Guess, *,
    seed: int, budget: Budget,
) -> list[tuple[InputSpec, ...]]:  # fmt: skip
    """The inputs with one more tensor for `*args`, where forward and backward take as many."""
    more = None if budget.is_slow else with_one_more(slots, guess)
    if more is None:
        return []
    slots, guess = more
    hints = read_hints(info, [slot.name for slot in slots])
    trials = _trials(info, attempt, slots, hints, seed=seed, budget=budget)
    runs = BestFirstSearch(trials, hints, attempt_backward).runs_backward
    return [trials.specs(guess)] if trials.judge(guess) is None and runs(guess) else []


def _trials(
    info: TargetInfo, attempt: Attempt, slots: Sequence[Slot], hints: SourceHints, *, seed: int, budget: Budget
) -> Trials:
    """What runs forward, with the other modes and the documented shapes of these arguments."""
    modes = partial(other_modes, slots, hints)
    documented = partial(of_documented_shape, slots=slots, documented=hints.documented)
    trials = Trials(info, attempt, slots, seed=seed, budget=budget, modes=modes, documented=documented)
    if hints.halves:
        trials.held_sizes |= frozenset(size for size in SIZES if size % 2)
    return trials


def _allow_compilation(info: TargetInfo, wanted: Sequence[str]) -> None:
    """Give the first call more time where it may compile, and its inputs are probably right.

    Those are of one argument, or have documented shapes. A plain function may turn out to be one of JAX's.
    """
    watchdog = current()
    compiles = info.backend == "jax" or (info.backend == "numpy" and "jax" in sys.modules)
    if watchdog is not None and compiles:
        documented = read_hints(info, wanted).documented
        watchdog.phase.compiling = len(wanted) <= 1 or documented.keys() >= set(wanted)


def _argument_counts(counts: Sequence[tuple[Slot, ...]], tries: int) -> list[tuple[tuple[Slot, ...], int]]:
    """The numbers of arguments to search for, with their tries: each gets a few, then each gets the rest."""
    if len(counts) == 1:
        return [(counts[0], tries)]
    brief = min(BRIEF_TRIES, tries // (2 * len(counts)))
    return [(slots, brief) for slots in counts] + [(slots, tries // len(counts) - brief) for slots in counts]
