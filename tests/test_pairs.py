"""The rows of `all_pairs` are few, and leave no pair out."""

from itertools import combinations

import pytest

from tests.pairs import all_pairs


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 22), (4, 2, 2), (3, 2, 30), (7, 11, 2), (2, 2, 2, 2)])
def test_every_pair_meets_in_few_rows(sizes: tuple[int, ...]) -> None:
    factors = [[f"{number}{level}" for level in range(size)] for number, size in enumerate(sizes)]
    rows = all_pairs(*factors)
    met = {pair for row in rows for pair in combinations(row, 2)}
    assert met == {(a, b) for first, second in combinations(factors, 2) for a in first for b in second}
    assert len(rows) == len(set(rows))
    largest = sorted(sizes)
    assert len(rows) <= 1.5 * largest[-1] * largest[-2]
