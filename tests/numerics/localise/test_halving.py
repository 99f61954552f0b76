"""Halving groups of numbers finds what a test of whole groups finds, within its limits."""

from __future__ import annotations

from gradcli.numerics.sampling.directions import halved


def searched(size: int, wanted: set[int], most: int = 100, tries: int = 1000) -> tuple[list[int], int]:
    """What is found, and in how many tests."""
    asked: list[tuple[int, int]] = []

    def test(start: int, stop: int) -> bool:
        asked.append((start, stop))
        return any(start <= number < stop for number in wanted)

    return halved(size, test, most=most, tries=tries), len(asked)


def test_all_that_the_test_finds_are_found_and_no_others() -> None:
    assert searched(1, {0})[0] == [0]
    assert searched(1, set())[0] == []
    assert searched(37, {0, 17, 18, 36})[0] == [0, 17, 18, 36]
    assert searched(64, set(range(64)))[0] == list(range(64))


def test_one_of_many_takes_two_tests_a_halving() -> None:
    found, tests = searched(1024, {700})
    assert found == [700]
    assert tests <= 21


def test_the_limits_hold() -> None:
    assert searched(64, set(range(64)), most=3)[0] == [0, 1, 2]
    found, tests = searched(64, {63}, tries=5)
    assert (found, tests) == ([], 5)
