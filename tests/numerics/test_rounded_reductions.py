"""Reductions of many entries computed in float32, or of fewer in float16: decided over steps as long as the input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gradcli.numerics.verify import BlockOutcome, Outcome, verify
from tests.numerics.cases import FormulaMap, space
from tests.pairs import each_pair

Array = np.ndarray
MANY = 10_000
FORMATS = {"float32": (np.float32, 1000), "float16": (np.float16, 24)}
"""The format, and how many entries still leave a resolution worth having in it."""


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def log_sum_exp(x: Array) -> Array:
    return x.max() + np.log(np.exp(x - x.max()).sum(dtype=x.dtype))


REDUCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "sum": (lambda x: x.sum(dtype=x.dtype), np.ones_like),
    "mean of squares": (lambda x: (x * x).mean(dtype=x.dtype), lambda x: 2 * x / x.size),
    "norm": (lambda x: np.sqrt((x * x).sum(dtype=x.dtype)), lambda x: x / np.sqrt((x * x).sum())),
    "variance": (lambda x: x.var(dtype=x.dtype), lambda x: 2 * (x - x.mean()) / x.size),
    "log of sum of exp": (log_sum_exp, softmax),
    "mean of tanh": (lambda x: np.tanh(x).mean(dtype=x.dtype), lambda x: (1 - np.tanh(x) ** 2) / x.size),
}
WRONG: dict[str, Callable[[Array], Array]] = {
    "sign": lambda j: -j,
    "times 2": lambda j: 2 * j,
    "times 1.5": lambda j: 1.5 * j,
    "one block zero": lambda j: np.where(np.arange(j.size) < j.size // 2, 0.0, j),
}


def judged(name: str, size: int, precision: type, spoil: Callable[[Array], Array] | None = None) -> BlockOutcome:
    """One reduction of normal numbers, rounded to the precision before and after."""
    function, gradient = REDUCTIONS[name]
    map_ = FormulaMap(
        lambda x: np.asarray(function(x.astype(precision)), dtype=np.float64),
        gradient,
        space((size,)),
        space(()),
        spoil=spoil,
    )
    x = np.random.default_rng(size).standard_normal(size)
    (block,) = verify(map_, x, seed=1).blocks
    return block


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("format_", FORMATS)
def test_a_right_gradient_of_a_rounded_reduction_agrees_at_a_resolution_that_is_stated(name: str, format_: str) -> None:
    precision, size = FORMATS[format_]
    block = judged(name, size, precision)
    assert block.outcome is Outcome.AGREES
    assert block.resolution is not None
    assert block.resolution <= 0.1


@pytest.mark.sampled(4)
@each_pair(format_=FORMATS, name=REDUCTIONS, plant=WRONG)
def test_a_wrong_gradient_of_a_rounded_reduction_differs(name: str, format_: str, plant: str) -> None:
    precision, size = FORMATS[format_]
    assert judged(name, size, precision, WRONG[plant]).outcome is Outcome.DIFFERS


@pytest.mark.sampled(1)
@pytest.mark.parametrize("factor", [1.01])
@pytest.mark.parametrize("name", ["sum", "variance", "mean of tanh"])
def test_a_factor_in_a_reduction_of_many_float32_entries_differs(name: str, factor: float) -> None:
    assert judged(name, MANY, np.float32, lambda j: factor * j).outcome is Outcome.DIFFERS
