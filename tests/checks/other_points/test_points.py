"""The points that are tried lie in their domains and keep what single entries would break."""

from typing import Any

import numpy as np
import pytest

from gradcli.cases import Argument
from gradcli.checks.other_points.points import Change, all_bounds_of, bounds_of, other_points


def array(value: Any, domain: str | None = None) -> Argument:
    return Argument(name="x", value=np.asarray(value, float), is_tensor=True, requires_grad=True, domain=domain)


@pytest.mark.parametrize(
    "value",
    [
        [[2.0, 1.0], [1.0, 3.0]],
        [[2.0, 0.0], [1.0, 3.0]],
        [[0.0, -1.0], [1.0, 0.0]],
        [[0.6, 0.8], [-0.8, 0.6]],
        [0.25, 0.75],
        [[0.25, 0.75], [0.5, 0.5]],
        [1.0, 0.0, 1.0],
    ],
)
def test_a_structure_that_single_entries_would_break_is_kept(value):
    assert bounds_of(array(value)) is None


def test_every_point_lies_where_its_domain_allows():
    for domain, low, high in [("unit", 0.0, 1.0), ("open-interval(2, 3)", 2.0, 3.0), ("positive", 0.0, np.inf)]:
        given = array(np.linspace(0.1, 0.9, 20) + (2.0 if low else 0.0), domain)
        changes = [list(each) for each in other_points([given], all_bounds_of([given], [0]), np.random.default_rng(0))]
        assert changes
        for (changed,) in (arguments for candidates in changes for arguments in candidates):
            assert changed.value.shape == given.value.shape
            assert ((changed.value > low) & (changed.value < high)).all()
    for domain in ("spd", "triangular", "orthogonal", "one-hot"):
        assert bounds_of(array(np.eye(3) * 2, domain)) is None


def test_distinct_entries_stay_distinct():
    given = array(np.arange(20) + 0.5, "distinct")
    for candidates in other_points([given], all_bounds_of([given], [0]), np.random.default_rng(0)):
        for (changed,) in candidates:
            assert np.unique(changed.value).size == 20


def test_every_manner_says_what_it_does():
    assert all(change.sentence and change.values for change in Change)
