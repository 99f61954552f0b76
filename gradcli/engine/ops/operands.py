"""Arguments of operations: type promotion, broadcasting checks, axes and shapes, with PyTorch's errors."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradcli.engine.dtypes import (
    BY_NUMPY,
    Array,
    accepted,
    combine,
    dtype,
    get_default_dtype,
    number_dtype,
    promote_types,
)
from gradcli.engine.tensor import Tensor, from_array

Operand = Any
_PLAIN = frozenset((float, int))
P = ParamSpec("P")
R = TypeVar("R")


def result_dtype(*operands: Operand) -> np.dtype[Any]:
    """Return the element type of an operation on these operands, by PyTorch's type promotion.

    Tensors with axes decide; a 0-d tensor changes the type only if it is of a higher category (boolean, integer,
    floating point, complex), and a number only if it is of a higher category than all tensors.
    """
    levels: list[np.dtype[Any] | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Tensor):
            level, kind = (0 if operand._data.ndim else 1), operand._data.dtype
        else:
            level, kind = 2, number_dtype(operand)
        present = levels[level]
        levels[level] = kind if present is None else promote_types(present, kind)
    return combine(combine(levels[0], levels[1]), levels[2]) or get_default_dtype().numpy


def operand(value: object, name: str = "other") -> Any:
    """Return a tensor or a Python number: arrays become tensors that share memory, NumPy scalars numbers.

    Raises:
        TypeError: the value is none of these; the message calls it `name`.
    """
    if isinstance(value, Tensor) or type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return from_array(value)
    if isinstance(value, (np.number, np.bool_)):
        return value.item()
    if accepted(value):
        return value
    raise TypeError(f"argument '{name}' must be Tensor or Number, not {type(value).__name__}")


def arrays(*operands: Operand) -> list[Any]:
    """Return the operands as arrays (numbers as NumPy scalars) of their common type."""
    kind = result_dtype(*operands)
    return [
        (value._data if value._data.dtype == kind else value._data.astype(kind))
        if isinstance(value, Tensor)
        else kind.type(value)
        for value in operands
    ]


def both(input: object, other: object) -> tuple[Any, Any, Any, Any]:
    """Return two operands as tensors or numbers, and their arrays of a common type.

    Raises:
        TypeError: one is not a tensor, a number or an array.
        RuntimeError: their shapes do not broadcast.
    """
    if isinstance(input, Tensor):
        x = input._data
        if isinstance(other, Tensor):
            y = other._data
            if x.shape != y.shape:
                check_broadcast(x.shape, y.shape)
            if x.dtype is y.dtype:
                return input, other, x, y
        elif type(other) in _PLAIN and x.dtype.kind in "fc":
            return input, other, x, x.dtype.type(other)
    first, second = operand(input, "input"), operand(other)
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        check_broadcast(first._data.shape, second._data.shape)
    x, y = arrays(first, second)
    return first, second, x, y


def pair(input: object, other: object) -> tuple[Any, Any]:
    """Return the arrays of two operands, of their common type; raises as `both`."""
    return both(input, other)[2:]


def check_broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Raise RuntimeError when two shapes do not broadcast."""
    last = max(len(first), len(second))
    for back, (a, b) in enumerate(zip(reversed(first), reversed(second), strict=False), start=1):
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                f"{last - back}"
            )


def floating(array: Array) -> Array:
    """Return the array, cast to the default floating point type if it holds integers or booleans."""
    return array if array.dtype.kind in "fc" else array.astype(get_default_dtype().numpy)


def conj(value: Any) -> Any:
    """Return the complex conjugate of a tensor, an array or a number; real tensors and arrays themselves."""
    if isinstance(value, Tensor):
        return value.conj() if value._data.dtype.kind == "c" else value
    if isinstance(value, np.ndarray) and value.dtype.kind != "c":
        return value
    return value.conjugate()


def axis(dim: int, ndim: int) -> int:
    """Return an axis as a non-negative number; a 0-d tensor has axis 0 in this respect.

    Raises:
        IndexError: there is no such axis.
    """
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim % bound


