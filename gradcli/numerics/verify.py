"""The verdict on a claim: is the claimed gradient the transpose of the map's derivative at this point?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradcli.numerics.course.protocol import Protocol
from gradcli.numerics.course.small_rows import OneRow, differing
from gradcli.numerics.maps.seeds import generator_of
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.outcome import BlockOutcome, Doubt, KinkNote, Outcome, Table, Verification
from gradcli.numerics.reference.gap import TAIL
from gradcli.numerics.screen.fast_path import EVALUATIONS, at_first_sight, begin

__all__ = ["BlockOutcome", "Doubt", "KinkNote", "Outcome", "Table", "Verification", "verify"]

BUDGET = 100_000


def verify(
    map: VectorMap,
    x: Vector,
    *,
    seed: int,
    significance: float = 1e-7,
    tables: bool = False,
    inputs: Sequence[int] | None = None,
    budget: int = BUDGET,
    entries: int | None = None,
    witness: VectorMap | None = None,
    witness_values: bool = False,
) -> Verification:
    """Compare the claimed gradient of a map with its numerical derivative, block by block.

    Args:
        map: the map; only `value` is believed.
        x: the point, length n; it is rounded to a grid first, which moves an entry by 3e-14 of its size at most.
        seed: everything random follows from it.
        significance: a difference below this part of the largest entry of the block is noted, not reported as DIFFERS.
        tables: also give the table of small blocks that agree.
        inputs: the input blocks to check, all by default.
        budget: forward evaluations allowed; blocks not reached by then are UNDECIDED with doubt BUDGET.
        entries: evaluations that may go into the entries of blocks that differ, where these do not decide; all of them
            are measured by default.
        witness: another derivative of the same map, exact to rounding, of which only `vjp` is used. Where it agrees
            with the claim, one direction of differences certifies both; where not, differences decide between them.
        witness_values: use the witness only if its own `value` is the map's, to 1e-9 of every output block.

    Returns:
        A `Verification` with one `BlockOutcome` for every chosen input block and every output block.

    Raises:
        ValueError: x has the wrong length.
        Exception: whatever the map raises at x itself.
    """
    if np.shape(x) != (map.domain.size,):
        raise ValueError(f"expected a point of length {map.domain.size}, got shape={np.shape(x)}")
    counted = CountedMap(map)
    chosen = range(len(map.domain.blocks)) if inputs is None else inputs
    rng = generator_of(seed)
    point = np.asarray(x, dtype=np.float64)
    begun = None
    if witness is not None and inputs is None and not (tables or witness_values) and budget > EVALUATIONS:
        begun = begin(counted, witness, point, rng)
        settled = None if begun is None else at_first_sight(begun)
        if settled is not None:
            return settled
    protocol = Protocol(
        counted, witness, witness_values, point, rng, significance, tables, tuple(chosen), budget, entries
    )
    found = protocol.run(begun)
    return _row_by_row(protocol, found, seed) if protocol.doubtful else found


def _row_by_row(protocol: Protocol, found: Verification, seed: int) -> Verification:
    """The verification, with rows that seem wrong beside their own largest entry verified as maps of their own.

    What counts is said of the very point: a row that has no signal there is left alone.
    """
    matters = max(TAIL, protocol.significance)
    outcomes = {(block.input, block.output): block for block in found.blocks}
    for pair, (point, rows) in protocol.doubtful.items():
        first, alone = protocol.map.codomain.slices[pair[1]].start, {}
        for row in rows.tolist():
            left = max(1, protocol.budget - protocol.map.values)
            map_ = OneRow(protocol.map, row)
            told = verify(
                map_,
                point,
                seed=seed,
                significance=matters,
                inputs=pair[:1],
                budget=left,
                entries=protocol.entries.left,
            )
            if not told.moved:
                alone[row - first] = told.blocks[0]
        if outcomes[pair].outcome is Outcome.AGREES:
            outcomes[pair] = differing(outcomes[pair], alone)
    return replace(found, blocks=tuple(outcomes.values()), evaluations=protocol.map.values, vjps=protocol.map.vjps)
