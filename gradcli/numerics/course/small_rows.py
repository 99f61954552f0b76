"""Compares outputs of small derivative with their own largest entry instead of the largest entry of their block.

Next to an output of 1e12, the gradient of an output of 1e-9 is below the rounding of the block, and so is a mistake in
it, although the values of this output are exact to sixteen digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.claims.claim import fits_in_full
from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.localise.rows import LARGEST_COUNT, wrong_rows
from gradcli.numerics.maps.floats import TINY, Indices, Matrix, Vector
from gradcli.numerics.maps.sizes import CERTIFIED, COARSE, SIGNIFICANT, UNBALANCED
from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.maps.vector_map import CountedMap, Effort, VectorMap
from gradcli.numerics.outcome import BlockOutcome, Outcome, Pair, Table
from gradcli.numerics.reference.discrepancy import TAIL_NOISE
from gradcli.numerics.regularity.gradient_noise import nudged_claims
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.regularity.stored_format import format_at
from gradcli.numerics.sampling.directions import TRIES, Focus, random_direction, within
from gradcli.numerics.screen.small_entries import (
    DROWNED,
    LOST,
    NEARER,
    UNIT,
    are_alike,
    bands,
    slopes_along,
    weighted,
)
from gradcli.numerics.wording import joined

APART = (
    "the derivatives of these output entries are far smaller than those of the others, so each error is given "
    "relative to the largest derivative among these entries"
)
UNSEEN = (
    "not checked: output entries whose derivatives are far smaller than the largest, because there are too many "
    "outputs to compare them one by one, and autodiff of forward's body is not available"
)
HIDDEN = (
    "not checked: output entries whose derivatives are far smaller than the largest and hidden by rounding of "
    "forward's values"
)
LOST_IN_TAIL = (
    "not checked: output entries whose derivatives are far smaller than the largest, and so small that a right formula "
    "may compute zero, or only rounding errors of larger terms"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectRows:
    """Rows that seem wrong compared with their own largest entry.

    Attributes:
        rows: their flat output numbers.
        hidden: whether rounding of forward's values left the slopes of other rows unknown.
        lost: whether other rows missed slopes that are below rounding errors of larger terms.
        unseen: whether rows of small derivatives could not be compared because there are too many outputs.
    """

    rows: Indices
    hidden: bool = False
    lost: bool = False
    unseen: bool = False

    @property
    def note(self) -> str | None:
        """What is said of the rows that could not be compared, if there are any."""
        if self.unseen:
            return UNSEEN
        return joined(HIDDEN if self.hidden else None, LOST_IN_TAIL if self.lost else None)


NONE = SuspectRows(rows=np.zeros(0, np.intp))


def suspect_rows(site: Site, pair: Pair, reading: Reading) -> SuspectRows:
    """Find up to three rows that seem wrong by `SIGNIFICANT` of their own largest entry, in a pair that agrees.

    Candidates come from the direction that has been measured already; they are then measured with
    `directional_derivative`. There are none if forward iterates or its values have few digits, because rounding then
    explains such errors.

    Args:
        site: the point at which the pair was judged.
        reading: a measured direction through the input block, and perhaps others.
    """
    own = _in_full(site, pair, reading)
    if own is None:
        return _among_many(site, pair, reading)
    inside, outside = own.map.domain.slices[pair[0]], own.map.codomain.slices[pair[1]]
    forms = own.claim.forms[outside]
    sizes = (np.abs(forms[:, inside]) * own.scales[inside]).max(axis=1)
    slopes, claimed = reading.numeric[outside], forms @ reading.direction
    with np.errstate(all="ignore"):
        missed, allowed = np.abs(slopes - claimed), SIGNIFICANT * np.minimum(sizes, np.abs(claimed))
        small = (sizes < sizes.max() / UNBALANCED) & (missed > np.maximum(allowed, CERTIFIED * np.abs(slopes)))
    if not small.any() or format_at(own, pair[1]) is not None or iterates(own):
        return NONE
    rows = np.flatnonzero(small)
    worst = forms[rows[int(np.argmax(missed[rows] / np.maximum(sizes[rows], TINY)))]]
    largest = float(np.abs(own.outputs[outside]).max())
    return _measured(own, inside, outside.start + rows, sizes[small], worst, largest)


def _in_full(site: Site, pair: Pair, reading: Reading) -> Site | None:
    """The site with the claim of every single row.

    None if the map is too large or slow for that, if its outputs were not measured one by one, or if their slopes do
    not differ much (`are_alike`).
    """
    place = site.map.codomain.slices[pair[1]]
    if place.stop - place.start < 2 or not fits_in_full(site.map):
        return None
    if not np.isfinite(site.outputs).all() or reading.numeric.size < site.map.codomain.size:
        return None
    if site.claim.full:
        return site
    if not site.claim.watch or are_alike(reading.numeric[place]):
        return None
    own = site.alone()
    return own if own.claim.full and own.claim.finite else None


def _among_many(site: Site, pair: Pair, reading: Reading) -> SuspectRows:
    """Find such rows of a map that is too large or slow for a claim of every row, and that has no reference.

    Candidates are rows that groups of similar slopes contain (`bands`): their claimed slopes are computed together, and
    a group that is off by more than a thousandth of a slope is halved. With a reference, `screen.small_entries` has
    looked at all rows.
    """
    output, place = pair[1], site.map.codomain.slices[pair[1]]
    whole = np.isfinite(site.outputs).all() and site.claim.cotangents is not None
    if site.witness is not None or not whole or place.stop - place.start < 2:
        return NONE
    if not site.claim.watch:
        slopes = slopes_along(site, output, pair[:1])
        alike = slopes is None or are_alike(slopes[slopes != 0])
        return NONE if alike else replace(NONE, unseen=True)
    weights = [] if are_alike(reading.numeric[place]) else list(bands(site, output, reading.numeric[place]))
    if not weights or format_at(site, output) is not None or iterates(site):
        return NONE
    measured = site.probe(site.map.domain.slices[pair[0]], cheap=False)
    found = np.zeros(0, np.intp)
    for band in weights:
        there = Site(site.map, site.x, site.scales, weighted(site, output, band), site.rng)
        found = np.union1d(found, wrong_rows(there, *pair, measured, COARSE, LARGEST_COUNT))
    if not found.size:
        return NONE
    rows = place.start + site.rng.permutation(found)[:LARGEST_COUNT]
    own = Site.at(CountedMap(SomeRows(site.map, rows), site.map.left), site.x, site.rng, projections=rows.size)
    inside = own.map.domain.slices[pair[0]]
    if not own.claim.finite:
        return NONE
    sizes = (np.abs(own.claim.forms[:, inside]) * own.scales[inside]).max(axis=1)
    largest = float(np.abs(site.outputs[place]).max())
    suspects = _measured(own, inside, np.arange(rows.size), sizes, own.claim.forms[0], largest)
    return replace(suspects, rows=np.sort(rows[suspects.rows]))


def _measured(site: Site, inside: slice, rows: Indices, sizes: Vector, worst: Vector, largest: float) -> SuspectRows:
    """Measure the candidates along one direction, and select those that are wrong beyond bounds, noise and rounding.

    The direction is such that the terms of the worst candidate add up; along a random one they may cancel.

    Args:
        site: the point, with the claim of every single row.
        rows: the flat numbers of the candidates.
        sizes: their largest scaled entries.
        worst: the claimed gradient of the worst candidate.
        largest: the largest |value| of the output block.
    """
    focus = Focus(drawn=within(site.scales, inside), judged=site.scales)
    direction = np.copysign(random_direction(site.rng, focus.drawn), worst)
    reading = site.measure(direction, inside, focus, cheap=False)
    error, bound = reading.error[rows], reading.tolerance[rows]
    sizes = np.maximum(sizes, np.abs(reading.numeric[rows]) / max(1.0, (inside.stop - inside.start) ** 0.5))
    with np.errstate(all="ignore"):
        off = reading.smooth[rows] & (error > np.maximum(FAIL_FACTOR * bound, SIGNIFICANT * sizes))
        hidden, drowned = reading.smooth[rows] & ~off & (bound > COARSE * sizes), np.zeros(rows.size, bool)
        if off.any():
            off &= error > TAIL_NOISE * _jitter(site, rows, direction)
            nearer, most = _nearer(site, rows), np.maximum(sizes, error)
            # A claim of exactly zero has lost all of its digits: 1 - 1 / (1 + exp(-x)) does for large x.
            lost = (most > UNIT * nearer) | (error <= LOST * most) | (reading.claimed[rows] == 0)
            tail = (error <= DROWNED * nearer) & lost
            # 1 - (1 - p) (1 - q) stays the same for tiny p and q; other outputs show how large its terms are.
            still = (reading.numeric[rows] == 0) & (error <= DROWNED * largest)
            drowned = off & (tail | still)
            off &= ~drowned
    order = np.argsort(-error / np.maximum(sizes, TINY))
    found = np.sort(rows[[k for k in order.tolist() if off[k]][:TRIES]])
    return SuspectRows(rows=found, hidden=bool(hidden.any()), lost=bool(drowned.any()))


def _jitter(site: Site, rows: Indices, direction: Vector) -> Vector:
    """How much the claimed slope of some rows along a direction changes when x moves by a few roundings."""
    asked = np.zeros(len(site.claim.forms), bool)
    asked[rows] = True
    spread = np.zeros(rows.size)
    for claim in nudged_claims(site, asked):
        spread = np.fmax(spread, np.abs((claim.forms[rows] - site.claim.forms[rows]) @ direction))
    return spread


def _nearer(site: Site, rows: Indices) -> Vector:
    """The largest |value| or scaled claimed entry of some rows at x / 8 and -x / 8.

    In a tail that falls off from there, a right formula may compute only rounding errors of those numbers, or zero.
    """
    asked = np.zeros(len(site.claim.forms), bool)
    asked[rows] = True
    size = np.zeros(rows.size)
    for factor in NEARER:
        claim = site.claim_at(factor * site.x, asked)
        size = np.fmax(size, np.abs(site.value_at(factor * site.x)[rows]))
        if claim is not None:
            size = np.fmax(size, (np.abs(claim.forms[rows]) * site.scales).max(axis=1))
    return size


@final
class SomeRows(VectorMap):
    """Some output entries of a map, as a map of its own."""

    def __init__(self, inner: VectorMap, rows: Sequence[int] | Indices) -> None:
        self.inner, self.rows = inner, np.asarray(rows)
        self.domain = inner.domain
        self.codomain = Space((Block(name="rows", shape=self.rows.shape, dtype="float64"),))

    @property
    def is_costly(self) -> bool:
        """Whether a call of the inner map takes long."""
        return self.inner.is_costly

    def value(self, x: Vector) -> Vector:
        """Evaluate those outputs at x."""
        values: Vector = np.asarray(self.inner.value(x), dtype=np.float64)[self.rows]
        return values

    def value_noise(self, x: Vector) -> Vector | None:
        """The noise of those outputs, as the inner map gives it."""
        noise = self.inner.value_noise(x)
        return None if noise is None else np.asarray(noise, dtype=np.float64)[self.rows]

    def effort(self, x: Vector) -> Effort | None:
        """The inner map's effort."""
        effort = self.inner.effort(x)
        return effort if effort is None or effort.value is None else replace(effort, value=effort.value[self.rows])

    def vjp(self, x: Vector, cotangent: Vector) -> Vector:
        """The claimed gradient of those outputs, times the cotangent."""
        row: Vector = self.vjp_many(x, np.asarray(cotangent, dtype=np.float64)[None])[0]
        return row

    def vjp_many(self, x: Vector, cotangents: Matrix) -> Matrix:
        """The same for several cotangents."""
        whole = np.zeros((len(cotangents), self.inner.codomain.size))
        whole[:, self.rows] = cotangents
        return np.asarray(self.inner.vjp_many(x, whole), dtype=np.float64)


