"""The second witness: another derivative of the same map, exact to rounding, compared with the claim entry by entry.

It is not believed alone: differences of the map certify it where it agrees with the claim, and arbitrate where it does
not, along the direction in which the two differ most.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import EPS, TINY, Indices, Mask, Matrix
from gradcli.numerics.maps.pieces import all_finite, largest, magnitudes_along, pieces
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import Focus

EQUAL = 1e-11
"""Claim and witness are equal if they differ by less than this part of the block."""
ALIKE = 1e-12
"""If claim and witness differ by less for one cotangent, it hides no error: an error of 1e-6 would have to cancel to a
millionth of itself."""
FLOOR = 64 * EPS
"""A difference may also be rounding of the outputs, which as a gradient is this number times sum_j |u_j f_j| / s_i."""
SAME = 1e-9
FINEST = 1e-14
"""No resolution is finer."""
TAIL = 1e-3
TAIL_PART = 1e-10
TAIL_NOISE = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How claim and witness compare in one block.

    `error` is the largest difference relative to the block's largest entry, both in units where entries are scaled by
    their inputs (`scaled_error`), or without, whichever is larger; `resolution` is what rounding leaves of such
    differences; `scale` is the largest scaled entry; `wrong` marks the entries (row, column) that differ beyond
    rounding, `equal` says that there are none; `still` says that both are zero.
    """

    error: float
    scaled_error: float
    resolution: float
    scale: float
    wrong: npt.NDArray[np.bool_]
    equal: bool
    still: bool


def compare_all(site: Site, pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Gap]:
    """Compare claim and witness in several blocks."""
    pairs = list(pairs)
    roundings = {output: rounding_of(site, output) for output in {output for _, output in pairs}}
    return {pair: compare(site, *pair, rounding=roundings[pair[1]]) for pair in pairs}


def compare(
    site: Site, input_: int, output: int, noise: Matrix | None = None, *, rounding: Vector | None = None
) -> Gap:
    """Compare claim and witness in one block. The site must have a witness_rows.

    `noise` gives standard deviations of the entries of both together, like the claim's forms, where it is known, and
    `rounding` that of the rows' values, where it has been worked out.
    """
    places = site.map.domain.slices[input_]
    scales = site.scales[places]
    claimed, told = block_of(site, input_, output)
    rounding = rounding_of(site, output) if rounding is None else rounding
    floor = rounding[:, None]
    more = None if noise is None else NOISE_FACTOR * noise[site.claim.block == output][:, places]
    if more is not None:
        floor = floor + more * scales
    both, apart = np.zeros((2, len(claimed)))
    scaled = scaled_apart = 0.0
    for piece in pieces(slice(0, scales.size)):
        difference = np.abs(claimed[:, piece] - told[:, piece])
        size = np.maximum(np.abs(claimed[:, piece]), np.abs(told[:, piece]))
        both, apart = np.maximum(both, size.max(axis=1)), np.maximum(apart, difference.max(axis=1))
        size *= scales[piece]
        difference *= scales[piece]
        scaled = max(scaled, float(size.max(initial=0.0)))
        scaled_apart = max(scaled_apart, float(difference.max(initial=0.0)))
    wrong = np.zeros(claimed.shape, bool)
    open_ = np.flatnonzero(apart > EQUAL * both)
    for row in open_:
        allowed = rounding[row] / scales if more is None else rounding[row] / scales + more[row]
        wrong[row] = np.abs(claimed[row] - told[row]) > EQUAL * both[row] + allowed
    whole = float(both.max(initial=0.0))
    relative = scaled_apart / scaled if scaled > 0 else 0.0
    gap = max(float(apart.max()) / whole, relative) if whole > 0 else 0.0
    least = float(floor.max(initial=0.0)) / scaled if scaled > 0 else 0.0
    return Gap(
        error=gap,
        scaled_error=relative,
        resolution=max(FINEST, 4 * gap + least),
        scale=scaled,
        wrong=wrong,
        equal=not (open_.size and wrong.any()),
        still=scaled <= EPS * float(rounding.max(initial=0.0)),
    )


