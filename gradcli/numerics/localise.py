"""Which entries of a large claimed gradient are wrong, from directional derivatives alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gradcli.numerics.compare import FAIL_FACTOR
from gradcli.numerics.probe import Focus, random_direction, within
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector

Indices = npt.NDArray[np.intp]

LARGEST_COUNT = 64
LARGEST_SEARCH = 400
"""Directions measured at most."""


def locate(site: Site, input_: int, output: int) -> Indices | None:
    """Find the wrong entries of one input block by halving it; None where they are too many to name."""
    return _Search(site, input_, output).run()


class _Search:
    def __init__(self, site: Site, input_: int, output: int) -> None:
        self.site = site
        self.places = site.map.domain.slices[input_]
        self.rows = site.rows(output)
        self.weights = random_direction(site.rng, within(site.scales, self.places))
        self.measured = 0

    def gap(self, start: int, stop: int) -> tuple[Vector, Vector]:
        """Claimed minus measured along a stretch of the block, with its tolerance, for every row of the output."""
        self.measured += 1
        direction = np.zeros(self.site.x.size)
        low = self.places.start
        direction[low + start : low + stop] = self.weights[low + start : low + stop]
        reading = self.site.measure(direction, self.places, Focus(drawn=self.weights, judged=self.site.scales))
        with np.errstate(all="ignore"):
            gap = np.where(self.rows & reading.smooth & ~reading.claimless, reading.claimed - reading.numeric, 0.0)
        return gap, np.where(np.isfinite(reading.tolerance), reading.tolerance, 0.0)

    def run(self) -> Indices | None:
        found: list[int] = []
        open_ = [(0, self.places.stop - self.places.start)]
        while open_:
            start, stop = open_.pop()
            gap, tolerance = self.gap(start, stop)
            if not (np.abs(gap) > FAIL_FACTOR * tolerance).any():
                continue
            if stop - start == 1:
                found.append(start)
            else:
                middle = (start + stop) // 2
                open_ += [(middle, stop), (start, middle)]
            if self.measured >= LARGEST_SEARCH or len(found) >= LARGEST_COUNT:
                return None
        return np.array(sorted(found), dtype=np.intp)
