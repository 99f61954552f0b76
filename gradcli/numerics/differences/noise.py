"""Measures the noise of a function's values: their distance from a smooth curve through nearby points."""

from __future__ import annotations

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.formats import FLOAT32, single_precision
from gradcli.numerics.maps.floats import EPS, Mask, Matrix, Vector

ROUNDING_FLOOR = 0.4
"""The standard deviation of a value is never taken to be below this many unit roundoffs of it. That of an evenly
distributed rounding error is 0.29 to 0.58 unit roundoffs, depending on the leading digits of the value, and 0.41 in
the middle."""


def residual_noise(nodes: Vector, values: Matrix, degrees: tuple[int, ...]) -> Vector:
    """For every output, the largest root-mean-square residual of least-squares polynomials of the given degrees.

    Args:
        nodes: (k,) parameters, not equally spaced, so that rounding errors do not repeat.
        values: (k, m) finite values.
        degrees: polynomial degrees below k - 1.
    """
    scaled = nodes / np.abs(nodes).max()
    basis, _ = np.linalg.qr(np.vander(scaled, max(degrees) + 1, increasing=True))
    coefficients = basis.T @ values
    worst = np.zeros(values.shape[1])
    for degree in degrees:
        residual = values - basis[:, : degree + 1] @ coefficients[: degree + 1]
        worst = np.maximum(worst, np.sqrt((residual * residual).sum(axis=0) / (len(nodes) - degree - 1)))
    return worst


def quantised(values: Matrix) -> tuple[Mask, Vector]:
    """Which outputs change by small whole multiples (below 64) of one quantum between adjacent points; and the quantum.

    A quantum of up to 100 unit roundoffs of the value is not counted: that is rounding to float64.
    """
    changes = np.abs(np.diff(values, axis=0))
    quantum = np.where(changes > 0, changes, np.inf).min(axis=0)
    multiples = changes / quantum
    whole = np.round(multiples)
    coarse = np.isfinite(quantum) & (quantum > 100 * EPS * np.abs(values).max(axis=0))
    stepped: Mask = coarse & (np.abs(multiples - whole) < 1e-6).all(axis=0) & (whole.max(axis=0) < 64)
    return stepped & (np.ptp(whole, axis=0) > 0), quantum


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nine points around x at one scale.

    Attributes:
        step: the distance of the nearest point from x.
        noise: the standard deviation of every output.
        constant: the outputs that are the same at all nine points.
        broken: the outputs that have a kink or jump at x.
    """

    step: float
    noise: Vector
    constant: Mask
    broken: Mask


def measure_cluster(nodes: Vector, values: Matrix, step: float) -> Cluster:
    """Measure the noise at nine points t_-4, ..., t_4 with t_0 = 0.

    The noise is what polynomials leave of the values; for values on a grid, at least half the grid's width; for float32
    numbers, at least half the largest rounding error of such a number, 2^-25 of the value, because nine of them may
    happen to be equal.

    An output has a kink or jump exactly at x (`broken`), and not noise, if each half without the centre is at least 30
    times smoother than the whole. Its noise is then twice that of the halves.
    """
    finite = np.isfinite(values).all(axis=0)
    safe = np.where(finite, values, 0.0)
    with np.errstate(all="ignore"):
        size = np.abs(safe).max(axis=0)
        noise = np.where(finite, residual_noise(nodes, safe, (4, 5)), np.inf)
        stepped, quantum = quantised(safe)
        noise = np.where(stepped, np.maximum(noise, 0.5 * quantum), noise)
        halves = np.maximum(residual_noise(nodes[:4], safe[:4], (2,)), residual_noise(nodes[5:], safe[5:], (2,)))
        halves = np.maximum(halves, EPS * size)
        broken = np.isfinite(noise) & (noise > 30 * halves)
        noise = np.where(broken, 2 * halves, noise)
        noise = np.where(single_precision(safe), np.maximum(noise, 0.5 * FLOAT32.roundoff * size), noise)
    constant = finite & (np.ptp(safe, axis=0) == 0)
    return Cluster(step, np.maximum(noise, ROUNDING_FLOOR * EPS * size), constant, broken)
