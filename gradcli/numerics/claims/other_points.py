"""Chooses other points of a map, of other magnitudes and signs, where a gradient that is zero at x may be nonzero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import random_direction


def other_points(site: Site) -> Iterator[tuple[str, Vector]]:
    """Yield other points, each with a description.

    With a reference, the first two have other magnitudes than x; without one, the first is -x.
    """
    size = np.abs(random_direction(site.rng, np.ones(site.x.size)))
    signs = np.where(site.x != 0, np.sign(site.x), site.rng.choice([-1.0, 1.0], site.x.size))
    if site.witness_rows is not None:
        yield "inputs of magnitude about 1 with signs opposite to the given ones", -signs * size
        yield "inputs of magnitude about 0.01 with the signs of the given ones", signs * size * 2.0**-7
    yield "-x", -site.x
    yield "inputs of magnitude about 1 with the signs of the given ones", signs * size
    for factor in (2.0**-6, 2.0**-12, 2.0**-3, 2.0**-9):
        yield f"the inputs times {factor:g}", site.x * factor
    yield "the inputs times 4", site.x * 4.0
    for _ in range(3):
        drawn = random_direction(site.rng, np.ones(site.x.size))
        yield "random inputs of the same magnitude", drawn * site.scales
        yield "random inputs of magnitude about 1", drawn
