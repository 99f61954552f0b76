"""Arguments that get a gradient after all, or get none, as what backward returns for them shows."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gradcli.inputs.domains import INTEGRAL, LABELS
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.search.candidates import TRACKED, Choice, Skeleton
from gradcli.inputs.search.domains import with_ordered_limits
from gradcli.inputs.search.error_messages import refused_gradient, refused_position
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.inputs.search.unification import Solution
from gradcli.targets import Trial


def with_returned_gradients(
    trials: Trials, hints: SourceHints, guess: Guess, attempted: Callable[[Guess], Trial]
) -> Guess:
    """The guess with tensors that require a gradient where backward has a gradient for something else.

    The search takes an argument that changes no output for a number that backward alone uses, which gets no gradient.
    A gradient of one is right only if it is zero. A limit that no entry reached seemed idle, and is an ordinary tensor
    where some entries reach it.

    What is called `lengths` or `mask` is taken for whole numbers or flags. It is neither if forward takes real numbers
    and backward has a gradient for them: the lengths of bones, or a soft mask. So it is where documentation seems to
    call an argument indices, and means what forward returns.

    What documentation calls labels of 0 and 1 and the like, or complex and fixed, gets no gradient where backward
    returns none, or zeros, as rules of JAX do.

    Args:
        trials: runs forward.
        hints: what the source says.
        guess: inputs that forward accepts.
        attempted: runs forward and backward on a guess.
    """
    for slot, choice in enumerate(guess.skeleton):
        if choice.kind == "number-tensor":
            candidates = [(each, attempted(each)) for each in _tracked(guess, slot)]
            returned = [each for each, trial in candidates if _has_gradient(each, slot, trial)]
            whole = [each for each, trial in candidates if each in returned and _fits(trial)]
            guess = (*whole, *returned, guess)[0]
            if guess.skeleton[slot].kind == "idle-tensor":
                real = _as(guess, slot, "float")
                ordered = with_ordered_limits(trials, hints, real)
                guess = ordered if ordered != real or trials.judge(real) is None else guess
        elif choice.kind in ("index", "mask") or _is_whole(guess, slot):
            domains = {each: domain for each, domain in guess.domains.items() if each != slot}
            real = replace(_as(guess, slot, "float"), domains=domains)
            if trials.judge(real) is None and _depends(real, slot, attempted(real)):
                guess = real
        elif (kind := _as_data(choice, trials.slots[slot].name, hints)) is not None:
            trial, label = attempted(guess), _as(guess, slot, kind)
            others = [each for each in range(len(guess.skeleton)) if each != slot]
            is_left_out = trial.gradients is not None and not _depends(guess, slot, trial)
            if is_left_out and any(_depends(guess, each, trial) for each in others) and trials.judge(label) is None:
                guess = label
    return guess


def with_vector(
    trials: Trials, guess: Guess, attempted: Callable[[Guess], Trial], solved: Callable[[Skeleton], Solution | None]
) -> Solution | None:
    """Inputs with a vector for a later tensor without a gradient that forward flattens to the size of another axis.

    `weight.view(1, -1)` takes a matrix of as many entries as there are classes, where a vector is meant.

    Args:
        trials: runs forward.
        guess: inputs that forward accepts.
        attempted: runs forward and backward on a guess.
        solved: finds inputs for a skeleton that backward runs with; None where there are none.
    """
    tracked = [slot for slot, choice in enumerate(guess.skeleton) if choice.kind in TRACKED]
    for slot in (slot for slot in tracked[1:] if guess.skeleton[slot].kind == "float"):
        count = math.prod(shape := guess.shapes[slot])
        others = {size for other, each in guess.shapes.items() if other != slot for size in each}
        if len(shape) < 2 or count in shape or count not in others:
            continue
        vector = replace(guess.skeleton[slot], rank=1)
        skeleton = (*guess.skeleton[:slot], vector, *guess.skeleton[slot + 1 :])
        flat = replace(guess, skeleton=skeleton, shapes={**guess.shapes, slot: (count,)})
        has_none = attempted(guess).gradients is not None and _gradient(guess, slot, attempted(guess)) is None
        if has_none and vector in [known for _, known in trials.slots[slot].choices] and trials.judge(flat) is None:
            return solved(skeleton) if trials.agree(guess, flat) else None
    return None


def _as_data(choice: Choice, name: str, hints: SourceHints) -> str | None:
    """What a tensor is if documentation says that it is data; None where it does not."""
    if choice.kind == "float":
        return "label" if hints.values.domains.get(name) in LABELS else None
    is_fixed = choice.kind == "complex" and name in hints.values.constants | hints.values.fixed
    return "complex-label" if is_fixed else None


def _is_whole(guess: Guess, slot: int) -> bool:
    """Whether a tensor that the search takes for real numbers is drawn as whole ones."""
    return guess.skeleton[slot].kind == "float" and guess.domains.get(slot, ("normal", ()))[0] in INTEGRAL


def _as(guess: Guess, slot: int, kind: str) -> Guess:
    choice = replace(guess.skeleton[slot], kind=kind)
    return replace(guess, skeleton=(*guess.skeleton[:slot], choice, *guess.skeleton[slot + 1 :]))


def _tracked(guess: Guess, slot: int) -> Iterator[Guess]:
    """The guess with a tensor in a slot: of its own shape, or for one without axes first of the others' shapes."""
    shapes = [guess.shapes[other] for other, choice in enumerate(guess.skeleton) if choice.kind in TRACKED]
    for shape in dict.fromkeys((*(() if guess.shapes[slot] else shapes), guess.shapes[slot])):
        choice = Choice(kind="idle-tensor", rank=len(shape))
        skeleton = (*guess.skeleton[:slot], choice, *guess.skeleton[slot + 1 :])
        yield replace(guess, skeleton=skeleton, shapes={**guess.shapes, slot: shape})


def _has_gradient(guess: Guess, slot: int, trial: Trial) -> bool:
    """Whether backward returned a gradient for a slot, be it one that the framework refuses."""
    message = str(trial.backward_error)
    if trial.gradients is None:
        return trial.ok and refused_gradient(message) is not None and refused_position(message) in (None, slot)
    return _gradient(guess, slot, trial) is not None


def _depends(guess: Guess, slot: int, trial: Trial) -> bool:
    """Whether backward returned a gradient for a slot that is not zero."""
    gradient = _gradient(guess, slot, trial)
    return gradient is not None and bool(gradient.any())


def _gradient(guess: Guess, slot: int, trial: Trial) -> NDArray[Any] | None:
    """What backward returned for a slot; None for nothing, or where the gradients are not one for each tensor."""
    tracked = [each for each, choice in enumerate(guess.skeleton) if choice.kind in TRACKED]
    found = trial.gradients or ()
    return found[tracked.index(slot)] if slot in tracked and len(tracked) == len(found) else None


def _fits(trial: Trial) -> bool:
    return trial.gradients is not None and not trial.lacks_a_sum
