"""A claim that is wrong at one point alone: outside the slopes on a kink, or off where the function is smooth."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.outcome import BlockOutcome, KinkNote
from gradcli.numerics.probe import moved
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector

NEARBY = 6
MOVE = 2.0**-20


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
    heard = 0
    for _ in range(NEARBY):
        row = _row_close_by(site, unit)[inside]
        if np.isfinite(row).all():
            heard += 1
            low, high = min(low, float(row.min())), max(high, float(row.max()))
    slack = 3 * kink.slack + 1e-6 * (abs(low) + abs(high))
    return heard > 0 and not low - slack <= kink.claimed <= high + slack


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
        proven = np.isfinite(table.bound) & ~(error <= 3 * table.bound)
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
    return note if certain(site, note) else None