def differing(outcome: BlockOutcome, single: Mapping[int, BlockOutcome]) -> BlockOutcome:
    """Combine the outcome of a pair with those of single rows, each verified as a map of its own.

    Args:
        single: the outcomes of the rows, by their number in the output block.

    Returns:
        If a row differs, its outcome (that with the largest error); otherwise the outcome of the pair.
    """
    wrong = {row: found for row, found in single.items() if found.outcome is Outcome.DIFFERS}
    if not wrong:
        return outcome
    row, worst = max(wrong.items(), key=lambda item: item[1].max_rel_error)
    table = None if worst.table is None else replace(worst.table, rows=np.array([row]), complete=False, small_rows=True)
    columns = worst.wrong_columns
    if worst.table is not None and worst.table.complete:
        columns = worst.table.columns[_off(worst.table).any(axis=0)]
    return replace(
        worst,
        input=outcome.input,
        output=outcome.output,
        note=joined(APART, worst.note),
        table=table,
        wrong_columns=columns,
    )


def _off(table: Table) -> npt.NDArray[np.bool_]:
    """The entries of a table that are wrong by `SIGNIFICANT` of the largest entry of their row and by three bounds."""
    size = np.maximum(np.abs(table.claimed), np.abs(table.numeric)).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(all="ignore"):
        error = np.abs(table.claimed - table.numeric)
        off: npt.NDArray[np.bool_] = (error > SIGNIFICANT * size) & (error > FAIL_FACTOR * table.bound)
    return off


