"""Operations that copy: clone, casts, flips, rolls and repeats."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, numpy_dtype, require_cpu
from gradcli.engine.dtypes import dtype as ElementType  # noqa: N812  (arguments are named dtype)
from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import axes, axis, sizes
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class CloneBackward0(Node):
    """The cotangent itself."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class CopyBackwards(Node):
    """The source gets the cotangent, the old values nothing."""

    def name(self) -> str:
        """Return the name under which the graph's printers know it."""
        return "torch::autograd::CopyBackwards"

    def _vjp(self, g: Tensor) -> Any:
        return from_array(np.zeros_like(g._data)) if self._needs(0) else None, g


class ToCopyBackward0(Node):
    """The cotangent itself: the backward pass casts it to the type of the input."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class FlipBackward0(Node):
    """The cotangent, flipped back."""

    dims: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return flip(g, self.dims)


class RollBackward0(Node):
    """The cotangent, rolled back."""

    shifts: tuple[int, ...]
    dims: tuple[int, ...] | None

    def _vjp(self, g: Tensor) -> Any:
        return roll(g, tuple(-shift for shift in self.shifts), self.dims)


class RepeatBackward0(Node):
    """The cotangents of all copies of an element are summed."""

    shape: tuple[int, ...]
    repeats: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        padded = (1,) * (len(self.repeats) - len(self.shape)) + self.shape
        split = [size for pair in zip(self.repeats, padded, strict=True) for size in pair]
        if 0 in split:
            return g.new_zeros(self.shape)
        return g.reshape(split).sum(tuple(range(0, len(split), 2))).reshape(self.shape)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:  # noqa: ARG001  (there is one memory format)
    """Return a recorded copy: gradients flow to the original."""
    return record(CloneBackward0, input._data.copy(), (input,))


def copied_to_grad(input: Tensor) -> Tensor:
    """Return the copy of a recorded cotangent that becomes the `.grad` of a leaf."""
    return record(CopyBackwards, input._data.copy(), (None, input))


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:  # noqa: ARG001  (there is one memory format)
    """Return the tensor itself if it is contiguous (in C order), else a contiguous copy."""
    if input._data.flags.c_contiguous:
        return input
    return record(CloneBackward0, np.ascontiguousarray(input._data), (input,))


def to(input: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, **options: Any) -> Tensor:
    """Return the tensor as another element type, or that of another tensor; itself when nothing changes.

    Args:
        input: the tensor.
        args: an element type, a device, or a tensor; booleans (`non_blocking`, `copy`) have no effect here.
        dtype: the element type.
        device: must be the CPU.
        copy: return a copy even when nothing changes.
        options: `non_blocking` and `memory_format`, which have no effect.

    Raises:
        RuntimeError: the device is not the CPU.
        TypeError: an option is unknown.
    """
    for value in args:
        if isinstance(value, Tensor):
            dtype = BY_NUMPY[value._data.dtype]
        elif isinstance(value, ElementType) or value in (float, int, bool, complex):
            dtype = value
        elif not isinstance(value, bool):
            device = value
    require_cpu(device)
    unknown = set(options) - {"non_blocking", "memory_format"}
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument '{sorted(unknown)[0]}'")
    kind = input._data.dtype if dtype is None else numpy_dtype(dtype)
    if kind == input._data.dtype and not copy:
        return input
    array = input._data.real if input._data.dtype.kind == "c" and kind.kind != "c" else input._data
    inputs = (input,) if kind.kind in "fc" else ()
    with np.errstate(all="ignore"):
        return record(ToCopyBackward0, array.astype(kind), inputs)


def flip(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Return a copy with some axes reversed."""
    named = sizes(order if dims is None else (dims,))
    places = axes(named, input._data.ndim) if named else ()
    return record(FlipBackward0, np.flip(input._data, places).copy(), (input,), dims=places)


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Return a copy with the elements shifted along axes, those beyond one end entering at the other.

    Without `dims`, the flattened tensor is rolled.
    """
    by = sizes((shifts,))
    along = None if dims is None else tuple(axis(dim, input._data.ndim) for dim in sizes((dims,)))
    if not input._data.ndim:
        if along:
            raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
        return clone(input)
    return record(
        RollBackward0, np.roll(input._data, by if along is not None else by[0], along), (input,), shifts=by, dims=along
    )


def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """Return the whole tensor repeated along each axis (`numpy.tile`); extra counts add leading axes."""
    times = sizes(repeats)
    if len(times) < input._data.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return record(RepeatBackward0, np.tile(input._data, times), (input,), shape=input._data.shape, repeats=times)


def tile(input: Tensor, *dims: Any) -> Tensor:
    """As `repeat`, with missing leading counts taken as 1."""
    times = sizes(dims)
    return repeat(input, *(1,) * (input._data.ndim - len(times)), *times)
