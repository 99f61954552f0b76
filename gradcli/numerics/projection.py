"""What is compared: the rows of J v, read from the outputs, and what the claimed gradient says they are.

With a full claimed Jacobian, or a jvp that agrees with the vjp, every output is a row. Otherwise rows are projections
u·f with random signed cotangents u, three for every output block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradcli.numerics.probe import signed_cotangents
from gradcli.numerics.space import Vector
from gradcli.numerics.stencil import EPS
from gradcli.numerics.vector_map import VectorMap

Matrix = npt.NDArray[np.float64]

FULL_ENTRIES = 10_000
FULL_ROWS = 100
PROJECTIONS = 3
WITNESSED_PROJECTIONS = 2
"""Enough beside a witness: errors cancel in one random cotangent almost never, in two never."""
WATCHED_OUTPUTS = 20_000
"""Up to this many outputs are differentiated one by one beside the projections, to see their kinks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claimed derivative at one point, as linear forms on the domain.

    `forms[r]` is the claimed gradient of row r; `cotangents[r]` is the row as a functional of the outputs (None where
    row r is output r). `block[r]` is the output block of row r.
    """

    map: VectorMap
    x: Vector
    forms: Matrix
    cotangents: Matrix | None
    block: npt.NDArray[np.intp]
    watch: bool
    jvp_rows: bool

    @property
    def full(self) -> bool:
        """Whether the rows are the outputs themselves."""
        return self.cotangents is None

    def read(self, outputs: Vector) -> Vector:
        """The rows' values at some outputs: watched outputs first, then projections."""
        if self.cotangents is None:
            return outputs
        with np.errstate(all="ignore"):
            finite = np.isfinite(outputs)
            safe = np.where(finite, outputs, 0.0)
            rows = self.cotangents @ safe
            if not finite.all():
                rows[(np.abs(self.cotangents) @ (~finite).astype(float)) > 0] = np.nan
        return np.concatenate([outputs, rows]) if self.watch else rows

    def read_noise(self, noise: Vector) -> Vector:
        """The standard deviation of every row that `read` gives, the outputs' being independent of each other."""
        if self.cotangents is None:
            return noise
        rows = np.sqrt(self.cotangents**2 @ noise**2)
        return np.concatenate([noise, rows]) if self.watch else rows

    def row_blocks(self) -> npt.NDArray[np.intp]:
        """The output block of every row that `read` gives."""
        if self.cotangents is None or not self.watch:
            return self.block
        return np.concatenate([output_blocks(self.map), self.block])

    def along(self, v: Vector) -> tuple[Vector, Vector]:
        """The claimed derivative of every row along v (NaN: no claim) and the rounding error of computing it."""
        claimed = _products(self.forms, v)
        with np.errstate(all="ignore"):
            rounding = 16 * EPS * (np.abs(self.forms) @ np.abs(v))
        if self.cotangents is None or not self.watch:
            return claimed, rounding
        outputs = self.map.codomain.size
        entries = np.full(outputs, np.nan)
        slack = np.zeros(outputs)
        if self.jvp_rows:
            entries = np.asarray(self.map.jvp(self.x, v), dtype=np.float64)
            slack = 64 * EPS * np.abs(entries) + float(rounding.max(initial=0.0))
        return np.concatenate([entries, claimed]), np.concatenate([slack, rounding])

    def entry_scale(self, places: slice, output: int, scales: Vector) -> float:
        """The largest |claimed entry| × |scale| in the block of one input and one output."""
        rows = self.forms[self.block == output][:, places]
        with np.errstate(all="ignore"):
            sized = np.abs(rows * scales[places])
        return float(np.where(np.isfinite(sized), sized, 0.0).max(initial=0.0))

    def largest(self, places: slice, output: int) -> float:
        """The largest |claimed entry| in the block of one input and one output."""
        rows = np.abs(self.forms[self.block == output][:, places])
        return float(np.where(np.isfinite(rows), rows, 0.0).max(initial=0.0))

    @property
    def finite(self) -> bool:
        """Whether every claimed number is finite."""
        return bool(np.isfinite(self.forms).all())