def axes(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return axes as non-negative numbers: all for None or an empty sequence, none of a 0-d tensor.

    Raises:
        RuntimeError: an axis appears twice.
    """
    if isinstance(dim, (np.integer, Tensor)):
        dim = operator.index(dim)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    found = tuple(axis(entry, ndim) for entry in ((dim,) if isinstance(dim, int) else dim))
    if len(set(found)) != len(found):
        twice = next(entry for place, entry in enumerate(found) if entry in found[:place])
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found if ndim else ()


def numpy_names(operation: Callable[P, R]) -> Callable[P, R]:
    """Let an operation be called with NumPy's names `axis` and `keepdims` for `dim` and `keepdim`."""

    @functools.wraps(operation)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs:
            for theirs, ours in (("axis", "dim"), ("keepdims", "keepdim")):
                if theirs in kwargs:
                    kwargs[ours] = kwargs.pop(theirs)
        return operation(*args, **kwargs)

    return named


def sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the sizes from `f(2, 3)` or `f((2, 3))`. Raises TypeError if one is not an integer."""
    if len(given) == 1 and not isinstance(given[0], (int, np.integer, Tensor)):
        given = tuple(given[0])
    return tuple(operator.index(entry) for entry in given)


def result_type(tensor1: Operand, tensor2: Operand) -> dtype:
    """Return the element type of an operation on two tensors or numbers (`torch.result_type`)."""
    return BY_NUMPY[result_dtype(tensor1, tensor2)]


def promoted(type1: dtype, type2: dtype) -> dtype:
    """Return the element type that two element types are promoted to (`torch.promote_types`)."""
    return BY_NUMPY[promote_types(type1.numpy, type2.numpy)]


def require_axes(name: str, input: Tensor, least: int = 1) -> None:
    """Raise RuntimeError when a tensor has too few axes for an operation."""
    if input._data.ndim < least:
        raise RuntimeError(f"{name}: input tensor must have at least {least} dimensions")


def refuse_kinds(name: str, array: Array, kinds: str) -> None:
    """Raise NotImplementedError for an array whose `dtype.kind` is one of some letters, such as "fc"."""
    if array.dtype.kind in kinds:
        raise NotImplementedError(f"{name} is not implemented for '{BY_NUMPY[array.dtype].letter}'")


def refuse_zero(x: Any, y: Any) -> None:
    """Raise RuntimeError when integers are divided by 0."""
    if y.dtype.kind in "iu" and not np.all(y) and np.broadcast(x, y).size:
        raise RuntimeError("ZeroDivisionError")


_NOT_WHOLE = {
    "index_select": "index_select(): Expected dtype int32 or int64 for index",
    "index_add": "index_add_(): Expected dtype int32/int64 for index but got: {}",
    "index_copy": "index_copy_(): Expected a long tensor for index, but got {}",
    "take": "take(): Expected a long tensor for index, but got {}",
}


def require_whole(name: str, index: Tensor) -> None:
    """Raise RuntimeError, in the words of an operation, unless an index holds integers."""
    if index._data.dtype.kind not in "iu":
        raise RuntimeError(_NOT_WHOLE[name].format(BY_NUMPY[index._data.dtype].letter))


def require_places(index: Tensor, size: int) -> None:
    """Raise IndexError unless an index is a vector (or 0-d) of places from 0 to size - 1."""
    if index._data.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if bool(((index._data < 0) | (index._data >= size)).any()):
        raise IndexError("index out of range in self")


_OF_LAYERS = "mixed dtype (CPU): all inputs must share same datatype."
_MIXED = {
    "lerp": "expected dtype {0.in_c} for `end` but got dtype {1.in_c}",
    "index_add": "index_add_(): self ({0.letter}) and source ({1.letter}) must have the same scalar type",
    "index_reduce": "index_reduce_(): self ({0.letter}) and source ({1.letter}) must have the same scalar type",
    "index_copy": "index_copy_(): self and source expected to have the same dtype, but got (self) {0.letter} and "
    "(source) {1.letter}",
    "masked_scatter": "masked_scatter: expected self and source to have same dtypes but got{0.letter} and {1.letter}",
    "scatter": "scatter(): Expected self.dtype to be equal to src.dtype",
    "prelu": "prelu: Type promoting not supported. Got {0.letter} and {1.letter}",
    "einsum": "expected scalar type {0.letter} but found {1.letter}",
    "linalg.solve": "linalg.solve: Expected A and B to have the same dtype, but found A of type {0.letter} and B of "
    "type {1.letter} instead",
    "nll_loss": "expected scalar type {0.letter} but found {1.letter}",
    "binary_cross_entropy": "Found dtype {1.letter} but expected {0.letter}",
    "batch_norm": _OF_LAYERS,
    "layer_norm": _OF_LAYERS,
    "group_norm": _OF_LAYERS,
}
_ANY_MIXED = "{2}(): expected all tensors to have the same dtype, but found {0.letter} and {1.letter}"


def require_one_dtype(name: str, *values: object) -> None:
    """Raise RuntimeError, in the words of an operation, when tensors among the values have different element types."""
    kinds = [value._data.dtype for value in values if isinstance(value, Tensor)]
    other = next((kind for kind in kinds if kind != kinds[0]), None)
    if other is not None:
        raise RuntimeError(_MIXED.get(name, _ANY_MIXED).format(BY_NUMPY[kinds[0]], BY_NUMPY[other], name))


def applied(name: str, function: Callable[..., Any], *values: Any) -> Any:
    """Return `function(*values)` of a NumPy function.

    Raises:
        NotImplementedError: the function is not defined for this element type.
    """
    try:
        return function(*values)
    except TypeError:
        kind = BY_NUMPY[np.asarray(values[0]).dtype].letter
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'") from None


def require_rows(input: Tensor, place: int, index: Tensor, source: Tensor) -> None:
    """Raise RuntimeError unless `source` has a slice of input's shape for each number of the index."""
    own, given = list(input._data.shape), list(source._data.shape)
    if own[:place] + own[place + 1 :] != given[:place] + given[place + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{own} source.shape = {given}"
        )
    if given and given[place] != index._data.size:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index._data.size}) should be equal to source.size(dim): "
            f"({given[place]}), for dim: {place}"
        )
