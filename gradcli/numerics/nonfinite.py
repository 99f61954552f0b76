"""A claimed gradient with NaN or infinity in it: wrong where the numerical derivative is finite."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.difference import directional_derivative
from gradcli.numerics.estimate import Estimate, Status
from gradcli.numerics.linearity import additive
from gradcli.numerics.outcome import BlockOutcome, Doubt, KinkNote, Outcome, Table
from gradcli.numerics.probe import Focus, within
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector

LARGEST_COUNT = 8


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
    smooth = np.zeros(columns.size, bool)
    special: KinkNote | None = None
    for k, column in enumerate(columns.tolist()):
        direction = np.zeros(site.x.size)
        size = float(site.scales[places.start + column])
        direction[places.start + column] = size
        estimate = directional_derivative(site.read, site.x, direction, rng=site.rng, f0=f0)
        numeric[:, k], bound[:, k] = estimate.value[rows] / size, estimate.bound[rows] / size
        precise = estimate.bound <= 1e-3 * np.maximum(np.abs(estimate.value), np.abs(f0)) + 1e-290
        smooth[k] = bool((estimate.smooth & precise).all())
        if special is None and site.claim.full:
            special = _on_kink(site, estimate, places.start + column, site.claim.forms[:, places.start + column])
    chosen = np.zeros(f0.size, bool)
    chosen[rows] = True
    focus = Focus(drawn=within(site.scales, places), judged=site.scales)
    if not smooth.any() or not additive(site, places, chosen, focus):
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
        note="the claimed gradient is NaN or infinite where the numerical derivative is finite",
    )


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
    note = "the claimed gradient is not finite, and the function has no derivative at this point either"
    if beyond:
        note = f"forward is not finite in {beyond} of {values.size} numbers here, and neither is the claimed gradient"
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
