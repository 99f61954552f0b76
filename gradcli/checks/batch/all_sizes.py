"""The inputs of a Function with other sizes along all axes: longer, equal and single ones, tall matrices for wide."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.backends.tensor.call_records import CallResult
from gradcli.cases import Argument, with_defaults
from gradcli.checks.base import Situation
from gradcli.checks.batch.blocks import block_sizes
from gradcli.checks.batch.fixed import fixed_sizes_of, hints_of, numbers_among
from gradcli.checks.batch.resizing import Arguments, Resized, call_at, is_held, seems_wrong, tells_size
from gradcli.checks.other_points.bounds import bounds_of, is_drawn
from gradcli.checks.other_points.numbers import is_formula_constant
from gradcli.checks.reached import LARGEST, largest_number
from gradcli.checks.seeding import all_finite
from gradcli.errors import UserCodeError
from gradcli.inputs.drawing import in_order
from gradcli.inputs.hints.fixed_sizes import with_composed

_LONGER = (1, 2)
"""Added to every size: one number makes odd sizes even, the other leaves them odd, as rules with pairs of intervals and
kernels with a centre need them."""

_ALONE = 2
"""So many sizes are changed alone as well, as values that are kept for one axis and not for the other need it."""

_MOST_BLOCKS, _MOST_AXES, _MOST_ENTRIES = 2, 4, 20_000
"""Of the sizes of blocks that are tried, of the axes that each is tried on, and of the entries of all inputs then."""

_LARGEST_OFFSET = 16

_LONG, _MOST_TOGETHER, _SCATTER = 17, 2_000, 0.375
"""The length of an axis that most counts of steps or windows in a source fall short of; the most entries of all inputs
if all axes are that long; and the largest part by which entries become smaller."""


def calls_at_other_sizes(situation: Situation, *, few: bool = False) -> Iterator[Resized]:
    """The Function called with other sizes along all axes; equal sizes stay equal, and 1 stays 1.

    An axis that the outputs have as well may be longer, and then also have one entry.

    If only a `few` calls are affordable, there is one at most, with longer axes.

    Sizes that forward or backward refuses are skipped: nobody gets a wrong gradient there. Nothing is tried if an input
    holds indices, labels or a mask, or is a structured matrix, or if a size is also a number among the arguments.
    Sizes that are fixed by documentation or in the source stay. Where the source cuts an axis into blocks, an axis of
    several blocks is tried as well; where an argument may be an offset in an axis, one of more than twice the offset.
    Sizes that differ are tried equal, too, and once all axes are long.
    """
    subject = situation.subject
    tensors = [a for a in subject.arguments if a.is_tensor]
    if any(is_held(subject, a) or not _may_be_resized(a) for a in tensors):
        return
    fixed, hints = fixed_sizes_of(situation), hints_of(situation)
    shapes, numbers = {a.name: a.shape for a in tensors}, numbers_among(subject.arguments)
    others = [*_other_sizes(tensors, fixed)]
    offsets = () if few else _beyond_offsets(subject, tensors, fixed)
    chosen = [*(others[-1:] if few else others), *_beyond_blocks(situation, tensors, fixed), *offsets]
    fresh = [] if few else [*_all_equal(tensors, fixed), *_long(subject, tensors, fixed)]
    single = [] if few else _single(subject, tensors, fixed)
    longer = set[int]()
    for number, each in enumerate([*chosen, *fresh, *single]):
        sizes = with_composed(hints, shapes, each, numbers)
        if not sizes or any(tells_size(a, size) for a in subject.arguments for size in sizes):
            continue
        if 1 in sizes.values() and not longer >= sizes.keys():
            continue
        arguments = _resized(subject, sizes, scattered=number >= len(chosen))
        call = call_at(situation, arguments, partial(_accepts, subject, sizes=sizes))
        if call is not None and call.error is None:
            longer.update(old for old, new in sizes.items() if new > old)
            yield call


def seems_wrong_there(situation: Situation, call: Resized) -> bool:
    """Whether a central difference quotient contradicts the gradients of a call."""
    if call.result.beside is None:
        return True
    arguments = [
        replace(a, value=a.value - call.steps[position]) if position in call.steps else a
        for position, a in enumerate(call.arguments)
    ]
    try:
        found = situation.subject.call_at(arguments)
    except UserCodeError:
        return True
    behind = [found.outputs[number] for number in call.result.numbers]
    alike = all(one.shape == two.shape for one, two in zip(behind, call.result.beside, strict=True))
    return seems_wrong(call, behind) if alike else True


def _may_be_resized(argument: Argument) -> bool:
    return argument.value.dtype.kind in "fc" and is_drawn(argument) and bounds_of(argument) is not None


def shapes_of(arguments: Sequence[Argument]) -> str:
    """The shapes of the tensors among some arguments, as in `x of shape [4, 3]`."""
    return " and ".join(f"{a.name} of shape {list(a.shape)}" for a in arguments if a.is_tensor and a.shape)


def _accepts(subject: Subject, result: CallResult, *, sizes: Mapping[int, int]) -> bool:
    """Whether the outputs are finite; an axis of one entry may be broadcast, unless the outputs have it then, too."""
    if (result.numbers, result.active) != (subject.output_numbers, subject.active) or not all_finite(result.outputs):
        return False
    given, found = subject.first_call.outputs, result.outputs
    followed = (found[n].shape == tuple(sizes.get(size, size) for size in given[n].shape) for n in result.numbers)
    return 1 not in sizes.values() or all(followed)


def _other_sizes(tensors: list[Argument], fixed: frozenset[int]) -> Iterator[Mapping[int, int]]:
    """For each set of other sizes: the new size for every old one that is not `fixed`."""
    matrices = [a.shape[-2:] for a in tensors if a.requires_grad and len(a.shape) > 1]
    unequal = next((s for s in matrices if s[0] != s[1] and min(s) > 1 and fixed.isdisjoint(s)), None)
    if unequal is not None:
        rows, columns = unequal
        yield {rows: columns, columns: rows}
    every = {size for a in tensors for size in a.shape if size > 1} - fixed
    for size in sorted(every)[:_ALONE] if len(every) > 1 else ():
        yield {size: size + _LONGER[-1]}
    for more in _LONGER if every else ():
        yield {size: size + more for size in every}


def _beyond_blocks(situation: Situation, tensors: list[Argument], fixed: frozenset[int]) -> Iterator[Mapping[int, int]]:
    """For each size of an axis: one that takes several blocks, where the source cuts an axis into longer ones."""
    sizes = sorted({size for a in tensors for size in a.shape if size > 1} - fixed)
    blocks = block_sizes(situation.subject.info) if sizes else ()
    for block in blocks[:_MOST_BLOCKS]:
        longer = 2 * block + 1 if block <= LARGEST // 2 else block + 1
        for size in [size for size in sizes if size <= block][:_MOST_AXES]:
            for new in (longer, 2 * block) if size == block else (longer,):  # forward may refuse a part of a block
                if sum(a.value.size * (new / size) ** a.shape.count(size) for a in tensors) <= _MOST_ENTRIES:
                    yield {size: new}


def _all_equal(tensors: list[Argument], fixed: frozenset[int]) -> Iterator[Mapping[int, int]]:
    """All sizes that are not fixed become equal, to a fixed one where there is one.

    Backward may look for an axis by its size, as in `shape.index(n)`, and find another one.
    """
    every = {size for a in tensors for size in a.shape if size > 1}
    common = min(every & fixed, default=max(every, default=0))
    if changed := every - fixed - {common}:
        yield dict.fromkeys(changed, common)


def _long(subject: Subject, tensors: list[Argument], fixed: frozenset[int]) -> Iterator[Mapping[int, int]]:
    """Long axes, all together or, where that takes too many entries, each alone.

    They are longer than every number in backward's source, which may count the steps or windows that an axis needs.
    """
    sizes = sorted({size for a in tensors for size in a.shape if size > 1} - fixed)
    longest = max(_LONG, 1 + largest_number(subject.info)) if sizes else 0
    every = {size: longest + place for place, size in enumerate(sizes) if size < longest}
    alone = [{size: longest} for size in every][-_ALONE:]
    for chosen, most in ((every, _MOST_TOGETHER), *((each, _MOST_ENTRIES) for each in alone)):
        if chosen and sum(math.prod(chosen.get(n, n) for n in a.shape) for a in tensors) <= most:
            yield chosen
            if chosen is every:
                return


def _single(subject: Subject, tensors: list[Argument], fixed: frozenset[int]) -> Iterator[Mapping[int, int]]:
    """Each axis that outputs have as well, but for the leading ones, with one entry: `squeeze` drops such an axis."""
    inner = {size for a in tensors for size in a.shape[1:] if size > 1} - fixed
    kept = {size for number in subject.output_numbers for size in subject.first_call.outputs[number].shape}
    for size in sorted(inner & kept)[:_ALONE]:
        yield {size: 1}


def _beyond_offsets(subject: Subject, tensors: list[Argument], fixed: frozenset[int]) -> Iterator[Mapping[int, int]]:
    """For each size of an axis: one above twice a whole number that may be an offset in it, such as a delay or a lag.

    An entry that depends on one that depends on a third, each an offset further, needs an axis that long.
    """
    offsets = {a.value for a in with_defaults(subject.arguments, subject.info) if _may_be_an_offset(a)}
    sizes = sorted({size for a in tensors for size in a.shape if size > 1} - fixed - offsets)
    for offset in sorted(offsets)[:_MOST_BLOCKS]:
        for size in [size for size in sizes if size + max(_LONGER) < 2 * offset + 1][:_MOST_AXES]:
            yield {size: 2 * offset + 1}


def _may_be_an_offset(argument: Argument) -> bool:
    value = argument.value
    return type(value) is int and 1 < value <= _LARGEST_OFFSET and is_formula_constant(argument)


def _resized(subject: Subject, sizes: Mapping[int, int], *, scattered: bool) -> Arguments:
    return tuple(
        replace(
            a, value=in_order(_scattered(_with(a.value, sizes), a) if scattered else _with(a.value, sizes), a.domain)
        )
        if a.is_tensor
        else a
        for a in subject.arguments
    )


def _scattered(value: NDArray[Any], drawn: Argument) -> NDArray[Any]:
    """The entries of a resized input, each made smaller by its own factor where that is in the input's domain.

    A matrix with many rows that are means of a few is singular, and has equal singular values. Arrays of one shape get
    the same factors, so that limits that are in order stay so.
    """
    factors = 1 - np.random.default_rng(value.shape).uniform(0.0, _SCATTER, value.shape)
    smaller, bounds = np.asarray(value * factors, value.dtype), bounds_of(drawn)
    return smaller if bounds is None else np.where(bounds.holds(smaller), smaller, value)


def _with(value: NDArray[Any], sizes: Mapping[int, int]) -> NDArray[Any]:
    """An array of other sizes: transposed if it has two sizes that are exchanged, else cut or mixed axis by axis."""
    for first in range(value.ndim - 1, 0, -1):
        one = value.shape[first]
        for second in range(first - 1, -1, -1):
            other = value.shape[second]
            if one != other and (sizes.get(one), sizes.get(other)) == (other, one):
                return np.ascontiguousarray(np.swapaxes(value, first, second))
    for axis, size in enumerate(value.shape):
        value = _mixed(value, axis, sizes.get(size, size))
    return value


def _mixed(value: NDArray[Any], axis: int, size: int) -> NDArray[Any]:
    """The array with another size along an axis: new entries are means of two old ones with unequal weights.

    These are the same two and the same weights in every array, so that limits that are in order stay so.
    """
    given = value.shape[axis]
    if size <= given:
        return np.take(value, np.arange(size), axis)
    generator = np.random.default_rng([given, size])
    one, other = (np.concatenate([np.arange(given), generator.integers(0, given, size - given)]) for _ in range(2))
    other = np.concatenate(
        [np.arange(given), (one[given:] + generator.integers(1, max(given, 2), size - given)) % given]
    )
    weight = generator.uniform(0.2, 0.8, size).reshape(-1, *[1] * (value.ndim - 1 - axis))
    return np.asarray(weight * np.take(value, one, axis) + (1 - weight) * np.take(value, other, axis), value.dtype)
