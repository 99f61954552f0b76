"""Compares the claim entry by entry with the reference, another derivative of the same map, exact up to rounding.

Neither is taken to be right. If they agree, finite differences certify both; if not, finite differences decide between
them (`arbitration`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import Impression, Judgement, Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Status
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import EPS, Mask, Matrix, Vector
from gradcli.numerics.maps.pieces import all_finite, magnitudes_along, pieces
from gradcli.numerics.maps.sizes import CERTIFIED, COARSE, FINEST, MEASURABLE, ROUNDING, WANTED
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import Focus, within

TAIL_NOISE = 100.0
"""In small entries, differences below this many times the noise of claim and reference are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """The difference of claim and reference in one pair of blocks.

    Attributes:
        error: the larger of `scaled_error` and the same without scales.
        scaled_error: the largest |difference| · s_i, relative to the largest scaled entry.
        resolution: every relative error above this would have been detected. It is four times `error`, a margin for the
            error of the reference itself, plus what rounding may hide.
        scale: the largest |entry| · s_i of claim and reference.
        wrong: the entries (row, column) that differ by more than rounding.
        equal: whether there are no such entries.
        still: whether both are zero, up to rounding.
    """

    error: float
    scaled_error: float
    resolution: float
    scale: float
    wrong: npt.NDArray[np.bool_]
    equal: bool
    still: bool

    def judged(self, impression: Impression) -> Judgement:
        """The judgement with these numbers."""
        return Judgement(
            impression=impression,
            scale=self.scale,
            error=self.error * self.scale,
            tolerance=self.resolution * self.scale,
            resolution=self.resolution if impression is Impression.AGREES else None,
            statuses=(Status.OK,),
        )


def compare_all(site: Site, pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Discrepancy]:
    """Compare claim and reference in several pairs of blocks."""
    pairs = list(pairs)
    roundings = {output: rounding_of(site, output) for output in {output for _, output in pairs}}
    return {pair: compare(site, *pair, rounding=roundings[pair[1]]) for pair in pairs}


def compare(
    site: Site, input_: int, output: int, noise: Matrix | None = None, *, rounding: Vector | None = None
) -> Discrepancy:
    """Compare claim and reference in one pair of blocks.

    Args:
        site: the point; its `witness_rows` must not be None.
        noise: the noise of claim and reference together, of the shape of the claim's forms, if it has been measured.
        rounding: the result of `rounding_of`, if it is known.
    """
    places = site.map.domain.slices[input_]
    scales = site.scales[places]
    claimed, reference = block_of(site, input_, output)
    rounding = rounding_of(site, output) if rounding is None else rounding
    floor = rounding[:, None]
    more = None if noise is None else NOISE_FACTOR * noise[site.claim.block == output][:, places]
    if more is not None:
        floor = floor + more * scales
    both, apart = np.zeros((2, len(claimed)))
    scaled = scaled_apart = 0.0
    for piece in pieces(slice(0, scales.size)):
        difference = np.abs(claimed[:, piece] - reference[:, piece])
        size = np.maximum(np.abs(claimed[:, piece]), np.abs(reference[:, piece]))
        both, apart = np.maximum(both, size.max(axis=1)), np.maximum(apart, difference.max(axis=1))
        size *= scales[piece]
        difference *= scales[piece]
        scaled = max(scaled, float(size.max(initial=0.0)))
        scaled_apart = max(scaled_apart, float(difference.max(initial=0.0)))
    wrong = np.zeros(claimed.shape, bool)
    open_ = np.flatnonzero(apart > MEASURABLE * both)
    for row in open_:
        allowed = rounding[row] / scales if more is None else rounding[row] / scales + more[row]
        wrong[row] = np.abs(claimed[row] - reference[row]) > MEASURABLE * both[row] + allowed
    whole = float(both.max(initial=0.0))
    relative = scaled_apart / scaled if scaled > 0 else 0.0
    error = max(float(apart.max()) / whole, relative) if whole > 0 else 0.0
    least = float(floor.max(initial=0.0)) / scaled if scaled > 0 else 0.0
    return Discrepancy(
        error=error,
        scaled_error=relative,
        resolution=max(FINEST, 4 * error + least),
        scale=scaled,
        wrong=wrong,
        equal=not (open_.size and wrong.any()),
        still=scaled <= EPS * float(rounding.max(initial=0.0)),
    )


