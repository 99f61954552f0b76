"""Where to look: the scale of every entry, points on a dyadic grid, directions and cotangents."""

from __future__ import annotations

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.maps.median import median
from gradcli.numerics.maps.pieces import pieces
from gradcli.numerics.maps.space import Space, Vector
from gradcli.numerics.sampling.line import power_of_two_above, round_up_to_power_of_two

TRIES = 3
"""So many points, directions, rows or outputs are tried where one may miss by chance: what one misses in a tenth of
cases, three miss in a thousandth."""
MOVE = 2.0**-10
"""A point is moved by this part of its scale: so little that the function behaves alike there, and far more than the
finest steps."""
CLOSE_BY = 2.0**-22
"""Points so near that a smooth function has values of the same magnitude, and far enough for other digits."""
ASIDE = (0.296875, -0.203125)
"""Far steps to both sides, of 8 bits and not in a simple ratio, over which a value that depends on an input changes."""
UNITS = 2.0**-51
"""Twice the distance from 1 to the next larger number: a point is nudged by up to four times as much."""
LONG = 400
"""Inputs of more entries are not measured entry by entry: 400 columns take about 2,400 evaluations."""
POINT_BITS = 44
"""x is rounded to multiples of 2^-44 of its scale."""
SMALLEST, LARGEST = 2.0**-970, 2.0**970
"""Scales lie between these, so that neither a step nor a rounding of one underflows or overflows."""


def entry_scales(space: Space, x: Vector) -> Vector:
    """The natural size of a change of each entry: the power of two above |x_i|.

    An entry that is zero has no size of its own; it takes the median of the nonzero entries of its block, or 1.
    """
    scales = np.empty(x.size)
    for place in space.slices:
        typical = None
        for piece in pieces(place):
            magnitudes = np.abs(x[piece])
            low, high = magnitudes.min(), magnitudes.max()
            if not (low > 0 and high < np.inf):
                typical = _typical(x[place]) if typical is None else typical
                magnitudes = np.where((magnitudes > 0) & (magnitudes < np.inf), magnitudes, typical)
            if SMALLEST <= low <= high <= LARGEST:
                scales[piece] = round_up_to_power_of_two(magnitudes)
            else:
                np.clip(power_of_two_above(magnitudes), SMALLEST, LARGEST, out=scales[piece])
    return scales


def _typical(x: Vector) -> float:
    """The median magnitude of the entries that are neither zero nor infinite nor NaN, or 1."""
    magnitudes = np.abs(x)
    usable = (magnitudes > 0) & np.isfinite(magnitudes)
    return float(median(magnitudes[usable])) if usable.any() else 1.0


def snap(x: Vector, scales: Vector) -> Vector:
    """Round x to the grid on which x + t v is exact; moves an entry by at most 2^-45 of its scale.

    Beside 1.5 · 2^8 of the scale a float64, of 53 bits, keeps multiples of 2^-44 of it.
    """
    snapped = np.empty(x.size)
    for piece in pieces(slice(0, x.size)):
        beside = scales[piece] * (1.5 * 2.0 ** (52 - POINT_BITS))
        part = np.add(x[piece], beside, out=snapped[piece])
        part -= beside
    return snapped


def random_direction(rng: np.random.Generator, scales: Vector) -> Vector:
    """Draw sign × magnitude in [1/2, 1) × scale for every entry, the magnitudes with eight bits.

    Pure signs would miss an exchange of two slots half the time.
    """
    drawn = np.empty(scales.size)
    for piece in pieces(slice(0, scales.size)):
        np.multiply(_signed(rng, piece.stop - piece.start, _SHORT), scales[piece], out=drawn[piece])
    return drawn


def _magnitudes(bits: int) -> Vector:
    """Every ± (1/2 + k 2^-bits) in [1/2, 1)."""
    halves = np.arange(2 ** (bits - 1), 2**bits) / 2.0**bits
    return np.concatenate([halves, -halves])


_SHORT, _LONG = _magnitudes(8), _magnitudes(16)


def _signed(rng: np.random.Generator, size: int, table: Vector) -> Vector:
    """Entries of a table of 2^8 or 2^16, each drawn by one or two random bytes."""
    kind = np.dtype(np.uint8 if table.size == 2**8 else np.uint16)
    words = rng.bit_generator.random_raw(-(-size * kind.itemsize // 8))
    return table.take(words.view(kind)[:size])


def within(scales: Vector, places: slice) -> Vector:
    """The scales of one block, zero elsewhere."""
    alone = np.zeros(scales.size)
    alone[places] = scales[places]
    return alone


GROUP_WIDTH = 10
"""Entries of one direction differ in scale by less than 2^10 from the largest."""
LARGEST_GROUPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """Which entries a direction moves, by how much (`drawn`, zero elsewhere), and what errors are judged against
    (`judged`).

    An error is judged against the largest |claimed entry| × `judged`.
    """

    drawn: Vector
    judged: Vector

    def at(self, scales: Vector) -> Focus:
        """The same entries at a point with other scales."""
        drawn = np.where(self.drawn != 0, scales, 0.0)
        alone = bool((self.judged == self.judged[0]).all()) and self.drawn.max() == self.judged[0]
        return Focus(drawn=drawn, judged=np.full(scales.size, drawn.max()) if alone else scales)


def focuses(scales: Vector, places: slice) -> list[Focus]:
    """One focus for the whole of a block, and one for every group of entries whose scales lie far below the largest.

    Beside an entry of 1e8 the derivative in an entry of 1 is invisible, though equally large: the small ones are moved
    alone, and judged against the largest entry of the block at their own scale.
    """
    found = [Focus(drawn=within(scales, places), judged=scales)]
    if not scales[places].size:
        return found
    exponents = np.frexp(scales[places])[1]
    groups = (exponents.max() - exponents) // GROUP_WIDTH
    for group in sorted({*groups[groups > 0].tolist()})[:LARGEST_GROUPS]:
        drawn = np.zeros(scales.size)
        drawn[places] = np.where(groups == group, scales[places], 0.0)
        found.append(Focus(drawn=drawn, judged=np.full(scales.size, drawn.max())))
    return found


def signed_cotangents(rng: np.random.Generator, size: int, count: int) -> Vector:
    """Draw `count` rows of sign × magnitude in [1/2, 1), with 16 bits: of both signs, so that no shared term hides."""
    rows = np.empty((count, size))
    for row in rows:
        for piece in pieces(slice(0, size)):
            row[piece] = _signed(rng, piece.stop - piece.start, _LONG)
    return rows


def moved(rng: np.random.Generator, x: Vector, scales: Vector, amount: float = MOVE) -> Vector:
    """Move every entry by sign × [1/2, 1) × amount × scale."""
    return x + amount * random_direction(rng, scales)


def nudged(rng: np.random.Generator, x: Vector, where: Vector | float = 1.0) -> Vector:
    """Move every entry by up to four units of its own rounding, but where `where` is zero."""
    moves = rng.integers(-4, 5, x.size) * where
    there: Vector = x * (1 + UNITS * moves)
    return there
