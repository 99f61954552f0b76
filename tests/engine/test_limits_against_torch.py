"""Ties, kinks, poles, saturated values and arguments out of range: values, gradients and errors as PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")

inf, nan = math.inf, math.nan
VALUES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "prelu at 0": (lambda t, x, w: t.nn.functional.prelu(x, w), [[0.0, -1.0, 2.0, inf], [0.3]]),
    "fmax at ties and NaN": (lambda t, x, y: t.fmax(x, y), [[1.0, nan, 2.0, nan], [1.0, 3.0, nan, nan]]),
    "fmin at ties and NaN": (lambda t, x, y: t.fmin(x, y), [[1.0, nan, 2.0, nan], [1.0, 3.0, nan, nan]]),
    "quantile of NaN": (lambda t, x: t.quantile(x, 0.3), [[1.0, nan, 3.0, 2.0]]),
    "quantiles of rows with NaN": (
        lambda t, x: t.quantile(x, t.tensor([0.3, 0.9], dtype=x.dtype), 1, keepdim=True),
        [[[1.0, nan, 3.0], [4.0, 2.0, 1.0]]],
    ),
    "hypot of large numbers": (lambda t, x, y: t.hypot(x, y), [[1e200, 3.0], [1e200, -4.0]]),
    "digamma at poles": (lambda t, x: t.digamma(x), [[0.0, -0.0, -inf, inf, -1e10 + 0.5, -0.3]]),
    "polygamma at poles": (lambda t, x: t.polygamma(2, x), [[0.0, -1.0, 0.4, -0.3]]),
    "trigamma of negative numbers": (lambda t, x: t.polygamma(1, x), [[0.0, -0.25, -1.75]]),
    "erfinv near 1": (lambda t, x: t.erfinv(x), [[1 - 1e-15, -1 + 1e-12, 0.5, 1e-20, 1.0, -1.0, 2.0]]),
    "as_strided of a part": (lambda _, x: x[2:].as_strided((2,), (2,), 3), [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]),
    "take_along_dim broadcast": (
        lambda t, x: t.take_along_dim(x, t.tensor([[1]]), 1),
        [[[1.0, 2.0], [3.0, 4.0]]],
    ),
    "diff beyond the length": (lambda t, x: t.diff(x, n=3), [[1.0, 2.0]]),
    "mode of a number": (lambda t, x: t.mode(x)[0], [3.0]),
    "kthvalue of a number": (lambda t, x: t.kthvalue(x, 1)[0], [3.0]),
}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "large integers": lambda t: t.div(t.tensor([2**62 + 1, -7, 7]), t.tensor([1, 2, -2]), rounding_mode="trunc"),
    "mean of integers": lambda t: t.tensor([1, 2]).scatter_reduce(0, t.tensor([0, 0]), t.tensor([3, 3]), "mean"),
}
ERRORS: dict[str, Callable[[Any], Any]] = {
    "index_select": lambda t: t.ones(2).index_select(0, t.tensor([-1])),
    "index_select with a matrix": lambda t: t.ones(2).index_select(0, t.tensor([[0]])),
    "index_add": lambda t: t.ones(2).index_add(0, t.tensor([-1]), t.ones(1)),
    "index_copy": lambda t: t.ones(2).index_copy(0, t.tensor([-1]), t.ones(1)),
    "embedding": lambda t: t.nn.functional.embedding(t.tensor([-1]), t.ones(2, 3)),
    "take": lambda t: t.ones(2).take(t.tensor([2])),
    "topk": lambda t: t.ones(2).topk(3),
    "kthvalue": lambda t: t.ones(2).kthvalue(3),
    "quantile": lambda t: t.quantile(t.ones(2), 1.5),
    "unfold": lambda t: t.ones(2).unfold(0, 3, 1),
    "unfold without a step": lambda t: t.ones(2).unfold(0, 2, 0),
    "trace": lambda t: t.trace(t.ones(2, 2, 2)),
    "diag": lambda t: t.diag(t.ones(2, 2, 2)),
    "cross": lambda t: t.cross(t.ones(2, 2), t.ones(2, 2)),
    "glu": lambda t: t.nn.functional.glu(t.ones(3)),
    "conv1d": lambda t: t.nn.functional.conv1d(t.ones(1, 1, 2), t.ones(1, 1, 3)),
    "max_pool1d": lambda t: t.nn.functional.max_pool1d(t.ones(1, 1, 2), 3),
}


def outcome(namespace: Any, call: Callable[..., Any], values: list[Any]) -> list[np.ndarray]:
    """Return the result in float64, and the gradients of its sum."""
    tensors = [namespace.tensor(value, dtype=namespace.float64, requires_grad=True) for value in values]
    result = call(namespace, *tensors)
    result.sum().backward()
    return [result.detach().numpy(), *(tensor.grad.numpy() for tensor in tensors)]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.filterwarnings("ignore")
def test_values_and_gradients_at_the_limits_agree(name: str) -> None:
    call, values = VALUES[name]
    for ours, theirs in zip(outcome(engine, call, values), outcome(torch, call, values), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PLAIN)
def test_results_without_gradients_agree(name: str) -> None:
    call = PLAIN[name]
    assert call(engine).tolist() == call(torch).tolist()


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.filterwarnings("ignore")
def test_arguments_out_of_range_raise_as_pytorch_does(name: str) -> None:
    call = ERRORS[name]
    with pytest.raises((RuntimeError, IndexError, ValueError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type):
        call(engine)
