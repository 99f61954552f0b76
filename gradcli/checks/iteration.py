"""Whether forward runs a fixed number of steps that have to come close to a limit."""

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from gradcli.backends.base import Subject
from gradcli.backends.captured_sizes import captured_sizes
from gradcli.backends.executed_lines import LineCounts, at_most
from gradcli.cases import Argument
from gradcli.checks.other_points.calls import grown_calls
from gradcli.errors import UserCodeError

_LINES = 100_000
_STEPS = 4
"""A loop of fewer steps is no iteration to convergence: Newton's method needs four from a good guess."""


def iterates(subject: Subject, arguments: Sequence[Argument]) -> bool:
    """Whether forward has a loop whose number of iterations does not depend on the sizes of the inputs.

    A loop over axes or entries runs more often if there are more of them. If forward rejects other sizes, the number of
    iterations is compared with the lengths of axes and their products.
    """
    own = _lines(subject, arguments)
    if own is None or own.longest_loop() < _STEPS:
        return False
    for grown in grown_calls(arguments, captured_sizes(subject.info.forward) if subject.info.forward else frozenset()):
        other = _lines(subject, grown)
        if other is not None:
            return own.longest_loop_shared_with(other) >= _STEPS
    return own.longest_loop(_sizes(subject)) >= _STEPS


def _lines(subject: Subject, arguments: Sequence[Argument]) -> LineCounts | None:
    with at_most(_LINES, subject.info.forward) as seen:
        try:
            subject.call_at(tuple(arguments))
        except UserCodeError:
            return None
    return seen


def _sizes(subject: Subject) -> frozenset[int]:
    """How often the lines of a loop over axes or entries of the inputs and outputs are run; its head once more."""
    shapes = [*(a.shape for a in subject.arguments if a.is_tensor), *(o.shape for o in subject.first_call.outputs)]
    sizes = {length for shape in shapes for length in (*shape, math.prod(shape), *accumulate(shape, mul))}
    return frozenset(sizes | {size + 1 for size in sizes})
