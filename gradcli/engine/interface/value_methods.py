"""Tensor methods that write in place, and those that read values out or make tensors of the same kind."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from gradcli.engine import creation
from gradcli.engine.dtypes import BY_NUMPY, Array, accepted
from gradcli.engine.generator import Generator, random_source
from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import Node
from gradcli.engine.in_place import bump, check_may_change, in_place, writeable
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.ops.copies import CopyBackwards
from gradcli.engine.ops.masks import masked_fill
from gradcli.engine.ops.operands import axis, check_broadcast, operand
from gradcli.engine.ops.scattering import index_fill
from gradcli.engine.recording import record, tracked
from gradcli.engine.tensor import Tensor, from_array


def contains(self: Tensor, value: Any) -> bool:
    """Tell whether an element is equal to a number, or to one of a tensor.

    Raises:
        RuntimeError: it is neither.
    """
    if not isinstance(value, (Tensor, Number)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}.")
    return bool((self == value)._data.any())


class ZeroBackward0(Node):
    """Nothing depends on the old values."""

    def _vjp(self, g: Tensor) -> Any:
        return _nothing(g)


class FillBackward(Node):
    """Nothing depends on the old values; a tensor that was filled in gets the sum."""

    def _vjp(self, g: Tensor) -> Any:
        return _nothing(g), g.sum() if self._needs(1) else None


class FillBackward2(FillBackward):
    """As FillBackward, filled by a number."""


def _nothing(g: Tensor) -> Tensor:
    return from_array(np.zeros_like(g._data))


def zero_(input: Tensor) -> Tensor:
    """Set all elements to zero."""
    return _overwrite(input, 0, once=False) if not tracked(input) else in_place(input, _zeroed)


def _zeroed(input: Tensor) -> Tensor:
    return record(ZeroBackward0, np.zeros_like(input._data), (input,))


def _overwrite(input: Tensor, value: Any, *, once: bool = True, at: Any = ...) -> Tensor:
    writeable(input, once=once)[at] = value
    bump(input)
    return input


def fill_(input: Tensor, value: Any) -> Tensor:
    """Set all elements to one number; raises RuntimeError for a tensor with axes."""
    if isinstance(value, Tensor) and value._data.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._data.ndim} dimensions."
        )
    if not tracked(input, value):
        given = isinstance(value, Tensor)
        return _overwrite(input, value._data if given else value, once=given)
    return in_place(input, _filled, value)


def _filled(input: Tensor, value: Any) -> Tensor:
    number = value._data if isinstance(value, Tensor) else value
    return record(FillBackward2, np.full_like(input._data, number), (input, value))


def masked_fill_(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write a value where the mask holds, to an untracked expanded tensor too."""
    if input._data.flags.writeable or tracked(input, value):
        return in_place(input, masked_fill, mask, value)
    number = value._data if isinstance(value, Tensor) else value
    where = np.broadcast_to(mask._data, input._data.shape)
    return _overwrite(input, input._data.dtype.type(number), once=False, at=where)


def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Write a value along an axis at the places the index names, to an untracked expanded tensor too."""
    if input._data.flags.writeable or tracked(input, value):
        return in_place(input, index_fill, dim, index, value)
    number = value._data if isinstance(value, Tensor) else value
    lines = (*(slice(None),) * axis(dim, input._data.ndim), index._data)
    return _overwrite(input, input._data.dtype.type(number), once=False, at=lines)


def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:  # noqa: ARG001  (memory is at hand)
    """Write the values of another tensor, broadcast and cast."""
    source = operand(src, "src")
    if isinstance(source, Tensor) and source is input:
        return input
    return in_place(input, _copied, source if isinstance(source, Tensor) else creation.tensor(source))


def _copied(input: Tensor, src: Tensor) -> Tensor:
    check_broadcast(input._data.shape, src._data.shape)
    if np.broadcast_shapes(input._data.shape, src._data.shape) != input._data.shape:
        raise RuntimeError(
            f"output with shape {list(input._data.shape)} doesn't match the broadcast shape "
            f"{list(np.broadcast_shapes(input._data.shape, src._data.shape))}"
        )
    array = np.broadcast_to(src._data, input._data.shape)
    if array.dtype.kind == "c" and input._data.dtype.kind != "c":
        array = array.real
    followed = (input, src) if input._data.dtype.kind in "fc" else ()
    return record(CopyBackwards, array.astype(input._data.dtype), followed)


def _drawn(input: Tensor, values: Array) -> Tensor:
    check_may_change(input)
    return _overwrite(input, values)


def uniform_(input: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with random numbers, uniform in [a, b)."""
    return _drawn(input, random_source(generator).uniform(a, b, input._data.shape))


