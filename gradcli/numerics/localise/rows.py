"""Locates the outputs whose claimed rows are wrong, by backward and one measured direction."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.floats import Indices
from gradcli.numerics.sampling.directions import random_direction

LARGEST_COUNT = 32
"""At most this many outputs are located."""
LARGEST_SEARCH = 400
"""A search tries at most this many cotangents."""


def wrong_rows(site: Site, input_: int, output: int) -> Indices:
    """Locate up to 32 outputs of one block whose claimed rows are wrong.

    One measured direction gives the slope of every output. The claimed slope of a group of outputs is computed by one
    run of backward with a random cotangent; a group that is wrong is divided into halves.

    Returns:
        Their numbers in the block; empty if the outputs are not measured one by one.
    """
    claim, places = site.claim, site.map.domain.slices[input_]
    outside = site.map.codomain.slices[output]
    if not (claim.full or claim.watch):
        return np.zeros(0, np.intp)
    reading = site.probe(places, cheap=False)
    first = outside.start
    numeric, bound = reading.numeric[: site.map.codomain.size], reading.bound[: site.map.codomain.size]
    found: list[int] = []
    open_, asked = [(first, outside.stop)], 0
    while open_ and asked < LARGEST_SEARCH and len(found) < LARGEST_COUNT:
        start, stop = open_.pop()
        cotangent = np.zeros(site.map.codomain.size)
        cotangent[start:stop] = random_direction(site.rng, np.ones(stop - start))
        asked += 1
        form = np.asarray(site.map.vjp(site.x, cotangent), dtype=np.float64)
        with np.errstate(all="ignore"):
            gap = abs(float(form @ reading.direction) - float(cotangent[start:stop] @ numeric[start:stop]))
            tolerance = float(np.abs(cotangent[start:stop]) @ bound[start:stop]) + 1e-15 * float(
                np.abs(form) @ np.abs(reading.direction)
            )
        if gap > FAIL_FACTOR * tolerance:
            if stop - start == 1:
                found.append(start - first)
            else:
                middle = (start + stop) // 2
                open_ += [(middle, stop), (start, middle)]
    return np.array(sorted(found), dtype=np.intp)
