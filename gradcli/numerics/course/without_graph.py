"""Decides outputs of a gradient that carry no graph: the claim of their derivative is zero, whatever the point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.localise.evidence import RUNS_A_COLUMN, make_table, with_table
from gradcli.numerics.maps.floats import Mask
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.outcome import BlockOutcome, Outcome, Pair, Table


def refuted_without_graph(site: Site, below: VectorMap, zero: Sequence[int]) -> dict[Pair, BlockOutcome]:
    """The outputs that carry no graph although they change, each with a cotangent block that shows it.

    A gradient is linear in its cotangents. Where it carries no graph it is claimed to be constant in every input, so
    that one entry of its derivative with respect to a cotangent refutes the claim: it is an entry of the gradient
    below, which is not zero. The entry is measured twice, with steps of different sizes.

    Args:
        site: the point.
        below: the map whose gradient its map computes.
        zero: the outputs whose claim is zero.
    """
    connected = site.map.depends(site.x)
    cotangents = [i for i, place in enumerate(site.map.domain.slices) if place.start >= below.domain.size]
    found: dict[Pair, BlockOutcome] = {}
    for output in (o for o in zero if not connected[o].any()):
        for input_ in cotangents:
            if (table := _changing(site.alone(), input_, output)) is not None:
                outcome = BlockOutcome(input=input_, output=output, outcome=Outcome.DIFFERS)
                found[input_, output] = with_table(outcome, table, None)
                break
    return found


def _changing(site: Site, input_: int, output: int) -> Table | None:
    """A few entries of a pair whose claim is zero, if one of them is certainly not zero; None otherwise."""
    first = make_table(site, input_, output, most=RUNS_A_COLUMN)
    if first is None or not (moved := _not_zero(first)).any():
        return None
    again = make_table(site, input_, output, first.columns, most=RUNS_A_COLUMN * first.columns.size)
    if again is None:
        return None
    both = np.isin(first.columns, again.columns[_not_zero(again).any(axis=0)])
    return first if (moved & both).any() else None


def _not_zero(table: Table) -> Mask:
    """Which entries are two-sided derivatives that differ from zero by more than three error bounds."""
    measured: Mask = np.abs(table.numeric) > FAIL_FACTOR * table.bound
    return measured if table.smooth is None else measured & table.smooth
