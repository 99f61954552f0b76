"""Telling a kink, a jump and a cusp at x from noise, and a jump near x from smooth fine structure."""

from __future__ import annotations

from itertools import chain

import numpy as np

from gradcli.numerics.differences.ladder import Ladder
from gradcli.numerics.maps.floats import EPS, Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.line import narrowed

SMALL_JUMP = 1e-2
"""A jump below this part of |f| is attributed to rounding or to an iteration that stops early, not to the function."""


def exponents(ladder: Ladder) -> Vector:
    """How the non-smooth part of f scales with distance from x: 0 for a jump, 1 for a kink, between them for a cusp."""
    coarse, fine = ladder.cluster_pairs[min(ladder.clusters)][0], ladder.cluster_pairs[max(ladder.clusters)][0]
    with np.errstate(all="ignore"):
        at_coarse = np.maximum(np.abs(coarse.even), np.abs(coarse.odd)) * coarse.step
        at_fine = np.maximum(np.abs(fine.even), np.abs(fine.odd)) * fine.step
        ratio: Vector = np.log(at_coarse / np.maximum(at_fine, 1e-300)) / np.log(coarse.step / fine.step)
    return np.where(np.isfinite(ratio), ratio, np.inf)


def broken_at_centre(ladder: Ladder) -> Mask:
    """Outputs for which every cluster so far shows two smooth halves that do not fit together."""
    return ladder.clusters[max(ladder.clusters)].broken


def even_dominates(ladder: Ladder) -> Mask:
    """Outputs whose values on both sides of x rise or fall together far more than they differ, and slower than t.

    A smooth function does so at an extremum, but there like t²; like a power between 0 and 1 only a cusp does.
    """
    quotients = [ladder.cluster_pairs[level][0] for level in (min(ladder.clusters), max(ladder.clusters))]
    with np.errstate(all="ignore"):
        together = np.logical_and.reduce([np.abs(p.even) > 10 * np.abs(p.odd) for p in quotients])
        power = exponents(ladder)
    dominant: Mask = together & (power > 0.15) & (power < 0.85)
    return dominant


def jump_size(ladder: Ladder, output: int, slope: float, finest: float, discrepancy: float) -> float | None:
    """Find the nearest place where values depart from the line f(x) + slope t, and the size of the jump there.

    Between the last node that fits and the first that does not the bracket is halved. Across smooth structure or a kink
    the gap shrinks with the bracket; across a jump it stays.

    Args:
        ladder: the evaluated nodes; new nodes are added to its line.
        output: which output.
        slope: the derivative that the finest windows give.
        finest: the step those windows rest on.
        discrepancy: how far the coarse estimate differs from `slope`.

    Returns:
        The jump relative to |f|, or None where there is none.
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
            first, *_, last = narrowed(departure, sign * previous, sign * step)
            return last.change / max(abs(centre), 1e-12) if last.change > 0.1 * first.change else None
        previous = step
    return None


def staircases(ladder: Ladder) -> Mask:
    """Outputs that are constant in a cluster but vary on both sides further out by more than float64 rounding.

    Such values have been rounded: to float32, to a grid, by an integer step. One side only is how a rectifier or a
    clamp near its edge looks, and that is a legitimate derivative of zero.
    """
    found = np.zeros(ladder.line.outputs, bool)
    for cluster in ladder.clusters.values():
        if cluster.constant.any():
            varies, quantum = ladder.line.variation(cluster.step)
            with np.errstate(all="ignore"):
                found |= cluster.constant & varies & (quantum > 16 * EPS * np.abs(ladder.line.centre))
    return found
