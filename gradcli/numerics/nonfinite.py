"""A claimed gradient with NaN or infinity in it: wrong where the numerical derivative is finite."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.difference import directional_derivative
from gradcli.numerics.outcome import BlockOutcome, Doubt, Outcome, Table
from gradcli.numerics.site import Site

LARGEST_COUNT = 8


def judge_nonfinite(site: Site, input_: int, output: int) -> BlockOutcome | None:
    """Judge the non-finite columns of one block, at most eight of them; None where the block has none."""
    places = site.map.domain.slices[input_]
    ours = site.claim.block == output
    bad = ~np.isfinite(site.claim.forms[ours][:, places])
    if not bad.any():
        return None
    columns = np.flatnonzero(bad.any(axis=0))[:LARGEST_COUNT]
    f0 = site.claim.read(site.outputs)
    rows = np.flatnonzero(ours) + (f0.size - ours.size)
    numeric, bound = np.full((2, rows.size, columns.size), np.nan)
    smooth = np.zeros((rows.size, columns.size), bool)
    for k, column in enumerate(columns.tolist()):
        direction = np.zeros(site.x.size)
        size = float(site.scales[places.start + column])
        direction[places.start + column] = size
        estimate = directional_derivative(site.read, site.x, direction, rng=site.rng, f0=f0)
        numeric[:, k], bound[:, k] = estimate.value[rows] / size, estimate.bound[rows] / size
        precise = estimate.bound <= 1e-3 * np.maximum(np.abs(estimate.value), np.abs(f0))
        smooth[:, k] = (estimate.smooth & precise)[rows]
    wrong = bad[:, columns] & smooth
    if not wrong.any():
        note = "the claimed gradient is not finite, and the function has no finite derivative there either"
        return BlockOutcome(
            input=input_,
            output=output,
            outcome=Outcome.UNDECIDED,
            doubt=Doubt.KINK,
            max_abs_error=float("nan"),
            max_rel_error=float("nan"),
            note=note,
        )
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
        bound=float(bound[wrong].max()),
        table=table,
        wrong_columns=columns,
        note="the claimed gradient is NaN or infinite where the numerical derivative is finite",
    )
