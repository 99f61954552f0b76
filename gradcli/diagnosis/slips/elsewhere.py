"""Other inputs at which a correction of backward has to be right as well: other values, numbers and sizes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument, with_defaults
from gradcli.diagnosis.facts import Facts
from gradcli.errors import UserCodeError

_BEYOND = (3.0, -3.0)
"""Factors of the inputs: to 3 and 6, where clamps and piecewise functions often change, and to the other signs. A
gradient that is wrong on one side of a threshold has corrections that only hold on that side."""
_SMALLER = 0.75
"""Factor of float arguments: within what half to twice a number would be, and no probability or decay leaves [0, 1]."""
_LONGER = 2
"""Added to the smallest size, twice that to the next and so on: odd sizes, such as those of kernels, stay odd, and
`n - 1` is not another size any more. Added to each size where forward insists on how they differ."""
_AT_OTHER_SIZES = "inputs of other sizes"
_ELEMENTWISE = (None, "normal", "uniform", "positive", "unit", "open-interval", "literal", "npz")
"""Domains that longer inputs made of the same entries belong to, too."""
_WITH_ZERO = (None, "normal", "uniform", "literal", "npz")
"""Domains that zeros may belong to."""
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

    The flag says whether the inputs might as well have been these: gradcli drew them from normal numbers. Others may
    lie outside of what forward is meant for.
    """
    own = [facts.subject.arguments[position] for position in facts.subject.active]
    is_drawn = all(a.domain == "normal" and not a.fixed for a in own)
    for factor in _BEYOND:
        there = facts.at([np.asarray(factor * a.value, a.value.dtype) for a in own])
        if there is not None:
            yield there.bound_anew(), is_drawn


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


def at_other_numbers(facts: Facts) -> Facts | None:
    """The facts with other values of float arguments; None without any, or if forward rejects these."""
    given = with_defaults(facts.subject.arguments, facts.subject.info)
    arguments = [
        replace(a, value=_SMALLER * a.value) if not a.is_tensor and isinstance(a.value, float) else a for a in given
    ]
    if all(a is b for a, b in zip(arguments, given, strict=True)):
        return None
    there = facts.at(_values(facts), arguments)
    return None if there is None else there.bound_anew()


def at_other_sizes(facts: Facts) -> Facts | None:
    """The facts at inputs with longer axes, made of the same entries; equal sizes stay equal, and 1 stays 1.

    None for inputs whose entries depend on sizes or on one another, and where forward refuses these. Indices that
    gradcli drew are repeated as well, so that some occur more than once.
    """
    if _AT_OTHER_SIZES not in facts.searches:
        facts.searches[_AT_OTHER_SIZES] = _resized(facts)
    there: Facts | None = facts.searches[_AT_OTHER_SIZES]
    return there


def _resized(facts: Facts) -> Facts | None:
    subject = facts.subject
    tensors = [a for a in subject.arguments if a.is_tensor]
    if subject.domain.size > _MOST or any(not _may_grow(a) for a in tensors):
        return None
    sizes = sorted({n for a in tensors for n in a.value.shape if n > 1})
    uneven = {n: n + _LONGER * (rank + 1) for rank, n in enumerate(sizes)}
    for longer in (uneven, {n: n + _LONGER for n in sizes})[: len(sizes)]:
        generator = np.random.default_rng(47)
        arguments = tuple(
            replace(a, value=_longer(a.value, longer, generator)) if a.is_tensor else a for a in subject.arguments
        )
        try:
            there = subject.rebind(arguments)
        except UserCodeError:  # inputs that gradcli chose, which forward need not accept
            continue
        if there.active == subject.active and there.output_numbers == subject.output_numbers:
            return facts.over(there).bound_anew()
    return None


def _may_grow(argument: Argument) -> bool:
    if argument.value.dtype.kind in "iu":
        return argument.domain == "indices" and not argument.fixed
    return argument.sparsity is None and argument.domain in _ELEMENTWISE


def _longer(value: NDArray[Any], sizes: Mapping[int, int], generator: np.random.Generator) -> NDArray[Any]:
    """The array with each axis repeated to its new size and permuted, every number between two of the old ones."""
    shape = tuple(sizes.get(n, n) for n in value.shape)
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
