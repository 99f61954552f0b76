"""Verifies a claim: whether the claimed gradient is that of the map at a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gradcli.numerics.course.protocol import Protocol
from gradcli.numerics.course.small_rows import SomeRows, differing
from gradcli.numerics.maps.floats import Indices, Vector
from gradcli.numerics.maps.sizes import SIGNIFICANT
from gradcli.numerics.maps.vector_map import MOST_EVALUATIONS, CountedMap, VectorMap
from gradcli.numerics.outcome import BlockOutcome, Doubt, KinkNote, Outcome, Pair, Table, Verification
from gradcli.numerics.sampling.directions import generator_of

__all__ = ["BlockOutcome", "Doubt", "KinkNote", "Outcome", "Table", "Verification", "verify"]


def verify(
    map: VectorMap,
    x: Vector,
    *,
    seed: int,
    significance: float = SIGNIFICANT,
    inputs: Sequence[int] | None = None,
    budget: int = MOST_EVALUATIONS,
    entries: int | None = None,
    witness: VectorMap | None = None,
    witness_values: bool = False,
) -> Verification:
    """Compare the claimed gradient of a map with its numerical derivative, for every pair of blocks.

    A `Protocol` compares every pair with the reference, if there is one, and with a few values, which certify a claim
    that they meet to nine digits. Where they do not, it measures directions by small steps with an error bound,
    confirms what differs, and tries large steps where the values are too rough for small ones.

    Args:
        map: the map. Its vjp is the claim, which is compared with finite differences of its value.
        x: the point, of length n. It is rounded to a grid first, which moves an entry by at most 3e-14 of its scale.
        seed: determines everything random.
        significance: a difference below this part of the pair's largest entry becomes a note, and not DIFFERS.
        inputs: the input blocks to check, by default all.
        budget: the evaluations of forward that are allowed; pairs not decided by then are UNDECIDED with doubt BUDGET.
        entries: the evaluations that may be spent on single entries of blocks that differ, if these cannot change the
            outcome; by default not limited.
        witness: the reference: another derivative of the same map, exact up to rounding, of which only `vjp` is used.
            If it agrees with the claim, finite differences along one direction certify both; if not, finite differences
            decide between them.
        witness_values: whether to use the reference only if its own values are those of the map, to 1e-9 of every
            output block.

    Returns:
        A `Verification` with one `BlockOutcome` for every chosen input block and every output block.

    Raises:
        ValueError: x has the wrong length.
        Exception: whatever the map raises at x itself.
    """
    if np.shape(x) != (map.domain.size,):
        raise ValueError(f"expected a point of length {map.domain.size}, got shape={np.shape(x)}")
    counted = CountedMap(map, budget)
    chosen = range(len(map.domain.blocks)) if inputs is None else inputs
    rng = generator_of(seed)
    point = np.asarray(x, dtype=np.float64)
    protocol = Protocol(counted, witness, witness_values, point, rng, significance, tuple(chosen), entries)
    protocol.of_rows = partial(_alone, protocol, seed)
    found = protocol.run()
    return _row_by_row(protocol, found, seed) if protocol.suspects else found


def _row_by_row(protocol: Protocol, found: Verification, seed: int) -> Verification:
    """Verify rows that seem wrong compared with their own largest entry as maps of their own."""
    outcomes = {(block.input, block.output): block for block in found.blocks}
    for pair, (point, rows) in protocol.suspects.items():
        first = protocol.map.codomain.slices[pair[1]].start
        each = {row - first: _alone(protocol, seed, pair, point, np.array([row - first])) for row in rows.tolist()}
        if outcomes[pair].outcome is Outcome.AGREES:
            outcomes[pair] = differing(outcomes[pair], {row: own for row, own in each.items() if own is not None})
    return replace(found, blocks=tuple(outcomes.values()), evaluations=protocol.map.values, vjps=protocol.map.vjps)


def _alone(protocol: Protocol, seed: int, pair: Pair, point: Vector, rows: Indices) -> BlockOutcome | None:
    """The outcome of some rows of a pair's output block, verified as a map of their own.

    None if they had to be judged at another point, because it was this point at which they seemed wrong.
    """
    own = verify(
        SomeRows(protocol.map, protocol.map.codomain.slices[pair[1]].start + rows),
        point,
        seed=seed,
        significance=protocol.significance,
        inputs=pair[:1],
        budget=protocol.map.left,
        entries=protocol.evidence.left,
    )
    return None if own.moved else own.blocks[0]
