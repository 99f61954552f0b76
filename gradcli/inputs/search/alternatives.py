"""Further inputs within forward's contract: optional arguments left out, the other axis, the other flag, broadcasting.

Forward is often laxer than the contract of the whole Function: what merely happens to run (a batch axis on every
argument, a size of 1) is no case of its own, since a right backward may refuse it. Only what the signature offers, or
what backward itself provides for, is.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gradcli.cases import InputSpec
from gradcli.inputs.search.candidates import OMITTED, Choice
from gradcli.inputs.search.source_hints import SourceHints
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.targets import Trial

MAX_ALTERNATIVES = 6
_FEW_OPTIONAL = 3
"""So many optional arguments are also left out one at a time; more would make too many cases."""
_AXIS_NAMES = ("dim", "axis")
_RISKY_FLAGS = ("inplace",)


def alternatives_of(
    trials: Trials,
    hints: SourceHints,
    guess: Guess,
    runs_backward: Callable[[Guess], bool] = lambda _: True,
    attempted: Callable[[Guess], Trial] = lambda _: Trial(),
) -> tuple[tuple[InputSpec, ...], ...]:
    """The alternatives to `guess` that forward accepts, and backward too if a default was not meant to be changed."""
    accepted: list[tuple[InputSpec, ...]] = []
    modes = (mode for mode in _other_modes(trials, hints, guess) if runs_backward(mode))
    for candidate in itertools.chain(_candidates(trials, hints, guess, attempted), modes):
        if len(accepted) == MAX_ALTERNATIVES or trials.exhausted:
            break
        if trials.judge(candidate) is None:
            accepted.append(trials.specs(candidate))
    return tuple(accepted)


def with_a_slope(trials: Trials, hints: SourceHints, guess: Guess, attempted: Callable[[Guess], Trial]) -> Guess:
    """The guess, or the same with complex tensors, where backward provides for those and forward is flat at real ones.

    z / |z| and the angle of z are piecewise constant on the real line.
    """
    if not _takes_complex(hints, guess) or not trials.is_flat(guess):
        return guess
    for candidate in _complex(guess, attempted):
        if trials.judge(candidate) is None and not trials.is_flat(candidate):
            return candidate
    return guess


def _takes_complex(hints: SourceHints, guess: Guess) -> bool:
    """Whether backward provides for complex tensors, and the guess has none."""
    return hints.minds_complex and all(choice.kind != "complex" for choice in guess.skeleton)


def _other_modes(trials: Trials, hints: SourceHints, guess: Guess) -> Iterator[Guess]:
    """The other value of every flag that was left out, the other words that forward compares a word with, and the
    first axis where another is the default.
    """
    for index, choice in enumerate(guess.skeleton):
        default, name = trials.slots[index].parameter.default, trials.slots[index].name.lower()
        if choice == OMITTED and isinstance(default, bool) and name not in _RISKY_FLAGS:
            yield _with_value(guess, index, not default)
        if choice == OMITTED and type(default) is int and default in (-1, 1) and name in _AXIS_NAMES:
            yield _with_value(guess, index, 0)
        if choice == OMITTED and isinstance(default, str):
            words = hints.words_of(trials.slots[index].name)
            yield from (_with_value(guess, index, word) for word in words if word != default)


def _candidates(
    trials: Trials, hints: SourceHints, guess: Guess, attempted: Callable[[Guess], Trial]
) -> Iterator[Guess]:
    optional = [
        index
        for index, (choice, slot) in enumerate(zip(guess.skeleton, trials.slots, strict=True))
        if choice.is_free and slot.parameter.has_default
    ]
    if optional:
        yield _without(guess, optional)
    if 1 < len(optional) <= _FEW_OPTIONAL:
        yield from (_without(guess, [index]) for index in optional)
    for index, choice in enumerate(guess.skeleton):
        name = trials.slots[index].name.lower()
        if choice.kind != "value":
            continue
        if name in _AXIS_NAMES and choice.value in (-1, 1):
            yield _with_value(guess, index, 0)
        if isinstance(choice.value, bool) and name not in _RISKY_FLAGS:
            yield _with_value(guess, index, not choice.value)
    if _takes_complex(hints, guess):
        yield from _complex(guess, attempted)
    if hints.undoes_broadcasting:
        yield from _broadcast(trials, guess)


def _without(guess: Guess, indices: Sequence[int]) -> Guess:
    skeleton = tuple(OMITTED if index in indices else choice for index, choice in enumerate(guess.skeleton))
    return replace(guess, skeleton=skeleton)


def _with_value(guess: Guess, index: int, value: object) -> Guess:
    return replace(guess, skeleton=(*guess.skeleton[:index], Choice.of_value(value), *guess.skeleton[index + 1 :]))


def _complex(guess: Guess, attempted: Callable[[Guess], Trial]) -> Iterator[Guess]:
    """The guess with complex tensors; one for which backward returns real numbers beside complex ones stays real.

    None where outputs and gradients are all real: a transform of real numbers conjugates inside, as for a convolution.
    """
    slots = [index for index, choice in enumerate(guess.skeleton) if choice.kind == "float"]
    found = _with_complex(guess, slots)
    trial = attempted(found)
    gradients = trial.gradients or ()
    returned = [each for each in gradients if each is not None]
    if returned and all(each.dtype.kind != "c" for each in (*returned, *trial.outputs)):
        return
    if len(gradients) != len(slots):
        yield found
        return
    pairs = zip(slots, gradients, strict=True)
    kept = [index for index, gradient in pairs if gradient is None or gradient.dtype.kind == "c"]
    yield _with_complex(guess, kept) if kept else found


def _with_complex(guess: Guess, slots: Sequence[int]) -> Guess:
    skeleton = [replace(c, kind="complex") if index in slots else c for index, c in enumerate(guess.skeleton)]
    return replace(guess, skeleton=tuple(skeleton))


def _broadcast(trials: Trials, guess: Guess) -> Iterator[Guess]:
    """The guess with a size of 1 in one tensor, where forward reads that as the same entries repeated."""
    floats = [index for index, choice in enumerate(guess.skeleton) if choice.kind == "float" and choice.rank]
    for index in floats[1:]:
        shape = guess.shapes[index]
        narrow = replace(guess, shapes={**guess.shapes, index: (1, *shape[1:])})
        if trials.repeats(narrow, index, shape[0]):
            yield narrow
