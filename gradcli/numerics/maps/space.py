"""The layout of a flat vector: which entries belong to which named block of real or complex numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import Vector


@dataclass(frozen=True, slots=True)
class Block:
    """One array (an input or an output) in a flat vector: its name, shape and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def complex(self) -> bool:
        """Whether the entries are complex numbers."""
        return self.dtype.startswith("complex")

    @property
    def entries(self) -> int:
        """The number of entries: the product of the shape, 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """The number of real coordinates: two for every complex entry."""
        return 2 * self.entries if self.complex else self.entries


@dataclass(frozen=True, slots=True)
class Coordinate:
    """The block, index and part (of a complex number) that one entry of a flat vector belongs to."""

    block: int
    index: tuple[int, ...]
    part: Literal["real", "imag"] | None


@dataclass(frozen=True)
class Space:
    """An ordered list of blocks, which lie one after the other in one float64 vector."""

    blocks: tuple[Block, ...]

    @cached_property
    def size(self) -> int:
        """The number of real coordinates of the whole space."""
        return sum(block.size for block in self.blocks)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The place of each block in the flat vector."""
        ends = np.cumsum([0, *(block.size for block in self.blocks)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of real coordinates of each block."""
        return tuple(block.size for block in self.blocks)

    @cached_property
    def _layout(self) -> tuple[tuple[Block, slice, bool], ...]:
        return tuple((block, place, block.complex) for block, place in zip(self.blocks, self.slices, strict=True))

    @cached_property
    def block_numbers(self) -> npt.NDArray[np.intp]:
        """The number of the block that each coordinate belongs to, read-only."""
        numbers = np.repeat(np.arange(len(self.blocks)), [block.size for block in self.blocks])
        numbers.flags.writeable = False
        return numbers

    def flatten(self, arrays: Sequence[npt.ArrayLike], into: Vector | None = None) -> Vector:
        """Write arrays into one flat vector, one after the other.

        Args:
            arrays: one array for each block, of its shape; a complex entry becomes its real and imaginary part.
            into: a float64 vector of length `size` to write to, a new one by default.

        Returns:
            That vector.

        Raises:
            ValueError: a wrong number of arrays, a wrong shape, or complex numbers for a real block.
        """
        if len(arrays) != len(self.blocks):
            raise ValueError(f"expected {len(self.blocks)} arrays, one for each input or output, got {len(arrays)}")
        vector = np.empty(self.size) if into is None else into
        for (block, place, is_complex), array in zip(self._layout, arrays, strict=True):
            given = np.asarray(array)
            if given.shape != block.shape:
                raise ValueError(f"{block.name!r}: expected shape {block.shape}, got shape={given.shape}")
            if is_complex:
                vector[place] = np.ascontiguousarray(given, dtype=np.complex128).reshape(-1).view(np.float64)
            elif given.dtype.kind == "c":
                raise ValueError(f"{block.name!r}: expected real numbers, got dtype={given.dtype}")
            else:
                vector[place] = given.reshape(-1)
        return vector

    def joined(self, arrays: Sequence[npt.ArrayLike]) -> Vector:
        """Do the same as `flatten`, without a copy where there is a single array of contiguous float64 numbers."""
        only = np.asarray(arrays[0]) if len(arrays) == len(self.blocks) == 1 else None
        fits = only is not None and only.shape == self.blocks[0].shape and not self.blocks[0].complex
        if only is not None and fits and only.dtype == np.float64 and only.flags.c_contiguous:
            return only.reshape(-1)
        return self.flatten(arrays)

    def unflatten(self, vector: Vector) -> list[npt.NDArray[np.float64] | npt.NDArray[np.complex128]]:
        """Divide a flat vector into new float64 or complex128 arrays of the blocks' shapes.

        Raises:
            ValueError: the vector has another length than `size`.
        """
        return self.views(np.array(vector, dtype=np.float64))

    def views(self, vector: Vector) -> list[npt.NDArray[np.float64] | npt.NDArray[np.complex128]]:
        """Do the same as `unflatten` without a copy: the arrays are views of the vector (contiguous float64)."""
        if vector.shape != (self.size,):
            raise ValueError(f"expected a vector of length {self.size}, got shape={vector.shape}")
        return [
            (vector[place].view(np.complex128) if is_complex else vector[place]).reshape(block.shape)
            for block, place, is_complex in self._layout
        ]

    def locate(self, i: int) -> Coordinate:
        """Find the block and the entry that the flat coordinate `i` belongs to.

        Raises:
            IndexError: `i` is not in [0, size).
        """
        for number, (block, place) in enumerate(zip(self.blocks, self.slices, strict=True)):
            if place.start <= i < place.stop:
                entry, half = divmod(i - place.start, 2 if block.complex else 1)
                index = tuple(int(k) for k in np.unravel_index(entry, block.shape)) if block.shape else ()
                part: Literal["real", "imag"] | None = ("imag" if half else "real") if block.complex else None
                return Coordinate(number, index, part)
        raise IndexError(f"expected a flat coordinate in [0, {self.size}), got i={i}")