def cut_to_small_rows(outcome: BlockOutcome) -> BlockOutcome:
    """Reduce an outcome that differs in small entries only to the rows that differ.

    Only if the derivatives of these rows are all far below the largest; otherwise the outcome is returned unchanged.
    """
    table = outcome.table
    if table is None:
        return outcome
    sizes = np.abs(table.numeric).max(axis=1, initial=0.0)
    off = _off(table)
    rows = np.flatnonzero(off.any(axis=1) & (sizes < sizes.max() / UNBALANCED))
    if not rows.size or off.any(axis=1).sum() > rows.size:
        return outcome
    claimed, numeric, bound = table.claimed[rows], table.numeric[rows], table.bound[rows]
    error = np.abs(claimed - numeric)
    largest = np.maximum(np.abs(claimed), np.abs(numeric)).max(axis=1, initial=0.0)
    cut = replace(
        table, claimed=claimed, numeric=numeric, bound=bound, rows=table.rows[rows], complete=False, small_rows=True
    )
    return replace(
        outcome,
        table=cut,
        wrong_columns=table.columns[off[rows].any(axis=0)],
        max_abs_error=float(error.max()),
        max_rel_error=float((error.max(axis=1) / largest).max()),
        bound=float(bound.max()),
        note=APART,
    )
