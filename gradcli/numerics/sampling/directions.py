"""Chooses where a map is evaluated: random numbers, the scale of every entry, points on a grid, and directions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, final

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import Indices, Mask, Vector, median
from gradcli.numerics.maps.pieces import pieces
from gradcli.numerics.maps.space import Space
from gradcli.numerics.sampling.line import GRID_BITS, power_of_two_above, round_up_to_power_of_two

TRIES = 3
"""This many points, directions, rows or outputs are tried where one may miss by chance: if one misses in a tenth of the
cases, all three miss in a thousandth."""
MOVE = 2.0**-10
"""How far a point is moved to see whether a result persists, in units of its scale: so little that the function behaves
alike there, and far more than the smallest steps."""
CLOSE_BY = 2.0**-22
"""The distance of points that are so near that a smooth function has values of the same magnitude, but far enough for
their last digits to differ."""
ASIDE = (0.296875, -0.203125)
"""Long steps to both sides, over which a value changes if it depends on an input at all. Both have 8 bits (76/256 and
52/256), so that x + t v is exact, and they are not in a simple ratio."""
UNITS = 2.0**-51
"""Twice the distance from 1 to the next larger number. A point is nudged by up to four times this."""
LONG = 400
"""Inputs of more entries are not measured entry by entry: 400 columns take about 2,400 evaluations."""
SMALLEST = 2.0**-970
"""All scales lie between this and its inverse, so that no step, and no rounding of a step, underflows or overflows."""
_OURS = 0x6772
"""The letters gr, which are part of every seed, so that the numbers differ from those of NumPy with the same seed."""
_WORDS = 4
"""PCG64 needs this many words of 64 bits as its seed."""


def entry_scales(space: Space, x: Vector) -> Vector:
    """The scale of each entry, by which it is changed: the smallest power of two that is at least |x_i|.

    For an entry that is zero or not finite, the median magnitude of the other entries of its block takes the place of
    |x_i|, or 1 if there are none.
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
            if SMALLEST <= low <= high <= 1 / SMALLEST:
                scales[piece] = round_up_to_power_of_two(magnitudes)
            else:
                np.clip(power_of_two_above(magnitudes), SMALLEST, 1 / SMALLEST, out=scales[piece])
    return scales


def _typical(x: Vector) -> float:
    """The median magnitude of the entries that are neither zero nor infinite nor NaN; 1 if there are none."""
    magnitudes = np.abs(x)
    usable = (magnitudes > 0) & np.isfinite(magnitudes)
    return float(median(magnitudes[usable])) if usable.any() else 1.0


def snap(x: Vector, scales: Vector) -> Vector:
    """Round x to multiples of 2^-44 of the scale, on which x + t v is exact; this moves it by at most 2^-45.

    1.5 · 2^8 times the scale is added and subtracted again: near that number, a float64 of 53 bits holds multiples of
    2^-44 of the scale only.
    """
    snapped = np.empty(x.size)
    for piece in pieces(slice(0, x.size)):
        beside = scales[piece] * (1.5 * 2.0 ** (52 - GRID_BITS))
        part = np.add(x[piece], beside, out=snapped[piece])
        part -= beside
    return snapped


def random_direction(rng: np.random.Generator, scales: Vector) -> Vector:
    """Draw a random sign times a random magnitude in [1/2, 1), of 8 bits, times the scale, for every entry.

    With random signs alone, an exchange of two gradient entries would be missed half of the time.
    """
    drawn = np.empty(scales.size)
    for piece in pieces(slice(0, scales.size)):
        np.multiply(_signed(rng, piece.stop - piece.start, _SHORT), scales[piece], out=drawn[piece])
    return drawn


def _magnitudes(bits: int) -> Vector:
    """All numbers ± k 2^-bits whose magnitude lies in [1/2, 1)."""
    halves = np.arange(2 ** (bits - 1), 2**bits) / 2.0**bits
    return np.concatenate([halves, -halves])


_SHORT, _LONG = _magnitudes(8), _magnitudes(16)


