"""Whether forward iterates, and may have to stop before it has converged."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import mul

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.backends.captured_sizes import captured_sizes
from gradcli.backends.executed_lines import LineCounts, at_most
from gradcli.cases import Argument, with_defaults
from gradcli.checks.other_points.calls import grown_calls
from gradcli.errors import UserCodeError

_LINES = 100_000
_STEPS = 4
"""A loop of fewer steps is no iteration to convergence: Newton's method needs four from a good guess."""
_LONGER, _MOST_STEPS = 16, 200
"""How many times as long an iteration is made, and how long it may be for that."""
_SETTLED, _LASTING = 2e-2, 1e-2
"""Relative: values that change by no more than the first, in four times as many steps and in one, have settled; a
lasting error is larger than the second. A scheme of 8 steps converges slowly, an iteration soon or not at all."""
_AROUND = (4.0, 16.0, 64.0)
"""Entries are multiplied by random factors up to these: about the same magnitude, and larger ones at which a loop that
ends by its own condition runs longer."""


def iterates(subject: Subject, arguments: Sequence[Argument], as_in: Sequence[LineCounts] = ()) -> bool:
    """Whether forward has a loop whose number of iterations depends neither on the inputs' sizes nor on their values.

    A loop over axes or entries runs more often if there are more of them. If forward rejects other sizes, the number of
    iterations is compared with the lengths of axes and their products. A loop that ends by its own condition, such as
    one that wraps an angle, runs another number of iterations at some of the inputs around.

    Args:
        subject: the Function at its own inputs.
        arguments: those that are asked about.
        as_in: other calls; a loop that runs another number of iterations there does not count.
    """
    own = _lines(subject, arguments)
    if own is None or own.longest_loop() < _STEPS:
        return False
    others, left_out = [*as_in, *_around(subject, arguments)], _sizes(subject)
    for grown in grown_calls(arguments, captured_sizes(subject.info.forward) if subject.info.forward else frozenset()):
        other = _lines(subject, grown)
        if other is not None:
            others, left_out = [*others, other], frozenset()
            break
    return own.longest_loop(left_out, as_in=others) >= _STEPS


def stays_wrong(subject: Subject, arguments: Sequence[Argument]) -> bool:
    """Whether a gradient is as wrong after many more iterations, at which forward's values no longer change.

    Stopping early does not explain such an error: a binomial tree of 8 steps has to have the gradient of 8 steps. Only
    where a whole number among the arguments sets how long every iteration of forward is.
    """
    given = with_defaults(tuple(arguments), subject.info)
    for position, argument in enumerate(given):
        number = argument.value
        if type(number) is not int or not _STEPS <= number <= _MOST_STEPS:
            continue
        counts = (number, _LONGER // 4 * number, _LONGER * number, _LONGER * number + 1)
        calls = [[*given[:position], replace(argument, value=n), *given[position + 1 :]] for n in counts]
        longer = _lines(subject, calls[-1])
        if longer is None or iterates(subject, arguments, as_in=[longer]):
            continue
        found = [_compared(subject, call) for call in calls]
        errors = [each[1] for each in found if each is not None]
        values = [each[0] for each in found if each is not None]
        if len(errors) == len(counts) and all(_are_close(each, values[-1]) for each in values[1:]):
            return errors[-1] > max(errors[0] / 2, _LASTING)
    return False


def _compared(subject: Subject, arguments: Sequence[Argument]) -> tuple[FloatArray, float] | None:
    """Forward's values, and how far backward is from autodiff of forward's body, relative to the latter."""
    try:
        at = subject.rebind(tuple(arguments))
        own, body = at.derivative_map(1), at.body_map(1)
        if body is None or at.active != subject.active:
            return None
        cotangent = np.ones((1, at.codomain.size))
        values, (claimed, right) = (
            body.value(at.point),
            (m.value_and_vjps(at.point, cotangent)[1][0] for m in (own, body)),
        )
    except UserCodeError:
        return None
    size = float(np.abs(right).max(initial=0.0))
    if not (np.isfinite(values).all() and np.isfinite(claimed).all() and 0 < size < np.inf):
        return None
    return values, float(np.abs(claimed - right).max()) / size


def _are_close(values: FloatArray, others: FloatArray) -> bool:
    return values.shape == others.shape and bool(
        np.abs(values - others).max(initial=0.0) <= _SETTLED * np.abs(others).max(initial=0.0)
    )


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
