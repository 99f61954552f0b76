"""Functions of symmetric matrices: their gradient is only defined up to how it is shared between the two triangles."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.compare import Impression
from gradcli.numerics.probe import Focus, random_direction
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector


def holds_on_symmetric_matrices(site: Site, input_: int, output: int, significance: float) -> bool:
    """Whether the claim is right along symmetric directions, at a symmetric matrix, for a function that expects one.

    The function expects one if it does not see one of its triangles, or sees the symmetric part only: its derivative is
    zero along the strict upper, the strict lower, or the antisymmetric directions. Otherwise a transposed gradient
    would pass at every symmetric matrix.
    """
    block, places = site.map.domain.blocks[input_], site.map.domain.slices[input_]
    if block.complex or len(block.shape) < 2 or block.shape[-1] != block.shape[-2] or block.shape[-1] < 2:
        return False
    matrix = site.x[places].reshape(block.shape)
    if not np.array_equal(matrix, np.swapaxes(matrix, -1, -2)):
        return False

    def measured(change: Vector) -> Vector:
        direction = np.zeros(site.x.size)
        direction[places] = change.reshape(-1)
        return direction

    drawn = random_direction(site.rng, site.scales)[places].reshape(block.shape)
    flipped = np.swapaxes(drawn, -1, -2)
    blind = (np.triu(drawn, 1), np.tril(drawn, -1), (drawn - flipped) / 2)
    if not any(_unseen(site, measured(change), places, output) for change in blind):
        return False
    reading = site.measure(
        measured((drawn + flipped) / 2), places, Focus(drawn=site.scales, judged=site.scales), cheap=False
    )
    return site.judge(reading, input_, output, significance).impression is Impression.AGREES


def _unseen(site: Site, direction: Vector, places: slice, output: int) -> bool:
    reading = site.measure(direction, places, Focus(drawn=site.scales, judged=site.scales), cheap=False)
    rows = site.rows(output)
    still = reading.smooth & (np.abs(reading.numeric) <= 3 * reading.bound)
    return bool(still[rows].all())
