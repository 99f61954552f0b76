"""Arguments that change no output, and for which backward returns a gradient all the same: it has to be checked."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.search.candidates import TRACKED, Choice
from gradcli.inputs.search.domains import with_ordered_limits
from gradcli.inputs.search.error_messages import refused_gradient, refused_position
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.targets import Trial


def with_idle_gradients(trials: Trials, hints: SourceHints, guess: Guess, attempted: Callable[[Guess], Trial]) -> Guess:
    """The guess with tensors that require a gradient for the idle ones that backward has a gradient for.

    The search takes an argument that changes no output for a number that backward alone uses, which gets no gradient.
    A gradient of one is right only if it is zero.

    A limit that no entry reached seemed idle, and is an ordinary tensor where some entries reach it.

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
            real = _as_float(guess, slot)
            if guess.skeleton[slot].kind == "idle-tensor" and trials.judge(real) is None:
                guess = with_ordered_limits(trials, hints, real)
    return guess


def _as_float(guess: Guess, slot: int) -> Guess:
    choice = replace(guess.skeleton[slot], kind="float")
    return replace(guess, skeleton=(*guess.skeleton[:slot], choice, *guess.skeleton[slot + 1 :]))


def _tracked(guess: Guess, slot: int) -> Iterator[Guess]:
    """The guess with a tensor of another one's shape in a slot, and with one without axes."""
    shapes = [guess.shapes[other] for other, choice in enumerate(guess.skeleton) if choice.kind in TRACKED]
    for shape in dict.fromkeys((*shapes, ())):
        choice = Choice(kind="idle-tensor", rank=len(shape))
        skeleton = (*guess.skeleton[:slot], choice, *guess.skeleton[slot + 1 :])
        yield replace(guess, skeleton=skeleton, shapes={**guess.shapes, slot: shape})


def _has_gradient(guess: Guess, slot: int, trial: Trial) -> bool:
    """Whether backward returned a gradient for a slot, be it one that the framework refuses."""
    message = str(trial.backward_error)
    if trial.gradients is None:
        return trial.ok and refused_gradient(message) is not None and refused_position(message) in (None, slot)
    tracked = [each for each, choice in enumerate(guess.skeleton) if choice.kind in TRACKED]
    if len(tracked) != len(trial.gradients):
        return False
    return trial.gradients[tracked.index(slot)] is not None


def _fits(trial: Trial) -> bool:
    return trial.gradients is not None and not trial.lacks_a_sum
