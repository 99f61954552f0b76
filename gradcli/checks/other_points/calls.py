"""Calls that differ from a given one in whatever forward might keep between calls: signs, order, sizes."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.backends.tensor.call_records import OtherCalls
from gradcli.cases import Argument, with_defaults
from gradcli.checks.other_points.numbers import other_axes
from gradcli.checks.other_points.tuples import are_numbers, tuples_to_try
from gradcli.inputs.domains import interval_of

Arguments = tuple[Argument, ...]
Made = Callable[[], Arguments]
"""Makes arguments when they are asked for: nearly always forward accepts the first."""
Sizes = frozenset[int]
_FACTOR, _SHIFT = 1 + 2.0**-4, 2.0**-6
_ELSEWHERE = 3.0
"""Moves a magnitude to another power of two."""
_SMALLER, _LARGER = 2.0**-6, 32.0
"""Move entries, their norm and their peak below limits such as 1, which random numbers exceed, and above such as 30."""
_TIMES, _SMALL_ENOUGH = 16, 1_000
"""A call of at most so many entries is repeated so often: what is kept in a few slots in turn is overwritten."""
_FEW, _LEAST_ROWS = 1_000, 3
"""A call of few entries has about so many of the largest input, in so many rows at least: it costs next to nothing."""


def disturbing_calls(subject: Subject, kept: Sizes = frozenset()) -> Iterator[OtherCalls]:
    """Calls to make between forward and backward, in three sets; only the first where another size is a compilation.

    They differ from the given call, and the sets from each other, in different respects, so that a value that forward
    keeps in one place for all calls cannot be the same in all of them by accident:

    1. the given entries in another order alone; then signs, order of entries and indices, several times in a row;
    2. all entries positive and of another magnitude, numbers and flags, also those that were left at their defaults;
    3. all entries negative and small, and other sizes.

    Later calls of a set change less. The last one changes every entry by a few hundredths, which almost any forward
    accepts.

    Args:
        subject: the Function at the given call.
        kept: sizes that do not grow, because forward refers to arrays that have them.
    """
    near = tuple(_with_entries(subject.arguments, _moved))
    if subject.compiles_shapes:
        yield OtherCalls(bold=_reflected(near), near=near)
        return
    costly = subject.derivative_map(1).is_costly
    before = () if costly else _permuted(subject.arguments)
    times = 1 if costly or subject.domain.size > _SMALL_ENOUGH else _TIMES
    yield OtherCalls(before=before, bold=_reflected(near), near=near, times=times)
    yield OtherCalls(bold=_rescaled(subject, near), near=near)
    yield OtherCalls(bold=_resized(subject, near, kept), near=near)


def few_disturbing_calls(subject: Subject, kept: Sizes = frozenset()) -> list[OtherCalls]:
    """Two sets in place of three, for inputs of many entries: a call of the given size, and one of few entries.

    1. large entries of the opposite signs, in another order, numbers and flags;
    2. all entries positive and small, and few of them, with other sizes; of as many where forward may need them.

    What forward keeps of the signs, order, magnitude or number of many entries is another thing after one set or both.
    """
    near = tuple(_with_entries(subject.arguments, _moved))
    return [OtherCalls(bold=_negative(subject, near), near=near), OtherCalls(bold=_few(subject, near, kept), near=near)]


def _negative(subject: Subject, near: Arguments) -> Iterator[Arguments]:
    large, negative, positive = (
        cache(partial(_reordered, near, change))
        for change in (lambda v: -_LARGER * v, lambda v: -_ELSEWHERE * np.abs(v), lambda v: _ELSEWHERE * np.abs(v))
    )
    yield from _with_other_numbers(subject, (large, negative, positive), (negative, positive))
    yield from _reflected(near)


def _reordered(arguments: Arguments, change: Callable[[NDArray[Any]], NDArray[Any]], step: int = -1) -> Arguments:
    """The arguments with their entries changed, in another order."""
    return tuple(_with_order(_with_entries(arguments, change), step))


def _few(subject: Subject, near: Arguments, kept: Sizes) -> Iterator[Arguments]:
    size = _size_to_cut(subject)
    if size is not None and size not in kept:
        count = max(_LEAST_ROWS, _FEW * size // max(a.value.size for a in near if a.is_tensor))
        few = [replace(a, value=a.value[:count]) if a.is_tensor and a.shape[:1] == (size,) else a for a in near]
        yield from _of_other_sizes(subject, tuple(_with_entries(few, _small)), kept)
    yield from _of_other_sizes(subject, tuple(_with_entries(near, _small)), kept)
    yield from _of_other_sizes(subject, near, kept)


def _size_to_cut(subject: Subject) -> int | None:
    """The length of the leading axis, if all outputs have it too and fewer entries are safe to try; else None.

    Code that sums over all entries, kernels, and code that is given a number or an index may read past the end of
    fewer; the parameters of a module have sizes of their own.
    """
    tensors = [a for a in subject.arguments if a.is_tensor]
    size = next((a.shape[0] for a in tensors if a.requires_grad and a.shape), None)
    inner = {length for a in tensors for length in a.shape[1:]}
    safe = all(
        a.requires_grad and a.sparsity is None if a.is_tensor else not _counts(a.value) for a in subject.arguments
    )
    outputs = [subject.first_call.outputs[number] for number in subject.output_numbers]
    if size in inner or not safe or any(output.shape[:1] != (size,) for output in outputs):
        return None
    return None if subject.info.held or subject.derivative_map(1).is_costly else size


def _counts(value: object) -> bool:
    """Whether a value may be or hold a size or an index."""
    return not (value is None or isinstance(value, bool | float | str))


def _reflected(near: Arguments) -> Iterator[Arguments]:
    backwards = tuple(_with_order(near))
    yield tuple(_with_entries(backwards, np.negative))
    yield backwards


def _permuted(arguments: Sequence[Argument]) -> tuple[tuple[Arguments, ...], ...]:
    """The given entries in another order along the last axis, and in another order of all.

    A result that is kept by the shape and a sum, a norm, a maximum or the first entry is another call's then. The
    ends stay in place; where forward refuses that order, as for a matrix that is not positive definite, all are
    reversed.
    """
    rows = tuple(_with_entries(arguments, _rows_reversed_inside))
    inside = tuple(_with_entries(arguments, lambda v: _rows_reversed_inside(v.reshape(1, -1)).reshape(v.shape)))
    whole = tuple(_with_entries(arguments, lambda v: v.reshape(-1)[::-1].reshape(v.shape)))
    return (rows,), (inside, whole)


def _rows_reversed_inside(value: NDArray[Any]) -> NDArray[Any]:
    """Every row backwards between its first and last entry, or as a whole where there is nothing between."""
    if not value.ndim:
        return value
    ends = 1 if value.shape[-1] > 3 else 0
    found = value.copy()
    inner = slice(ends, value.shape[-1] - ends)
    found[..., inner] = value[..., inner][..., ::-1]
    return found


def _rescaled(subject: Subject, near: Arguments) -> Iterator[Arguments]:
    bold = cache(lambda: _reordered(near, lambda v: _ELSEWHERE * np.abs(v), 1))
    large = cache(lambda: tuple(_with_entries(bold(), lambda v: _LARGER / _ELSEWHERE * v)))
    yield from _with_other_numbers(subject, (large, bold, lambda: near), (bold, lambda: near))
    yield _reordered(near, lambda v: np.abs(v) / _ELSEWHERE, 1)


def _resized(subject: Subject, near: Arguments, kept: Sizes) -> Iterator[Arguments]:
    yield from _of_other_sizes(subject, tuple(_with_entries(near, lambda v: -_small(v))), kept)
    yield from _of_other_sizes(subject, near, kept)


def _of_other_sizes(subject: Subject, arguments: Arguments, kept: Sizes) -> Iterator[Arguments]:
    """Calls with longer axes; those of lengths that are `kept` become shorter, where that is safe, else they stay.

    An array of a kept length may be a constant, past whose end compiled code would read for a longer axis, or what
    forward stored for the last size, which shows at another one. Kernels, and code that is given a number or an index,
    may go past the end of a shorter axis.
    """
    every = frozenset(size for a in arguments if a.is_tensor for size in np.shape(a.value)) - {0, 1}
    is_safe = all(
        a.value.dtype.kind not in "iu" and a.sparsity is None if a.is_tensor else not _counts(a.value)
        for a in arguments
    )
    if every & kept and is_safe and not subject.derivative_map(1).is_costly:
        for longer in dict.fromkeys((every - kept, frozenset[int]())):
            yield tuple(_resized_along(a, longer, every & kept) for a in arguments)
    yield from grown_calls(arguments, kept)


def _with_entries(arguments: Iterable[Argument], change: Callable[[NDArray[Any]], NDArray[Any]]) -> Iterator[Argument]:
    """The arguments with the values of all differentiable tensors changed, but for entries that would leave the domain.

    An iteration may never end outside the domain that a spec declares for it.
    """
    for a in arguments:
        changes = a.is_tensor and a.requires_grad and np.size(a.value)
        yield replace(a, value=_within(a, np.asarray(change(a.value), dtype=a.value.dtype))) if changes else a


def _within(argument: Argument, changed: NDArray[Any]) -> NDArray[Any]:
    """The changed values where they lie in the argument's domain, its own elsewhere."""
    if argument.domain is None or changed.dtype.kind != "f":
        return changed
    low, high = interval_of(argument.domain)
    return np.where((low < changed) & (changed < high), changed, argument.value)


