"""Other inputs at which a correction of backward has to be right as well: other values, numbers and sizes."""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument, with_defaults
from gradcli.diagnosis.facts import Facts
from gradcli.errors import UserCodeError
from gradcli.inputs.hints.reading import read_hints
from gradcli.targets import TargetInfo

_BEYOND = (3.0, -3.0)
"""Factors of the inputs: to 3 and 6, where clamps and piecewise functions often change, and to the other signs. A
gradient that is wrong on one side of a threshold has corrections that only hold on that side."""
_SMALLER = 0.75
"""Factor of float arguments: within what half to twice a number would be, and no probability or decay leaves [0, 1]."""
_MOST_WRITTEN = 2
"""Numbers of backward on the other side of which a float argument is tried."""
_PLACED = ("dim", "axis", "axes", "dims")
"""Names of whole numbers that choose an axis: at another one an edit may be meant for this one."""
_TINY, _AMONG = 0.01, (2.0, 0.5, 0.125)
"""A number below the first part of an input's median entry is raised to the others: to where outputs may lie."""
_LONGER = 2
"""Added to the smallest size, twice that to the next and so on: odd sizes, such as those of kernels, stay odd, and
`n - 1` is not another size any more. Added to each size where forward insists on how they differ."""
_AT_OTHER_SIZES, _AT_REORDERED_SIZES, _AT_OTHER_RANKS = "other sizes", "sizes in another order", "other ranks"
ELEMENTWISE = (None, "normal", "uniform", "positive", "unit", "open-interval", "literal", "npz")
"""Domains that longer inputs made of the same entries belong to, too."""
_WITH_ZERO = (None, "normal", "uniform", "literal", "npz")
"""Domains that zeros may belong to."""
_CONSTANTS = 4
"""How many constants of the source the inputs are set to."""
_FURTHER = ("*", "...")
"""What stands for any number of axes in a documented shape."""
_MOST_BROADCAST = 2
"""Inputs of one shape of which each is broadcast alone."""
FEWEST = 3
"""The least length of an axis that is added."""
_Resizing = Callable[[NDArray[Any]], tuple[NDArray[Any], tuple[int, ...]]]
"""From the value of a tensor to the same value, with axes of one entry added, and the shape it is to have."""
_MOST = 10_000
"""Entries of inputs that are made longer; larger ones have sizes that no small number in backward is equal to."""


def at_other_values(facts: Facts) -> list[Facts]:
    """The facts near by, with the entries exchanged, and with forward's defaults; where forward accepts them.

    A single number is also moved further, where another branch may be taken.
    """
    made = [facts.elsewhere, facts.rearranged(0), facts.rearranged(2), facts.with_defaults()]
    if all(block.entries == 1 for block in facts.subject.domain.blocks):
        made.append(facts.at([0.3 * value for value in _values(facts)]))
    return [each for each in made if each is not None]


def far_away(facts: Facts) -> Iterator[tuple[Facts, bool]]:
    """The facts at inputs of three times the size, with the same signs and with the opposite ones.

    Then every second input alone is larger: the quotient of two inputs is the same where both are. The flag says
    whether the inputs might as well have been these: gradcli drew them from normal numbers, or from positive ones where
    the signs stay. Others may lie outside of what forward is meant for.
    """
    own = [facts.subject.arguments[position] for position in facts.subject.active]
    alone = [[_BEYOND[0] ** 2 if number % 2 == which else 1.0 for number in range(len(own))] for which in range(2)]
    for factors in (*([factor] * len(own) for factor in _BEYOND), *(alone if len(own) > 1 else ())):
        there = facts.at([np.asarray(f * a.value, a.value.dtype) for f, a in zip(factors, own, strict=True)])
        meant = ("normal",) if min(factors) < 0 else ("normal", "positive")
        if there is not None:
            yield there.bound_anew(), all(a.domain in meant and not a.fixed for a in own)


def with_zeros(facts: Facts) -> Iterator[Facts]:
    """The facts where every second entry of the inputs is zero, then where all are, if zeros may belong to them.

    Random inputs are never zero, and a quotient such as `y / x` is right wherever x is not.
    """
    own = [facts.subject.arguments[position] for position in facts.subject.active]
    if any(a.domain not in _WITH_ZERO for a in own):
        return
    for step in (2, 1):
        values = []
        for argument in own:
            value = np.array(argument.value)
            value.reshape(-1)[::step] = 0
            values.append(value)
        there = facts.at(values)
        if there is not None:
            yield there.bound_anew()


