"""Tests over several factors at once (framework, shape, kind of function): every pair of levels, not every triple.

A fault that shows with one framework, or with one framework and one shape, shows in a test of each pair; the full
product of three factors asks the same several times. Which triples are taken depends on the order of the levels alone.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest

FRAMEWORKS = ("engine", "torch")


def all_pairs(*factors: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Some rows of the product of the factors, in which every two levels of two factors meet."""
    levels = [list(factor) for factor in factors]
    rows = list(product(*(range(len(factor)) for factor in levels)))
    meetings = {row: set(combinations(enumerate(row), 2)) for row in rows}
    missing = set().union(*meetings.values())
    chosen = []
    while missing:
        best = max(rows, key=lambda row: len(meetings[row] & missing))
        missing -= meetings[best]
        chosen.append(best)
    return [tuple(factor[level] for factor, level in zip(levels, row, strict=True)) for row in sorted(chosen)]


def each_pair(fixtures: Sequence[str] = (), **factors: Iterable[Any]) -> pytest.MarkDecorator:
    """A mark that runs a test for `all_pairs` of the factors, by the names of its arguments.

    Args:
        fixtures: those of the names that are fixtures, which get the level as their parameter.
        factors: the levels of each argument.
    """
    rows = all_pairs(*factors.values())
    names = ["-".join(str(getattr(level, "__name__", level)) for level in row) for row in rows]
    return pytest.mark.parametrize(tuple(factors), rows, ids=names, indirect=list(fixtures))


def in_turn(name: str, levels: Iterable[Any]) -> pytest.MarkDecorator:
    """A mark that runs a test for every level of an argument, each in one framework, which take turns.

    For what is computed alike in both, where a right function and a wrong one are to be compared in the same framework.
    """
    rows = [(FRAMEWORKS[number % len(FRAMEWORKS)], level) for number, level in enumerate(levels)]
    names = ["-".join(str(getattr(each, "__name__", each)) for each in row) for row in rows]
    return pytest.mark.parametrize(("backend", name), rows, ids=names, indirect=["backend"])
