"""What is compared: the rows of J v, read from the outputs, and what the claimed gradient says they are.

With a full claimed Jacobian, or a jvp that agrees with the vjp, every output is a row. Otherwise rows are projections
u·f with random signed cotangents u, three for every output block.
"""

from __future__ import annotations

import math
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import EPS, Matrix
from gradcli.numerics.maps.pieces import all_finite, consecutive, largest, magnitudes_along, products
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import signed_cotangents

Places = slice | npt.NDArray[np.bool_]

_ALL = slice(None)

FULL_ENTRIES = 10_000
FULL_ROWS = 100
PROJECTIONS = 3
WITNESSED_PROJECTIONS = 2
"""Enough where the witness is known: errors almost never cancel in one random cotangent, and practically never in
two."""
LONG_PROJECTIONS = 2
"""For more outputs than WATCHED_OUTPUTS: computing a projection then takes as long as a forward."""
WATCHED_OUTPUTS = 20_000
"""Up to this many outputs are differentiated one by one beside the projections, to see their kinks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claimed derivative at one point, as linear forms on the domain.

    `forms[r]` is the claimed gradient of row r; `cotangents[r]` is the row as a functional of the outputs (None where
    row r is output r). `block[r]` is the output block of row r; `outputs` are the map's values at
    the point where the claim told them too; `finite` says that every claimed number is.
    """

    map: VectorMap
    x: Vector
    forms: Matrix
    cotangents: Matrix | None
    block: npt.NDArray[np.intp]
    watch: bool
    jvp_rows: bool
    outputs: Vector | None = None
    finite: bool = field(init=False)
    _places: dict[int, Places] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note whether every claimed number is finite."""
        object.__setattr__(self, "finite", all_finite(self.forms))

    @property
    def full(self) -> bool:
        """Whether the rows are the outputs themselves."""
        return self.cotangents is None

    def read(self, outputs: Vector) -> Vector:
        """The rows' values at some outputs: watched outputs first, then projections."""
        if self.cotangents is None:
            return outputs
        with np.errstate(all="ignore"):
            rows = products(self.cotangents, outputs)
            if math.isfinite(rows.sum()):  # then so are the outputs: a cotangent's zero times infinity is NaN
                return np.concatenate([outputs, rows]) if self.watch else rows
            finite = np.isfinite(outputs)
            safe = np.where(finite, outputs, 0.0)
            rows = self.cotangents @ safe
            if not finite.all():
                rows[(np.abs(self.cotangents) @ (~finite).astype(float)) > 0] = np.nan
        return np.concatenate([outputs, rows]) if self.watch else rows

    def told(self, outputs: Vector) -> Vector:
        """The values at some finite outputs of the rows that have a form."""
        return outputs if self.cotangents is None else products(self.cotangents, outputs)

    def read_noise(self, noise: Vector) -> Vector:
        """The standard deviation of every row that `read` gives, the outputs' being independent of each other."""
        if self.cotangents is None:
            return noise
        if not noise.any():
            return np.zeros(len(self.block) + (noise.size if self.watch else 0))
        rows = np.sqrt(self.cotangents**2 @ noise**2)
        return np.concatenate([noise, rows]) if self.watch else rows

    def row_blocks(self) -> npt.NDArray[np.intp]:
        """The output block of every row that `read` gives."""
        if self.cotangents is None or not self.watch:
            return self.block
        return np.concatenate([self.map.codomain.block_numbers, self.block])

    @property
    def rows(self) -> int:
        """How many rows `read` gives."""
        return len(self.block) + (self.map.codomain.size if self.watch else 0)

    @property
    def watched(self) -> int:
        """How many of the rows that `read` gives, the first, are outputs that are only watched: no claim is theirs."""
        return self.map.codomain.size if self.watch and not self.jvp_rows else 0

    def slopes(self, v: Vector) -> Vector:
        """The claimed derivative along v of every row that has a form (NaN where the form is not finite)."""
        return products(self.forms, v) if self.finite else _products(self.forms, v)

    def along(self, v: Vector) -> tuple[Vector, Vector]:
        """The claimed derivative of every row along v (NaN: no claim) and the rounding error of computing it."""
        claimed = self.slopes(v)
        with np.errstate(all="ignore"):
            rounding = 16 * EPS * magnitudes_along(self.forms, v)
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
        with np.errstate(all="ignore"):
            return largest(self.of_block(output)[:, places], scales[places])

    def of_block(self, output: int) -> Matrix:
        """The forms of the rows of one output block."""
        return self.forms[self.places(output)]

    def places(self, output: int) -> Places:
        """Where the rows of one output block lie among the forms."""
        if len(self.map.codomain.blocks) == 1:
            return _ALL
        known = self._places.get(output)
        if known is None:
            known = self._places[output] = consecutive(self.block == output)
        return known

    def largest(self, places: slice, output: int) -> float:
        """The largest |claimed entry| in the block of one input and one output."""
        return largest(self.of_block(output)[:, places])


