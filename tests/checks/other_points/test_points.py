"""The points that are tried lie in their domains and keep what single entries would break."""

from typing import Any

import numpy as np
import pytest

from gradcli.cases import Argument
from gradcli.checks.other_points.bounds import all_bounds_of, bounds_of
from gradcli.checks.other_points.points import Change, other_points


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
    for domain in ("spd", "triangular", "orthogonal", "simplex", "one-hot"):
        assert bounds_of(array(np.eye(3) * 2, domain)) is None


def test_distinct_entries_stay_distinct():
    given = array(np.arange(20) + 0.5, "distinct")
    for candidates in other_points([given], all_bounds_of([given], [0]), np.random.default_rng(0)):
        for (changed,) in candidates:
            assert np.unique(changed.value).size == 20


def _scaled(given: Argument, seed: int) -> np.ndarray[Any, Any]:
    """The entries of the calls that multiply them."""
    bounds, generator = all_bounds_of([given], [0]), np.random.default_rng(seed)
    found = [next(each)[0].value.ravel() for each in other_points([given], bounds, generator)]
    factors = [np.unique(np.abs(value / given.value.ravel())) for value in found]
    return np.concatenate([v for v, f in zip(found, factors, strict=True) if f.size == v.size and np.all(f > 0)])


@pytest.mark.parametrize("window", [(2.0, 4.0), (3.0, 6.0), (4.0, 8.0), (5.0, 10.0), (0.05, 0.2)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scaled_entries_leave_out_no_range_of_sizes(window: tuple[float, float], sign: float) -> None:
    low, high = window
    for shape, least in (((4,), 0.5), ((3, 4), 0.9), ((5, 6), 0.95)):
        given = [array(np.random.default_rng([7, n]).normal(size=shape), "normal") for n in range(60)]
        hits = [bool(((v > low) & (v < high)).any()) for v in (sign * _scaled(x, n) for n, x in enumerate(given))]
        assert np.mean(hits) >= least


def test_no_factor_is_extreme_and_zeros_stay() -> None:
    given = array([0.0, 1e-6, 1.0, -2.0, 1e6, 3.0], "normal")
    for candidates in other_points([given], all_bounds_of([given], [0]), np.random.default_rng(0)):
        changed = next(candidates)[0].value
        factors = np.abs(changed[1:] / given.value[1:])
        if np.unique(factors).size == factors.size:
            assert changed[0] == 0
            assert ((factors >= 1 / 16) & (factors <= 16)).all()
            return
    raise AssertionError


def test_every_manner_says_what_it_does():
    assert all(change.sentence for change in Change)
