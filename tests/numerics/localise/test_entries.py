"""The entries of a gradient that is wrong: as many as may be measured, and never at the price of the verdict."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.numerics.claims.site import Site
from gradcli.numerics.localise.entries import locate
from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import FormulaMap, space

SIZE = 60
X = np.random.default_rng(3).uniform(0.5, 2.0, SIZE)
WRONG = {
    "everywhere": np.full(SIZE, 2.0),
    "in one entry": np.where(np.arange(SIZE) == 17, 0.0, 3.0),
    "slightly, everywhere": np.full(SIZE, 3.0 * (1 + 1e-5)),
}


def cube(factors: np.ndarray) -> FormulaMap:
    return FormulaMap(lambda x: x**3, lambda x: np.diag(factors * x**2), space((SIZE,)), space((SIZE,)))


@pytest.mark.parametrize("factors", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("most", [0, 2, 200])
def test_what_differs_differs_with_few_entries_measured(factors: np.ndarray, most: int) -> None:
    whole = verify(cube(factors), X, seed=0)
    (block,) = (found := verify(cube(factors), X, seed=0, entries=most)).blocks
    assert block.outcome is whole.blocks[0].outcome is Outcome.DIFFERS
    assert found.evaluations <= whole.evaluations - 4 * SIZE + most + 22
    assert block.max_rel_error is not None
    assert block.max_rel_error > 1e-7
    table = block.table
    assert (table is None) == (most < 2)
    if table is not None:
        right = np.diag(3 * X**2)[np.ix_(table.rows, table.columns)]
        assert 0 < table.columns.size < SIZE
        assert not table.complete
        assert (np.abs(table.numeric - right) <= table.bound + 1e-13 * np.abs(right)).all()
        claimed = np.diag(factors * X**2)[np.ix_(table.rows, table.columns)]
        np.testing.assert_allclose(table.claimed, claimed, rtol=1e-12)


@pytest.mark.parametrize("most", [0, 30])
def test_entries_that_decide_whether_a_difference_matters_are_all_measured(most: int) -> None:
    # each entry is within the significance of 1e-7, and along a direction the errors may add up to more
    factors = np.full(SIZE, 3.0 * (1 + 0.9e-7))
    sums = FormulaMap(
        lambda x: np.array([(x**3).sum()]), lambda x: (factors * x**2)[None, :], space((SIZE,)), space((1,))
    )
    whole, limited = verify(sums, X, seed=0), verify(sums, X, seed=0, entries=most)
    assert limited.blocks[0].outcome is whole.blocks[0].outcome is Outcome.AGREES
    assert limited.evaluations == whole.evaluations


def test_one_entry_of_a_million_is_located_in_a_sum_whose_terms_cancel() -> None:
    # large terms cancel in the value, which is rounded as they are
    size, rng = 10**6, np.random.default_rng([2, 1])
    weights, x = rng.standard_normal(size) + 3, rng.standard_normal(size)
    entry = int(rng.integers(size))

    def claim(p: np.ndarray) -> np.ndarray:
        gradient = weights * np.cos(p)
        gradient[entry] *= 1.5
        return gradient

    counted = CountedMap(FormulaMap(lambda p: np.array([weights @ np.sin(p)]), claim, space((1000, 1000)), space(())))
    site = Site.at(counted, x, np.random.default_rng(2))
    site.evaluate()
    before = counted.values
    found = locate(site, 0, 0)
    assert found is not None
    assert found.entries.tolist() == [entry]
    assert counted.values - before <= 60


PLACES = np.random.default_rng(8).permutation(50_000)


class Cubes(VectorMap):
    """The cube of every entry, at other places if asked; the claim of some is off by a millionth."""

    def __init__(self, places: slice | np.ndarray, wrong: np.ndarray) -> None:
        self.places, self.wrong = places, wrong
        self.domain = self.codomain = space((PLACES.size,))

    def value(self, x: np.ndarray) -> np.ndarray:
        return (x**3)[self.places]

    def vjp(self, x: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        gradient = np.empty(x.size)
        gradient[self.places] = cotangent
        gradient *= 3 * x**2
        gradient[self.wrong] *= 1 + 1e-6
        return gradient


@pytest.mark.parametrize(
    ("count", "places", "most"),
    [(1, slice(None), 40), (5, slice(None), 40), (1, PLACES, 400)],
    ids=["one", "five", "moved"],
)
def test_errors_too_small_for_the_sum_are_located_beside_their_own_outputs(
    count: int, places: slice | np.ndarray, most: int
) -> None:
    # an error of 1e-6 in one of 50,000 entries is hardly seen in the slope along all of them
    rng = np.random.default_rng([4, count])
    x, wrong = rng.uniform(0.5, 2.0, PLACES.size), np.sort(rng.choice(PLACES.size, count, replace=False))
    counted = CountedMap(Cubes(places, wrong))
    site = Site.at(counted, x, np.random.default_rng(2))
    site.evaluate()
    before = counted.values
    found = locate(site, 0, 0)
    assert found is not None
    assert found.entries.tolist() == wrong.tolist()
    assert counted.values - before <= most
