"""The random number generator of a verification."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, final

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence

_OURS = 0x6772
"""The letters gr, which are part of every seed, so that the numbers differ from those of NumPy with the same seed."""
_WORDS = 4
"""PCG64 needs this many words of 64 bits as its seed."""


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
