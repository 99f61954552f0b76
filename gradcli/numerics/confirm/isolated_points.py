"""Finds claims that are wrong at a single point: outside the one-sided slopes of a kink, or where forward is smooth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gradcli.numerics.claims.site import NUDGES, Site
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.sizes import COARSE
from gradcli.numerics.outcome import BlockOutcome, Doubt, KinkNote, Pair, Table
from gradcli.numerics.sampling.directions import CLOSE_BY, MOVE, TRIES, moved, random_direction, within

FAR_OFF = 10.0
"""A claim is wrong at x alone if its error at all nearby points is smaller by at least this factor."""


def certain(site: Site, kink: KinkNote) -> bool:
    """Whether a claim outside the one-sided slopes at a kink is wrong, because no nearby gradient has such entries.

    The gradients of nearby points are right choices too. For example, where several entries tie for the median, the
    slopes along each entry may be zero, while the gradient close by is one in some entry. The claim therefore counts as
    right if it lies between the smallest and the largest entry of its row at the nearby points.

    Returns:
        Also True if the claim is not finite. Also False if the output or the slopes are not known, or backward gives no
        finite row at any nearby point.
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
    for _ in range(NUDGES):
        row = _row_close_by(site, unit)[inside]
        if np.isfinite(row).all():
            answers += 1
            low, high = min(low, float(row.min())), max(high, float(row.max()))
    slack = FAIL_FACTOR * kink.slack + 1e-6 * (abs(low) + abs(high))
    return answers > 0 and not low - slack <= kink.claimed <= high + slack


def ties(site: Site, outcomes: Mapping[Pair, BlockOutcome]) -> dict[Pair, BlockOutcome]:
    """The undecided pairs whose claim is one of the gradients close by, which differ from each other: at a tie.

    A median is smooth along every line there, and has no derivative; a point close by decides, as on a kink.
    """
    doubtful = {p: o for p, o in outcomes.items() if o.doubt is Doubt.KINK and o.special is None}
    return {pair: outcome for pair, outcome in doubtful.items() if _is_choice(site, pair)}


def _is_choice(site: Site, pair: Pair) -> bool:
    """Whether the claim is a combination, with weights of sum 1, of the gradients at nearby points, which differ.

    At a tie, every such combination with weights between 0 and 1 is a right choice. One random cotangent is compared at
    many points, so that all choices are met.
    """
    inside, outside = site.map.domain.slices[pair[0]], site.map.codomain.slices[pair[1]]
    cotangent = np.zeros(site.map.codomain.size)
    cotangent[outside] = random_direction(site.rng, np.ones(outside.stop - outside.start))
    here = np.asarray(site.map.vjp(site.x, cotangent), dtype=np.float64)[inside] * site.scales[inside]
    there = np.array([_row_close_by(site, cotangent)[inside] * site.scales[inside] for _ in range(NUDGES**2)])
    if not (np.isfinite(there).all() and np.isfinite(here).all()):
        return False
    centre, allowed = there.mean(axis=0), COARSE * float(np.abs(there).max(initial=0.0))
    _, sizes, axes = np.linalg.svd(there - centre, full_matrices=False)
    axes = axes[sizes > NUDGES * allowed]
    left = here - centre - (axes @ (here - centre)) @ axes
    return bool(axes.size) and float(np.abs(left).max(initial=0.0)) <= allowed


def _row_close_by(site: Site, cotangent: Vector) -> Vector:
    """The claim at a point moved by 2^-22 of the scale; NaN where backward raises there.

    A direction has 8 bits, so that entries that tie would often tie again; a second, far shorter move separates them.
    """
    there = moved(site.rng, moved(site.rng, site.x, site.scales, CLOSE_BY), site.scales, CLOSE_BY * MOVE)
    try:
        row: Vector = np.asarray(site.map.vjp(there, cotangent), dtype=np.float64)
    except Exception:
        return np.full(site.x.size, np.nan)
    return row


def wrong_at_this_point(site: Site, outcome: BlockOutcome) -> KinkNote | None:
    """The worst entry of a claim that is wrong at x although it is right at nearby points, where forward is smooth.

    Returns:
        The entry, with its slope to both sides; None if no entry is wrong by more than three bounds, or if it is not
        certain that the claim is wrong: it must lie outside the range of its row at the nearby points (`certain`), or
        be right at all of them while the slopes at x add up.
    """
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
    """Whether the claim at every nearby point is within a tenth (`FAR_OFF`) of the error of the slope at x."""
    unit = np.zeros(site.map.codomain.size)
    unit[note.output] = 1.0
    allowed = abs(note.claimed - note.left) / FAR_OFF
    return all(abs(_row_close_by(site, unit)[note.coordinate] - note.left) <= allowed for _ in range(NUDGES))


def _differentiable(site: Site, outcome: BlockOutcome, table: Table, row: int, note: KinkNote) -> bool:
    """Whether the slopes of one output along mixed directions are those that its slopes along the axes add up to.

    The axes alone prove nothing: at a tie of three entries, their median has the slope 0 along each entry, and another
    slope along most directions between them. Three random directions are tried. False if the table is not complete.
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
