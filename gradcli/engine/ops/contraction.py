"""`tensordot` and `einsum`."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.ops.linalg import mm
from gradcli.engine.ops.operands import conj, require_one_dtype
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


def tensordot(input: Tensor, other: Tensor, dims: Any = 2) -> Tensor:
    """Return the sum of products over pairs of axes.

    Args:
        input: the first factor.
        other: the second factor.
        dims: the axes of input and those of other to sum over, in pairs; or a number n: the last n axes of input with
            the first n of other.
    """
    if isinstance(dims, int):
        first = tuple(range(input._data.ndim - dims, input._data.ndim))
        second = tuple(range(dims))
    else:
        first = tuple(place % input._data.ndim for place in dims[0])
        second = tuple(place % other._data.ndim for place in dims[1])
    rest_a = [place for place in range(input._data.ndim) if place not in first]
    rest_b = [place for place in range(other._data.ndim) if place not in second]
    inner = math.prod(input._data.shape[place] for place in first)
    rows = math.prod(input._data.shape[place] for place in rest_a)
    columns = math.prod(other._data.shape[place] for place in rest_b)
    a = input.permute([*rest_a, *first]).reshape(rows, inner)
    b = other.permute([*second, *rest_b]).reshape(inner, columns)
    shape = [input._data.shape[place] for place in rest_a] + [other._data.shape[place] for place in rest_b]
    return mm(a, b).reshape(shape)


class EinsumBackward0(Node):
    """The cotangent of an operand is an einsum of the cotangent and the other operands."""

    terms: tuple[str, ...]
    target: str

    def _vjp(self, g: Tensor) -> Any:
        operands = self._unpack()
        return tuple(self._one(place, g, operands) if self._needs(place) else None for place in range(len(operands)))

    def _one(self, place: int, g: Tensor, operands: Sequence[Tensor]) -> Any:
        term, shape = self.terms[place], operands[place]._data.shape
        others = [conj(entry) for i, entry in enumerate(operands) if i != place]
        known = set(self.target).union(*(entry for i, entry in enumerate(self.terms) if i != place))
        have = "".join(letter for letter in dict.fromkeys(term) if letter in known)
        inputs = ",".join([self.target, *(entry for i, entry in enumerate(self.terms) if i != place)])
        value = einsum(f"{inputs}->{have}", g, *others)
        missing = [letter for letter in dict.fromkeys(term) if letter not in known]
        lengths = dict(zip(term, shape, strict=True))
        value = value[(None,) * len(missing)].expand([lengths[letter] for letter in missing] + list(value._data.shape))
        order = missing + list(have)
        distinct = list(dict.fromkeys(term))
        value = value.permute([order.index(letter) for letter in distinct])
        # Where an axis of length 1 was repeated to fit the others, the result is summed over it, or is to be repeated.
        repeated = [at for at, letter in enumerate(distinct) if lengths[letter] == 1 != value._data.shape[at]]
        value = value.sum(repeated, keepdim=True) if repeated else value
        value = value.expand([lengths[letter] for letter in distinct])
        return value if len(distinct) == len(term) else _on_diagonals(value, term, distinct, shape)


def _on_diagonals(value: Tensor, term: str, distinct: list[str], shape: tuple[int, ...]) -> Tensor:
    """Return zeros of the operand's shape with `value` where the indices of a repeated letter are equal."""
    lengths = dict(zip(term, shape, strict=True))
    grids = dict(zip(distinct, np.indices([lengths[letter] for letter in distinct]), strict=True))
    index = tuple(from_array(grids[letter].astype(np.int64)) for letter in term)
    return value.new_zeros(shape).index_put(index, value)


def _require_letters(equation: str, terms: Sequence[str], right: str) -> None:
    """Raise RuntimeError for what is not a letter, or an ellipsis, in an equation."""
    for place, term in enumerate(terms):
        if "." in term.replace("...", "", 1):
            raise RuntimeError(f"einsum(): found '.' for operand {place} that is not part of any ellipsis")
    if "." in right.replace("...", "", 1):
        raise RuntimeError("einsum(): found '.' for output that is not part of an ellipsis (...)")
    start = equation.find("->")
    for at, letter in enumerate(equation):
        if at in (start, start + 1) and start >= 0:
            continue
        if not (letter.isascii() and letter.isalpha()) and letter not in " .,":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in "
                "[a-zA-Z]"
            )


