"""The claim at one point: which rows are compared, and their claimed gradients.

A row is a number whose derivative along a direction is measured: an output entry, or a projection u·f with a random
signed cotangent u. In a small map without a reference, every output entry is a row with a claimed gradient. Otherwise
projections of every output block have one: one beside a reference, two where that differs, three without a reference
(two for very many outputs). Up to 20,000 output entries are then measured as well, to see their kinks ("watched").
"""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import EPS, Matrix, Vector
from gradcli.numerics.maps.pieces import (
    all_finite,
    consecutive,
    largest,
    magnitudes_along,
    products,
    products_of_difference,
)
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import signed_cotangents

Places = slice | npt.NDArray[np.bool_]

_ALL = slice(None)

FULL_ENTRIES = 10_000
"""A claim is computed in full, row by row, if the Jacobian has at most this many entries (and FULL_ROWS rows)."""
FULL_ROWS = 100
"""A claim is computed in full if there are at most this many outputs: each needs a backward of its own."""
PROJECTIONS = 3
"""This many random cotangents are used for every output block without a reference. Errors almost never cancel in one,
and a mistake that does is unlikely to cancel in three."""
FEW_PROJECTIONS = 2
"""The number of cotangents where claim and reference differ in one: they are compared entry by entry, and errors almost
never cancel in one random cotangent, practically never in two. Also without a reference, for more outputs than
WATCHED_OUTPUTS, where computing a projection takes as long as a forward."""
WATCHED_OUTPUTS = 20_000
"""Up to this many outputs are differentiated one by one, in addition to the projections, to see kinks that cancel in
u·f."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claimed derivative at one point.

    Attributes:
        map: the map.
        x: the point.
        forms: one row for every claimed row: its gradient, of length n.
        cotangents: the cotangent u of every claimed row; None if row r is output r.
        block: the output block of every claimed row.
        watch: whether the single outputs are measured as well as the projections.
        outputs: f(x), if computing the claim gave it as well.
        finite: whether all claimed numbers are finite.
    """

    map: VectorMap
    x: Vector
    forms: Matrix
    cotangents: Matrix | None
    block: npt.NDArray[np.intp]
    watch: bool
    outputs: Vector | None = None
    finite: bool = field(init=False)
    _places: dict[int, Places] = field(init=False, default_factory=dict, repr=False, compare=False)
    _entry_scales: dict[tuple[int, int, int], tuple[Vector, float]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Set `finite`."""
        object.__setattr__(self, "finite", all_finite(self.forms))

    @property
    def full(self) -> bool:
        """Whether the rows are the outputs themselves, not projections."""
        return self.cotangents is None

    def read(self, outputs: Vector) -> Vector:
        """Compute the values of all rows from the outputs: first the watched outputs, then the projections.

        A projection that an infinite or NaN output enters is NaN.
        """
        if self.cotangents is None:
            return outputs
        with np.errstate(all="ignore"):
            rows = products(self.cotangents, outputs)
            if math.isfinite(rows.sum()):  # then the outputs are finite too, because 0 * infinity is NaN
                return np.concatenate([outputs, rows]) if self.watch else rows
            finite = np.isfinite(outputs)
            safe = np.where(finite, outputs, 0.0)
            rows = self.cotangents @ safe
            if not finite.all():
                rows[(np.abs(self.cotangents) @ (~finite).astype(float)) > 0] = np.nan
        return np.concatenate([outputs, rows]) if self.watch else rows

    def read_beside(self, outputs: Vector, centre: Vector, values: Vector) -> Vector:
        """Do the same as `read`, given the outputs and the values of all rows at a point close by.

        Of long outputs only the change is added up: rounding errors of the sum are then as small as the change.
        """
        if self.cotangents is not None and not self.watch and outputs.shape == centre.shape:
            change = products_of_difference(self.cotangents, outputs, centre)
            if math.isfinite(change.sum()):
                return values + change
        return self.read(outputs)

    def claimed_values(self, outputs: Vector) -> Vector:
        """Compute the values of the claimed rows, without watched outputs, from finite outputs."""
        return outputs if self.cotangents is None else products(self.cotangents, outputs)

    def read_noise(self, noise: Vector) -> Vector:
        """Compute the standard deviation of every row of `read` from those of the outputs, taken as independent."""
        if self.cotangents is None:
            return noise
        if not noise.any():
            return np.zeros(len(self.block) + (noise.size if self.watch else 0))
        rows = np.sqrt(self.cotangents**2 @ noise**2)
        return np.concatenate([noise, rows]) if self.watch else rows

    def row_blocks(self) -> npt.NDArray[np.intp]:
        """The output block of every row of `read`."""
        if self.cotangents is None or not self.watch:
            return self.block
        return np.concatenate([self.map.codomain.block_numbers, self.block])

    @property
    def rows(self) -> int:
        """The number of rows of `read`."""
        return len(self.block) + (self.map.codomain.size if self.watch else 0)

    @property
    def watched(self) -> int:
        """How many of the first rows of `read` are outputs without a claim, which are watched for kinks only."""
        return self.map.codomain.size if self.watch else 0

    def slopes(self, v: Vector) -> Vector:
        """The claimed slope along v of every claimed row (NaN if v moves an entry whose claim is not finite)."""
        return products(self.forms, v) if self.finite else _products(self.forms, v)

    def along(self, v: Vector) -> tuple[Vector, Vector]:
        """The claimed slope along v of every row of `read`, and the rounding error of computing it.

        That of watched outputs is NaN.
        """
        claimed = self.slopes(v)
        with np.errstate(all="ignore"):
            rounding = 16 * EPS * magnitudes_along(self.forms, v)
        unknown = np.full(self.watched, np.nan)
        return np.concatenate([unknown, claimed]), np.concatenate([np.zeros(self.watched), rounding])

    def entry_scale(self, places: slice, output: int, scales: Vector) -> float:
        """The largest |claimed entry| · scale of one input block (`places`) and one output block."""
        key = places.start, output, id(scales)
        known = self._entry_scales.get(key)
        if known is None:
            with np.errstate(all="ignore"):
                found = largest(self.of_block(output)[:, places], scales[places])
            known = self._entry_scales[key] = scales, found  # the scales are kept, so that no others get their id
        return known[1]

    def of_block(self, output: int) -> Matrix:
        """The claimed gradients of the rows of one output block."""
        return self.forms[self.places(output)]

    def places(self, output: int) -> Places:
        """Which of the claimed rows belong to one output block."""
        if len(self.map.codomain.blocks) == 1:
            return _ALL
        known = self._places.get(output)
        if known is None:
            known = self._places[output] = consecutive(self.block == output)
        return known

    def largest(self, places: slice, output: int) -> float:
        """The largest |claimed entry| of one input block (`places`) and one output block, without scales."""
        return largest(self.of_block(output)[:, places])


def _products(forms: Matrix, v: Vector) -> Vector:
    """Compute forms @ v, where an entry that is not finite makes its row NaN only if v moves it."""
    finite = np.isfinite(forms)
    rows: Vector = np.where(finite, forms, 0.0) @ v
    rows[((~finite) & (v != 0)).any(axis=1)] = np.nan
    return rows


def make_claim(
    map_: VectorMap,
    x: Vector,
    rng: np.random.Generator,
    projections: int | None = None,
    witness: VectorMap | None = None,
) -> tuple[Claim, Matrix | None]:
    """Compute the claim at x, in full for a small map, otherwise for random projections; and the reference's rows.

    Args:
        map_: the map; its vjp is called, and its value if that comes with the vjp.
        projections: the number of rows for every output block. By default all outputs of a small map, otherwise 3, or
            2 for very many outputs.

    Returns:
        The claim, and the reference's gradients of the claimed rows; None if there are none, or they are not finite.
    """
    n, m = map_.domain.size, map_.codomain.size
    watch, cotangents = m <= WATCHED_OUTPUTS, None
    if fits_in_full(map_) if projections is None else max(map_.codomain.sizes, default=0) <= projections:
        rows, block, watch = np.eye(m), map_.codomain.block_numbers, False
    else:
        usual = PROJECTIONS if watch else FEW_PROJECTIONS
        rows, block = _signed_rows(map_, rng, usual if projections is None else projections)
        cotangents = rows
    if witness is None:
        outputs, forms = map_.value_and_vjps(x, rows)
        reference = None
    else:
        outputs, forms, reference = map_.value_and_vjps_beside(witness, x, rows)
    forms = np.asarray(forms, dtype=np.float64).reshape(len(rows), n)
    claim = Claim(map=map_, x=x, forms=forms, cotangents=cotangents, block=block, watch=watch, outputs=outputs)
    return claim, reference if reference is not None and is_usable(reference, claim) else None


def is_usable(rows: Matrix, claim: Claim) -> bool:
    """Whether gradients of the claimed rows have their shape, and are finite."""
    return rows.shape == claim.forms.shape and all_finite(rows)


def fits_in_full(map_: VectorMap) -> bool:
    """Whether the claim of a map is computed row by row: the map is small, and a call is quick."""
    n, m = map_.domain.size, map_.codomain.size
    return n * m <= FULL_ENTRIES and m <= FULL_ROWS and not map_.is_costly


def _signed_rows(map_: VectorMap, rng: np.random.Generator, count: int) -> tuple[Matrix, npt.NDArray[np.intp]]:
    """Draw up to `count` signed cotangents for every output block, zero on all others; also give the block of each.

    A block of at most `count` outputs gets one unit cotangent for every output instead.
    """
    sizes = map_.codomain.sizes
    if len(sizes) == 1 and sizes[0] > count:
        return signed_cotangents(rng, sizes[0], count), np.zeros(count, np.intp)
    row_block = np.repeat(np.arange(len(sizes)), [min(size, count) for size in sizes])
    rows = np.zeros((row_block.size, map_.codomain.size))
    for number, (place, size) in enumerate(zip(map_.codomain.slices, sizes, strict=True)):
        rows[row_block == number, place] = signed_cotangents(rng, size, count) if size > count else np.eye(size)
    return rows, row_block