def _moved(value: NDArray[Any]) -> NDArray[Any]:
    return value * _FACTOR + _SHIFT


def _small(value: NDArray[Any]) -> NDArray[Any]:
    """Small positive entries, so small that their norm is small too."""
    small: NDArray[Any] = np.abs(value) * (_SMALLER / np.sqrt(np.size(value)))
    return small


def _with_order(arguments: Iterable[Argument], step: int = -1) -> Iterator[Argument]:
    """The entries of every tensor in another order: backwards, or moved on by one; indices mirrored, masks inverted.

    A matrix read backwards is still symmetric or positive definite, and mirrored indices are in their old range.
    """
    for a in arguments:
        if not a.is_tensor or not np.size(a.value):
            yield a
            continue
        flat = a.value.reshape(-1)
        if a.value.dtype.kind in "iu" and flat.min() >= 0:
            flat = np.asarray(flat.max() - flat, dtype=flat.dtype)
        elif a.value.dtype.kind == "b":
            flat = ~flat
        ordered = flat[::-1] if step < 0 or a.domain == "permutation" else np.roll(flat, step)
        yield replace(a, value=np.ascontiguousarray(ordered).reshape(a.value.shape))


def _with_other_numbers(subject: Subject, boldest: Sequence[Made], further: Sequence[Made]) -> Iterator[Arguments]:
    """These arguments with other numbers and flags, also for those left out that have a default, as far as accepted.

    All of them change in the `boldest`, then all but one in the `further` ones, one alone, and none.
    """
    given = with_defaults(boldest[0](), subject.info)
    every = frozenset(a.name for a in given if _other_value(a, given) is not None)
    ordered = [a.name for a in given if a.name in every]
    some = [*(every - {name} for name in ordered), *(frozenset((name,)) for name in ordered), frozenset[str]()]
    for names, entries in [*product([every], boldest), *product(dict.fromkeys(some), further)]:
        yield _with_numbers(with_defaults(entries(), subject.info), names) if names else entries()


