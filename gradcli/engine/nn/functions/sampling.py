"""Sampling of images on grids, for spatial transformers (Jaderberg et al., arXiv 1506.02025)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.creation import linspace, ones
from gradcli.engine.dtypes import BY_NUMPY
from gradcli.engine.ops.activation import hardtanh
from gradcli.engine.ops.constant import passed
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor, from_array


def _centres(count: int, align: bool, kind: Any) -> Tensor:
    edge = 1.0 if align else 1 - 1 / count
    return linspace(-edge if count > 1 else 0.0, edge if count > 1 else 0.0, count, dtype=kind)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return a grid [N, H, W, 2] of (x, y) for `grid_sample`: affine maps of the coordinates of the output pixels.

    Args:
        theta: the maps, [N, 2, 3].
        size: (N, C, H, W) of the output.
        align_corners: -1 and 1 are the centres of the corner pixels (True), or the outer edges of the image.

    Raises:
        NotImplementedError: the maps are not of shape [N, 2, 3].
    """
    if theta._data.shape[1:] != (2, 3):
        raise NotImplementedError(
            f"affine_grid: gradcli.engine has maps of the plane, of shape [N, 2, 3]; got {list(theta._data.shape)}"
        )
    batch, _, height, width = size
    kind = BY_NUMPY[theta._data.dtype]
    rows, columns = _centres(height, bool(align_corners), kind), _centres(width, bool(align_corners), kind)
    grid = stack(
        [columns.expand(height, width), rows.unsqueeze(1).expand(height, width), ones(height, width, dtype=kind)], -1
    )
    return grid.reshape(1, height * width, 3).matmul(theta.mT).reshape(batch, height, width, 2)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Return [N, C, h, w]: images [N, C, H, W] sampled at a grid [N, h, w, 2].

    Args:
        input: the images.
        grid: coordinates (x, y): -1 is the left or the top of the image, 1 the right or the bottom.
        mode: "bilinear" or "nearest"; of "nearest", the gradient of the grid is 0.
        padding_mode: what is outside of the image: "zeros"; or "border", the nearest pixel. On and beyond the border
            pixels, the gradient of a coordinate with "border" is 0.
        align_corners: -1 and 1 are the centres of the corner pixels (True), or the outer edges of the image.

    Raises:
        NotImplementedError: another mode, or input that does not have four axes.
    """
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border") or input._data.ndim != 4:
        raise NotImplementedError(
            "grid_sample: gradcli.engine reads [N, C, H, W] in the modes bilinear and nearest, with zeros or border "
            f"outside; got {input._data.ndim}D input, mode={mode!r}, padding_mode={padding_mode!r}"
        )
    sizes = (input._data.shape[3], input._data.shape[2])
    if mode == "nearest":
        input, grid = passed(input, grid), passed(grid, input, grid, zeros=False)
    x, y = (_unscaled(grid[..., axis], size, bool(align_corners)) for axis, size in enumerate(sizes))
    if padding_mode == "border":
        x, y = hardtanh(x, 0, sizes[0] - 1), hardtanh(y, 0, sizes[1] - 1)  # its gradient at the limits is 0
    if mode == "nearest":
        still = (x + y).unsqueeze(1)
        nothing = still.masked_fill(from_array(np.ones_like(still._data, dtype=np.bool_)), 0)  # the grid gets zeros
        return _read(input, x.round(), y.round()) + nothing
    left, top = x.floor().detach(), y.floor().detach()
    right, below = x - left, y - top
    return (
        _read(input, left, top) * ((1 - right) * (1 - below)).unsqueeze(1)
        + _read(input, left + 1, top) * (right * (1 - below)).unsqueeze(1)
        + _read(input, left, top + 1) * ((1 - right) * below).unsqueeze(1)
        + _read(input, left + 1, top + 1) * (right * below).unsqueeze(1)
    )


def _unscaled(place: Tensor, size: int, align: bool) -> Tensor:
    return (place + 1) * ((size - 1) / 2) if align else ((place + 1) * size - 1) / 2


def _read(input: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the pixels at integer coordinates, and 0 outside of the image."""
    height, width = input._data.shape[2:]
    inside = (x._data >= 0) & (x._data <= width - 1) & (y._data >= 0) & (y._data <= height - 1)
    columns, rows = (
        np.nan_to_num(place._data).clip(0, size - 1).astype(np.int64) for place, size in ((x, width), (y, height))
    )
    spots = from_array((rows * width + columns).reshape(len(columns), 1, -1))
    flat = input.flatten(2)
    taken = flat.gather(2, spots.expand(-1, flat._data.shape[1], -1)).reshape(
        *input._data.shape[:2], *columns.shape[1:]
    )
    return taken.masked_fill(from_array(~inside[:, None]), 0)
