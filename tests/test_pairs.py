"""The rows of `all_pairs` are few, and leave no pair out; `in_turn` leaves no level and no framework out."""

from itertools import combinations

import pytest

from tests.pairs import FRAMEWORKS, all_pairs, in_turn


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 22), (4, 2, 2), (3, 2, 30), (7, 11, 2), (2, 2, 2, 2)])
def test_every_pair_meets_in_few_rows(sizes: tuple[int, ...]) -> None:
    factors = [[f"{number}{level}" for level in range(size)] for number, size in enumerate(sizes)]
    rows = all_pairs(*factors)
    met = {pair for row in rows for pair in combinations(row, 2)}
    assert met == {(a, b) for first, second in combinations(factors, 2) for a in first for b in second}
    assert len(rows) == len(set(rows))
    largest = sorted(sizes)
    assert len(rows) <= 1.5 * largest[-1] * largest[-2]


def test_the_frameworks_take_turns() -> None:
    names, rows = in_turn("level", "abc").args
    assert names == ("backend", "level")
    assert [level for _, level in rows] == ["a", "b", "c"]
    assert {framework for framework, _ in rows} == set(FRAMEWORKS)
