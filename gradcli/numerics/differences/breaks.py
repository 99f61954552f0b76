"""Distinguishes kinks, jumps and cusps at x from noise, and jumps near x from smooth fine structure."""

from __future__ import annotations

from itertools import chain

import numpy as np

from gradcli.numerics.differences.ladder import Ladder
from gradcli.numerics.maps.floats import EPS, Mask, Vector
from gradcli.numerics.maps.sizes import COMPUTED, NOTHING
from gradcli.numerics.sampling.line import narrowed

SMALL_JUMP = 1e-2
"""A jump below this part of |f| is attributed to rounding or to an iteration that stops early, not to the function."""


JUMPS = 0.15
"""If f is not smooth at x and its change falls as a power of the distance to x that is below this, f jumps at x."""


def exponents(ladder: Ladder) -> Vector:
    """The power of the distance to x with which the change of f grows, between the finest and the coarsest cluster.

    If the clusters show that f is not smooth at x, it is 0 for a jump, 1 for a kink, and between 0 and 1 for a cusp.
    Infinity where it cannot be computed.
    """
    coarse, fine = ladder.cluster_pairs[min(ladder.clusters)][0], ladder.cluster_pairs[max(ladder.clusters)][0]
    with np.errstate(all="ignore"):
        at_coarse = np.maximum(np.abs(coarse.even), np.abs(coarse.odd)) * coarse.step
        at_fine = np.maximum(np.abs(fine.even), np.abs(fine.odd)) * fine.step
        ratio: Vector = np.log(at_coarse / np.maximum(at_fine, NOTHING)) / np.log(coarse.step / fine.step)
    return np.where(np.isfinite(ratio), ratio, np.inf)


def broken_at_centre(ladder: Ladder) -> Mask:
    """The outputs for which all clusters show two smooth halves that do not fit together at x."""
    return ladder.clusters[max(ladder.clusters)].broken


def even_dominates(ladder: Ladder) -> Mask:
    """The outputs that have a cusp such as √|t|: the values on both sides of x rise together, as a power below 1 of t.

    On both sides they change by ten times more than the sides differ, in the coarsest and the finest cluster. A smooth
    function does that at an extremum too, but as t²; the power must therefore be between `JUMPS` and 0.85.
    """
    quotients = [ladder.cluster_pairs[level][0] for level in (min(ladder.clusters), max(ladder.clusters))]
    with np.errstate(all="ignore"):
        together = np.logical_and.reduce([np.abs(p.even) > 10 * np.abs(p.odd) for p in quotients])
        power = exponents(ladder)
    dominant: Mask = together & (power > JUMPS) & (power < 0.85)
    return dominant


def jump_size(ladder: Ladder, output: int, slope: float, finest: float, discrepancy: float) -> float | None:
    """Find the nearest place where the values leave the line f(x) + slope · t, and the size of the jump there.

    The interval between the last point that lies on the line and the first that does not is halved up to 30 times.
    Across a smooth function or a kink the change shrinks with the interval; across a jump it stays.

    Args:
        ladder: the points evaluated so far; new ones are added to its line.
        slope: the derivative by the smallest steps.
        finest: the smallest of these steps.
        discrepancy: the absolute difference of the estimate by large steps from `slope`.

    Returns:
        The jump relative to |f|; None if there is no jump.
    """
    line, centre = ladder.line, float(ladder.line.centre[output])

    def departure(t: float) -> float:
        return float(line.at(t)[output]) - centre - slope * t

    noise = max(float(ladder.clusters[max(ladder.clusters)].noise[output]), EPS)
    steps = sorted(p.step for p in [*ladder.levels.values(), *chain.from_iterable(ladder.cluster_pairs.values())])
    previous = None
    for step in (t for t in steps if t >= 0.99 * finest):
        for sign in (1.0, -1.0):
            if previous is None or not abs(departure(sign * step)) > max(20 * noise, 0.3 * discrepancy * step):
                continue
            brackets = narrowed(departure, sign * previous, sign * step)
            first = last = next(brackets)
            for last in brackets:
                if last.change <= 0.1 * first.change:
                    return None
            return last.change / max(abs(centre), COMPUTED)
        previous = step
    return None


def staircases(ladder: Ladder) -> Mask:
    """The outputs that are constant in a cluster but vary on both sides farther away, by more than float64 rounding.

    Such values are rounded: to float32, to a grid, to whole numbers. An output that varies on one side only is not
    counted: a rectifier or a clamp does so near its edge, and its derivative is zero.
    """
    found = np.zeros(ladder.line.outputs, bool)
    for cluster in ladder.clusters.values():
        if cluster.constant.any():
            varies, quantum = ladder.line.variation(cluster.step)
            with np.errstate(all="ignore"):
                found |= cluster.constant & varies & (quantum > 16 * EPS * np.abs(ladder.line.centre))
    return found
