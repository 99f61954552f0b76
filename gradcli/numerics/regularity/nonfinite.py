"""Judges claims that are NaN or infinite: they are wrong where forward has a finite derivative."""

from __future__ import annotations

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import Estimate, Status
from gradcli.numerics.maps.floats import Mask, Vector
from gradcli.numerics.maps.sizes import COARSE, NOTHING
from gradcli.numerics.outcome import BlockOutcome, Doubt, KinkNote, Outcome, Table
from gradcli.numerics.regularity.kinks import LARGEST_COUNT, additive
from gradcli.numerics.sampling.directions import Focus, random_direction, within
from gradcli.numerics.sampling.line import on_grid

STEPS = (2.0**-6, 2.0**-14, 2.0**-22)
"""The steps over which the quotients must fall for a slope of zero (`FALLING`)."""
FALLING = 4.0
"""If a value is zero, and its difference quotients on both sides fall by this factor from step to step, the slope is
zero. From step to step, each 2^-8 of the one before, the quotients of |x|^1.25 fall by exactly this factor, 2^(8/4);
those of x log x grow, and those at a kink stay."""
MIXTURES = 2
"""A zero slope must also be found along this many random directions through all entries of the block."""


def judge_nonfinite(site: Site, input_: int, output: int) -> BlockOutcome | None:
    """Judge the columns of one pair whose claim is NaN or infinite, at most eight of them.

    A column is wrong only if all outputs are smooth in that entry: if one is not, 0 × infinity makes the gradients of
    the others NaN too. Slopes must also add up; at a singular matrix, for example, they do not, and there is no
    derivative.

    Returns:
        None if all entries of the pair are finite; DIFFERS, with the wrong columns; or UNDECIDED, after which the
        caller tries nearby points.
    """
    places = site.map.domain.slices[input_]
    ours = site.claim.block == output
    bad = ~np.isfinite(site.claim.forms[ours][:, places])
    if not bad.any():
        return None
    columns = np.flatnonzero(bad.any(axis=0))[:LARGEST_COUNT]
    f0 = site.claim.read(site.outputs)
    rows = np.flatnonzero(ours) + (f0.size - ours.size)
    numeric, bound = np.full((2, rows.size, columns.size), np.nan)
    smooth, level = np.zeros(columns.size, bool), np.ones(f0.size, bool)
    special: KinkNote | None = None
    for k, column in enumerate(columns.tolist()):
        measured = _along(site, places.start + column)
        numeric[:, k], bound[:, k] = measured.value[rows], measured.bound[rows]
        smooth[k], level = measured.smooth, level & measured.flat
        if special is None and site.claim.full:
            claimed = site.claim.forms[:, places.start + column]
            special = _on_kink(site, measured.estimate, places.start + column, claimed)
    chosen = np.zeros(f0.size, bool)
    chosen[rows] = True
    focus = Focus(drawn=within(site.scales, places), judged=site.scales)
    if not smooth.any() or not _has_derivative(site, places, chosen, level, focus):
        return _singular(site, input_, output, special)
    table = None
    if site.claim.full:
        table = Table(
            claimed=site.claim.forms[ours][:, places][:, columns],
            numeric=numeric,
            bound=bound,
            rows=np.arange(rows.size),
            columns=columns,
            complete=columns.size == places.stop - places.start,
            point=site.x,
        )
    return BlockOutcome(
        input=input_,
        output=output,
        outcome=Outcome.DIFFERS,
        max_abs_error=float("inf"),
        max_rel_error=float("inf"),
        bound=float(bound[:, smooth].max()),
        table=table,
        wrong_columns=columns[smooth],
        note="the gradient is NaN or infinite where finite differences of forward are finite",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slopes:
    """The slopes of every row along one entry, as derivatives (not scaled).

    Attributes:
        value: the slopes.
        bound: their error bounds.
        flat: the rows that are zero at x and have the slope zero, as measured or by `FALLING`.
        smooth: whether the slope of every row is known.
        estimate: what `directional_derivative` gave, scaled.
    """

    value: Vector
    bound: Vector
    flat: Mask
    smooth: bool
    estimate: Estimate


def _along(site: Site, coordinate: int) -> _Slopes:
    """Measure the slope of every row along one entry."""
    direction, f0 = np.zeros(site.x.size), site.row_values()
    direction[coordinate] = size = float(site.scales[coordinate])
    estimate = directional_derivative(site.read, site.x, direction, rng=site.rng, f0=f0)
    # Known to a thousandth of the slope or of the value, or zero.
    known = estimate.smooth & (estimate.bound <= COARSE * np.maximum(np.abs(estimate.value), np.abs(f0)) + NOTHING)
    left = np.full(f0.size, np.inf) if known.all() else _slope_left(site, direction)
    flat = ~known & np.isfinite(left)
    level = known & (f0 == 0) & (np.abs(estimate.value) <= estimate.bound)
    return _Slopes(
        value=np.where(flat, 0.0, estimate.value / size),
        bound=np.where(flat, left, estimate.bound) / size,
        flat=flat | level,
        smooth=bool((known | flat).all()),
        estimate=estimate,
    )


def _slope_left(site: Site, direction: Vector) -> Vector:
    """The bound of the slope of every row that is zero at x and has the slope zero there; infinite for other rows.

    The bound is the difference quotient over the shortest step. This test is needed because `directional_derivative`
    estimates noise relative to the size of the values, which are zero here.

    Args:
        site: the point.
        direction: a direction; t = 1 changes x by about its own magnitude.
    """
    f0, found = site.row_values(), []
    for t in STEPS:
        ends = [site.read(site.x + on_grid(sign * t) * direction) for sign in (1.0, -1.0)]
        with np.errstate(all="ignore"):
            found.append(np.abs(np.array(ends) - f0).max(axis=0) / t)
    with np.errstate(all="ignore"):
        falls = (f0 == 0) & (FALLING * found[1] <= found[0]) & (FALLING * found[2] <= found[1]) & np.isfinite(found[0])
    return np.where(falls, found[2], np.inf)


def _has_derivative(site: Site, places: slice, rows: Mask, level: Mask, focus: Focus) -> bool:
    """Whether the slopes of the given rows add up.

    The slopes of rows in `level`, which are zero along the measured entries, add up if they are zero along random
    directions as well: a product of which several factors are zero changes by too little for `additive`.
    """
    level = rows & level
    for _ in range(MIXTURES if level.any() else 0):
        level &= np.isfinite(_slope_left(site, random_direction(site.rng, focus.drawn)))
    rest = rows & ~level
    return not rest.any() or additive(site, places, rest, focus)


def _on_kink(site: Site, estimate: Estimate, coordinate: int, claimed: Vector) -> KinkNote | None:
    """The first output whose claimed entry is not finite although it has finite one-sided slopes.

    Args:
        site: the point.
        estimate: the slopes of every row along that coordinate.
        coordinate: the coordinate in the flat vector of inputs.
        claimed: the claimed entries of all outputs there.

    Returns:
        None if all claimed entries are finite, or if some row is neither smooth nor on a kink.
    """
    gap = np.abs(estimate.right - estimate.left)
    bent = (estimate.status == Status.KINK) & (estimate.kink_bound <= COARSE * gap)
    known = estimate.smooth | bent
    rows = np.flatnonzero(~np.isfinite(claimed))
    if not known.all() or not rows.size:
        return None
    row, size = int(rows[0]), float(site.scales[coordinate])
    return KinkNote(
        coordinate=coordinate,
        left=float(estimate.left[row]) / size,
        right=float(estimate.right[row]) / size,
        claimed=float(claimed[row]),
        output=row,
    )


def _singular(site: Site, input_: int, output: int, special: KinkNote | None) -> BlockOutcome:
    """The outcome UNDECIDED for a pair without a derivative at this point."""
    values = site.outputs[site.map.codomain.slices[output]]
    beyond = int(np.count_nonzero(~np.isfinite(values)))
    note = "the gradient is NaN or infinite at this point, but forward has no derivative here to compare it with"
    if beyond:
        note = (
            f"forward's output is NaN or infinite in {beyond} of {values.size} entries here, and so is the "
            "gradient, so there is nothing to compare"
        )
    return BlockOutcome(
        input=input_,
        output=output,
        outcome=Outcome.UNDECIDED,
        doubt=Doubt.DOMAIN if beyond else Doubt.KINK,
        max_abs_error=float("nan"),
        max_rel_error=float("nan"),
        note=note,
        special=special,
    )
