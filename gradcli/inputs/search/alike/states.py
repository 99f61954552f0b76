"""States in which sizes are equal that forward lets differ, because backward needs that or tensors are used alike."""

import itertools
from collections.abc import Iterator, Sequence

from gradcli.inputs.search.error_messages import refused_gradient, refused_number
from gradcli.inputs.search.named_axes import State
from gradcli.inputs.search.unification import Solution, Unifier

STEPS = 30
"""Tries of sizes each, with two of the sizes in backward's error message made equal."""
_OF_SIZES = (RuntimeError, ValueError, IndexError, AssertionError)


def merged(unifier: Unifier, solution: Solution, error: BaseException | None) -> Iterator[tuple[int, State]]:
    """States in which two sizes are equal, on inputs that forward accepts, each with the tries that it is worth.

    Those that backward's error names come first, then any other two, and last all of them.
    """
    message = str(error)
    refused = refused_gradient(message) is not None or refused_number(message)
    if not isinstance(error, _OF_SIZES) or refused:
        return
    yield from ((STEPS, state) for state in unifier.merged_by(solution.state, message))
    classes = list(dict.fromkeys(solution.state.partition))
    for one, other in itertools.combinations(classes, 2):
        yield 1, solution.state.with_equal(one, other)
    if len(classes) > 2:
        yield 1, with_all_equal(solution.state, classes)


def with_all_equal(state: State, axes: Sequence[int]) -> State:
    """The state with these axes of one size."""
    for axis in axes[1:]:
        state = state.with_equal(state.partition[axes[0]], state.partition[axis])
    return state
