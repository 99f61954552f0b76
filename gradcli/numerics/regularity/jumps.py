"""Searches a line for jumps of a function, which an iteration that stops at a tolerance makes."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import EPS, Mask, Vector, median
from gradcli.numerics.regularity.iteration import on_other_branches
from gradcli.numerics.sampling.directions import TRIES
from gradcli.numerics.sampling.line import Line, on_grid, point_along

REACHES = (0.25, 0.02, 0.75)
"""The search covers [-T, T] for these T in turn, in magnitudes of x, until one shows a jump."""
NODES = 49
"""The number of equally spaced values on such an interval."""
LARGEST = 1e-2
"""Jumps larger than this part of the values belong to the function itself."""
ENLARGED = 4
"""The interval is magnified at least this many times. Two neighbouring kinks may look like a jump at two magnifications
by chance."""
MOST_ENLARGED = 10
"""The interval is magnified at most this many times, by six each time."""
GROWING = 1.5
"""If the sixth difference has grown by this factor in the last magnification, the interval is magnified further."""
GROWN = 20.0
"""If the sixth difference has grown by this factor altogether, there is a pole."""
BINOMIALS = 30.4
"""The root of the sum of the squared coefficients of a sixth difference, √924. Divided by it, the sixth difference of
values with independent noise has the standard deviation of the noise."""


def jump_nearby(site: Site, direction: Vector, rows: Mask) -> Vector:
    """Search for jumps of the rows along a direction, not far from the point.

    Sixth differences of 49 equally spaced values are small where the function is smooth; where they stand out, it is
    not. The interval around such a place is magnified by six repeatedly: at a kink the difference falls by six each
    time, at a jump it stays, at a pole it grows.

    If forward runs other branches of its code on the two sides of a jump, the jump belongs to the function itself. Then
    it does not show how accurate the values on either side are, and is ignored. So are jumps of `LARGEST` or more.

    Returns:
        For every row, the largest relative jump found in any row, times the size of the row at x: an iteration makes
        all of its rows jump alike. Zeros if there is none.
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
    """NODES equally spaced parameters from `low` to `high`, and the values there."""
    nodes = [on_grid(low + (high - low) * k / (NODES - 1)) for k in range(NODES)]
    return nodes, np.array([line.at(t) if t else line.centre for t in nodes])


def _roughness(values: Vector) -> Vector:
    """The absolute sixth differences of the values, divided so that noise gives its own standard deviation."""
    rough: Vector = np.abs(np.diff(values, 6, axis=0)) / BINOMIALS
    return rough


def _enlarge(line: Line, row: int, reach: float, peak: int, height: float) -> tuple[float, float, float]:
    """The jump of one row near node `peak` + 3, and the two parameters between which it lies.

    The jump is three times the normalised sixth difference: across a jump of 1, the largest coefficient sum is 10, and
    30.4 / 10 is 3. It is 0.0 if the magnification shows a kink, a pole or a smooth curve.

    Args:
        line: gives the values.
        row: the row.
        reach: the interval searched is [-reach, reach].
        peak: where the sixth difference stands out.
        height: the normalised sixth difference there.
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
