"""The place of wrong entries in words."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.diagnosis.regions.predicate import Rule, Sample, fitting_rule


@pytest.mark.parametrize(
    ("shape", "place", "told"),
    [
        ((4, 5, 3), np.s_[1], "index 1 along axis 0"),
        ((4, 5, 3), np.s_[:, 3], "index 3 along axis 1"),
        ((4, 5, 3), np.s_[..., -1], "the last index along axis 2"),
        ((4, 5), np.s_[2], "row 2"),
        ((4, 5), np.s_[:, 3], "column 3"),
        ((5,), np.s_[2], "index 2 along axis 0"),
    ],
)
def test_one_slice_is_named(shape: tuple[int, ...], place: object, told: str) -> None:
    wrong = np.zeros(shape, bool)
    wrong[place] = True  # type: ignore[index]  # the places are NumPy's own
    values = np.random.default_rng(0).standard_normal(shape)
    assert fitting_rule([Sample(wrong=wrong, values=values)], "x") == Rule(text=told, by_value=False)


def test_the_diagonal_goes_before_the_size_of_what_lies_on_it() -> None:
    wrong = ~np.eye(4, dtype=bool)
    values = np.where(wrong, 0.3, 2.0) * (1 + np.arange(16).reshape(4, 4) / 100)
    assert fitting_rule([Sample(wrong=wrong, values=values)], "x") == Rule(text="off the diagonal", by_value=False)