def at_constants(facts: Facts, constants: Sequence[float]) -> Iterator[Facts]:
    """The facts where every second entry of the inputs is a constant, for each of some and for its negative.

    A divisor such as `x + 3` is zero there.
    """
    own = [facts.subject.arguments[position] for position in facts.subject.active]
    if any(a.domain not in _WITH_ZERO for a in own):
        return
    for constant in dict.fromkeys(sign * each for each in constants[:_CONSTANTS] for sign in (1, -1)):
        values = []
        for argument in own:
            value = np.array(argument.value)
            value.reshape(-1)[::2] = constant
            values.append(value)
        there = facts.at(values)
        if there is not None:
            yield there.bound_anew()


def with_zero_numbers(facts: Facts) -> Iterator[Facts]:
    """The facts where one of the float arguments is zero, for each; where forward accepts that."""
    given = with_defaults(facts.subject.arguments, facts.subject.info)
    for number, argument in enumerate(given):
        if _is_real(argument) and argument.value:
            there = facts.at(_values(facts), [*given[:number], replace(argument, value=0.0), *given[number + 1 :]])
            if there is not None:
                yield there.bound_anew()


def at_other_numbers(facts: Facts, written: Collection[float] = ()) -> Iterator[Facts]:
    """The facts with other values of arguments that are numbers; none without any, or where forward rejects these.

    Real ones change by different factors. With one factor, `a * b` and `a ** 2` would change alike.
    Numbers much smaller than the inputs then lie among these, except tolerances: `y > 0` and `y > floor` are the same
    where no `y` lies between. Then each number alone is on the other side of those `written` in backward, and each
    whole one is larger or smaller by one.
    """
    given = with_defaults(facts.subject.arguments, facts.subject.info)
    sizes = [np.median(np.abs(a.value)) for a in given if a.is_tensor and a.requires_grad and a.value.size]
    median = float(min(sizes, default=0.0))
    raised = {a.name for a in given if _is_real(a) and "tol" not in a.name and 0 < abs(a.value) < _TINY * median}
    made = [
        [
            replace(a, value=math.copysign(part * median, a.value))
            if part is not None and a.name in raised
            else replace(a, value=_SMALLER ** (1 / (1 + number)) * a.value)
            if _is_real(a)
            else a
            for number, a in enumerate(given)
        ]
        for part in ((None, *_AMONG) if raised else (None,) if any(map(_is_real, given)) else ())
    ]
    for number, each in enumerate(given):
        values = () if each.name in raised else _beyond(each, written)
        made += [[*given[:number], replace(each, value=value), *given[number + 1 :]] for value in values]
    for arguments in made:
        there = facts.at(_values(facts), arguments)
        if there is not None:
            yield there.bound_anew()


def _is_real(argument: Argument) -> bool:
    return not argument.is_tensor and isinstance(argument.value, float)


def _beyond(argument: Argument, written: Collection[float]) -> list[float]:
    """Values of a number beyond the nearest ones written, of the same sign; of a whole one, one more and one less."""
    value = argument.value
    if argument.is_tensor or type(value) not in (int, float) or not value or argument.name.lower() in _PLACED:
        return []
    if isinstance(value, int):
        return [n for n in (value + 1, value - 1) if n * value > 0]
    own = abs(value)
    nearest = sorted({abs(n) for n in written if n}, key=lambda size: abs(size - own))[:_MOST_WRITTEN]
    return [math.copysign(size / _SMALLER**2 if size >= own else size * _SMALLER, value) for size in nearest]


def at_other_sizes(facts: Facts) -> Facts | None:
    """The facts at inputs with longer axes, made of the same entries; equal sizes stay equal, and 1 stays 1.

    None for inputs whose entries depend on sizes or on one another, and where forward refuses these. Indices that
    gradcli drew are repeated as well, so that some occur more than once.
    """
    sizes = _sizes(facts)
    uneven = {n: n + _LONGER * (rank + 1) for rank, n in enumerate(sizes)}
    made = (uneven, {n: n + _LONGER for n in sizes})[: len(sizes)]
    return next(_kept(_AT_OTHER_SIZES, facts, [partial(_shape_with, sizes=each) for each in made]), None)


def at_reordered_sizes(facts: Facts) -> Iterator[Facts]:
    """The facts where the shortest axes are the longest, and where all axes of more than one entry are equally long.

    Sizes that gradcli chose all differ and are in one order, so a comparison of two of them has one result there.
    """
    sizes = _sizes(facts)
    turned = {n: m + _LONGER for n, m in zip(sizes, reversed(sizes), strict=True)}
    made = (turned, dict.fromkeys(sizes, max(sizes, default=0) + _LONGER)) if len(sizes) > 1 else ()
    yield from _kept(_AT_REORDERED_SIZES, facts, [partial(_shape_with, sizes=each) for each in made])


