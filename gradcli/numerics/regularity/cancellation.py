"""Detects outputs that consist of rounding errors only, because all terms cancel.

An example is the gradient of a bias before a batch norm, which is exactly zero: the computed one is the rounding error
of a sum.
"""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.row_noise import REMNANT
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.outcome import Pair
from gradcli.numerics.sampling.directions import random_direction, within
from gradcli.numerics.sampling.line import on_grid, point_along

PLACES = (0.75, 0.3, -0.3, -0.75)
"""The values are computed at these places, in magnitudes of x."""


def is_rounding_only(site: Site, pair: Pair) -> bool:
    """Whether an output consists of rounding errors only, at x and far along the input, and the claim is as small.

    Three conditions: the values at x are at most NOISE_FACTOR times the noise, which is the change of the values when
    every entry of x moves by a few roundings; the largest scaled entry of the claim, and the values at four places up
    to 3/4 of the magnitude of x away, are at most `REMNANT` times the noise. A derivative that mattered would make the
    values at these places larger.

    Args:
        site: the point, without a reference. The map must give the noise of its values (`value_noise`), as maps of
            order 2 and above do; otherwise the answer is no.
        pair: the numbers of the input block and the output block.
    """
    rows, inside = site.rows(pair[1]), site.map.domain.slices[pair[0]]
    noise = site.row_noise().seen[rows]
    values = np.abs(site.row_values()[rows])
    if not noise.any() or not np.isfinite(noise).all() or not (values <= NOISE_FACTOR * noise).all():
        return False
    if not site.claim.entry_scale(inside, pair[1], site.scales) <= REMNANT * float(noise.max()):
        return False
    direction = random_direction(site.rng, within(site.scales, inside))
    there = (site.read(point_along(site.x, direction, on_grid(place)))[rows] for place in PLACES)
    return all((np.abs(values) <= REMNANT * float(noise.max())).all() for values in there)
