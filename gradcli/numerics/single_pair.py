"""One pair of values certifies what claim and witness agree on, where rounding allows steps so short that none bends.

A symmetric quotient at ± t v errs by t²/6 of the third derivative; what n entries add to that grows like √n, since the
signs of v are random. Against rounding, about 4 eps |u·f| / t, stands what may be missed: a part of the block's largest
entry, as small as both allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.numerics.compare import Reading
from gradcli.numerics.line import on_grid, point_along
from gradcli.numerics.probe import Focus, random_direction
from gradcli.numerics.seen import Pair, drawn_through
from gradcli.numerics.site import BudgetExceededError, Site
from gradcli.numerics.space import Vector
from gradcli.numerics.stencil import EPS, TINY
from gradcli.numerics.witness import Gap

FINEST, COARSEST = 1e-8, 1e-7
"""The parts of a block's largest entry within which a pair certifies: a tenth of the least error that must be seen."""
NEAREST = 2.0**-17
"""The step, where rounding and curvature allow it."""
CURVED = 0.6
"""The cubic terms of n entries, about t²/6 each, together may take a tenth of what may be missed."""
ROUNDED = 8.0
"""Rounding, 4 eps |u·f| / t, may take half of it."""
SPREAD = 0.25
"""Steps are drawn from a range of this width, so that none is special."""
STRAIGHT, MANY = 1e-3, 1e4
"""How much the slope may change from one side to the other, as part of a block's largest: at a kink it changes more.
Above so many entries, what their curvature adds up to, like their root, is allowed for."""


def certified_at_once(site: Site, inputs: Sequence[int], agreed: Mapping[Pair, Gap]) -> Reading | None:
    """One pair of values along a direction through some inputs that certifies all pairs; None where it does not.

    Raises:
        BudgetExceededError: the evaluations allowed are used up.
    """
    outputs = _least_scales(agreed)
    values = site.row_values()
    chosen = _step(site, values, outputs)
    if chosen is None or not np.isfinite(values).all():
        return None
    if site.map.values >= site.budget:
        raise BudgetExceededError
    step, part = chosen
    drawn = drawn_through(site, inputs)
    v = random_direction(site.rng, drawn)
    try:
        with np.errstate(all="ignore"):
            right, left = site.read(point_along(site.x, v, step)), site.read(point_along(site.x, v, -step))
    except Exception:  # outside the domain
        return None
    with np.errstate(all="ignore"):
        slope = (right - left) / (2 * step)
        bend = np.abs((right - values) + (left - values)) / (2 * step)
        judged = slice(site.claim.watched, None)
        claimed = site.claim.along(v)[0] if site.claim.jvp_rows else site.claim.slopes(v)
        error = np.abs(slope[judged] - claimed)
        rounding = (4 * EPS * np.maximum(np.abs(right[judged]), np.abs(values[judged])) + 16 * TINY) / step
    straight = STRAIGHT * max(1.0, site.x.size / MANY) ** 0.5
    for output, scale in outputs.items():
        rows = site.rows(output)
        ours = rows[judged]
        # Comparisons with NaN are false, so a value that is not finite certifies nothing.
        met = (error + rounding)[ours] <= part * scale
        if not (met.size and met.all() and (bend[rows] <= straight * scale).all()):
            return None
    return _reading(site, v, Focus(drawn=drawn, judged=site.scales), slope, claimed, error, rounding)


def _least_scales(agreed: Mapping[Pair, Gap]) -> dict[int, float]:
    """For every output block the least of its blocks' scales: what certifies that certifies all."""
    scales: dict[int, float] = {}
    for (_, output), gap in agreed.items():
        scales[output] = min(gap.scale, scales.get(output, np.inf))
    return scales


def _step(site: Site, values: Vector, outputs: Mapping[int, float]) -> tuple[float, float] | None:
    """A step, and the part of a block within which it certifies; None where rounding leaves none."""
    size = np.abs(values)
    largest = max(float(size[site.rows(output)].max(initial=0.0)) / scale for output, scale in outputs.items())
    rounding = ROUNDED * EPS * largest
    entries = site.x.size**0.25
    part = max(FINEST, (rounding * entries / CURVED**0.5) ** (2 / 3))
    if not part <= COARSEST:
        return None
    longest = (CURVED * part) ** 0.5 / entries
    step = max(min(NEAREST, longest), rounding / part)
    return on_grid(step * (1 + SPREAD * site.rng.random())), part


def _reading(
    site: Site, v: Vector, focus: Focus, slope: Vector, claimed: Vector, error: Vector, rounding: Vector
) -> Reading:
    """What the pair says beside the claim, whose distance from it is the bound; nothing of the rows without a claim."""
    rows, watched = slope.size, site.claim.watched
    nothing = np.zeros(rows)
    said, bound = np.full(rows, np.nan), np.zeros(rows)
    said[watched:], bound[watched:] = claimed, error + rounding
    return Reading(
        direction=v,
        focus=focus,
        numeric=slope,
        bound=bound,
        claimed=said,
        rounding=nothing,
        left=slope,
        right=slope,
        kink_bound=nothing,
        status=np.zeros(rows, np.int8),
        size=np.abs(site.row_values()),
        noise=bound,
        claimless=site.unclaimed(rows),
        certified=True,
    )
