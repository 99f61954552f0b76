"""The logarithm of the normal distribution function far out in its tails, and the multivariate gamma function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli import engine

TAILS = np.array([-1e3, -200.0, -40.0, -30.0001, -30.0, -29.9, -10.0, -0.5, 0.0, 0.3, 4.0, 9.0, 20.0, 40.0])


def orders(namespace: Any, values: np.ndarray, function: Any) -> list[np.ndarray]:
    """Return values, first and second derivatives."""
    point = namespace.tensor(values, requires_grad=True)
    value = function(namespace, point)
    (first,) = namespace.autograd.grad(value.sum(), point, create_graph=True)
    (second,) = namespace.autograd.grad(first.sum(), point)
    return [entry.detach().numpy() for entry in (value, first, second)]


def test_log_ndtr_in_the_tails() -> None:
    torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")
    ours, theirs = (orders(space, TAILS, lambda t, x: t.special.log_ndtr(x)) for space in (engine, torch))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-11)
    # Far out both subtract (f / F)^2 and x f / F, which agree in the leading digits, and lose the same ones.
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-8, atol=1e-200)


def test_log_ndtr_of_a_single_step_is_continuous_where_the_formula_changes() -> None:
    below, above = (engine.special.log_ndtr(engine.tensor(x, dtype=engine.float64)).item() for x in (-30.0, -30 + 1e-9))
    assert abs((above - below) / 1e-9 - 30.0332) < 1e-2


@pytest.mark.parametrize("p", [1, 2, 4])
def test_mvlgamma(p: int) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")
    values = np.random.default_rng(0).uniform(2, 5, size=(3, 2))
    for function in (lambda t, x: t.mvlgamma(x, p), lambda t, x: t.special.multigammaln(x, p)):
        for mine, reference in zip(*(orders(space, values, function) for space in (engine, torch)), strict=True):
            np.testing.assert_allclose(mine, reference, rtol=1e-9)


def test_mvlgamma_of_integers_and_of_none() -> None:
    result = engine.tensor([3, 4]).mvlgamma(2)
    assert result.dtype == engine.float32
    np.testing.assert_allclose(result.numpy(), [1.5502, 3.5651], rtol=1e-4)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        engine.mvlgamma(engine.ones(1), 0)
