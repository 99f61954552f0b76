"""The ablation's list of mechanisms is one of functions that exist, and its constants can be changed where they are."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the recorded cases are Functions of PyTorch")
from benchmarks.ablation.mechanisms import MECHANISMS, discovered
from benchmarks.ablation.run import places
from benchmarks.ablation.tables import TABLES
from benchmarks.sensitivity import at, numbers, scaled


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_every_mechanism_is_found_where_the_list_says(mechanism) -> None:
    assert all(callable(getattr(place.owner, place.name)) for place in places(mechanism))


def test_questions_and_searches_are_found_by_what_they_return() -> None:
    names = [mechanism.name for mechanism in discovered()]
    assert "regularity.kinks.additive: no" in names
    assert "regularity.kinks.additive: yes" in names
    assert "differences.breaks.jump_size: nothing" in names
    assert len(names) == len(set(names))


def test_a_constant_is_changed_wherever_it_was_imported_and_put_back() -> None:
    from gradcli.numerics.claims import compare
    from gradcli.numerics.differences import estimate

    factor = next(number for number in numbers() if number.key == "differences/estimate.py:FAIL_FACTOR")
    with at(factor, 6.0):
        assert estimate.FAIL_FACTOR == compare.FAIL_FACTOR == 6.0
    assert estimate.FAIL_FACTOR == compare.FAIL_FACTOR == 3.0


def test_values_are_scaled_as_what_they_are() -> None:
    assert scaled(3, 0.5) == 2
    assert scaled(1, 0.5) == 1
    assert scaled((0.5, 4), 2.0) == (1.0, 8)
    assert scaled(0, 2.0) is None


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_cases_that_can_be_called(table) -> None:
    name, check = next(TABLES[table](1))
    assert name
    assert check()
