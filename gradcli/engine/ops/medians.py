"""Medians of all elements, and along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.ops.operands import axes, numpy_names, refuse_kinds
from gradcli.engine.ops.reduction import ExtremeBackward, PickBackward, _pick, named_result
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor

MEDIAN, NANMEDIAN = named_result("median"), named_result("nanmedian")
Position = Callable[..., Array]


class MedianBackward0(ExtremeBackward):
    """Of `median` of all elements: those equal to it share the cotangent equally."""


class MedianBackward1(PickBackward):
    """Of `median` along an axis."""


class NanmedianBackward0(MedianBackward0):
    """Of `nanmedian` of all elements."""


class NanmedianBackward1(MedianBackward1):
    """Of `nanmedian` along an axis."""


def _middle_of_numbers(x: Array, axis: int) -> Array:
    """Return where the median of the elements that are not NaN is; these are sorted to the end."""
    order = np.argsort(x, axis=axis, kind="stable")
    numbers = x.shape[axis] - np.isnan(x).sum(axis=axis, keepdims=True)
    middle = np.maximum(numbers - 1, 0) // 2
    found: Array = np.take_along_axis(order, middle, axis).squeeze(axis)
    return found


def _middle(x: Array, axis: int) -> Array:
    """Return where the median is, or the first NaN."""
    missing = np.isnan(x)
    middle = _middle_of_numbers(x, axis)
    return np.where(missing.any(axis=axis), missing.argmax(axis=axis), middle) if missing.any() else middle


def _of_all(kind: type[MedianBackward0], position: Position, input: Tensor) -> Tensor:
    flat = input._data.reshape(-1)
    if flat.size:
        value = flat[int(position(flat, 0))]
    else:
        # The median of no real numbers is NaN; of no integers, PyTorch gives the smallest one of the type.
        value = flat.dtype.type(np.nan if flat.dtype.kind == "f" else np.iinfo(flat.dtype).min)
    return record(kind, value, (input,), (input,), keep=True, dims=axes(None, input._data.ndim))


@numpy_names
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of all elements, or (values, indices) along an axis; of two middle elements the lower."""
    refuse_kinds("median", input._data, "c")
    if dim is None:
        return _of_all(MedianBackward0, _middle, input)
    return _pick(MedianBackward1, MEDIAN, _middle, input, dim, keepdim)


@numpy_names
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN, or (values, indices) along an axis; of two the lower."""
    refuse_kinds("nanmedian", input._data, "c")
    if dim is None:
        return _of_all(NanmedianBackward0, _middle_of_numbers, input)
    return _pick(NanmedianBackward1, NANMEDIAN, _middle_of_numbers, input, dim, keepdim)