def _products(forms: Matrix, v: Vector) -> Vector:
    finite = np.isfinite(forms)
    if finite.all():
        return forms @ v
    rows: Vector = np.where(finite, forms, 0.0) @ v
    rows[((~finite) & (v != 0)).any(axis=1)] = np.nan
    return rows


def output_blocks(map_: VectorMap) -> npt.NDArray[np.intp]:
    """The output block of every output."""
    return np.repeat(np.arange(len(map_.codomain.blocks)), [block.size for block in map_.codomain.blocks])


def make_claim(map_: VectorMap, x: Vector, rng: np.random.Generator, projections: int | None = None) -> Claim:
    """Ask the map for its claimed derivative at x, in full where that is small, else in projections.

    Args:
        map_: the map; only its vjp and jvp are used.
        x: the point.
        rng: draws the cotangents.
        projections: rows wanted for every output block; by default all outputs where those are few, else 3.
    """
    n, m = map_.domain.size, map_.codomain.size
    blocks = output_blocks(map_)
    sizes = [block.size for block in map_.codomain.blocks]
    small = n * m <= FULL_ENTRIES and m <= FULL_ROWS if projections is None else max(sizes, default=0) <= projections
    if small:
        forms = np.asarray(map_.vjp_many(x, np.eye(m)), dtype=np.float64).reshape(m, n)
        return Claim(map=map_, x=x, forms=forms, cotangents=None, block=blocks, watch=False, jvp_rows=False)
    cotangents, row_block = _signed_rows(map_, rng, PROJECTIONS if projections is None else projections)
    forms = np.asarray(map_.vjp_many(x, cotangents), dtype=np.float64).reshape(len(cotangents), n)
    watch = m <= WATCHED_OUTPUTS
    claim = Claim(
        map=map_,
        x=x,
        forms=forms,
        cotangents=cotangents,
        block=row_block,
        watch=watch,
        jvp_rows=False,
    )
    if not (map_.has_jvp and watch and claim.finite):
        return claim
    return Claim(
        map=map_,
        x=x,
        forms=forms,
        cotangents=cotangents,
        block=claim.block,
        watch=True,
        jvp_rows=_consistent(claim, rng),
    )


def _signed_rows(map_: VectorMap, rng: np.random.Generator, count: int) -> tuple[Matrix, npt.NDArray[np.intp]]:
    """Up to `count` signed cotangents for every output block, zero on the others, and the block of each."""
    rows, row_block = [], []
    for number, place in enumerate(map_.codomain.slices):
        size = place.stop - place.start
        for drawn in signed_cotangents(rng, size, count) if size > count else np.eye(size):
            row = np.zeros(map_.codomain.size)
            row[place] = drawn
            rows.append(row)
            row_block.append(number)
    return np.array(rows).reshape(len(rows), map_.codomain.size), np.array(row_block, dtype=np.intp)


def _consistent(claim: Claim, rng: np.random.Generator) -> bool:
    """Whether <u, jvp v> = <vjp u, v> up to rounding: only then do the jvp's entries stand for the claimed gradient."""
    v = rng.integers(128, 256, claim.map.domain.size) / 256.0 * rng.choice([-1.0, 1.0], claim.map.domain.size)
    if claim.cotangents is None:
        return False
    tangent = np.asarray(claim.map.jvp(claim.x, v), dtype=np.float64)
    if tangent.shape != (claim.map.codomain.size,) or not np.isfinite(tangent).all():
        return False
    allowed = 1e-10 * (np.abs(claim.cotangents) @ np.abs(tangent)) + 1e-10 * (np.abs(claim.forms) @ np.abs(v))
    return bool((np.abs(claim.cotangents @ tangent - claim.forms @ v) <= allowed).all())
