"""Tests whether a derivative exists: if so, slopes along different directions add up."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.directional import FINER, FIRST_STEP
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.floats import Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import Focus, random_direction


def additive(site: Site, places: slice, rows: Mask, focus: Focus, slack: Vector | float = 0.0) -> bool:
    """Whether D(v) + D(w) = D(v + w) within three bounds, or within `slack`, for all the given rows.

    At a tie, a sorting function is smooth along every line through the point but has no derivative: its slopes do not
    add up. Then no claim can be called wrong. Also False if a row is not smooth in any of the three measurements.
    """
    open_ = rows.copy()
    # Rows that are not smooth along these lines are measured along others over smaller steps: a kink may be close.
    for start in (FIRST_STEP, FIRST_STEP * FINER[0], FIRST_STEP * FINER[0]):
        one, two = random_direction(site.rng, focus.drawn), random_direction(site.rng, focus.drawn)
        readings = [site.measure(v, places, focus, cheap=False, start=start) for v in (one, two, one + two)]
        first, second, both = readings
        smooth = first.smooth & second.smooth & both.smooth
        with np.errstate(all="ignore"):
            gap = np.abs(first.numeric + second.numeric - both.numeric)
            allowed = FAIL_FACTOR * (first.bound + second.bound + both.bound)
            apart = smooth & ~(gap <= np.maximum(allowed, slack))
        if (apart & open_).any():
            return False
        open_ &= ~smooth
        if not open_.any():
            return True
    return False
