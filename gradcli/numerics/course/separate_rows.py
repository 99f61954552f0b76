"""Chooses outputs of small value, which are compared alone where rounding of larger ones hides the others.

Beside an output of 1e30, such as a mask, the gradient of an output of 1 is below the rounding of the block, although
the values of this output are exact to sixteen digits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.site import Site
from gradcli.numerics.course.small_rows import SomeRows
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import Indices, Mask, Vector
from gradcli.numerics.maps.sizes import COARSE, UNBALANCED
from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.outcome import BlockOutcome, Outcome, Pair
from gradcli.numerics.reference.discrepancy import TAIL_NOISE
from gradcli.numerics.regularity.gradient_noise import nudged_claims
from gradcli.numerics.sampling.directions import ASIDE, random_direction, within
from gradcli.numerics.sampling.line import point_along
from gradcli.numerics.screen.pair_result import PairResult
from gradcli.numerics.screen.single_pair import NEAREST
from gradcli.numerics.wording import joined

APART = (
    "these output entries were compared without the others, which are so large that their rounding would hide the error"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallOutputs:
    """Outputs of small value that change with an input.

    Attributes:
        rows: their numbers within the output block.
        complete: whether all others have a claim of zero, and stay the same bit for bit when the input moves.
    """

    rows: Indices
    complete: bool


def is_noise(site: Site, pair: Pair) -> bool:
    """Whether a claim is below the noise that the map gives, or changes by an eighth when x changes by roundings.

    The gradient of a bias before a batch norm is zero; what is computed is a rounding error, another one at every x.
    """
    inside, rows = site.map.domain.slices[pair[0]], site.claim.places(pair[1])
    here = site.claim.forms[rows][:, inside] * site.scales[inside]
    largest = float(np.abs(here).max(initial=0.0))
    with np.errstate(all="ignore"):
        given = site.map.value_noise(site.x)
    if given is not None and largest <= float(np.nanmax(given[site.map.codomain.slices[pair[1]]], initial=0.0)):
        return True
    changes = [np.abs(c.forms[rows][:, inside] * site.scales[inside] - here).max() for c in nudged_claims(site)]
    return not all(NOISE_FACTOR * change < largest for change in changes)


def small_outputs(site: Site, result: PairResult, pair: Pair) -> SmallOutputs | None:
    """The outputs to compare alone, for a pair whose claim is not noise, but below the rounding of its largest output.

    Their values are at most 1e-4 of the largest (`UNBALANCED`); of a claim that seems wrong in some rows, at most 1e4
    times the largest value of these. They change over the shortest step, and their claims are not noise.
    """
    inside, outside = site.map.domain.slices[pair[0]], site.map.codomain.slices[pair[1]]
    values = site.outputs[outside]
    size = np.abs(values)
    most = float(size.max()) / UNBALANCED
    if site.claim.full and result.site.claim.full:
        failing = result.reading.differing(result.judgement.scale, 0.0)[outside]
        most = min(most, UNBALANCED * float(size[failing].max(initial=0.0)) if failing.any() else most)
    direction = random_direction(site.rng, within(site.scales, inside))
    try:
        there = [site.map.value(point_along(site.x, direction, t)) for t in (NEAREST, -NEAREST, *ASIDE)]
    except Exception:  # outside the domain
        return None
    same: Mask = np.array([np.asarray(y, dtype=np.float64)[outside] == values for y in there])
    rows = np.flatnonzero((size <= most) & np.isfinite(size) & ~same[:2].all(axis=0))
    rows = rows[_exact(site, inside, outside.start + rows)] if rows.size else rows
    rest = np.ones(size.size, bool)
    rest[rows] = False
    return SmallOutputs(rows=rows, complete=bool(same[:, rest].all()) and _claimed_zero(site, inside, outside, rest))


def _exact(site: Site, inside: slice, rows: Indices) -> Mask:
    """Which rows have a claim that changes by less than a thousandth when x moves by a few roundings.

    Along projections, all of them or none.
    """
    own = Site.at(CountedMap(SomeRows(site.map, rows), site.map.left), site.x, site.rng)
    sizes = np.abs(own.claim.forms[:, inside] * own.scales[inside]).max(axis=1)
    spread: Vector = np.zeros(sizes.size)
    for claim in nudged_claims(own):
        change = np.abs(claim.forms - own.claim.forms)[:, inside] * own.scales[inside]
        spread = np.fmax(spread, change.max(axis=1))
    exact: Mask = TAIL_NOISE * spread <= COARSE * sizes
    return exact if own.claim.full else np.full(rows.size, exact.all())


def _claimed_zero(site: Site, inside: slice, outside: slice, rest: Mask) -> bool:
    """Whether the claimed gradient of some outputs of a block is zero in one input."""
    cotangent = np.zeros(site.map.codomain.size)
    cotangent[outside] = np.where(rest, random_direction(site.rng, np.ones(rest.size)), 0.0)
    return not np.asarray(site.map.vjp(site.x, cotangent))[inside].any()


def of_all_rows(pair: Pair, small: SmallOutputs, found: BlockOutcome | None) -> BlockOutcome | None:
    """The outcome of a pair, if outputs of small value alone decide it: if they differ, or agree and are complete."""
    if found is None or found.outcome is Outcome.UNDECIDED or found.zero_everywhere:
        return None
    if found.outcome is Outcome.AGREES:
        return replace(found, input=pair[0], output=pair[1]) if small.complete else None
    table = found.table
    if table is not None:
        table = replace(table, rows=small.rows[table.rows], complete=False, small_rows=True)
    note = joined(APART, found.note)
    return replace(found, input=pair[0], output=pair[1], table=table, note=note)