def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal random numbers."""
    return _drawn(input, random_source(generator).normal(mean, std, input._data.shape))


def bernoulli_(input: Tensor, p: float = 0.5) -> Tensor:
    """Fill with ones of probability p and zeros."""
    return _drawn(input, random_source(None).random(input._data.shape) < p)


def exponential_(input: Tensor, lambd: float = 1.0) -> Tensor:
    """Fill with random numbers of the exponential distribution with a rate."""
    return _drawn(input, random_source(None).exponential(1 / lambd, input._data.shape))


def random_(input: Tensor, *bounds: int) -> Tensor:
    """Fill with random whole numbers from the first bound (0) up to, not including, the last."""
    kind = input._data.dtype
    widest = np.iinfo(kind).max if kind.kind in "iu" else 2 if kind.kind == "b" else 2 ** (np.finfo(kind).nmant + 1)
    low, high = (bounds[0], bounds[1]) if len(bounds) == 2 else (0, bounds[0] if bounds else int(widest))
    return _drawn(input, random_source(None).integers(low, high, input._data.shape))


# --- reading out
def item(input: Tensor) -> Any:
    """Return the only element as a Python number.

    Raises:
        RuntimeError: there are several, or none.
    """
    if input._data.size != 1:
        raise RuntimeError(f"a Tensor with {input._data.size} elements cannot be converted to Scalar")
    return input._data.item()


def scalar(input: Tensor) -> Any:
    """Return the only element for one of Python's own types of number.

    Raises:
        ValueError: there are several, or none.
    """
    if input._data.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return input._data.item()


def real_scalar(input: Tensor, kind: type) -> Any:
    """Return the only element as a `float` or an `int`.

    Raises:
        RuntimeError: it has an imaginary part.
    """
    value = scalar(input)
    if isinstance(value, complex):
        if value.imag:
            name = "double" if kind is float else "int64_t"
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
        value = value.real
    return kind(value)


def tolist(input: Tensor) -> Any:
    """Return nested lists of Python numbers."""
    return input._data.tolist()


def numpy(input: Tensor, *, force: bool = False) -> Array:
    """Return the array behind the tensor, not a copy.

    Raises:
        RuntimeError: the tensor is tracked, recording is on, and `force` is not set. With recording off, as it is in
            a Function's forward, nothing can leave the graph unnoticed.
    """
    if STATE.enabled and input.requires_grad and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return input._data


def to_array(input: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """Return an array for NumPy; see `numpy`."""
    array = numpy(input)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def truth(input: Tensor) -> bool:
    """Return the truth of the only element.

    Raises:
        RuntimeError: there are several.
    """
    if input._data.size != 1:
        if input._data.size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(input._data.reshape(()))


def as_index(input: Tensor) -> int:
    """Return the only element of an integer tensor, for use as an index."""
    if input._data.size != 1 or input._data.dtype.kind not in "iub":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(input._data.reshape(()))


def type_name(input: Tensor, dtype: Any = None) -> Any:
    """Return the name of the tensor's legacy class (`torch.FloatTensor`), or the tensor as another type."""
    if isinstance(dtype, str):
        letter = dtype.removeprefix(f"{PRINTED_MODULE}.").removesuffix("Tensor")
        found = [kind for kind in BY_NUMPY.values() if kind.letter == letter]
        if not found:
            raise ValueError(f"invalid type: {dtype!r}")
        return input.to(found[0])
    if dtype is not None:
        return input.to(dtype)
    return f"{PRINTED_MODULE}.{BY_NUMPY[input._data.dtype].letter}Tensor"


def stride(input: Tensor, dim: int | None = None) -> Any:
    """Return how many elements apart the neighbours along each axis, or one axis, are."""
    steps = tuple(step // input._data.itemsize for step in input._data.strides)
    return steps if dim is None else steps[dim]


def is_contiguous(input: Tensor, memory_format: Any = None) -> bool:  # noqa: ARG001  (there is one memory format)
    """Tell whether the elements lie in order."""
    return bool(input._data.flags.c_contiguous)


def storage_offset(input: Tensor) -> int:
    """Return how many elements of the shared memory lie before the first."""
    owner = input._data
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    here, start = (int(array.__array_interface__["data"][0]) for array in (input._data, owner))
    return (here - start) // input._data.itemsize


class UntypedStorage:
    """The memory behind a tensor, as far as its address and size."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Array) -> None:
        self._owner = owner

    def data_ptr(self) -> int:
        """Return the address of the memory."""
        return int(self._owner.__array_interface__["data"][0])

    def nbytes(self) -> int:
        """Return the size of the memory in bytes."""
        return int(self._owner.nbytes)


def untyped_storage(input: Tensor) -> UntypedStorage:
    """Return the memory that this tensor and its views share."""
    owner = input._data
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return UntypedStorage(owner)


def is_floating_point(input: Tensor) -> bool:
    """Tell whether the elements are real floating point numbers."""
    return input._data.dtype.kind == "f"


def is_signed(input: Tensor) -> bool:
    """Tell whether the element type has negative numbers."""
    return input._data.dtype.kind in "ifc"


def is_nonzero(input: Tensor) -> bool:
    """Tell whether the only element is not zero.

    Raises:
        RuntimeError: there are several, or none.
    """
    return truth(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have one shape."""
    return input._data.shape == other._data.shape


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return int(input._data.size)


def element_size(input: Tensor) -> int:
    """Return the bytes of one element."""
    return int(input._data.itemsize)


# --- more of the same kind
def new_tensor(input: Tensor, data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a leaf with other data, of the same type."""
    return creation.tensor(
        data, dtype=BY_NUMPY[input._data.dtype] if dtype is None else dtype, requires_grad=requires_grad
    )


def new_zeros(input: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return zeros of a shape, of the same type."""
    kind = BY_NUMPY[input._data.dtype] if dtype is None else dtype
    return creation.zeros(*size, dtype=kind, requires_grad=requires_grad)


def new_ones(input: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return ones of a shape, of the same type."""
    kind = BY_NUMPY[input._data.dtype] if dtype is None else dtype
    return creation.ones(*size, dtype=kind, requires_grad=requires_grad)


def new_empty(input: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return uninitialised memory of a shape, of the same type."""
    kind = BY_NUMPY[input._data.dtype] if dtype is None else dtype
    return creation.empty(*size, dtype=kind, requires_grad=requires_grad)


def new_full(input: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a shape full of one number, of the same type."""
    kind = BY_NUMPY[input._data.dtype] if dtype is None else dtype
    return creation.full(size, fill_value, dtype=kind, requires_grad=requires_grad)


def unsupported(value: object) -> bool:
    """Tell whether an operator should leave a value to the other operand."""
    return not (isinstance(value, (Tensor, np.ndarray)) or accepted(value))