def at_other_ranks(facts: Facts) -> Iterator[Facts]:
    """The facts where the inputs with the most axes have one more, the last one or the first one.

    Axis 1 of a matrix is its last one as well, and an edit along the one may be meant along the other. Then one of
    several inputs of one shape lacks the first axis, so that it is broadcast: `a.numel()` is not `(a - b).numel()` any
    more. None where documentation gives a shape: the number of axes is then meant.
    """
    if gives_ranks(facts.subject.info, [a.name for a in facts.subject.arguments]):
        return
    sizes = _sizes(facts)
    length = next(n for n in itertools.count(FEWEST) if n not in sizes)
    rank = max((a.value.ndim for a in facts.subject.arguments if a.is_tensor), default=0)
    last = partial(_shape_with_axis, rank=rank, length=length, at_end=True)
    first = partial(_shape_with_axis, rank=rank, length=length, at_end=False)
    shapes = [a.value.shape for a in facts.subject.arguments if a.is_tensor and a.requires_grad]
    full = [a.value for a in facts.subject.arguments if a.is_tensor and a.value.ndim and a.value.size]
    alike = (value for value in full if shapes.count(value.shape) > 1)
    broadcast = [partial(_shape_without_axis, of=value) for value in itertools.islice(alike, _MOST_BROADCAST)]
    yield from _kept(_AT_OTHER_RANKS, facts, [last, first, *broadcast] if rank else [])


def gives_ranks(info: TargetInfo, names: Sequence[str]) -> bool:
    """Whether documentation gives an argument a shape, without any further axes before it such as `*` or `...`."""
    documented = read_hints(info, names).documented
    return any(shape and not any(str(axis).startswith(_FURTHER) for axis in shape) for shape in documented.values())


def _kept(name: str, facts: Facts, made: Sequence[_Resizing]) -> Iterator[Facts]:
    """The facts at inputs of new shapes, one for each function that gives these, where forward accepts them."""
    if name not in facts.searches:
        facts.searches[name] = {}
    known: dict[int, Facts | None] = facts.searches[name]
    for number, reshaped in enumerate(made):
        if number not in known:
            known[number] = _resized(facts, reshaped)
        there = known[number]
        if there is not None:
            yield there


def _sizes(facts: Facts) -> list[int]:
    return sorted({n for a in facts.subject.arguments if a.is_tensor for n in a.value.shape if n > 1})


def _shape_with(value: NDArray[Any], sizes: Mapping[int, int]) -> tuple[NDArray[Any], tuple[int, ...]]:
    return value, tuple(sizes.get(n, n) for n in value.shape)


def _shape_with_axis(
    value: NDArray[Any], *, rank: int, length: int, at_end: bool
) -> tuple[NDArray[Any], tuple[int, ...]]:
    if value.ndim < rank:
        return value, value.shape
    return (value[..., None], (*value.shape, length)) if at_end else (value[None], (length, *value.shape))


def _shape_without_axis(value: NDArray[Any], *, of: NDArray[Any]) -> tuple[NDArray[Any], tuple[int, ...]]:
    return (value[0, ...], value.shape[1:]) if value is of else (value, value.shape)


def _resized(facts: Facts, reshaped: _Resizing) -> Facts | None:
    subject = facts.subject
    tensors = [a for a in subject.arguments if a.is_tensor]
    if subject.domain.size > _MOST or any(not _may_grow(a) for a in tensors):
        return None
    generator = np.random.default_rng(47)
    arguments = tuple(
        replace(a, value=_longer(*reshaped(a.value), generator)) if a.is_tensor else a for a in subject.arguments
    )
    try:
        there = subject.rebind(arguments)
    except UserCodeError:  # inputs that gradcli chose, which forward need not accept
        return None
    same = there.active == subject.active and there.output_numbers == subject.output_numbers
    return facts.over(there).bound_anew() if same else None


def _may_grow(argument: Argument) -> bool:
    if argument.value.dtype.kind in "iu":
        return argument.domain == "indices" and not argument.fixed
    return argument.sparsity is None and argument.domain in ELEMENTWISE


def _longer(value: NDArray[Any], shape: Sequence[int], generator: np.random.Generator) -> NDArray[Any]:
    """The array with each axis repeated to its new size and permuted, every number between two of the old ones."""
    one, other = (_spread(value, shape, generator) for _ in range(2))
    if value.dtype.kind in "biu":
        return one
    return np.asarray(one + generator.random(shape) * (other - one), dtype=value.dtype)


def _spread(value: NDArray[Any], shape: Sequence[int], generator: np.random.Generator) -> NDArray[Any]:
    for axis, n in enumerate(shape):
        value = np.take(value, generator.permutation(np.arange(n) % value.shape[axis]), axis)
    return value


def _values(facts: Facts) -> list[NDArray[Any]]:
    return [facts.subject.arguments[position].value for position in facts.subject.active]
