"""`gradient`: differences of neighbours along axes; `index_reduce`: slices merged along an axis."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import get_default_dtype
from gradcli.engine.ops.joining import cat
from gradcli.engine.ops.operands import axes, axis, require_one_dtype, require_places, require_rows
from gradcli.engine.ops.scattering import scatter_reduce
from gradcli.engine.tensor import Tensor, from_array


def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Estimate derivatives along axes by differences of neighbours, central ones but at the ends.

    Args:
        input: the values.
        spacing: the distance of neighbours: a number, one for each axis, or a vector of coordinates for each axis.
        dim: the axes; all unless given.
        edge_order: the order of accuracy at the ends, 1 or 2.

    Raises:
        RuntimeError: an axis is too short, or the spacings are not one for each axis.
    """
    places = tuple(range(input._data.ndim)) if dim is None else axes(dim, input._data.ndim)
    steps = list(spacing) if isinstance(spacing, Sequence) else [spacing] * len(places)
    if len(steps) != len(places):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to the number of "
            f"axes, {len(places)}, but got a list of length {len(steps)}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for place in places:
        if input._data.shape[place] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_along(input, place, step, edge_order) for place, step in zip(places, steps, strict=True))


def _along(input: Tensor, place: int, step: Any, edge_order: int) -> Tensor:
    size = input._data.shape[place]
    gaps = np.diff(step._data) if isinstance(step, Tensor) and step._data.ndim else np.full(size - 1, float(step))
    kind = input._data.dtype if input._data.dtype.kind in "fc" else get_default_dtype().numpy

    def summed(start: int, length: int, *weights: Any) -> Tensor:
        """Return the sum of the slices from start on, from start + 1 on..., times their weights."""
        shape = (-1, *(1,) * (input._data.ndim - place - 1))
        terms = [
            input.narrow(place, start + number, length) * from_array(np.atleast_1d(each).astype(kind).reshape(shape))
            for number, each in enumerate(weights)
            if np.any(each)
        ]
        return functools.reduce(lambda total, term: total + term, terms)

    left, right = gaps[:-1], gaps[1:]
    first = _at_end(*gaps[:edge_order])
    last = tuple(-each for each in _at_end(*gaps[::-1][:edge_order])[::-1])
    pieces = [summed(0, 1, *first)]
    if size > 2:
        inner = -right / (left * (left + right)), (right - left) / (left * right), left / (right * (left + right))
        pieces.append(summed(0, size - 2, *inner))
    return cat([*pieces, summed(size - edge_order - 1, 1, *last)], place)


def _at_end(near: float, far: float | None = None) -> tuple[float, ...]:
    """Return the weights of two or three values for the derivative at the first: that of the parabola through them."""
    if far is None:
        return -1 / near, 1 / near
    whole = near + far
    return -(near + whole) / (near * whole), whole / (near * far), -near / (far * whole)


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with slices of `source` merged into those of an axis at an index vector; see `scatter_reduce`.

    Raises:
        RuntimeError: `reduce` is not "prod", "mean", "amax" or "amin", or the shapes do not fit.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    place = axis(dim, input._data.ndim)
    require_one_dtype("index_reduce", input, source)
    require_rows(input, place, index, source)
    require_places(index, input._data.shape[place])
    shape = [1] * source._data.ndim
    shape[place] = -1
    whole = index.reshape(shape).expand(source._data.shape)
    return scatter_reduce(input, place, whole, source, reduce, include_self=include_self)
