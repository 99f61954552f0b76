"""Sizes of arrays that forward refers to stay in calls at other sizes: compiled code may write past their end."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.backends.captured_sizes import captured_sizes
from gradcli.verdict import Verdict

TABLE = np.zeros((7, 9))


class Record:
    """An object whose attributes are not to be looked up at will."""

    def __init__(self) -> None:
        self.values = np.zeros(11)

    @property
    def shape(self) -> Any:
        raise RuntimeError("asked for")

    dtype = shape


RECORD = Record()


def helper(x: Any) -> Any:
    return x @ TABLE


def of_a_helper(x: Any) -> Any:
    return helper(x)


def of_an_object(x: Any) -> Any:
    return x * RECORD.values


def of_a_default(x: Any, table: Any = np.zeros(13)) -> Any:  # noqa: B008 - the array is what counts
    return x * table


def of_nothing(x: Any) -> Any:
    return np.sin(x)


@pytest.mark.parametrize(
    ("function", "sizes"), [(of_a_helper, {7, 9}), (of_an_object, {11}), (of_a_default, {13}), (of_nothing, set())]
)
def test_sizes_are_found_where_forward_refers_to_arrays(function: Any, sizes: set[int]) -> None:
    assert captured_sizes(function) == sizes


def test_tensors_in_closures_count(ns: Any) -> None:
    kept = SimpleNamespace(statistics=[ns.zeros((5,)), ns.zeros((1, 6))])
    assert captured_sizes(lambda x: x + kept.statistics[0]) == {5, 6}


@pytest.mark.parametrize("captured", [True, False])
def test_a_size_that_is_captured_never_grows(ns: Any, captured: bool) -> None:
    seen = set()
    statistics = ns.zeros((5,)) if captured else 0.0

    class Scale(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.add(tuple(x.shape))
            return 2 * x + 0 * statistics if captured else 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g

    x = ns.ones((4, 5), dtype=ns.float64, requires_grad=True)
    (case,) = gradcli.check(Scale, (x,), order=1).cases
    assert case.verdict is Verdict.PASSED
    assert {shape[1] for shape in seen} == ({4, 5} if captured else {5, 6})
    assert {shape[0] for shape in seen} > {4}
