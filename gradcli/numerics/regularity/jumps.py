"""Looking for jumps of a function along a line: the mark of an iteration that stops at a tolerance."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import EPS, Mask
from gradcli.numerics.maps.median import median
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.regularity.iteration import on_other_branches
from gradcli.numerics.sampling.directions import TRIES
from gradcli.numerics.sampling.line import Line, on_grid, point_along

REACHES = (0.25, 0.02, 0.75)
NODES = 49
LARGEST = 1e-2
"""Larger jumps, as parts of the values, belong to the function itself."""
ENLARGED = 4
"""The place is enlarged so many times, because two neighbouring kinks may look alike at two enlargements by chance."""
MOST_ENLARGED = 10
GROWING = 1.5
"""If the difference has grown by this factor, the place is enlarged further."""
GROWN = 20.0
"""If the difference has grown by this factor, there is a pole."""
BINOMIALS = 30.4
"""Root of the sum of the squared sixth-difference coefficients: their size for unit noise."""


def jump_nearby(site: Site, direction: Vector, rows: Mask) -> Vector:
    """Look for jumps of the rows along a direction, not far from the point.

    A sixth difference of 49 equally spaced values is small wherever the function is smooth and stands out where it is
    not. The place is enlarged by six again and again: at a kink the difference falls by six each time, at a jump it
    stays, at a pole it grows.

    Where forward takes one branch before a jump and another after it, as its lines of code tell, the jump is the
    function's own: it says nothing of the values on either side.

    Returns:
        For every row the size of the largest jump found in any row (an algorithm's rows jump alike) relative to that
        row's size, times the row's size; zeros where there is none.
    """
    line = Line(site.read, site.x, direction, site.claim.read(site.outputs))
    chosen = np.flatnonzero(rows)
    found = 0.0
    for reach in REACHES:
        values = _sample(line, -reach, reach)[1][:, chosen]
        with np.errstate(all="ignore"):
            rough = _roughness(values)
            peak, size = rough.max(axis=0), np.abs(values).max(axis=0)
            stands_out = np.isfinite(values).all(axis=0) & (peak > 30 * median(rough)) & (peak > 1e3 * EPS * size)
        candidates = np.flatnonzero(stands_out)
        for column in candidates[np.argsort(-peak[candidates] / size[candidates])][:TRIES].tolist():
            row, place = int(chosen[column]), int(np.argmax(rough[:, column]))
            jump, low, high = _enlarge(line, row, reach, place, float(peak[column]))
            relative = jump / float(size[column])
            sides = (point_along(site.x, direction, t) for t in (low, high))
            if 0 < relative < LARGEST and not on_other_branches(site, *sides):
                found = max(found, relative)
        if found:
            break
    return found * np.abs(line.centre * line.scale)


def _sample(line: Line, low: float, high: float) -> tuple[list[float], Vector]:
    nodes = [on_grid(low + (high - low) * k / (NODES - 1)) for k in range(NODES)]
    return nodes, np.array([line.at(t) if t else line.centre for t in nodes])


def _roughness(values: Vector) -> Vector:
    rough: Vector = np.abs(np.diff(values, 6, axis=0)) / BINOMIALS
    return rough


def _enlarge(line: Line, row: int, reach: float, peak: int, height: float) -> tuple[float, float, float]:
    """The jump of one row near node `peak` + 3, and between which parameters it lies.

    The jump is 0.0 if enlarging shows a kink, a pole or a smooth curve.
    """
    low, high, most = -reach, reach, GROWN * height
    for number in range(MOST_ENLARGED):
        spacing = (high - low) / (NODES - 1)
        low, high = low + (peak - 1) * spacing, low + (peak + 7) * spacing
        _, values = _sample(line, low, high)
        rough = _roughness(values[:, row])
        now = float(rough.max()) if np.isfinite(rough).all() else 0.0
        if not 0.4 * height <= now <= most or now < 64 * EPS * float(np.abs(values[:, row]).max()):
            return 0.0, low, high
        grown = now > GROWING * height
        peak, height = int(np.argmax(rough)), now
        if number + 1 >= ENLARGED and not grown:
            break
    return 3.0 * height, low, high
