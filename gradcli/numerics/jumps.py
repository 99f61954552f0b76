"""Looking for jumps of a function along a line: the mark of an iteration that stops at a tolerance."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.line import Line, on_grid
from gradcli.numerics.noise import Mask
from gradcli.numerics.probe import random_direction
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector
from gradcli.numerics.stencil import EPS

REACHES = (0.25, 0.02)
NODES = 33
LARGEST = 1e-2


def smallest_jump(site: Site, places: slice, failing: Mask) -> bool:
    """Whether some failing row jumps by less than 1e-2 of itself within a quarter of the scale round the point.

    A sixth difference of 33 equally spaced values is small wherever the function is smooth and stands out where it is not;
    the bracket that stands out most is halved 20 times, and what is left of the gap tells a jump from a kink.
    """
    direction = random_direction(site.rng, site.scales, places)
    line = Line(site.read, site.x, direction, site.claim.read(site.outputs))
    rows = np.flatnonzero(failing)[:4]
    for reach in REACHES:
        nodes = [on_grid(reach * (2 * k / (NODES - 1) - 1)) for k in range(NODES)]
        values = np.array([line.at(t)[rows] if t else line.centre[rows] for t in nodes])
        for column, row in enumerate(rows.tolist()):
            if np.isfinite(values[:, column]).all() and _jumps(line, row, nodes, values[:, column]):
                return True
    return False


def _jumps(line: Line, row: int, nodes: list[float], values: Vector) -> bool:
    size = float(np.abs(values).max())
    rough = np.abs(np.diff(values, 6)) / 30.4
    if not rough.max() > 1e3 * EPS * size or rough.max() < 30 * float(np.median(rough)):
        return False
    peak = int(np.argmax(rough)) + 3
    best = max(range(max(peak - 3, 0), min(peak + 3, NODES - 1)), key=lambda k: _excess(values, k))
    a, b = nodes[best], nodes[best + 1]
    at_a, at_b = float(values[best]), float(values[best + 1])
    slope = (at_b - at_a) / (b - a)
    for _ in range(24):
        middle = 0.5 * (a + b)
        value = float(line.at(middle)[row])
        if abs(value - at_a - 0.5 * slope * (b - a)) > abs(at_b - value - 0.5 * slope * (b - a)):
            b, at_b = middle, value
        else:
            a, at_a = middle, value
    gap = abs(at_b - at_a)
    smooth_part = 4 * abs(slope) * (b - a) + 64 * EPS * size
    return smooth_part < gap < LARGEST * max(size, 1e-300)


def _excess(values: Vector, k: int) -> float:
    """How far the change over one interval departs from its neighbours' mean."""
    change = np.diff(values)
    near = change[max(k - 1, 0) : k + 2]
    return float(abs(change[k] - (near.sum() - change[k]) / max(len(near) - 1, 1)))
