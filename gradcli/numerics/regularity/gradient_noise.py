"""Measures the noise of gradients: how much claim and reference change when the point moves by a few roundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gradcli.numerics.claims.claim import Claim
from gradcli.numerics.claims.site import Site, witness_rows_at
from gradcli.numerics.differences.noise import residual_noise
from gradcli.numerics.maps.floats import Indices, Mask, Matrix, Vector
from gradcli.numerics.maps.sizes import MEASURABLE
from gradcli.numerics.sampling import directions
from gradcli.numerics.sampling.directions import CLOSE_BY, TRIES, UNITS, random_direction

NODES = 9
"""The gradient is computed at this many points of a line, about 2^-22 of x apart."""
DEGREE = 4
"""The noise along this line is the residual of a polynomial of this degree."""
JUMP = 1e-6
"""The values jump if moving the inputs by a few roundings changes some value by more than this part of the largest."""
DISCONTINUOUS = 1e-3
"""If an entry of the gradient changes by more than this part of the largest entry of its row when x moves by a few
roundings, the gradient is discontinuous there. Its change is then not noise and excuses no difference."""

Gradient = Callable[[Vector], Matrix | None]
RowsAt = Callable[[Site, Vector], Matrix | None]


def jitter(site: Site) -> Matrix:
    """The noise of the claim plus that of the reference, entry by entry; zero where they are discontinuous.

    Two measurements are made of each, and the larger one counts: the largest change over three points that differ from
    x by a few roundings (of every entry, so that zeros stay zero), and the root-mean-square residual of a polynomial of
    degree 4 through nine points of a line, 2^-22 apart. Noise that is equal at neighbouring points shows along the line
    only; noise that varies too fast for the line shows in the three points. The result is computed once for a site.

    Args:
        site: the point, with its reference.

    Returns:
        An array of the shape of the claim's forms. Only the noise of entries in which claim and reference may differ is
        asked for: it is zero in columns that are equal up to `MEASURABLE` of each entry.
    """
    claimed, reference = site.claim.forms, site.witness_rows
    if site.known_jitter is None:
        site.known_jitter = np.zeros_like(claimed)
        beside = np.zeros_like(claimed) if reference is None else reference
        size = np.maximum(np.abs(claimed), np.abs(beside))
        columns = np.flatnonzero((np.abs(claimed - beside) > MEASURABLE * size).any(axis=0))
        for rows_at, here in (_claimed_rows, claimed), (witness_rows_at, reference):
            if here is not None:
                site.known_jitter[:, columns] += _jitter_of(site, rows_at, here, columns)
    return site.known_jitter


def _claimed_rows(site: Site, x: Vector) -> Matrix | None:
    claim = site.claim_at(x)
    return None if claim is None else claim.forms


def nudged(site: Site) -> Vector:
    """The point with every entry moved by a few roundings, except in input blocks that make the values jump.

    An example is labels that forward compares for equality: between them forward is another function, so that the
    change of the values is not rounding. Which blocks jump is measured once for a site.
    """
    if site.known_steady is None:
        site.known_steady = np.ones(site.x.size)
        for place in site.map.domain.slices if len(site.map.domain.slices) > 1 else ():
            site.known_steady[place] = not _jumps(site, place)
    return directions.nudged(site.rng, site.x, site.known_steady)


def nudged_claims(site: Site, asked: Mask | None = None) -> Iterator[Claim]:
    """The claims, for all rows or those that are `asked`, at three points that differ from x by a few roundings."""
    for _ in range(TRIES):
        claim = site.claim_at(nudged(site), asked)
        if claim is not None:
            yield claim


def _jumps(site: Site, place: slice) -> bool:
    """Whether the values jump (`JUMP`) when the entries at `place` grow by four roundings; True if forward raises."""
    there = site.x.copy()
    there[place] *= 1 + 4 * UNITS
    known = np.isfinite(site.outputs)
    with np.errstate(all="ignore"):
        change = np.abs(site.value_at(there) - site.outputs)[known]
    return not (change <= JUMP * np.abs(site.outputs[known]).max(initial=0.0)).all()


def _jitter_of(site: Site, rows_at: RowsAt, here: Matrix, columns: Indices) -> Matrix:
    """The noise of some columns of a gradient, which is `here` at the point; zero in entries that are discontinuous."""

    def gradient(x: Vector) -> Matrix | None:
        rows = rows_at(site, x)
        return None if rows is None else rows[:, columns]

    spread, known = np.zeros((len(here), columns.size)), here[:, columns]
    for _ in range(TRIES):
        there = gradient(nudged(site))
        if there is not None:
            spread = np.fmax(spread, np.abs(there - known))
    spread = np.fmax(spread, _curve_noise(site, gradient, known))
    return np.where(spread <= DISCONTINUOUS * np.abs(here).max(axis=1, keepdims=True, initial=0.0), spread, 0.0)


def _curve_noise(site: Site, gradient: Gradient, here: Matrix) -> Matrix:
    """The root-mean-square residual of a polynomial through nine points of a line; zeros if one is not known."""
    nodes = np.arange(NODES) - NODES // 2 + 0.3 * site.rng.uniform(-1, 1, NODES)
    direction = site.x * random_direction(site.rng, np.ones(site.x.size))
    values = [gradient(site.x + CLOSE_BY * t * direction) for t in nodes.tolist()]
    known = [value for value in values if value is not None]
    if len(known) < NODES:
        return np.zeros_like(here)
    noise = residual_noise(nodes, np.array(known).reshape(NODES, -1), (DEGREE,))
    return np.where(np.isfinite(noise), noise, 0.0).reshape(here.shape)