def _products(forms: Matrix, v: Vector) -> Vector:
    finite = np.isfinite(forms)
    rows: Vector = np.where(finite, forms, 0.0) @ v
    rows[((~finite) & (v != 0)).any(axis=1)] = np.nan
    return rows


def make_claim(map_: VectorMap, x: Vector, rng: np.random.Generator, projections: int | None = None) -> Claim:
    """Ask the map for its claimed derivative at x, in full where that is small, else in projections.

    Args:
        map_: the map; only its vjp and jvp are used.
        x: the point.
        rng: draws the cotangents.
        projections: rows wanted for every output block; by default all outputs where those are few, else 3.
    """
    n, m = map_.domain.size, map_.codomain.size
    sizes = map_.codomain.sizes
    small = fits_in_full(map_) if projections is None else max(sizes, default=0) <= projections
    if small:
        outputs, forms = map_.value_and_vjps(x, np.eye(m))
        return Claim(
            map=map_,
            x=x,
            forms=np.asarray(forms, dtype=np.float64).reshape(m, n),
            cotangents=None,
            block=map_.codomain.block_numbers,
            watch=False,
            jvp_rows=False,
            outputs=outputs,
        )
    usual = PROJECTIONS if m <= WATCHED_OUTPUTS else LONG_PROJECTIONS
    cotangents, row_block = _signed_rows(map_, rng, usual if projections is None else projections)
    outputs, forms = map_.value_and_vjps(x, cotangents)
    watch = m <= WATCHED_OUTPUTS
    claim = Claim(
        map=map_,
        x=x,
        forms=np.asarray(forms, dtype=np.float64).reshape(len(cotangents), n),
        cotangents=cotangents,
        block=row_block,
        watch=watch,
        jvp_rows=False,
        outputs=outputs,
    )
    if not (map_.has_jvp and watch and claim.finite):
        return claim
    return replace(claim, jvp_rows=_consistent(claim, rng))


def fits_in_full(map_: VectorMap) -> bool:
    """Whether a map is so small, and a call so quick, that its claim may be computed row by row."""
    n, m = map_.domain.size, map_.codomain.size
    return n * m <= FULL_ENTRIES and m <= FULL_ROWS and not map_.is_costly


def _signed_rows(map_: VectorMap, rng: np.random.Generator, count: int) -> tuple[Matrix, npt.NDArray[np.intp]]:
    """Up to `count` signed cotangents for every output block, zero on the others, and the block of each."""
    sizes = map_.codomain.sizes
    if len(sizes) == 1 and sizes[0] > count:
        return signed_cotangents(rng, sizes[0], count), np.zeros(count, np.intp)
    row_block = np.repeat(np.arange(len(sizes)), [min(size, count) for size in sizes])
    rows = np.zeros((row_block.size, map_.codomain.size))
    for number, (place, size) in enumerate(zip(map_.codomain.slices, sizes, strict=True)):
        rows[row_block == number, place] = signed_cotangents(rng, size, count) if size > count else np.eye(size)
    return rows, row_block


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
