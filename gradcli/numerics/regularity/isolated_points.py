"""A claim that is wrong at one point alone: outside the slopes on a kink, or off where the function is smooth."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import BlockOutcome, KinkNote, Table
from gradcli.numerics.sampling.directions import TRIES, moved, random_direction, within

NEARBY = 6
MOVE = 2.0**-20
FAR_OFF = 10.0
"""A claim is wrong at the point alone if, at points close by, it is so many times closer to the slope."""


def certain(site: Site, kink: KinkNote) -> bool:
    """Whether a claim outside the one-sided slopes is no choice among the gradients close by either.

    At a tie of several entries the gradient close by may be one in any of them, while the slopes along each are zero.
    A claim that lies within the range of its own row at points close by is therefore not held against it.
    """
    if kink.output is None or not (np.isfinite(kink.left) and np.isfinite(kink.right)):
        return False
    if not np.isfinite(kink.claimed):
        return True
    unit = np.zeros(site.map.codomain.size)
    unit[kink.output] = 1.0
    inside = next(p for p in site.map.domain.slices if p.start <= kink.coordinate < p.stop)
    low, high = min(kink.left, kink.right), max(kink.left, kink.right)
    answers = 0
    for _ in range(NEARBY):
        row = _row_close_by(site, unit)[inside]
        if np.isfinite(row).all():
            answers += 1
            low, high = min(low, float(row.min())), max(high, float(row.max()))
    slack = FAIL_FACTOR * kink.slack + 1e-6 * (abs(low) + abs(high))
    return answers > 0 and not low - slack <= kink.claimed <= high + slack


def _row_close_by(site: Site, cotangent: Vector) -> Vector:
    """The claim at a point moved by 2^-20 of the scale; NaN where backward raises there."""
    try:
        row: Vector = np.asarray(site.map.vjp(moved(site.rng, site.x, site.scales, MOVE), cotangent), dtype=np.float64)
    except Exception:
        return np.full(site.x.size, np.nan)
    return row


def wrong_at_this_point(site: Site, outcome: BlockOutcome) -> KinkNote | None:
    """The worst entry of a claim that holds close by but not at the point itself, where the function is smooth."""
    table = outcome.table
    if table is None:
        return None
    with np.errstate(all="ignore"):
        error = np.abs(table.claimed - table.numeric)
        proven = np.isfinite(table.bound) & ~(error <= FAIL_FACTOR * table.bound)
    if not proven.any():
        return None
    worst = np.where(proven, np.where(np.isfinite(error), error, np.inf), -1.0)
    row, column = np.unravel_index(int(worst.argmax()), worst.shape)
    slope = float(table.numeric[row, column])
    note = KinkNote(
        coordinate=site.map.domain.slices[outcome.input].start + int(table.columns[column]),
        left=slope,
        right=slope,
        claimed=float(table.claimed[row, column]),
        output=site.map.codomain.slices[outcome.output].start + int(table.rows[row]),
        slack=float(table.bound[row, column]),
    )
    if certain(site, note) or (_jumps_here(site, note) and _differentiable(site, outcome, table, int(row), note)):
        return note
    return None


def _jumps_here(site: Site, note: KinkNote) -> bool:
    """Whether the claim meets the slope at every point close by, though not here."""
    unit = np.zeros(site.map.codomain.size)
    unit[note.output] = 1.0
    allowed = abs(note.claimed - note.left) / FAR_OFF
    return all(abs(_row_close_by(site, unit)[note.coordinate] - note.left) <= allowed for _ in range(NEARBY))


def _differentiable(site: Site, outcome: BlockOutcome, table: Table, row: int, note: KinkNote) -> bool:
    """Whether one output changes along mixed directions as its slopes along the axes add up to.

    Slopes along the axes alone prove nothing: at a tie of three entries their median has the slope 0 along each, and
    another along most directions between them. A function that is linear to first order has one gradient, its slopes.
    """
    if not table.complete:
        return False
    place, allowed = site.map.domain.slices[outcome.input], abs(note.claimed - note.left) / FAR_OFF
    number = site.map.codomain.slices[outcome.output].start + int(table.rows[row])
    for _ in range(TRIES):
        v = random_direction(site.rng, within(site.scales, place))
        along = v[place][table.columns]
        estimate = directional_derivative(lambda x: np.asarray(site.map.value(x))[[number]], site.x, v, rng=site.rng)
        slack = FAIL_FACTOR * (float(estimate.bound[0]) + float(table.bound[row] @ np.abs(along)))
        apart = abs(float(estimate.value[0]) - float(table.numeric[row] @ along))
        if not (estimate.smooth[0] and apart <= slack <= allowed * abs(v[note.coordinate])):
            return False
    return True
