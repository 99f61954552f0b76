"""The noise of a function's values, measured from what remains after subtracting a smooth curve."""

from __future__ import annotations

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.formats import FLOAT32, single_precision
from gradcli.numerics.maps.floats import EPS, Mask, Matrix
from gradcli.numerics.maps.median import median
from gradcli.numerics.maps.space import Vector

ROUNDING_FLOOR = 0.4
"""Values are never assumed to be known better than so many units of rounding."""


def residual_noise(nodes: Vector, values: Matrix, degrees: tuple[int, ...]) -> Vector:
    """The largest root-mean-square residual of least-squares polynomials of the given degrees, per output.

    Args:
        nodes: (k,) parameters, not equally spaced, so that rounding does not repeat between nodes.
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
    """Whether all changes between neighbouring values are small whole multiples of one quantum, and the quantum."""
    changes = np.abs(np.diff(values, axis=0))
    quantum = np.where(changes > 0, changes, np.inf).min(axis=0)
    multiples = changes / quantum
    whole = np.round(multiples)
    coarse = np.isfinite(quantum) & (quantum > 100 * EPS * np.abs(values).max(axis=0))
    stepped: Mask = coarse & (np.abs(multiples - whole) < 1e-6).all(axis=0) & (whole.max(axis=0) < 64)
    return stepped & (np.ptp(whole, axis=0) > 0), quantum


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nine nodes around x at one scale: the noise there, and the shape of the nine values."""

    step: float
    noise: Vector
    constant: Mask
    broken: Mask


def measure_cluster(nodes: Vector, values: Matrix, step: float) -> Cluster:
    """Measure noise on nine nodes t_-4 .. t_4 (t_0 = 0).

    A kink or jump exactly at x is told from noise: each half, without the centre, is then at least 30 times smoother
    than the whole. `broken` marks such outputs, and their noise is that of the halves.
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


def pool(noise: Vector, centre: Vector) -> Vector:
    """Raise the noise of every output to the median relative noise: a single residual may be small by chance."""
    size = np.abs(centre)
    usable = (size > 0) & np.isfinite(noise)
    if noise.size < 8 or not usable.any():
        return noise
    raised: Vector = np.maximum(noise, median(noise[usable] / size[usable]) * np.where(np.isfinite(size), size, 0.0))
    return raised
