"""Outputs of which nothing but rounding is left: terms that cancel, as in a bias's gradient before a batch norm."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.outcome import Pair
from gradcli.numerics.sampling.directions import random_direction, within
from gradcli.numerics.sampling.line import on_grid, point_along

FARTHEST = 64.0
"""If values are nothing but rounding, they and their claims stay within so many times the noise when the input changes
by its own magnitude."""
PLACES = (0.75, 0.3, -0.3, -0.75)


def is_rounding_only(site: Site, pair: Pair) -> bool:
    """Whether an output is rounding, here and far along the input, and the claim for the pair says no more.

    The noise is what moving every entry of x by a few units of its own does to the values; a value that is no larger
    than that has no digit that is right. A derivative that mattered would carry the values out of the noise on the way.

    Args:
        site: the point, without a witness, of a map that tells of its noise: those of order 2 and above do.
        pair: the numbers of the input block and the output block.
    """
    rows, inside = site.rows(pair[1]), site.map.domain.slices[pair[0]]
    noise = site.row_noise()[rows]
    values = np.abs(site.row_values()[rows])
    if not noise.any() or not np.isfinite(noise).all() or not (values <= NOISE_FACTOR * noise).all():
        return False
    if not site.claim.entry_scale(inside, pair[1], site.scales) <= FARTHEST * float(noise.max()):
        return False
    direction = random_direction(site.rng, within(site.scales, inside))
    for place in PLACES:
        try:
            there = site.read(point_along(site.x, direction, on_grid(place)))[rows]
        except Exception:  # outside the domain: nothing is known of that side
            return False
        if not (np.abs(there) <= FARTHEST * float(noise.max())).all():
            return False
    return True