def _with_numbers(arguments: Sequence[Argument], names: Set[str]) -> Arguments:
    return tuple(replace(a, value=_other_value(a, arguments)) if a.name in names else a for a in arguments)


def _other_value(argument: Argument, arguments: Sequence[Argument]) -> Any:
    """Another number or flag: one more, half as much again, the opposite, another axis; None for anything else."""
    value = argument.value
    if are_numbers(argument):
        return next(iter(tuples_to_try(argument, arguments)), None)
    if argument.is_tensor or not isinstance(value, bool | int | float):
        return None
    if isinstance(value, bool):
        return not value
    if axes := other_axes(argument, arguments):
        return axes[0]
    return value + 1 if isinstance(value, int) else value * 1.5 + 0.25


def grown_calls(arguments: Sequence[Argument], kept: Sizes = frozenset()) -> Iterator[Arguments]:
    """The arguments with one more entry along every axis, or along axes as long as the first or the last of an input.

    Axes of the same length grow together, since they may have to stay equal. Those of length 1 stay, and
    those of lengths that are `kept`.
    """
    shape = next((np.shape(a.value) for a in arguments if a.is_tensor and a.requires_grad), ())
    if not shape or any(a.sparsity is not None for a in arguments):
        return
    every = frozenset(size for a in arguments if a.is_tensor for size in np.shape(a.value)) - {1} - kept
    for sizes in (every, frozenset(shape[:1]) - kept, frozenset(shape[-1:]) - kept):
        if sizes:
            yield tuple(_resized_along(a, sizes) for a in arguments)


def _resized_along(argument: Argument, longer: Sizes, shorter: Sizes = frozenset()) -> Argument:
    """The argument with one entry more, or less, along the axes of these lengths."""
    if not argument.is_tensor or 0 in np.shape(argument.value):
        return argument
    value: NDArray[Any] = argument.value
    for axis, size in enumerate(argument.value.shape):
        if size in longer:
            value = np.concatenate([value, value.take([-1], axis)], axis)
        elif size in shorter:
            value = value.take(range(size - 1), axis)
    return replace(argument, value=value)
