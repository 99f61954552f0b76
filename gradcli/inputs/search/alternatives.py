"""Further inputs within forward's contract: optional arguments left out, the other axis, the other flag, broadcasting.

Forward is often laxer than the contract of the whole Function: what merely happens to run (a batch axis on every
argument, a size of 1) is no case of its own, since a right backward may refuse it. Only what the signature offers, or
what backward itself provides for, is.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import InputSpec
from gradcli.inputs.hints import argument_names
from gradcli.inputs.hints.argument_names import types_named
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.hints.suggested_constants import annotated_values
from gradcli.inputs.search.candidates import OMITTED, Slot
from gradcli.inputs.search.domains import with_value
from gradcli.inputs.search.replies import Reply, ended
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.targets import Trial

MAX_ALTERNATIVES = 6
_FEW_OPTIONAL = 3
"""So many optional arguments are also left out one at a time; more would make too many cases."""
_AXIS_NAMES = ("dim", "axis")
_OVERWRITING = ("inplace",)
"""Names of flags with which forward writes into an input, which a forward allows that calls `ctx.mark_dirty`."""
_NEITHER = ("seed",)
"""Names of arguments left at None: another seed runs the same code."""
_UNNAMED = "other"
_NUMBERS = (0.7, 2)
"""For an argument whose name suggests no number: one for a formula, and one for a size or a count."""


def alternatives_of(
    trials: Trials,
    hints: SourceHints,
    guess: Guess,
    runs_backward: Callable[[Guess], bool] = lambda _: True,
    attempted: Callable[[Guess], Trial] = lambda _: Trial(),
) -> tuple[tuple[InputSpec, ...], ...]:
    """The alternatives to `guess` that forward accepts, and backward too if a default was not meant to be changed."""
    accepted: list[tuple[InputSpec, ...]] = []
    modes = itertools.chain(
        other_modes(trials.slots, hints, guess),
        _other_flags(trials.slots, hints, guess),
        _first_axis(trials.slots, guess),
        _with_constants(trials, hints, guess),
    )
    ranks = itertools.chain(
        _other_ranks(trials, hints, guess, runs_backward), _refused_flags(trials, hints, guess, runs_backward)
    )
    running = (mode for mode in modes if runs_backward(mode))
    broadcast = filter(runs_backward, _broadcast(trials, guess) if hints.undoes_broadcasting else ())
    for candidate in itertools.chain(_candidates(trials, hints, guess, attempted), broadcast, running, ranks):
        if len(accepted) == MAX_ALTERNATIVES or trials.exhausted:
            break
        if trials.judge(candidate) is None:
            accepted.append(trials.specs(candidate))
    return tuple(accepted)


def with_one_more(slots: Sequence[Slot], guess: Guess) -> tuple[tuple[Slot, ...], Guess] | None:
    """A guess with one more tensor for `*args`, like their last one; None where there are no such tensors.

    In a product of two factors the gradient of each is the other one, of three it is not.
    """
    variadic = [index for index, slot in enumerate(slots) if slot.parameter.variadic]
    last = max(variadic, default=-1)
    if last < 0 or slots[last].fixed is not None or not guess.skeleton[last].is_tensor or last not in guess.shapes:
        return None
    places = [*range(last + 1), *range(last, len(slots))]
    name = slots[last].name.partition("[")[0]
    more = replace(slots[last], name=f"{name}[{len(variadic)}]")
    shapes = {new: guess.shapes[old] for new, old in enumerate(places) if old in guess.shapes}
    domains = {new: guess.domains[old] for new, old in enumerate(places) if old in guess.domains}
    skeleton = tuple(guess.skeleton[old] for old in places)
    changed = replace(guess, skeleton=skeleton, shapes=shapes, domains=domains)
    return (*slots[: last + 1], more, *slots[last + 1 :]), changed


def flags_that_backward_refuses(
    trials: Trials, hints: SourceHints, guess: Guess, attempted: Callable[[Guess], Trial]
) -> Iterator[str]:
    """A note on each flag at whose other value forward runs and backward fails, as it does not at its default."""
    flags = _flags_left_out(trials.slots, hints, guess) if ended(attempted(guess)) is Reply.FITS else []
    for index in flags:
        slot = trials.slots[index]
        other = with_value(guess, index, not slot.parameter.default)
        trial = attempted(other)
        reply = ended(trial)
        if trial.ok and reply is not Reply.FITS and not trials.exhausted and trials.judge(other) is None:
            flag = InputSpec(name=slot.name, kind="value", value=not slot.parameter.default).as_flag()
            yield f"not checked with {flag}: forward accepts it, but backward {reply.value}"


def omissions_that_backward_refuses(trials: Trials, guess: Guess, attempted: Callable[[Guess], Trial]) -> Iterator[str]:
    """A note where backward raises if optional arguments are not passed, and runs if their defaults are.

    `ctx.needs_input_grad` has one entry for each argument that was passed.
    """
    optional = _optional(trials.slots, guess)
    without = _without(guess, optional)
    if optional and _at_defaults(trials.slots, guess, optional, attempted) != without:
        names = " and ".join(trials.slots[index].name for index in optional)
        error = attempted(without).backward_error
        call = " ".join(spec.as_flag() for spec in trials.specs(without))
        yield (
            f"if {names} is not passed, as with {call}, forward runs but backward raises {type(error).__name__}: "
            f"{error}; it runs if the default of {names} is passed, which is checked"
        )


def with_a_slope(trials: Trials, hints: SourceHints, guess: Guess, attempted: Callable[[Guess], Trial]) -> Guess:
    """The guess, or the same with complex tensors, where backward provides for those and forward is flat at real ones.

    z / |z| and the angle of z are piecewise constant on the real line.
    """
    if not _takes_complex(hints, guess) or not trials.is_flat(guess):
        return guess
    for candidate in _complex(guess, trials.slots, hints, attempted):
        if trials.judge(candidate) is None and not trials.is_flat(candidate):
            return candidate
    return guess


def _takes_complex(hints: SourceHints, guess: Guess) -> bool:
    """Whether backward provides for complex tensors, and the guess has none."""
    return hints.minds_complex and all(choice.kind != "complex" for choice in guess.skeleton)


def other_modes(slots: Sequence[Slot], hints: SourceHints, guess: Guess) -> Iterator[Guess]:
    """The other value of every flag that was left out, and what forward or backward compares words and numbers with."""
    flags = _flags_left_out(slots, hints, guess)
    yield from (with_value(guess, index, not slots[index].parameter.default) for index in flags)
    for index, (slot, choice) in enumerate(zip(slots, guess.skeleton, strict=True)):
        default = slot.parameter.default
        if choice.kind == "value" and not slot.parameter.has_default:
            kinds = (int, float) if type(choice.value) in (int, float) else (type(choice.value),)
            others = [value for value in _compared(slot, hints) if type(value) in kinds]
            words = argument_names.WORDS["reduction"] if others and isinstance(choice.value, str) else ()
            yield from (with_value(guess, index, each) for each in (*others, *words) if each != choice.value)
        if choice == OMITTED and type(default) in (str, int, float):
            kinds = (str,) if isinstance(default, str) else (int, float)
            compared = [value for value in _compared(slot, hints) if type(value) in kinds]
            others = [value for value in (*compared, *_unnamed_word(compared, default)) if value != default]
            alike = [float(value) if isinstance(default, float) else value for value in others]
            yield from (with_value(guess, index, value) for value in alike)


def _unnamed_word(compared: Sequence[Any], value: object) -> tuple[str, ...]:
    """A word that nothing names, for one that is compared with the given word alone: it takes the other branch.

    Where two words are named, forward and backward may each test for another one of them.
    """
    return (_UNNAMED,) if isinstance(value, str) and set(compared) == {value} else ()


def _other_flags(slots: Sequence[Slot], hints: SourceHints, guess: Guess) -> Iterator[Guess]:
    """The other values of all flags that were left out, if there are several."""
    places = _flags_left_out(slots, hints, guess)
    if len(places) > 1:
        for index in places:
            guess = with_value(guess, index, not slots[index].parameter.default)
        yield guess


def _flags_left_out(slots: Sequence[Slot], hints: SourceHints, guess: Guess) -> list[int]:
    return [
        index
        for index, (slot, choice) in enumerate(zip(slots, guess.skeleton, strict=True))
        if choice == OMITTED and isinstance(slot.parameter.default, bool) and _may_change(slot, hints)
    ]


def _may_change(slot: Slot, hints: SourceHints) -> bool:
    """Whether a flag may have its other value: not where forward may write into an input and does not mark it dirty."""
    return slot.name.lower() not in _OVERWRITING or hints.marks_dirty


def _compared(slot: Slot, hints: SourceHints) -> Sequence[Any]:
    """What an argument is compared with, its words in annotation and documentation, and those of most reductions."""
    literal = re.search(r"\bLiteral\[([^\]]*)\]", slot.parameter.annotation or "")
    annotated = re.findall(r"[\"']([^\"']*)[\"']", literal[1]) if literal else ()
    words, said = argument_names.WORDS["reduction"], hints.values.words.get(slot.name, ())
    usual = words if slot.name.lower() == "reduction" and slot.parameter.default in words else ()
    return tuple(dict.fromkeys((*hints.compared_with(slot.name), *annotated, *said, *usual)))


def _first_axis(slots: Sequence[Slot], guess: Guess) -> Iterator[Guess]:
    """The first axis where another is the default."""
    for index, (slot, choice) in enumerate(zip(slots, guess.skeleton, strict=True)):
        default = slot.parameter.default
        if choice == OMITTED and type(default) is int and default in (-1, 1) and slot.name.lower() in _AXIS_NAMES:
            yield with_value(guess, index, 0)


def _with_constants(trials: Trials, hints: SourceHints, guess: Guess) -> Iterator[Guess]:
    """For each argument left at None, the first constant that changes an output."""
    for index, (slot, choice) in enumerate(zip(trials.slots, guess.skeleton, strict=True)):
        if choice != OMITTED or slot.parameter.default is not None or slot.name.lower() in _NEITHER:
            continue
        for value in _constants(slot, hints, index):
            candidate = with_value(guess, index, value)
            if trials.exhausted:
                return
            if trials.judge(candidate) is None and trials.differ(guess, candidate):
                yield candidate
                break


def _constants(slot: Slot, hints: SourceHints, position: int) -> Sequence[Any]:
    annotation, word = slot.parameter.annotation or "", slot.name.lower().strip("_")
    words = [value for value in hints.compared_with(slot.name) if isinstance(value, str)]
    if types_named(annotation):
        return (*words, *(annotated_values(word, annotation) or ()))
    if words or slot.suggested or hints.gradient_of(position) is True:
        return words
    known = argument_names.WHOLE_NUMBERS.get(word) or argument_names.REAL_NUMBERS.get(word)
    return known or argument_names.PERHAPS_NUMBERS.get(word, _NUMBERS)


def _candidates(
    trials: Trials, hints: SourceHints, guess: Guess, attempted: Callable[[Guess], Trial]
) -> Iterator[Guess]:
    optional = _optional(trials.slots, guess)
    if optional:
        yield _at_defaults(trials.slots, guess, optional, attempted)
    if 1 < len(optional) <= _FEW_OPTIONAL:
        yield from (_at_defaults(trials.slots, guess, [index], attempted) for index in optional)
    for index, choice in enumerate(guess.skeleton):
        name = trials.slots[index].name.lower()
        if choice.kind != "value":
            continue
        if name in _AXIS_NAMES and choice.value in (-1, 1):
            yield with_value(guess, index, 0)
        if isinstance(choice.value, bool) and _may_change(trials.slots[index], hints):
            yield with_value(guess, index, not choice.value)
    if _takes_complex(hints, guess):
        yield from _complex(guess, trials.slots, hints, attempted)


def _other_ranks(
    trials: Trials, hints: SourceHints, guess: Guess, runs_backward: Callable[[Guess], bool]
) -> Iterator[Guess]:
    """The guess with an axis more or less in a tensor, where the code branches on the number of its axes.

    The axes are those of another tensor, as for one number for each row where there was one for all rows; else there is
    a new first one or a new last one, whichever is accepted first. The first one is left out as well. A variable that
    is not an argument may stand for any of the tensors.
    """
    tested = hints.branches_on_rank
    arguments = {slot.name for slot in trials.slots}
    for index, choice in enumerate(guess.skeleton):
        if choice.kind != "float" or not tested:
            continue
        if trials.slots[index].name not in tested and tested <= arguments:
            continue
        yield from _at_another_rank(trials, guess, index, runs_backward)


def _at_another_rank(
    trials: Trials, guess: Guess, index: int, runs_backward: Callable[[Guess], bool]
) -> Iterator[Guess]:
    """The guess with an axis more in one tensor, and with one less: of each the first that forward and backward accept.

    Which number of axes a branch is for may be seen in what forward keeps for backward alone.
    """
    shape = guess.shapes[index]
    new = next(n for n in itertools.count(2) if all(n not in each for each in guess.shapes.values()))
    longer = [each for each in guess.shapes.values() if len(each) == len(shape) + 1 and shape in (each[1:], each[:-1])]
    free = index not in guess.domains
    for others in ((*longer, *([(new, *shape), (*shape, new)] if free else ())), (shape[1:],) if free else ()):
        for other in filter(None, dict.fromkeys(others)):
            skeleton = tuple(replace(c, rank=len(other)) if at == index else c for at, c in enumerate(guess.skeleton))
            candidate = replace(guess, skeleton=skeleton, shapes={**guess.shapes, index: other})
            if trials.judge(candidate) is None and runs_backward(candidate):
                yield candidate
                break


def _refused_flags(
    trials: Trials, hints: SourceHints, guess: Guess, runs_backward: Callable[[Guess], bool]
) -> Iterator[Guess]:
    """The other value of every flag for which forward refuses these inputs, with another rank of the first tensor.

    Code behind a flag may be written for a batch, or for sequences, where the rest takes any tensor.
    """
    tensor = next((i for i, c in enumerate(guess.skeleton) if c.kind == "float" and i not in guess.domains), None)
    for index in _flags_left_out(trials.slots, hints, guess) if tensor is not None else ():
        flipped = with_value(guess, index, not trials.slots[index].parameter.default)
        if trials.judge(flipped) is not None and tensor is not None:
            yield from _at_another_rank(trials, flipped, tensor, runs_backward)


def _optional(slots: Sequence[Slot], guess: Guess) -> list[int]:
    pairs = enumerate(zip(guess.skeleton, slots, strict=True))
    return [index for index, (choice, slot) in pairs if choice.is_free and slot.parameter.has_default]


def _at_defaults(
    slots: Sequence[Slot], guess: Guess, indices: Sequence[int], attempted: Callable[[Guess], Trial]
) -> Guess:
    """The guess without some arguments; with their defaults passed, where backward raises only if they are not."""
    without = passed = _without(guess, indices)
    for index in indices:
        passed = with_value(passed, index, slots[index].parameter.default)
    is_needed = ended(attempted(without)) is Reply.RAISES and ended(attempted(passed)) is Reply.FITS
    return passed if is_needed else without


def _without(guess: Guess, indices: Sequence[int]) -> Guess:
    skeleton = tuple(OMITTED if index in indices else choice for index, choice in enumerate(guess.skeleton))
    return replace(guess, skeleton=skeleton)


def _complex(
    guess: Guess, slots: Sequence[Slot], hints: SourceHints, attempted: Callable[[Guess], Trial]
) -> Iterator[Guess]:
    """The guess with complex tensors; one for which backward returns real numbers beside complex ones stays real.

    So does what documentation calls real, and all where gradients are real and so are outputs, or complex at the real
    inputs too: a transform of real numbers conjugates inside, as for a convolution. PyTorch makes a real gradient of a
    complex tensor complex. What the source conjugates is complex, though, and its real gradient a mistake.
    Where forward refuses complex tensors, as `relu(abs(z) + b)` does for a complex b, all but one are complex, or one
    alone.
    """
    named = {index: slots[index].name for index, choice in enumerate(guess.skeleton) if choice.kind == "float"}
    places = [index for index, name in named.items() if name not in hints.values.reals]
    found = _with_complex(guess, places)
    trial = attempted(found)
    if not trial.ok and len(places) > 1:
        fewer = ([each for each in places if each != one] for one in places)
        some = (_with_complex(guess, each) for each in dict.fromkeys(map(tuple, (*fewer, *([one] for one in places)))))
        yield from itertools.islice((each for each in some if _returns_complex(attempted(each), places, each)), 1)
        return
    gradients = dict(zip(named, trial.gradients or (), strict=False))
    if len(trial.gradients or ()) != len(named):
        yield found
        return
    conjugated = {index for index, name in named.items() if name in hints.conjugates}
    real = {index for index in places if _is_real(gradients[index], may_be_cast=index not in conjugated)}
    returned = [index for index in places if gradients[index] is not None]
    has_complex = [any(map(np.iscomplexobj, each.outputs)) for each in (trial, attempted(guess))]
    if returned and real.issuperset(returned) and has_complex != [True, False]:
        return
    kept = [index for index in places if index not in real]
    yield _with_complex(guess, kept) if kept else found


def _is_real(gradient: NDArray[Any] | None, *, may_be_cast: bool) -> bool:
    """Whether a gradient is real, or was and has been made complex."""
    if gradient is None or not np.iscomplexobj(gradient):
        return gradient is not None
    return may_be_cast and bool(gradient.real.any()) and not gradient.imag.any()


def _returns_complex(trial: Trial, slots: Sequence[int], guess: Guess) -> bool:
    """Whether backward returns complex gradients for complex tensors, and for no others of those in `slots`."""
    gradients = trial.gradients or ()
    if not trial.ok or trial.backward_error is not None or len(gradients) != len(slots):
        return False
    kinds = {slot: None if each is None else each.dtype.kind for slot, each in zip(slots, gradients, strict=True)}
    return all((kind == "c") is (guess.skeleton[slot].kind == "complex") for slot, kind in kinds.items())


def _with_complex(guess: Guess, slots: Collection[int]) -> Guess:
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