def _require_axes(terms: Sequence[str], given: Sequence[Tensor]) -> None:
    """Raise RuntimeError where an operand has other axes than its subscripts."""
    for place, (term, operand) in enumerate(zip(terms, given, strict=True)):
        count, ndim = len(term.replace("...", "")), operand._data.ndim
        if "..." in term and count > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) is more than the number of dimensions "
                f"({ndim}) for operand {place}"
            )
        if "..." not in term and count != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) does not match the number of dimensions "
                f"({ndim}) for operand {place} and no ellipsis was given"
            )


def _require_sizes(terms: Sequence[str], result: str, given: Sequence[Tensor]) -> None:
    """Raise RuntimeError where axes of one subscript have different lengths, or the result has others."""
    for letter in result:
        if result.count(letter) > 1:
            raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
        if not any(letter in term for term in terms):
            raise RuntimeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
            )
    lengths: dict[str, int] = {}
    for place, (term, operand) in enumerate(zip(terms, given, strict=True)):
        own: dict[str, int] = {}
        for letter, size in zip(term, operand._data.shape, strict=True):
            if own.setdefault(letter, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {letter} is repeated for operand {place} but the sizes don't match, {size} "
                    f"!= {own[letter]}"
                )
        for letter, size in own.items():
            before = lengths.get(letter, 1)
            if 1 not in (size, before) and size != before:
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {size} for operand {place} which does not broadcast with "
                    f"previously seen size {before}"
                )
            lengths[letter] = before if size == 1 else size


_LABELS = string.ascii_uppercase + string.ascii_lowercase


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Return the equation and the operands of (operand, labels, ..., and labels of the result or nothing)."""
    if len(arguments) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    terms = ["".join(_label(entry) for entry in labels) for labels in arguments[1::2]]
    arrow = "" if len(arguments) % 2 == 0 else "->" + "".join(_label(entry) for entry in arguments[-1])
    return ",".join(terms) + arrow, list(arguments[0 : len(arguments) - len(arguments) % 2 : 2])


def _label(entry: Any) -> str:
    if entry is Ellipsis:
        return "..."
    if not 0 <= entry < len(_LABELS):
        raise ValueError(f"einsum(): subscript in subscript list is not within the valid range [0, {len(_LABELS)})")
    return _LABELS[entry]


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Return sums of products by Einstein's convention, as in "ij,jk->ik", or as operands followed by lists of numbers.

    Raises:
        RuntimeError: the equation names another number of operands, or the subscripts do not fit the shapes, or the
            element types differ.
    """
    if isinstance(equation, str):
        given = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    else:
        equation, given = _from_lists((equation, *operands))
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    require_one_dtype("einsum", *given)
    _require_letters(equation, terms, right)
    if len(terms) != len(given):
        which = "fewer" if len(given) < len(terms) else "more"
        raise RuntimeError(f"einsum(): {which} operands were provided than specified in the equation")
    _require_axes(terms, given)
    spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in equation]
    widths = [
        entry._data.ndim - len(term.replace("...", "")) if "..." in term else 0
        for term, entry in zip(terms, given, strict=True)
    ]
    extra = "".join(spare[: max(widths, default=0)])
    terms = [term.replace("...", extra[len(extra) - width :]) for term, width in zip(terms, widths, strict=True)]
    if arrow:
        result = right.replace("...", extra)
    else:
        counts = "".join(terms)
        result = extra + "".join(sorted(letter for letter in set(counts) - set(extra) if counts.count(letter) == 1))
    _require_sizes(terms, result, given)
    array = np.einsum(",".join(terms) + "->" + result, *[entry._data for entry in given], optimize=len(given) > 2)
    return record(EinsumBackward0, np.array(array), tuple(given), tuple(given), terms=tuple(terms), target=result)
