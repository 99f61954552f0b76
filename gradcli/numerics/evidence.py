"""The entries behind an outcome: a table for small blocks, the located columns for large ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gradcli.numerics.compare import Impression
from gradcli.numerics.jacobian import LARGEST_TABLE, jacobian_table
from gradcli.numerics.localise import locate, wrong_rows
from gradcli.numerics.outcome import BlockOutcome, Table
from gradcli.numerics.probe import Focus
from gradcli.numerics.site import Site

Indices = npt.NDArray[np.intp]

COMPLETE_COLUMNS = 400
SAMPLED_COLUMNS = 48
SUSPECTS = 8
LOCATED_COLUMNS = 64
TABLE_ROWS = 100


def largest_entry(site: Site, input_: int, output: int) -> float:
    """The largest |claimed entry| of a block in units of the derivative (of a projection for a large one)."""
    return site.claim.largest(site.map.domain.slices[input_], output)


def make_table(
    site: Site, input_: int, output: int, columns: Indices | None = None, *, only_complete: bool = False
) -> Table | None:
    """Measure the entries of one block: all of them where that is small, else the given columns.

    Args:
        site: the point.
        input_: the input block.
        output: the output block.
        columns: columns of interest, used where the block is too large for a complete table.
        only_complete: give None rather than a part of the table.
    """
    inside, outside = site.map.domain.slices[input_], site.map.codomain.slices[output]
    n, m = inside.stop - inside.start, outside.stop - outside.start
    complete = n <= COMPLETE_COLUMNS and m <= TABLE_ROWS and n * m <= LARGEST_TABLE
    if only_complete and not complete:
        return None
    chosen = np.arange(n) if complete or columns is None else columns
    if chosen.size > COMPLETE_COLUMNS:
        chosen = np.sort(site.rng.choice(n, SAMPLED_COLUMNS, replace=False))
    rows = np.arange(m)
    if m > TABLE_ROWS:
        known = wrong_rows(site, input_, output)
        others = np.setdiff1d(site.rng.permutation(m)[:TABLE_ROWS], known)
        rows = np.sort(np.concatenate([known, site.rng.permutation(others)[: TABLE_ROWS - known.size]]))
    claimed = _claimed(site, outside.start + rows, inside)[:, chosen]
    numeric = jacobian_table(
        site.map, site.x, rng=site.rng, columns=inside.start + chosen, rows=outside.start + rows, claimed=claimed
    )
    return Table(
        claimed=claimed,
        numeric=numeric.numeric,
        bound=numeric.bound,
        rows=rows,
        columns=chosen,
        complete=complete,
        point=site.x,
    )


def _claimed(site: Site, rows: Indices, inside: slice) -> npt.NDArray[np.float64]:
    if site.claim.full:
        return site.claim.forms[rows, inside]
    units = np.zeros((rows.size, site.map.codomain.size))
    units[np.arange(rows.size), rows] = 1.0
    return np.asarray(site.map.vjp_many(site.x, units), dtype=np.float64)[:, inside]


def telling_column(site: Site, input_: int, output: int, significance: float) -> Focus | None:
    """A focus on one entry whose error matters beside the largest entry of the block, in units of the derivative.

    Along a random direction the entries count by their size times that of their input; an error in the largest entry
    may look small there if its input is small. None where no single entry is to blame.
    """
    places = site.map.domain.slices[input_]
    for column in _blamed(site, input_, output)[:SUSPECTS].tolist():
        drawn = np.zeros(site.x.size)
        drawn[places.start + column] = site.scales[places.start + column]
        focus = Focus(drawn=drawn, judged=np.full(site.x.size, drawn.max()))
        judgement = site.judge(site.probe(places, focus), input_, output, significance)
        if judgement.impression is Impression.DIFFERS:
            return focus
    return None


def _blamed(site: Site, input_: int, output: int) -> Indices:
    found = locate(site, input_, output)
    return np.zeros(0, np.intp) if found is None else found


def with_evidence(site: Site, outcome: BlockOutcome) -> BlockOutcome:
    """Add the table of a block that differs, and for a large block the columns where it does."""
    inside = site.map.domain.slices[outcome.input]
    n = inside.stop - inside.start
    wrong = None
    columns = None
    if n > COMPLETE_COLUMNS:
        wrong = locate(site, outcome.input, outcome.output)
        sampled = site.rng.choice(n, SAMPLED_COLUMNS, replace=False)
        known = wrong[:LOCATED_COLUMNS] if wrong is not None else np.zeros(0, np.intp)
        columns = np.unique(np.concatenate([known, sampled]))
    table = make_table(site, outcome.input, outcome.output, columns)
    if table is None:
        return replace(outcome, wrong_columns=wrong)
    with np.errstate(all="ignore"):
        error = np.abs(table.claimed - table.numeric)
        known_bounds = np.isfinite(table.bound) & np.isfinite(error)
    worst = float(np.where(known_bounds, error, 0.0).max(initial=0.0))
    largest = max(
        float(np.where(np.isfinite(values), np.abs(values), 0.0).max(initial=0.0))
        for values in (table.claimed, table.numeric)
    )
    return replace(
        outcome,
        table=table,
        wrong_columns=wrong,
        max_abs_error=worst,
        max_rel_error=worst / (largest or 1.0),
        bound=float(np.where(known_bounds, table.bound, 0.0).max(initial=0.0)),
    )
