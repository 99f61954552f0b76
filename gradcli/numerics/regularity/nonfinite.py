"""A claimed gradient with NaN or infinity in it: wrong where the numerical derivative is finite."""

from __future__ import annotations

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.linearity import additive
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import Estimate, Status
from gradcli.numerics.maps.floats import Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import BlockOutcome, Doubt, KinkNote, Outcome, Table
from gradcli.numerics.sampling.directions import Focus, random_direction, within
from gradcli.numerics.sampling.line import on_grid

LARGEST_COUNT = 8
PRECISE, NOTHING = 1e-3, 1e-290
"""A slope is known if its bound is below the first part of the slope or of the value, or below the second number."""
STEPS = (2.0**-6, 2.0**-14, 2.0**-22)
FALLING = 4.0
"""If a value is zero, and its difference quotients on both sides fall by this factor from step to step, the slope is
zero. The quotients of |x|^1.25 fall like this, those of x log x grow, and those at a kink stay."""
MIXTURES = 2


def judge_nonfinite(site: Site, input_: int, output: int) -> BlockOutcome | None:
    """Judge the non-finite columns of one block, at most eight of them; None where the block has none.

    A column counts as wrong only if every output is smooth in it: where one is not, 0 × infinity makes a NaN of the
    others' gradients too. Slopes must add up as well: at a singular matrix there is no derivative to be right about.

    Returns:
        DIFFERS with the columns, or UNDECIDED (the verdict is then sought at points close by).
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
    smooth, level = np.zeros(columns.size, bool), np.zeros(f0.size, bool)
    special: KinkNote | None = None
    for k, column in enumerate(columns.tolist()):
        measured = _along(site, places.start + column)
        numeric[:, k], bound[:, k] = measured.value[rows], measured.bound[rows]
        smooth[k], level = measured.smooth, level | measured.flat
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
    """Slopes of every row along one entry, per unit of it: `flat` rows are zero with slope zero; `smooth` is of all."""

    value: Vector
    bound: Vector
    flat: Mask
    smooth: bool
    estimate: Estimate


def _along(site: Site, coordinate: int) -> _Slopes:
    """Measure every row along one entry."""
    direction, f0 = np.zeros(site.x.size), site.row_values()
    direction[coordinate] = size = float(site.scales[coordinate])
    estimate = directional_derivative(site.read, site.x, direction, rng=site.rng, f0=f0)
    known = estimate.smooth & (estimate.bound <= PRECISE * np.maximum(np.abs(estimate.value), np.abs(f0)) + NOTHING)
    left = np.full(f0.size, np.inf) if known.all() else _slope_left(site, direction)
    flat = ~known & np.isfinite(left)
    return _Slopes(
        value=np.where(flat, 0.0, estimate.value / size),
        bound=np.where(flat, left, estimate.bound) / size,
        flat=flat,
        smooth=bool((known | flat).all()),
        estimate=estimate,
    )


def _slope_left(site: Site, direction: Vector) -> Vector:
    """What the shortest step leaves of slopes that vanish where f does, row by row; infinite where they do not.

    The ladder, which knows the noise of values by their size, has none for values that are zero at x.

    Args:
        site: the point.
        direction: a direction; t = 1 changes x by about itself.
    """
    f0, found = site.row_values(), []
    for t in STEPS:
        try:
            ends = [site.read(site.x + on_grid(sign * t) * direction) for sign in (1.0, -1.0)]
        except Exception:  # outside the domain
            return np.full(f0.size, np.inf)
        with np.errstate(all="ignore"):
            found.append(np.abs(np.array(ends) - f0).max(axis=0) / t)
    with np.errstate(all="ignore"):
        falls = (f0 == 0) & (FALLING * found[1] <= found[0]) & (FALLING * found[2] <= found[1]) & np.isfinite(found[0])
    return np.where(falls, found[2], np.inf)


def _has_derivative(site: Site, places: slice, rows: Mask, level: Mask, focus: Focus) -> bool:
    """Whether slopes add up: those of `level` rows, which are zero along an entry, are zero along mixtures as well."""
    for _ in range(MIXTURES if (rows & level).any() else 0):
        if not np.isfinite(_slope_left(site, random_direction(site.rng, focus.drawn)))[rows & level].all():
            return False
    rest = rows & ~level
    return not rest.any() or additive(site, places, rest, focus)


def _on_kink(site: Site, estimate: Estimate, coordinate: int, claimed: Vector) -> KinkNote | None:
    """The first output that is not finite in the claim although its slopes to both sides are, if all are smooth or so.

    Args:
        site: the point.
        estimate: every row along that coordinate.
        coordinate: the flat coordinate.
        claimed: the claimed entries of all outputs there.
    """
    gap = np.abs(estimate.right - estimate.left)
    bent = (estimate.status == Status.KINK) & (estimate.kink_bound <= 1e-3 * gap)
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
