"""Measures entries for the report of an outcome: all of a small block, or the wrong and some others of a large one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from gradcli.numerics.claims.claim import FULL_ROWS
from gradcli.numerics.claims.compare import Decision
from gradcli.numerics.claims.residual import REACHES, unclaimed_stretch
from gradcli.numerics.claims.site import Site
from gradcli.numerics.localise.entries import locate
from gradcli.numerics.localise.jacobian import LARGEST_TABLE, jacobian_table
from gradcli.numerics.localise.rows import LARGEST_COUNT, LARGEST_SEARCH, differing_outputs, witness_of, wrong_rows
from gradcli.numerics.maps.floats import Indices, Matrix
from gradcli.numerics.maps.sizes import COMPUTED, FINE, ROUNDING, SIGNIFICANT
from gradcli.numerics.outcome import AUTODIFF, BlockOutcome, Table
from gradcli.numerics.reference.discrepancy import compare
from gradcli.numerics.sampling.directions import LONG, MOVE, TRIES, random_direction, within

SAMPLED_COLUMNS = 48
"""If the wrong entries are not known, this many random columns are measured."""
WIDE_COLUMNS = 200
"""A block of more columns is not measured over large steps: each column takes 99 values."""
LARGEST_ROWS = 1_000_000
"""This many entries of claimed rows are computed at once, which takes 8 MB. In a large map, so many are shown next
to the wrong rows."""
LOCATING = 100
"""The evaluations that a search for the wrong entries of a large block may take (60 were measured for one of 2500
entries). If fewer are allowed, random columns are measured instead."""
RUNS_A_COLUMN = 22
"""The largest number of evaluations for one column: 6 for three pairs of values, then 16 for a derivative."""
SHOWN = 8
"""Of many wrong entries, this many random ones are measured, because each takes up to 22 evaluations; of many outputs,
at least this many are shown, those that change most when the shown entries change."""


def largest_entry(site: Site, input_: int, output: int) -> float:
    """The largest |claimed entry| of a pair, without scales; of a projection, if the claim is not full."""
    return site.claim.largest(site.map.domain.slices[input_], output)


def make_table(
    site: Site,
    input_: int,
    output: int,
    columns: Indices | None = None,
    *,
    most: int | None = None,
) -> Table | None:
    """Measure the entries of one pair: all of a small block, otherwise the given columns or random ones.

    Args:
        columns: the columns to measure if the block is too large for a complete table.
        most: the evaluations allowed. A block that needs more is treated as a large one, and as many columns in random
            order are measured as that allows.

    Returns:
        None if not even one column may be measured.
    """
    inside, outside = site.map.domain.slices[input_], site.map.codomain.slices[output]
    n, m = inside.stop - inside.start, outside.stop - outside.start
    complete = n <= LONG and m <= FULL_ROWS and n * m <= LARGEST_TABLE
    costly = site.map.is_costly  # three pairs of values suffice for nearly every column, and `most` ends the table
    complete = complete and (most is None or costly or n * RUNS_A_COLUMN <= most)
    if most is not None and most < 2:  # the first is f(x) itself
        return None
    chosen = np.arange(n) if complete or columns is None else columns
    if most is not None and not complete:
        chosen = site.rng.permutation(chosen)
    if chosen.size > LONG:
        chosen = np.sort(site.rng.choice(n, SAMPLED_COLUMNS, replace=False))
    rows = np.arange(m) if m <= FULL_ROWS else _some_rows(site, input_, output, columns)
    claimed = _claimed(site, outside.start + rows, inside.start + chosen)
    numeric = jacobian_table(
        site.map,
        site.x,
        rng=site.rng,
        columns=inside.start + chosen,
        rows=outside.start + rows,
        claimed=claimed,
        enough=FINE if complete and not costly else SIGNIFICANT,
        most=None if complete and not costly else most,
    )
    order = np.argsort(numeric.columns)
    return Table(
        claimed=claimed[:, order],
        numeric=numeric.numeric[:, order],
        bound=numeric.bound[:, order],
        rows=rows,
        columns=numeric.columns[order] - inside.start,
        complete=numeric.columns.size == n and rows.size == m,
        point=site.x,
        smooth=numeric.smooth[:, order],
    )


def _some_rows(site: Site, input_: int, output: int, columns: Indices | None) -> Indices:
    """The rows of a large block to show: the wrong ones, or those that change with the columns, and some others."""
    inside, outside = site.map.domain.slices[input_], site.map.codomain.slices[output]
    n, m = inside.stop - inside.start, outside.stop - outside.start
    known = wrong_rows(site, input_, output)
    known = known if known.size or columns is None else _moved_rows(site, inside.start + columns, outside)
    beside = max(SHOWN, min(FULL_ROWS, LARGEST_ROWS // n)) - known.size
    others = np.setdiff1d(site.rng.permutation(m)[:FULL_ROWS], known)
    return np.sort(np.concatenate([known, site.rng.permutation(others)[: max(0, beside)]]))


def _moved_rows(site: Site, columns: Indices, outside: slice) -> Indices:
    """The outputs of a large block that change most when some entries move by 1e-3 of their scale."""
    v = random_direction(site.rng, within(site.scales, columns))
    with np.errstate(all="ignore"):
        change = np.nan_to_num(np.abs(site.value_at(site.x + MOVE * v) - site.outputs)[outside])
    moving = np.flatnonzero(change)
    most = moving if moving.size <= SHOWN else moving[np.argpartition(change[moving], -SHOWN)[-SHOWN:]]
    return np.sort(most)


def wide_columns(site: Site, input_: int, output: int) -> Table | None:
    """Measure the entries of one pair over large steps, one column after the other, in up to 100 random rows.

    Of the lengths 0.8, 0.2 and 0.05 that with the smallest uncertainty counts. A shorter one that is not the best of
    any row in the first three columns is left out.

    Returns:
        None for a block of more than 200 columns.
    """
    inside, outside = site.map.domain.slices[input_], site.map.codomain.slices[output]
    n, m = inside.stop - inside.start, outside.stop - outside.start
    if n > WIDE_COLUMNS:
        return None
    rows = np.sort(site.rng.permutation(m)[:FULL_ROWS])
    numeric, bound = np.zeros((rows.size, n)), np.full((rows.size, n), np.inf)
    useful: set[float] = set()
    for column in range(n):
        size = float(site.scales[inside.start + column])
        direction = within(site.scales, inside.start + column)
        for length in REACHES[:5:2]:
            if column >= TRIES and length not in useful and np.isfinite(bound[:, column]).all():
                continue
            level = unclaimed_stretch(site, direction, length, outside.start + rows)
            if level is None:
                continue
            better = level.width / size < bound[:, column]
            useful |= {length} if better.any() and length != REACHES[0] else set()
            numeric[:, column] = np.where(better, level.slope / size, numeric[:, column])
            bound[:, column] = np.where(better, level.width / size, bound[:, column])
    return Table(
        claimed=_claimed(site, outside.start + rows, np.arange(inside.start, inside.stop)),
        numeric=numeric,
        bound=bound,
        rows=rows,
        columns=np.arange(n),
        complete=rows.size == m,
        point=site.x,
        wide=True,
    )


def _claimed(site: Site, rows: Indices, columns: Indices) -> npt.NDArray[np.float64]:
    """Some entries of the claimed Jacobian. A few rows at a time are computed: one of a large map takes megabytes."""
    if site.claim.full:
        return site.claim.forms[np.ix_(rows, columns)]
    found = np.zeros((rows.size, columns.size))
    together = max(1, LARGEST_ROWS // max(site.map.domain.size, site.map.codomain.size))
    for first in range(0, rows.size, together):
        ours = rows[first : first + together]
        units = np.zeros((ours.size, site.map.codomain.size))
        units[np.arange(ours.size), ours] = 1.0
        found[first : first + together] = np.asarray(site.map.vjp_many(site.x, units), dtype=np.float64)[:, columns]
    return found


def _columns_to_show(site: Site, n: int, wrong: Indices | None) -> Indices:
    """The columns to measure: wrong ones that were located and a few others, or if there are none, random ones."""
    if wrong is None or not wrong.size:
        return np.asarray(site.rng.choice(n, SAMPLED_COLUMNS, replace=False))
    return np.unique(np.concatenate([site.rng.permutation(wrong)[:SHOWN], site.rng.choice(n, 2, replace=False)]))


def with_evidence(site: Site, outcome: BlockOutcome, decision: Decision, most: int | None = None) -> BlockOutcome:
    """Add the table of a pair that differs and, for a large block, the wrong columns.

    About `most` evaluations are used. If these are few, random columns are measured.
    """
    inside = site.map.domain.slices[outcome.input]
    n = inside.stop - inside.start
    wrong = None
    columns = None
    if n > LONG:
        wrong = decision.located
        if not decision.searched and (most is None or most >= LOCATING):
            found = locate(site, outcome.input, outcome.output)
            wrong = None if found is None else found.entries
        columns = _columns_to_show(site, n, wrong)
    table = make_table(site, outcome.input, outcome.output, columns, most=most)
    return replace(outcome, wrong_columns=wrong) if table is None else with_table(outcome, table, wrong)


@final
@dataclass(slots=True, kw_only=True)
class EvidenceBudget:
    """How many evaluations are left for measuring entries of pairs that differ, over all pairs; None for no limit."""

    left: int | None

    @property
    def allow_search(self) -> bool:
        """Whether the wrong entries of a large block may be searched for."""
        return self.left is None or self.left >= LOCATING

    def added(self, site: Site, outcome: BlockOutcome, decision: Decision, significance: float) -> BlockOutcome:
        """Add measured entries to the outcome of a pair that differs, as many as are allowed.

        There is no limit if the entries can change the outcome: the errors of n entries, each below the significance,
        add up to at most n times that along a direction. If the measured entries do not show the error that the
        direction showed, or some that may could not be measured, the error and bound of the direction are kept.
        """
        error, size = outcome.max_rel_error, site.map.domain.blocks[outcome.input].size
        if outcome.reference == AUTODIFF:
            found = with_witness_evidence(site, outcome, self.left)
            bound = found.bound
        elif not error > size * significance:
            return with_evidence(site, outcome, decision)
        elif self.left is None:
            found, bound = with_evidence(site, outcome, decision), outcome.bound
        else:
            last = self.left + site.map.values
            found = with_evidence(site, outcome, decision, self.left)
            self.left = max(0, last - site.map.values)
            bound = outcome.bound
        shown = found.max_rel_error > significance and found.max_rel_error * size >= error
        return (
            found
            if shown and (found.max_rel_error >= error or found.table is None or np.isfinite(found.table.bound).all())
            else replace(found, max_abs_error=outcome.max_abs_error, max_rel_error=error, bound=bound)
        )


def with_wide_evidence(site: Site, outcome: BlockOutcome, known: Table | None) -> BlockOutcome:
    """Add the table measured over large steps, for a pair that differs over large steps only, unless it is `known`."""
    table = wide_columns(site, outcome.input, outcome.output) if known is None else known
    return outcome if table is None else with_table(outcome, table, None)


def with_table(outcome: BlockOutcome, table: Table, wrong: Indices | None) -> BlockOutcome:
    """Add a table, and take the error and bound of the outcome from it."""
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


def with_witness_evidence(site: Site, outcome: BlockOutcome, most: int | None) -> BlockOutcome:
    """Add the table of a pair whose claim differs from the reference, which takes the place of measurements.

    In a block of many outputs, the search for those that differ takes at most `most` calls.
    """
    inside, outside = site.map.domain.slices[outcome.input], site.map.codomain.slices[outcome.output]
    n, m = inside.stop - inside.start, outside.stop - outside.start
    columns = np.flatnonzero(compare(site, outcome.input, outcome.output).wrong.any(axis=0))
    complete = n <= LONG and m <= FULL_ROWS and n * m <= LARGEST_TABLE
    wrong = columns if not complete and columns.size < n else None
    if complete:
        columns = np.arange(n)
    else:
        sampled = site.rng.choice(n, min(n, SAMPLED_COLUMNS), replace=False)
        columns = np.unique(np.concatenate([site.rng.permutation(columns)[:LARGEST_COUNT], sampled]))
    calls = LARGEST_SEARCH if most is None else min(LARGEST_SEARCH, most)  # a try calls backward and the reference
    claimed, reference, rows = _rows_of_both(site, inside, outside, calls // 2)
    size = np.abs(site.outputs[outside][rows])[:, None]
    bound = COMPUTED * np.abs(reference).max(axis=1, keepdims=True) + ROUNDING * size / site.scales[inside]
    error = np.abs(claimed - reference)
    largest = max(float(np.abs(claimed).max(initial=0.0)), float(np.abs(reference).max(initial=0.0)))
    table = Table(
        claimed=claimed[:, columns],
        numeric=reference[:, columns],
        bound=bound[:, columns],
        rows=rows,
        columns=columns,
        complete=complete,
        point=site.x,
    )
    return replace(
        outcome,
        table=table,
        wrong_columns=wrong,
        max_abs_error=float(error.max(initial=0.0)),
        max_rel_error=float(error.max(initial=0.0)) / (largest or 1.0),
        bound=float(bound[:, columns].max(initial=0.0)),
    )


def _rows_of_both(site: Site, inside: slice, outside: slice, halvings: int) -> tuple[Matrix, Matrix, Indices]:
    """Rows of the Jacobians of claim and reference of one pair, and their numbers; of many, some that differ."""
    m = outside.stop - outside.start
    rows = np.arange(m)
    if m > FULL_ROWS or m * (inside.stop - inside.start) > LARGEST_TABLE:
        most = max(1, min(FULL_ROWS, LARGEST_TABLE // max(1, inside.stop - inside.start)))
        rows = differing_outputs(site, inside, outside, most, halvings)
    units = np.zeros((rows.size, site.map.codomain.size))
    units[np.arange(rows.size), outside.start + rows] = 1.0
    claimed = np.asarray(site.map.vjp_many(site.x, units), dtype=np.float64)[:, inside]
    reference = np.asarray(witness_of(site).vjp_many(site.x, units), dtype=np.float64)[:, inside]
    return claimed, reference, rows
