"""Which entries directions move."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.numerics.sampling.directions import through, within
from tests.numerics.cases import space

SCALES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
THREE = space((2,), (1,), (3,))


@pytest.mark.parametrize(
    ("places", "moved"),
    [(slice(1, 3), [1, 2]), (4, [4]), (np.array([5, 0]), [0, 5]), (SCALES > 5, [3, 4, 5])],
    ids=["slice", "number", "numbers", "mask"],
)
def test_the_given_entries_have_their_scales_and_the_others_zero(places, moved) -> None:
    drawn = within(SCALES, places)
    assert np.flatnonzero(drawn).tolist() == moved
    assert (drawn[moved] == SCALES[moved]).all()


@pytest.mark.parametrize(
    ("blocks", "moved"),
    [([0, 1, 2], [0, 1, 2, 3, 4, 5]), ([1], [2]), ({0, 2}, [0, 1, 3, 4, 5]), ([2, 2, 2], [3, 4, 5]), ([], [])],
)
def test_the_entries_of_the_given_blocks_are_moved_however_often_these_are_named(blocks, moved) -> None:
    drawn = through(THREE, SCALES, blocks)
    assert np.flatnonzero(drawn).tolist() == moved
    assert (drawn[moved] == SCALES[moved]).all()