def _signed(rng: np.random.Generator, size: int, table: Vector) -> Vector:
    """Draw entries of a table of 2^8 or 2^16 numbers, each by one or two random bytes."""
    kind = np.dtype(np.uint8 if table.size == 2**8 else np.uint16)
    words = rng.bit_generator.random_raw(-(-size * kind.itemsize // 8))
    return table.take(words.view(kind)[:size])


def within(scales: Vector, places: slice | int | Indices | Mask) -> Vector:
    """The scales of some entries, zero elsewhere."""
    alone = np.zeros(scales.size)
    alone[places] = scales[places]
    return alone


def through(space: Space, scales: Vector, blocks: Collection[int]) -> Vector:
    """The scales of the entries of some blocks, zero elsewhere."""
    if len(set(blocks)) == len(space.blocks):
        return scales
    return within(scales, np.isin(space.block_numbers, list(blocks)))


GROUP_WIDTH = 10
"""Entries whose scale is at least 2^10 below the largest are moved in groups of their own, each 2^10 wide."""
LARGEST_GROUPS = 4
"""At most this many groups of smaller scale are moved, those with the largest scales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """Which entries a direction moves, and what errors along it are compared with.

    Attributes:
        drawn: by how much each entry is moved; zero for all others.
        judged: errors are compared with the largest |claimed entry| · `judged`.
    """

    drawn: Vector
    judged: Vector

    def at(self, scales: Vector) -> Focus:
        """The same entries at a point with other scales."""
        drawn = np.where(self.drawn != 0, scales, 0.0)
        alone = bool((self.judged == self.judged[0]).all()) and self.drawn.max() == self.judged[0]
        return Focus(drawn=drawn, judged=np.full(scales.size, drawn.max()) if alone else scales)


def is_one_group(scales: Vector) -> bool:
    """Whether no scale is so far below the largest that its entry is moved in a group of its own."""
    return not scales.size or bool(scales.max() < 2.0**GROUP_WIDTH * scales.min())


def focuses(scales: Vector, places: slice) -> list[Focus]:
    """One focus for a whole block, and one for every group of entries whose scale is far below the largest.

    When an entry of 1e8 is moved together with an entry of 1, the derivative by the latter is lost in rounding, even if
    it is equally large. Entries of small scale are therefore moved alone as well. Their errors are compared with the
    largest claimed entry of the block at the scale of the group.
    """
    found = [Focus(drawn=within(scales, places), judged=scales)]
    if is_one_group(scales[places]):
        return found
    exponents = np.frexp(scales[places])[1]
    groups = (exponents.max() - exponents) // GROUP_WIDTH
    for group in sorted({*groups[groups > 0].tolist()})[:LARGEST_GROUPS]:
        drawn = within(scales, places.start + np.flatnonzero(groups == group))
        found.append(Focus(drawn=drawn, judged=np.full(scales.size, drawn.max())))
    return found


def signed_cotangents(rng: np.random.Generator, size: int, count: int) -> Vector:
    """Draw `count` rows of random signs times random magnitudes in [1/2, 1), of 16 bits.

    They have both signs: with one sign, an error could cancel, as in the sum of a softmax, which is constant.
    """
    rows = np.empty((count, size))
    for row in rows:
        for piece in pieces(slice(0, size)):
            row[piece] = _signed(rng, piece.stop - piece.start, _LONG)
    return rows


def moved(rng: np.random.Generator, x: Vector, scales: Vector, amount: float = MOVE) -> Vector:
    """Move every entry by a random sign times [1/2, 1) times `amount` times its scale."""
    return x + amount * random_direction(rng, scales)


def nudged(rng: np.random.Generator, x: Vector, where: Vector | float = 1.0) -> Vector:
    """Move every entry by up to four times `UNITS` of itself, except where `where` is zero."""
    moves = rng.integers(-4, 5, x.size) * where
    there: Vector = x * (1 + UNITS * moves)
    return there


def halved(size: int, test: Callable[[int, int], bool], *, most: int, tries: int) -> list[int]:
    """Find numbers below `size`: a group that passes the test is divided into halves, down to single numbers.

    Args:
        size: how many there are.
        test: whether the group from its first argument up to, but without, the second has one to be found.
        most: no more than this many are found.
        tries: no more than this many groups are tested.

    Returns:
        The numbers found, the lowest first.
    """
    found: list[int] = []
    open_, tried = [(0, size)], 0
    while open_ and tried < tries and len(found) < most:
        start, stop = open_.pop()
        tried += 1
        if not test(start, stop):
            continue
        if stop - start == 1:
            found.append(start)
        else:
            middle = (start + stop) // 2
            open_ += [(middle, stop), (start, middle)]
    return found


@final
class _Spread(ISeedSequence):
    """NumPy's seed sequence for a seed, with its output stored.

    Computing the output takes as long as evaluating a small map.
    """

    def __init__(self, seed: int) -> None:
        self._sequence = np.random.SeedSequence([_OURS, seed])
        self._words = self._sequence.generate_state(_WORDS, np.uint64)

    def generate_state(self, n_words: int, dtype: npt.DTypeLike = np.uint32) -> npt.NDArray[Any]:
        """Return the words that seed a bit generator: the stored ones, if it is PCG64."""
        if n_words == _WORDS and np.dtype(dtype) == np.uint64:
            return self._words
        return self._sequence.generate_state(n_words, np.uint64 if np.dtype(dtype) == np.uint64 else np.uint32)


_spread = lru_cache(maxsize=64)(_Spread)


def generator_of(seed: int) -> np.random.Generator:
    """Make a new generator for a seed, of which the lower 63 bits are used."""
    sequence: Any = _spread(seed % 2**63)  # NumPy's annotations accept only its own sequence
    return np.random.Generator(np.random.PCG64(sequence))
