"""The smallest failing input shows the mistake itself, at the very numbers that are printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function

FACTOR = 1.25


class Product(Function):
    """x w: the gradient of x is too large by a quarter, unless w is zero."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, w = ctx.saved_tensors
        return FACTOR * grad_output * w, grad_output * x


class Bell(Function):
    """exp(-x²), nothing far from zero, and its slope nothing at zero."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = (-x * x).exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, y = ctx.saved_tensors
        return FACTOR * grad_output * -2 * x * y


def smallest(function: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    given = tuple(engine.tensor(value.tolist(), dtype=engine.float64, requires_grad=True) for value in inputs)
    result = gradcli.check(function, given, order=1).cases[0]
    assert result.verdict.value == "failed"
    assert result.smallest
    return [np.array(eval(code.split("=", 1)[1])) for code in result.smallest]


def test_a_factor_that_is_zero_does_not_show_a_wrong_factor() -> None:
    x, w = smallest(Product, np.array([0.3, -1.2, 2.2]), np.array([1.4, 0.6, -0.8]))
    assert x.size < 3
    assert np.abs(w).max() > 0.1


@pytest.mark.parametrize("given", [np.array([30.0, 40.0]), np.array([0.0, 0.0]), np.array([0.7, -0.4])])
def test_inputs_that_show_nothing_are_replaced_by_some_that_do(given: np.ndarray) -> None:
    (x,) = smallest(Bell, given)
    assert (np.abs(x * np.exp(-x * x)) > 1e-3).any()


def test_a_failure_says_where_it_was_measured_if_not_at_the_inputs() -> None:
    far = engine.tensor([30.0, 40.0], dtype=engine.float64, requires_grad=True)
    result = gradcli.check(Bell, (far,), order=1).cases[0]
    assert any("no signal at this point; decided at" in note for note in result.notes), result.notes
