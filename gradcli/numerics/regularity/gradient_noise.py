"""Gradients have noise too: how much claim and witness jitter when the point moves by next to nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradcli.numerics.claims.site import Site, claimed_rows_at, witness_rows_at
from gradcli.numerics.differences.noise import residual_noise
from gradcli.numerics.maps.floats import Indices, Matrix
from gradcli.numerics.maps.pieces import largest
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling import directions
from gradcli.numerics.sampling.directions import CLOSE_BY, TRIES, UNITS, random_direction

NODES = 9
DEGREE = 4
JUMP = 1e-6
"""Values jump if a few units of rounding in the inputs change one of them by more than this part of the largest."""
DISCONTINUOUS = 1e-3
"""If the gradient changes by more than this part of its largest entry under rounding of the inputs, it jumps, and no
difference is excused."""

Gradient = Callable[[Vector], Matrix | None]
RowsAt = Callable[[Site, Vector, slice], Matrix | None]


def jitter(site: Site) -> Matrix:
    """The standard deviations of claim and witness together, entry by entry; zero where they jump.

    Each is asked at three points that differ from x by a few units of rounding, relative to every entry so that zeros
    stay, and along a line of nine points 2^-22 apart, of which a polynomial of degree 4 is taken away. A source of
    noise that acts on neighbouring points alike shows on the line only; one that a longer line smears, in the nudges.

    Args:
        site: the point, with its witness.

    Returns:
        An array like the claim's forms.
    """
    claim = site.claim
    total = np.zeros_like(claim.forms)
    for gradient, here in ((_claimed(site), claim.forms), (_told(site), site.witness_rows)):
        if here is not None:
            total += _jitter_of(site, gradient, here, np.abs(here).max(axis=1, keepdims=True, initial=0.0))
    return total


def jitter_of(site: Site, row: int, columns: Indices) -> Vector:
    """The same for some entries of one row, which takes a call for that row alone at every point."""
    asked = slice(row, row + 1)
    total = np.zeros((1, columns.size))
    for rows_at, here in ((claimed_rows_at, site.claim.forms), (witness_rows_at, site.witness_rows)):

        def gradient(x: Vector, rows_at: RowsAt = rows_at) -> Matrix | None:
            return _entries(rows_at(site, x, asked), columns)

        if here is not None:
            whole = np.full((1, 1), largest(here[asked]))
            total += _jitter_of(site, gradient, here[asked][:, columns], whole)
    return np.asarray(total[0])


def _entries(rows: Matrix | None, columns: Indices) -> Matrix | None:
    return None if rows is None else rows[:, columns]


def _claimed(site: Site) -> Gradient:
    def at(x: Vector) -> Matrix | None:
        claim = site.claim_at(x)
        return None if claim is None else claim.forms

    return at


def _told(site: Site) -> Gradient:
    return lambda x: witness_rows_at(site, x)


def nudged(site: Site) -> Vector:
    """The point with every entry moved by a few units of its rounding, but for blocks that make the values jump.

    Labels that are compared for equality mean nothing beside their values: what changes there is no rounding.
    """
    if site.known_steady is None:
        site.known_steady = np.ones(site.x.size)
        for place in site.map.domain.slices if len(site.map.domain.slices) > 1 else ():
            site.known_steady[place] = not _jumps(site, place)
    return directions.nudged(site.rng, site.x, site.known_steady)


def _jumps(site: Site, place: slice) -> bool:
    there = site.x.copy()
    there[place] *= 1 + 4 * UNITS
    try:
        values = np.asarray(site.map.value(there), dtype=np.float64)
    except Exception:  # outside the domain: as good as a jump
        return True
    with np.errstate(all="ignore"):
        return bool((np.abs(values - site.outputs) > JUMP * np.abs(site.outputs).max(initial=0.0)).any())


def _jitter_of(site: Site, gradient: Gradient, here: Matrix, whole: Matrix) -> Matrix:
    """How some entries of a gradient, which are these at the point, jitter; `whole` is the largest of each row."""
    spread = np.zeros_like(here)
    for _ in range(TRIES):
        there = gradient(nudged(site))
        if there is not None:
            spread = np.fmax(spread, np.abs(there - here))
    spread = np.fmax(spread, _curve_noise(site, gradient, here))
    return np.where(spread <= DISCONTINUOUS * whole, spread, 0.0)


def _curve_noise(site: Site, gradient: Gradient, here: Matrix) -> Matrix:
    nodes = np.arange(NODES) - NODES // 2 + 0.3 * site.rng.uniform(-1, 1, NODES)
    direction = site.x * random_direction(site.rng, np.ones(site.x.size))
    values = [gradient(site.x + CLOSE_BY * t * direction) for t in nodes.tolist()]
    known = [value for value in values if value is not None]
    if len(known) < NODES:
        return np.zeros_like(here)
    noise = residual_noise(nodes, np.array(known).reshape(NODES, -1), (DEGREE,))
    return np.where(np.isfinite(noise), noise, 0.0).reshape(here.shape)
