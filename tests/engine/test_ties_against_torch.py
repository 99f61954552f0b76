"""Ties, labels of no class and lengths that broadcast: values and gradients of both orders as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pytest

from gradcli import engine

LABELS = [[1, -1], [0, 1], [0, 0], [2, -1], [0.5, -0.5]]
MEDIANS = [[2.0, 2.0, 1.0, 3.0, 2.0], [nan, 1.0, 1.0], [nan, nan], [3.0], [1.0, 2.0, nan, 2.0, 2.0], [1.0, 1.0, 2.0]]
EINSUMS: dict[str, list[list[int]]] = {
    "i,i": [[2], [1]],
    "ij,ij->ij": [[2, 1], [1, 3]],
    "i...,i...->...": [[2, 3], [2, 1]],
    "ij,j->": [[2, 3], [1]],
    "...ij,...jk->...ik": [[2, 2, 3], [1, 1, 2]],
    "iij->j": [[2, 2, 3]],
    "i,->i": [[2], []],
}


def orders(call: Callable[..., Any], t: Any, *values: Any) -> list[Any]:
    """Return a result, its gradients, and the gradients of those."""
    inputs = [t.tensor(value, dtype=t.float64, requires_grad=True) for value in values]
    result = call(t, *inputs)
    first = t.autograd.grad((result * result).sum(), inputs, create_graph=True)
    total = sum((entry**2).sum() for entry in first)
    second = t.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
    return [np.asarray(entry.detach().tolist()) for entry in (result, *first, *second)]


def agree(call: Callable[..., Any], *values: Any) -> None:
    """Assert that both orders are PyTorch's."""
    torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")
    for ours, theirs in zip(orders(call, engine, *values), orders(call, torch, *values), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("values", MEDIANS, ids=str)
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_equal_elements_share_the_gradient_of_a_median(name: str, values: list[float]) -> None:
    agree(lambda _, x: getattr(x, name)(), values)
    agree(lambda _, x: getattr(x, name)(0).values, values)
    agree(lambda _, x: getattr(x, name)(), [values, values[::-1]])
    agree(lambda _, x: getattr(x, name)(1, keepdim=True).values, [values, values[::-1]])


def test_medians_of_nothing_and_of_integers_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")
    for name in ("median", "nanmedian"):
        found = []
        for t in (engine, torch):
            run = getattr(t, name)
            numbers = [run(t.tensor([3, 1, 2, 1])).item(), run(t.tensor(2.0)).item()]
            found.append([run(t.ones(0)).isnan().item(), numbers, run(t.tensor([[3, 1, 1]]), 1).indices.tolist()])
        assert found[0] == found[1]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_a_label_of_no_class_has_the_loss_of_torch(labels: list[float], reduction: str) -> None:
    a, b = [[1.0, 2.0], [0.5, -1.0]], [[0.3, 1.0], [2.0, 0.1]]

    def cosine(t: Any, x: Any, y: Any) -> Any:
        return t.nn.functional.cosine_embedding_loss(x, y, t.tensor(labels), margin=-0.5, reduction=reduction)

    def hinge(t: Any, x: Any, y: Any) -> Any:
        return t.nn.functional.hinge_embedding_loss(x * y, t.tensor([labels, labels]), reduction=reduction)

    agree(cosine, a, b)
    agree(hinge, a, b)


@pytest.mark.parametrize("equation", EINSUMS)
def test_lengths_of_1_broadcast_in_einsum_in_both_directions(equation: str) -> None:
    values = [np.arange(1.0, 1 + np.prod(shape)).reshape(shape).tolist() for shape in EINSUMS[equation]]
    agree(lambda t, *operands: t.einsum(equation, *operands), *values)


def test_the_broadcast_gradient_of_einsum_is_that_of_the_product_written_out() -> None:
    def written(_: Any, x: Any, y: Any) -> Any:
        return (x * y).sum()

    values = ([1.0, 2.0, -4.0], [0.5])
    found = orders(lambda t, x, y: t.einsum("i,i", x, y), engine, *values)
    for ours, right, wrong in zip(
        found,
        orders(written, engine, *values),
        orders(lambda t, x, y: written(t, x, 1.01 * y), engine, *values),
        strict=True,
    ):
        np.testing.assert_allclose(ours, right, rtol=1e-12)
        assert not np.allclose(ours, wrong, rtol=1e-3)
