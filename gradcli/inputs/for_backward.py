"""Inputs that backward asks for, where forward accepts more than it: equal sizes, a longer axis.

Forward alone is often laxer than the whole Function: scores of queries against more keys than queries still have a
diagonal. What the framework refuses of a backward that ran is a mistake to be seen, and stays.
"""

from collections.abc import Iterator
from dataclasses import replace

from gradcli.inputs.messages import refused_gradient, refused_number
from gradcli.inputs.trials import Guess
from gradcli.inputs.unification import Solution, State, Unifier

_OF_SIZES = (RuntimeError, ValueError, IndexError, AssertionError)


def merged(unifier: Unifier, solution: Solution, error: BaseException | None) -> Iterator[State]:
    """States in which two of the sizes are equal that backward spoke of when it raised on inputs forward accepts."""
    message = str(error)
    refused = refused_gradient(message) is not None or refused_number(message)
    if isinstance(error, _OF_SIZES) and not refused:
        yield from unifier.merged_by(solution.state, message)


def exchanges(guess: Guess, error: BaseException | None) -> bool:
    """Whether the framework refused a gradient that has the shape of another input: a mistake at any inputs."""
    refusal = refused_gradient(str(error))
    return refusal is not None and refusal[0] in guess.shapes.values()


def as_returned(guess: Guess, message: str) -> Guess | None:
    """The guess with one axis as long as the gradient that the framework refused has it; None where none is meant.

    An LSTM's gates are cut into four, and broadcast where each part has one column. Nothing is done where the
    gradient was merely not summed down, or has the shape of another input: those are mistakes to be seen.
    """
    refusal = refused_gradient(message)
    if refusal is None or refusal[0] in guess.shapes.values() or len(refusal[0]) != len(refusal[1]):
        return None
    changed = [(one, other) for one, other in zip(*refusal, strict=True) if one != other]
    slots = [slot for slot, shape in guess.shapes.items() if shape == refusal[1] and guess.skeleton[slot].is_free]
    if len(changed) != 1 or changed[0][1] == 1 or len(slots) != 1:
        return None
    return replace(guess, shapes={**guess.shapes, slots[0]: refusal[0]})
