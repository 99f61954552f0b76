"""Images read at other places: the sampler of spatial transformers (Jaderberg et al., arXiv 1506.02025)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.creation import linspace, ones
from gradcli.engine.dtypes import BY_NUMPY
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor, from_array


def _centres(count: int, align: bool, kind: Any) -> Tensor:
    edge = 1.0 if align else 1 - 1 / count
    return linspace(-edge if count > 1 else 0.0, edge if count > 1 else 0.0, count, dtype=kind)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return the places [N, H, W, 2], from -1 to 1, that affine maps take a grid to.

    Args:
        theta: the maps, [N, 2, 3].
        size: (N, C, H, W) of the image to make.
        align_corners: -1 and 1 are the centres of the corners' elements, not the corners.

    Raises:
        NotImplementedError: the maps are of another dimension.
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
    """Return images [N, C, H, W] read at places [N, h, w, 2] between -1 and 1.

    Args:
        input: the images.
        grid: the places, (x, y) in the last axis.
        mode: "bilinear" or "nearest".
        padding_mode: what is outside: "zeros", or "border" for the nearest element.
        align_corners: -1 and 1 are the centres of the corners' elements, not the corners.

    Raises:
        NotImplementedError: another mode, or images of another dimension.
    """
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border") or input._data.ndim != 4:
        raise NotImplementedError(
            "grid_sample: gradcli.engine reads [N, C, H, W] in the modes bilinear and nearest, with zeros or border "
            f"outside; got {input._data.ndim}D input, mode={mode!r}, padding_mode={padding_mode!r}"
        )
    sizes = (input._data.shape[3], input._data.shape[2])
    x, y = (_unscaled(grid[..., axis], size, bool(align_corners)) for axis, size in enumerate(sizes))
    if padding_mode == "border":
        x, y = x.clamp(0, sizes[0] - 1), y.clamp(0, sizes[1] - 1)
    if mode == "nearest":
        return _read(input, x.round(), y.round())
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
    """Return the elements at whole places, 0 outside."""
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