def excess(site: Site, input_: int, output: int, columns: Indices) -> tuple[int, Vector]:
    """By how much claim and witness differ in some columns of a block beyond what rounding allows.

    Returns:
        The row of the block in which that is most, in units of what is allowed, and the excess of the columns there.
    """
    claimed, told = block_of(site, input_, output)
    rounding = rounding_of(site, output)[:, None] / site.scales[site.map.domain.slices[input_]][columns]
    both = np.array([max(largest(claimed[row : row + 1]), largest(told[row : row + 1])) for row in range(len(claimed))])
    allowed = EQUAL * both[:, None] + rounding
    beyond = np.abs(claimed[:, columns] - told[:, columns]) - allowed
    row = int(np.argmax((beyond / np.maximum(allowed, TINY)).max(axis=1)))
    return row, beyond[row]


def block_of(site: Site, input_: int, output: int) -> tuple[Vector, Vector]:
    """Claim and witness for one block, row by row."""
    places, rows = site.map.domain.slices[input_], site.claim.places(output)
    return site.claim.forms[rows][:, places], reference_rows(site)[rows][:, places]


def reference_rows(site: Site) -> Matrix:
    """The witness's values of the claim's rows; the site must have a witness."""
    if site.witness_rows is None:
        raise ValueError("expected a point at which autodiff of forward's body is available, got one without")
    return site.witness_rows


def rounding_of(site: Site, output: int) -> Vector:
    """The rounding of u·f for every row u of one output block."""
    rows = site.claim.places(output)
    size = site.outputs if all_finite(site.outputs) else np.where(np.isfinite(site.outputs), site.outputs, 0.0)
    if site.claim.cotangents is None:
        weighted = np.abs(size[rows])
    else:
        weighted = magnitudes_along(site.claim.cotangents[rows], size)
    own = site.row_noise()[-site.claim.block.size :][rows]
    rounding: Vector = FLOOR * weighted + NOISE_FACTOR * own
    return rounding


def same_values(witness: VectorMap, site: Site) -> bool:
    """Whether the witness evaluates to the map's values at a site, so that both are derivatives of the same map."""
    try:
        own = np.asarray(witness.value(site.x), dtype=np.float64)
    except Exception:
        return False
    with np.errstate(invalid="ignore"):  # infinity less infinity is no number, and so not the same
        for place in site.map.codomain.slices:
            size = float(np.abs(site.outputs[place]).max(initial=0.0))
            if not (np.abs(own[place] - site.outputs[place]) <= SAME * size).all():
                return False
    return True


def tail(site: Site, input_: int, output: int, noise: Matrix, most: float = 0.5) -> Mask | None:
    """Entries far below the block's largest in which claim and witness differ by more than a thousandth of their size.

    They matter where they are few (`most` of all at the utmost), above 1e-10 of the block, and above a hundred times
    the noise of both: a rule that is wrong in its tail, and nowhere else, shows nowhere else.

    Returns:
        An array like the block of the claim's forms; None where there are no such entries.
    """
    claimed, told = block_of(site, input_, output)
    places, rows = site.map.domain.slices[input_], site.claim.block == output
    scales = site.scales[places]
    size = np.maximum(np.abs(claimed), np.abs(told))
    difference = np.abs(claimed - told)
    floor = rounding_of(site, output)[:, None] / scales + TAIL_NOISE * noise[rows][:, places]
    found = (difference > TAIL * size) & (difference > floor)
    found &= difference * scales > TAIL_PART * float((size * scales).max(initial=0.0))
    return found if found.any() and np.count_nonzero(found) <= most * found.size else None


def wrong_focus(site: Site, input_: int, output: int, gap: Gap) -> Focus:
    """The entries in which claim and witness differ most, to be measured by differences."""
    claimed, told = block_of(site, input_, output)
    places = site.map.domain.slices[input_]
    size = (np.abs(claimed - told) * site.scales[places]).max(axis=0)
    drawn = np.zeros(site.x.size)
    drawn[places] = np.where((size >= 0.1 * size.max()) & gap.wrong.any(axis=0), site.scales[places], 0.0)
    return Focus(drawn=drawn, judged=site.scales)


def supports(reading: Reading, rows: Mask, scale: float, allowed: float) -> bool:
    """Whether one direction, however roughly, does not contradict what claim and witness agree on.

    Args:
        reading: the direction.
        rows: the rows of the block.
        scale: the block's largest scaled entry.
        allowed: the largest relative bound that still counts as a confirmation.
    """
    ours = rows & ~reading.claimless
    with np.errstate(all="ignore"):
        near = reading.smooth & (reading.error <= FAIL_FACTOR * reading.tolerance)
        known = reading.tolerance <= allowed * scale
    return bool(ours.any() and (near & known)[ours].all())
