"""Arguments that are numbers: which of them enter a formula, and the other values that are tried."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.cases import Argument
from gradcli.checks.other_points.tuples import are_numbers, in_few_digits, tuples_to_try
from gradcli.errors import UserCodeError
from gradcli.inputs.hints.argument_names import BLANK_NAMES, IGNORED_NAMES

_COUNTED = frozenset((
    "dim", "dims", "axis", "axes", "ndim", "size", "groups", "channels", "heads", "features", "classes", "experts",
    "chunks", "block", "blocks", "rows", "cols", "columns",
))  # fmt: skip
"""Last words of names of whole numbers that lay out a tensor, as in num_groups and head_dim: not varied, since forward
accepts 3 groups for 4 channels without an error, and reads the wrong memory. `world_size` is varied, because
gradients that processes exchange are often multiplied by it."""
_AXES = frozenset(("dim", "axis"))
"""Names of whole numbers that choose an axis, if they are no larger than a tensor has axes; -1 is the last one."""
_PLACED = frozenset(("offset", "index", "shape"))
"""Names of whole numbers that may choose a layout: varied only where all outputs keep their shapes."""
_PADDING = frozenset(("padding", "pad"))
_STRIDES = frozenset(("stride", "hop", "hop_length", "hop_size"))
_WINDOWS = frozenset(("dilation",)) | _STRIDES | _PADDING
"""Names of whole numbers that place the windows of a convolution or pooling: varied also where shapes change. Backward
may refuse another value, as one that returns a gradient of another shape then does."""
_SEEDS = frozenset(("seed",))
"""Names of numbers that choose a sample of random ones: varied only where the user gave them."""

_TOLERANCES = r"eps(?:ilon|abs|rel)?|[afgrx]?tol(?:erance)?|(?:abs|rel)_?tol|accuracy|precision|damping|jitter|nugget"
_COUNTS = r"(?:max|min|n|num)_?(?:iter(?:s|ations?)?|steps|evals?|fev|nfev|sweeps)|iter(?:s|ations?)|nfev|sweeps"
_ACCURACY = re.compile(rf"(?:.*_)?(?:{_TOLERANCES}|{_COUNTS})(?:_.*|\d+)?")
_LARGER, _SMALLER = 1.5625, 0.75
"""No powers of two, and within half to twice, so that a tolerance stays as tight as it was meant."""
_PART_OF_THE_WAY = 0.43
"""Not half: 0.05 is half of 0.1, so that `0.1 * 0.05` is `2 * 0.05 ** 2`."""
_NEUTRAL = (0, 1, -1)
_CLOSE = 5e-3
"""Relative. If an iteration converges cubically to 1e-7, the step before was off by the cube root of that, 5e-3."""


def is_formula_constant(argument: Argument) -> bool:
    """Whether an argument is a number that may enter a formula."""
    value, name = argument.value, argument.name.lower()
    number = isinstance(value, int | float) and not isinstance(value, bool | Enum)
    if argument.is_tensor or not number or (name in _SEEDS and not argument.fixed):
        return False
    counted = name.rpartition("_")[2] in _COUNTED and name != "world_size"
    return isinstance(value, float) or name in _AXES or not counted


def values_to_try(argument: Argument, arguments: Sequence[Argument], marks: bool = False) -> tuple[Any, ...]:
    """The other values of a number, of a tuple of numbers, or of None where a number may be; none if it has to stay.

    Args:
        argument: one of the arguments.
        arguments: all of them; those with a default may be left at it.
        marks: whether forward compares it with indices.
    """
    if argument.value is None:
        return (1, 2) if argument.name.lower() in _STRIDES else indices_to_ignore(argument, arguments, marks)
    if are_numbers(argument):
        return tuples_to_try(argument, arguments)
    if not is_formula_constant(argument) or is_ignored_by_some(argument, arguments):
        return ()
    chosen = (other_axes(argument, arguments), unused_classes(argument, arguments), _other_windows(argument))
    named = next((values for values in chosen if values is not None), None)
    if named is None:
        named = (*other_values(argument.value), *_if_an_axis(argument, arguments))
    return indices_to_ignore(argument, arguments, marks) or named


def places_windows(argument: Argument) -> bool:
    """Whether an argument is a whole number, or None, whose name says that it places the windows of a convolution."""
    return isinstance(argument.value, int | None) and argument.name.lower() in _WINDOWS


def _other_windows(argument: Argument) -> tuple[int, ...] | None:
    """Other values for a stride, padding or dilation; None for an argument of another name.

    At a stride of 1 windows overlap, so that backward has to add up what they give to one entry. A padding of 1 is
    accepted where 2 crops too much.
    """
    if not places_windows(argument):
        return None
    value = argument.value
    if argument.name.lower() in _STRIDES and value > 1:
        return (1, value + 1)
    return (*other_values(value), 1) if value == 0 else other_values(value)


def padding_for(argument: Argument, arguments: Sequence[Argument]) -> int | None:
    """The position of the padding that makes room for more windows, for a stride or dilation; else None."""
    if not places_windows(argument) or argument.name.lower() in _PADDING:
        return None
    whole = (n for n, each in enumerate(arguments) if type(each.value) is int and each.name.lower() in _PADDING)
    return next(whole, None)


def chooses_an_axis(argument: Argument) -> bool:
    """Whether an argument is a whole number whose name says that it chooses an axis."""
    return isinstance(argument.value, int) and argument.name.lower() in _AXES


def may_lay_out(argument: Argument) -> bool:
    """Whether an argument is a whole number whose name says that it may choose the layout of the outputs."""
    return isinstance(argument.value, int) and argument.name.lower() in _PLACED


def sets_accuracy(name: str) -> bool:
    """Whether an argument has a usual name for the accuracy of a result, such as eps or tol."""
    return _ACCURACY.fullmatch(name.lower().strip("_")) is not None


def other_values(value: float) -> tuple[Any, ...]:
    """Values to try instead, of the same type and magnitude: one more or less, or between half and twice as much.

    0 and 1 have no magnitude to keep: they leave out a term or a factor. Neither of them replaces another value.
    """
    if isinstance(value, int):
        return {0: (3, 2), 1: (2, 3), -1: (-2,)}.get(value) or (value + 1, value - 1)
    if value == 0:
        return (0.375, 2.5)
    scaled = (in_few_digits(value * _SMALLER), in_few_digits(value * _LARGER))  # a shorter step is more accurate
    return tuple(v for v in scaled if math.isfinite(v) and v != value and v not in _NEUTRAL)


def is_ordered(argument: Argument) -> bool:
    """Whether an argument is a number of a formula, which may be meant to be above or below another one."""
    value, name = argument.value, argument.name.lower()
    if argument.is_tensor or type(value) not in (int, float) or not math.isfinite(value) or sets_accuracy(name):
        return False
    placed = chooses_an_axis(argument) or places_windows(argument) or may_lay_out(argument)
    marks = IGNORED_NAMES.fullmatch(name) or BLANK_NAMES.fullmatch(name)
    return is_formula_constant(argument) and not placed and not marks


def keeps_order(changes: Mapping[int, Any], arguments: Sequence[Argument]) -> bool:
    """Whether numbers that differ are in the same order as before where some of them change."""
    ordered = [n for n, each in enumerate(arguments) if is_ordered(each)]
    pairs = [(arguments[n].value - arguments[m].value, n, m) for n, m in itertools.combinations(ordered, 2)]
    new = [changes.get(n, each.value) for n, each in enumerate(arguments)]
    return all(was == 0 or (new[n] - new[m]) * math.copysign(1, was) > 0 for was, n, m in pairs)


def changes_in_order(position: int, values: Sequence[Any], arguments: Sequence[Argument]) -> list[dict[int, Any]]:
    """The other values of a number as changes that keep it in order with other numbers, by position.

    A limit beyond the other one is another function. A real number that would pass or reach the next one goes a part of
    the way there. Where a whole number would, those on that side move along; 0, 1 and -1 replace others only after
    that.
    """
    argument = arguments[position]
    if not is_ordered(argument):
        return [{position: value} for value in values]
    others = {n: each.value for n, each in enumerate(arguments) if n != position and is_ordered(each)}
    found: list[dict[int, Any]] = []
    for value in values:
        ahead = {
            n: v for n, v in others.items() if (v > argument.value if value > argument.value else v < argument.value)
        }
        if keeps_order({position: value}, arguments):
            found.append({position: value})
        elif isinstance(value, float):
            nearest = min(ahead.values(), key=lambda v: abs(v - argument.value))
            found.append({position: in_few_digits(argument.value + _PART_OF_THE_WAY * (nearest - argument.value))})
        else:
            found.append({position: value, **{n: v + value - argument.value for n, v in ahead.items()}})
    return sorted(found, key=lambda changes: changes[position] in _NEUTRAL)


def with_changes(changes: Mapping[int, Any], position: int, arguments: Sequence[Argument]) -> list[Argument]:
    """The arguments with these values, by position.

    Where the number at `position` becomes another axis, and an index input holds an order along the one it was, the two
    axes of all tensors are exchanged: along another axis the same indices are no order, and have no inverse.
    """
    changed = [replace(a, value=changes.get(n, a.value)) for n, a in enumerate(arguments)]
    old, new = arguments[position].value, changes[position]
    may_choose = chooses_an_axis(arguments[position]) or {old, new} == {0, 1}
    if not may_choose or not any(_orders(value, old, new) for value in _index_inputs(arguments)):
        return changed
    return [_turned(a, old, new) if a.is_tensor and a.value is not None else a for a in changed]


def _orders(value: NDArray[Any], axis: int, other: int) -> bool:
    """Whether indices differ along an axis, and repeat along another one or are too large for it."""
    axes = value.ndim
    if not (-axes <= axis < axes and -axes <= other < axes) or not value.size:
        return False
    repeat = [bool((np.diff(np.sort(value, each), axis=each) == 0).any()) for each in (axis, other)]
    return not repeat[0] and (repeat[1] or bool(value.max() >= value.shape[other]))


def _turned(argument: Argument, one: int, two: int) -> Argument:
    axes = argument.value.ndim
    if argument.sparsity is not None or not (-axes <= one < axes and -axes <= two < axes):
        return argument
    return replace(argument, value=np.ascontiguousarray(np.swapaxes(argument.value, one, two)), own=None)


def _if_an_axis(argument: Argument, arguments: Sequence[Argument]) -> tuple[int, ...]:
    """The other axes of the first tensor for 0 and 1, which may choose one where forward refuses larger numbers."""
    axes = next((each.value.ndim for each in arguments if each.is_tensor and each.value is not None), 0)
    is_small = type(argument.value) is int and argument.value in (0, 1)
    return tuple(axis for axis in range(min(axes, 2)) if axis != argument.value) if is_small else ()


def other_axes(argument: Argument, arguments: Sequence[Argument]) -> tuple[int, ...] | None:
    """The other axes of the first tensor for an argument such as `dim`; None for an argument of another name."""
    if not chooses_an_axis(argument):
        return None
    axes = next((each.value.ndim for each in arguments if each.is_tensor and each.value is not None), 0)
    if not -axes <= argument.value < axes:
        return ()
    return tuple(axis for axis in range(axes) if axis != argument.value % axes)


def is_ignored_by_some(argument: Argument, arguments: Sequence[Argument]) -> bool:
    """Whether an index input contains the value of an argument such as ignore_index, which need not be a valid index.

    With another value of the argument, these entries would be looked up.
    """
    if IGNORED_NAMES.fullmatch(argument.name.lower()) is None:
        return False
    return any(bool((value == argument.value).any()) for value in _index_inputs(arguments))


def indices_to_ignore(argument: Argument, arguments: Sequence[Argument], marks: bool = False) -> tuple[int, ...]:
    """Indices that an argument such as ignore_index may mark, so that some entries are ignored and some are not.

    Of each index input that holds different indices, the two rarest ones; none for an argument of another name, unless
    forward compares it with indices, so that it `marks` some.
    """
    named = marks or IGNORED_NAMES.fullmatch(argument.name.lower()) is not None
    if not named or not isinstance(argument.value, int | float | None if marks else int | None):
        return ()
    found: list[int] = []
    for each in _index_inputs(arguments):
        indices, counts = np.unique(each, return_counts=True)
        if indices.size > 1:
            found += indices[np.argsort(counts, kind="stable")[:2]].tolist()
    return tuple(n for n in found if n != argument.value)


def unused_classes(argument: Argument, arguments: Sequence[Argument]) -> tuple[int, ...] | None:
    """The classes that an argument such as the blank of CTC may be instead: no index input, or list, contains them.

    All are below the largest index of each of these inputs, so that they are classes. None for an argument of another
    name, and without index inputs. If one contains the blank itself, there are none: the entries would become labels.
    """
    if not isinstance(argument.value, int) or BLANK_NAMES.fullmatch(argument.name.lower()) is None:
        return None
    lists = [a.value for a in arguments if isinstance(a.value, list | tuple) and all(type(n) is int for n in a.value)]
    inputs = [value for value in (*_index_inputs(arguments), *map(np.asarray, lists)) if value.size]
    if not inputs:
        return None
    used = set(np.concatenate([value.ravel() for value in inputs]).tolist())
    if argument.value in used:
        return ()
    classes = range(min(int(value.max()) for value in inputs))
    return tuple(n for n in classes if n != argument.value and n not in used)


def _index_inputs(arguments: Sequence[Argument]) -> list[NDArray[Any]]:
    """The values of inputs of whole numbers."""
    tensors = [each.value for each in arguments if each.is_tensor and each.value is not None]
    return [value for value in tensors if value.dtype.kind in "iu"]


def loops_until_satisfied(subject: Subject, other: Subject, value: float | None) -> bool:
    """Whether a number decides how many steps an iteration of forward takes, rather than what it computes.

    Args:
        subject: at the number given.
        other: at another number, which both accept.
        value: the number given. A whole number may count steps that are the function's own (a power, a scheme in time),
            and these change the outputs by more than one step of an iteration that has converged.
    """
    try:
        alike = subject.line_counts().loops_alike(other.line_counts())
    except UserCodeError:
        return False
    return not alike and (isinstance(value, float) or are_close(subject, other))


def are_close(subject: Subject, other: Subject) -> bool:
    """Whether all differentiable outputs are within `_CLOSE` of each other, by the largest entry of each."""
    if subject.output_numbers != other.output_numbers:
        return False
    for number in subject.output_numbers:
        one, two = subject.first_call.outputs[number], other.first_call.outputs[number]
        if one.shape != two.shape:
            return False
        if one.size and np.abs(one - two).max() > _CLOSE * np.abs(one).max():
            return False
    return True
