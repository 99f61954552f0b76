"""Telling a function that iterates until it is satisfied: the number of its steps depends on the point."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gradcli.numerics.probe import moved, random_direction
from gradcli.numerics.site import Site

NEARBY = 3
FARTHER = (0.125, -0.125, 0.25, -0.25, 0.5, -0.5, 0.9, -0.9)
LOOSE = 1e-3
"""The largest gap that stopping early is taken to explain."""


def iterates(site: Site) -> bool:
    """Whether the map runs more of its code at some points than at others, close by or as far away as x is large.

    An iteration stopped at a tolerance is, close by, a fixed number of steps with a derivative of its own, which is off
    that of the solution by about the tolerance; only its effort elsewhere gives it away.

    Args:
        site: the point.
    """
    here = _effort(site, site.x)
    if here is None or here != _effort(site, site.x):
        return False
    points = [moved(site.rng, site.x, site.scales) for _ in range(NEARBY)]
    for t in FARTHER:
        points.append(site.x + t * random_direction(site.rng, site.scales))
    return any(effort is not None and effort != here for effort in (_effort(site, x) for x in points))


def _effort(site: Site, x: np.ndarray) -> int | None:
    """None where nobody counts, and outside the domain."""
    with suppress(Exception):
        return site.map.effort(x)
    return None