def block_of(site: Site, input_: int, output: int) -> tuple[Vector, Vector]:
    """The claimed rows of one pair of blocks, and the same rows of the reference."""
    places, rows = site.map.domain.slices[input_], site.claim.places(output)
    return site.claim.forms[rows][:, places], reference_rows(site)[rows][:, places]


def reference_rows(site: Site) -> Matrix:
    """The reference's gradients of the claimed rows, at a site that has a reference."""
    if site.witness_rows is None:
        raise ValueError("this step needs autodiff of forward's body, which is not available at these inputs")
    return site.witness_rows


def rounding_of(site: Site, output: int) -> Vector:
    """For every claimed row of one output block, the scaled difference that rounding of u·f may make in a gradient.

    It is `ROUNDING` times Σ_j |u_j f_j|, and what the noise of the values adds.
    """
    rows = site.claim.places(output)
    size = site.outputs if all_finite(site.outputs) else np.where(np.isfinite(site.outputs), site.outputs, 0.0)
    if site.claim.cotangents is None:
        weighted = np.abs(size[rows])
    else:
        weighted = magnitudes_along(site.claim.cotangents[rows], size)
    own = site.row_noise().seen[-site.claim.block.size :][rows]
    rounding: Vector = ROUNDING * weighted + NOISE_FACTOR * own
    return rounding


def same_values(witness: VectorMap, site: Site) -> bool:
    """Whether the reference gives the same values as the map at a site: both are then derivatives of the same map."""
    try:
        own = np.asarray(witness.value(site.x), dtype=np.float64)
    except Exception:
        return False
    with np.errstate(invalid="ignore"):  # infinity - infinity is NaN, and so not the same
        for place in site.map.codomain.slices:
            size = float(np.abs(site.outputs[place]).max(initial=0.0))
            if not (np.abs(own[place] - site.outputs[place]) <= CERTIFIED * size).all():
                return False
    return True


def tail(site: Site, input_: int, output: int, noise: Matrix, most: float = 0.5) -> Mask | None:
    """The entries in which claim and reference differ by more than a thousandth of the entry (`COARSE`).

    Such entries may be so small that their errors are far below the significance: a formula that is wrong only in its
    tail shows nowhere else. The differences must also exceed `WANTED` and `TAIL_NOISE`.

    Args:
        noise: the noise of claim and reference together, of the shape of the claim's forms.
        most: if there are more such entries than this part of the block, they are not a tail.

    Returns:
        A mask of the shape of the block; None if there are no such entries or too many.
    """
    claimed, reference = block_of(site, input_, output)
    places, rows = site.map.domain.slices[input_], site.claim.block == output
    scales = site.scales[places]
    size = np.maximum(np.abs(claimed), np.abs(reference))
    difference = np.abs(claimed - reference)
    floor = rounding_of(site, output)[:, None] / scales + TAIL_NOISE * noise[rows][:, places]
    found = (difference > COARSE * size) & (difference > floor)
    found &= difference * scales > WANTED * float((size * scales).max(initial=0.0))
    return found if found.any() and np.count_nonzero(found) <= most * found.size else None


def wrong_focus(site: Site, input_: int, output: int, discrepancy: Discrepancy) -> Focus:
    """A focus on the entries in which claim and reference differ most, to measure them by finite differences.

    These are the entries that differ by more than rounding and at least a tenth of the largest scaled difference.
    """
    claimed, reference = block_of(site, input_, output)
    places = site.map.domain.slices[input_]
    size = (np.abs(claimed - reference) * site.scales[places]).max(axis=0)
    chosen = np.flatnonzero((size >= 0.1 * size.max()) & discrepancy.wrong.any(axis=0))
    return Focus(drawn=within(site.scales, places.start + chosen), judged=site.scales)


def supports(reading: Reading, rows: Mask, scale: float, allowed: float) -> bool:
    """Whether one measured direction confirms, with a coarse bound, the derivative on which claim and reference agree.

    In every row with a claim the error must be within three bounds, and the bound must be small enough.

    Args:
        allowed: the largest bound, as a part of `scale`.
    """
    ours = rows & ~reading.claimless
    with np.errstate(all="ignore"):
        near = reading.smooth & (reading.error <= FAIL_FACTOR * reading.tolerance)
        known = reading.tolerance <= allowed * scale
    return bool(ours.any() and (near & known)[ours].all())
