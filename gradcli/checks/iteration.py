"""Whether forward iterates, and may have to stop before it has converged."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import mul

import numpy as np

from gradcli.backends.base import Subject
from gradcli.backends.captured_sizes import captured_sizes
from gradcli.backends.executed_lines import LineCounts, at_most
from gradcli.cases import Argument
from gradcli.checks.other_points.calls import grown_calls
from gradcli.errors import UserCodeError

_LINES = 100_000
_STEPS = 4
"""A loop of fewer steps is no iteration to convergence: Newton's method needs four from a good guess."""
_AROUND = (4.0, 16.0, 64.0)
"""Entries are multiplied by random factors up to these: about the same magnitude, and larger ones at which a loop that
ends by its own condition runs longer."""


def iterates(subject: Subject, arguments: Sequence[Argument]) -> bool:
    """Whether forward has a loop whose number of iterations depends neither on the inputs' sizes nor on their values.

    A loop over axes or entries runs more often if there are more of them. If forward rejects other sizes, the number of
    iterations is compared with the lengths of axes and their products. A loop that ends by its own condition, such as
    one that wraps an angle, runs another number of iterations at some of the inputs around.
    """
    own = _lines(subject, arguments)
    if own is None or own.longest_loop() < _STEPS:
        return False
    others, left_out = list(_around(subject, arguments)), _sizes(subject)
    for grown in grown_calls(arguments, captured_sizes(subject.info.forward) if subject.info.forward else frozenset()):
        other = _lines(subject, grown)
        if other is not None:
            others, left_out = [*others, other], frozenset()
            break
    return own.longest_loop(left_out, as_in=others) >= _STEPS


def reaches_its_limit(subject: Subject, arguments: Sequence[Argument]) -> bool:
    """Whether a loop uses up its largest number of iterations, which it does not at the subject's own inputs.

    Either a counting loop runs to its end here and is left early at the subject's own inputs; or the loop runs another
    number of iterations than at these, and that same number at all inputs nearby. Such a loop has not converged: the
    derivative of its limit need not be that of its value.
    """
    here, own = _lines(subject, arguments), _lines(subject, subject.arguments)
    if here is None or own is None or here.loops_alike(own):
        return False
    return here.runs_out(own, _STEPS) or all(seen.loops_alike(here) for seen in _around(subject, arguments))


def _around(subject: Subject, arguments: Sequence[Argument]) -> Iterator[LineCounts]:
    """The lines run at a few inputs of the signs of these, where forward accepts them."""
    rng = np.random.default_rng(41)
    for largest in _AROUND:
        seen = _lines(subject, _scaled(subject, arguments, rng, largest))
        if seen is not None:
            yield seen


def _scaled(
    subject: Subject, arguments: Sequence[Argument], rng: np.random.Generator, largest: float
) -> list[Argument]:
    """The arguments with each entry of the active ones times a number between largest / 16 and largest."""
    scaled = list(arguments)
    for place in subject.active:
        value = arguments[place].value
        scaled[place] = replace(arguments[place], value=value * (largest * 16.0 ** -rng.random(value.shape)))
    return scaled


def _lines(subject: Subject, arguments: Sequence[Argument]) -> LineCounts | None:
    with at_most(_LINES, subject.info.forward) as seen:
        try:
            subject.call_at(tuple(arguments))
        except UserCodeError:
            return None
    return replace(seen, compiled=subject.loops_at(arguments))


def _sizes(subject: Subject) -> frozenset[int]:
    """How often the lines of a loop over axes or entries of the inputs and outputs are run; its head once more."""
    shapes = [*(a.shape for a in subject.arguments if a.is_tensor), *(o.shape for o in subject.first_call.outputs)]
    sizes = {length for shape in shapes for length in (*shape, math.prod(shape), *accumulate(shape, mul))}
    return frozenset(sizes | {size + 1 for size in sizes})
