"""Other masks than those drawn: rows whose entries are all False or all True; and zeros in the entries left out."""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.cases import Argument
from gradcli.checks.other_points.bounds import bounds_of, is_drawn
from gradcli.checks.other_points.points import Arguments
from gradcli.sources import nodes_of, source_of, tree_of
from gradcli.targets import TargetInfo

_LARGE_FILL = 1e3
"""Entries left out are often filled with a number that is at least as large, such as -1e9."""


def other_masks(arguments: Sequence[Argument], active: Collection[int]) -> Iterator[Iterator[Arguments]]:
    """The arguments with other masks, or with zeros behind a mask; for each, further ones if forward rejects the first.

    In each drawn mask one row, along the last axis, becomes all False, then all True. No drawn mask has such rows.
    Real inputs are made zero where the mask is False; where forward is not finite there, where it is True: masks do not
    agree on which of the two leaves an entry out.
    """
    for position, mask in enumerate(arguments):
        if not _is_mask(mask):
            continue
        for value in (False, True):
            changed = mask.value.copy()
            changed.reshape(-1, mask.shape[-1])[:1] = value
            yield iter((_with(arguments, {position: changed}),))
        floats = [i for i, a in enumerate(arguments) if _may_be_zero(a) and a.value.size >= mask.value.size]
        zeroed = [
            {
                i: padded
                for i in floats
                if (padded := _padded(arguments[i].value, mask.value.astype(bool) == value)) is not None
            }
            for value in (False, True)
        ]
        yield (_with(arguments, values) for values in zeroed if any(i in active for i in values))


def _is_mask(argument: Argument) -> bool:
    if not argument.is_tensor or not argument.shape or argument.requires_grad or not is_drawn(argument):
        return False
    return argument.value.dtype.kind == "b" or argument.domain == "binary"


def _may_be_zero(argument: Argument) -> bool:
    if not argument.is_tensor or argument.value.dtype.kind not in "fc" or not is_drawn(argument):
        return False
    bounds = bounds_of(argument)
    return bounds is not None and not (bounds.distinct or bounds.ordered) and bool(bounds.holds(np.zeros(1))[0])


def _padded(value: NDArray[Any], left_out: NDArray[Any]) -> NDArray[Any] | None:
    """An input with zeros where a mask of the same axes, of its first ones or of its last ones leaves entries out."""
    if value.shape[: left_out.ndim] == left_out.shape:
        left_out = left_out.reshape(left_out.shape + (1,) * (value.ndim - left_out.ndim))
    elif value.shape[value.ndim - left_out.ndim :] != left_out.shape:
        return None
    return np.where(left_out, np.zeros((), value.dtype), value)


def _with(arguments: Sequence[Argument], values: dict[int, NDArray[Any]]) -> Arguments:
    return tuple(replace(a, value=values[i], own=None) if i in values else a for i, a in enumerate(arguments))


def _changed_masks(drawn: Sequence[Argument], tried: Sequence[Argument]) -> list[str]:
    """The names of masks that are not those drawn."""
    pairs = [(a, b) for a, b in zip(drawn, tried, strict=True) if _is_mask(a)]
    return [a.name for a, b in pairs if not np.array_equal(a.value, b.value)]


def label_of_data(subject: Subject, tried: Sequence[Argument], data: Sequence[int]) -> str | None:
    """What to say of inputs at which data or what a mask leaves out were changed too; None if only real inputs were."""
    drawn = subject.arguments
    masks, names = _changed_masks(drawn, tried), [drawn[i].name for i in data]
    if masks:
        which = f"where a row of {' and '.join(masks)} holds one value only, which"
    elif behind := [a.name for a in drawn if _is_mask(a) and _is_zero_behind(a.value.astype(bool), drawn, tried)]:
        which = f"where entries that {' and '.join(behind)} leaves out are zero, which"
    elif names:
        which = "at values that"
    else:
        return None
    also = "" if masks or not names else f", also of {' and '.join(names)}"
    return (
        f"{which} gradcli tried in addition to the random inputs{also}; if such values cannot occur in your program, "
        "give fixed numbers as inputs (the key 'value' in a spec, or arrays in Python)"
    )


def _is_zero_behind(mask: NDArray[Any], drawn: Sequence[Argument], tried: Sequence[Argument]) -> bool:
    """Whether what changed became zero where the mask holds one of its values, and nowhere else."""
    pairs = [(a.value, b.value) for a, b in zip(drawn, tried, strict=True) if a.is_tensor and a.value is not b.value]
    return any(
        all((padded := _padded(a, mask == value)) is not None and np.array_equal(padded, b) for a, b in pairs)
        for value in (False, True)
    )


def is_filled_row(subject: Subject, tried: Sequence[Argument], value: FloatArray, claimed: FloatArray) -> bool:
    """Whether a finite gradient belongs to a row of a mask that leaves out all, and that forward fills with a number.

    Such a row is not empty: a softmax over entries of -1e9 is their mean, by accident. Where forward gives zeros, or
    has no large number, it knows of such rows.
    """
    if not _changed_masks(subject.arguments, tried) or not np.isfinite(claimed).all():
        return False
    drawn = subject.codomain.flatten([subject.first_call.outputs[n] for n in subject.output_numbers])
    return bool(value[value != drawn].any()) and _has_a_large_number(subject.info)


def _has_a_large_number(info: TargetInfo) -> bool:
    tree = tree_of(source_of(info.forward))
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) >= _LARGE_FILL)
        or getattr(node, "attr", None) == "finfo"
        for node in (nodes_of(tree) if tree is not None else ())
    )
