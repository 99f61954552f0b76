"""Compares gradients of functions that read only one triangle of a symmetric matrix.

How such a gradient is divided between the two triangles is a convention, so that it is compared along symmetric
directions only. A function that reads both triangles, or their mean, has one derivative, and a gradient that is folded
into one triangle is then wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.numerics.claims.compare import Impression, Judgement
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.sizes import FINE
from gradcli.numerics.maps.space import Block
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.reference.discrepancy import block_of
from gradcli.numerics.sampling.directions import MOVE, Focus, random_direction
from gradcli.numerics.sampling.line import on_grid

NOTE = (
    "forward reads only one triangle of this symmetric input: the gradient is compared for symmetric changes, and may "
    "be divided between the two triangles in any way"
)
OTHER_SHARES = (
    "autodiff of forward's body divides the gradient of this symmetric input between the two triangles in another way; "
    "finite differences agree with the gradient"
)


def on_symmetric_changes(site: Site, input_: int, output: int, significance: float) -> Judgement | None:
    """Judge a pair along a symmetric direction, if forward reads only one triangle of a symmetric matrix.

    At a higher order the map is a gradient of forward's, which may read both triangles in backward: the convention is
    that of forward, by which all derivatives hold for symmetric changes only.

    Returns:
        The judgement AGREES or WEAK; None if the claim differs along that direction, if forward reads both triangles or
        neither, or if the input is not a symmetric matrix.
    """
    if not _is_symmetric(site, input_):
        return None
    block, places = site.map.domain.blocks[input_], site.map.domain.slices[input_]

    def measured(change: NDArray[Any]) -> Vector:
        direction = np.zeros(site.x.size)
        direction[places] = change.reshape(-1).view(np.float64)
        return direction

    drawn = _matrices(block, random_direction(site.rng, site.scales)[places]).reshape(block.shape)
    triangles = (np.triu(drawn, 1), np.tril(drawn, -1))
    upper, lower = (_unread(site, measured(change), output) for change in triangles)
    if upper is lower:
        return None
    reading = site.measure(
        measured((drawn + _adjoint(drawn)) / 2),
        places,
        Focus(drawn=site.scales, judged=site.scales),
        cheap=False,
    )
    judgement = site.judge(reading, input_, output, significance)
    return judgement if judgement.impression in (Impression.AGREES, Impression.WEAK) else None


def share_alike(site: Site, input_: int, output: int) -> bool:
    """Whether claim and reference, at a symmetric matrix, differ only in how they divide it between its triangles."""
    if not _is_symmetric(site, input_):
        return False
    claimed, reference = (_matrices(site.map.domain.blocks[input_], rows) for rows in block_of(site, input_, output))
    apart = claimed - reference
    return bool(np.abs(apart + _adjoint(apart)).max() <= FINE * np.abs(claimed).max())


def _is_symmetric(site: Site, input_: int) -> bool:
    """Whether an input is an exactly symmetric matrix, of complex numbers a Hermitian one, or a batch of such."""
    block = site.map.domain.blocks[input_]
    if len(block.shape) < 2 or block.shape[-1] != block.shape[-2] or block.shape[-1] < 2:
        return False
    matrix = _matrices(block, site.x[site.map.domain.slices[input_]])
    return bool(np.array_equal(matrix, _adjoint(matrix)))


def _matrices(block: Block, coordinates: Vector) -> NDArray[Any]:
    """Coordinates of a block as matrices, of complex numbers where the block is."""
    numbers = np.ascontiguousarray(coordinates)
    return (numbers.view(np.complex128) if block.complex else numbers).reshape(-1, *block.shape)


def _adjoint(matrices: NDArray[Any]) -> NDArray[Any]:
    return np.swapaxes(matrices, -1, -2).conj()


def _unread(site: Site, direction: Vector, output: int) -> bool:
    """Whether an output, or all those of forward at a higher order, stay the same bit for bit along a direction.

    A slope of zero within its bound would not do: the values of an iteration are so rough that the bound is wide.
    """
    map_: VectorMap = site.map
    while map_.below is not None:
        map_ = map_.below
    places = site.map.codomain.slices[output] if map_ is site.map else slice(None)
    part = slice(0, map_.domain.size)
    try:
        here, there = map_.values_at([site.x[part], (site.x + on_grid(MOVE) * direction)[part]])
    except Exception:  # outside the domain
        return False
    return bool(np.array_equal(here[places], there[places]))
