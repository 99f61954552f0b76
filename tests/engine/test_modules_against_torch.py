"""Modules around functions give PyTorch's values, gradients and printed forms, and other functions its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch")

OF_ONE: dict[str, Callable[[Any], Any]] = {
    "Threshold": lambda nn: nn.Threshold(0.1, 2.0),
    "Hardshrink": lambda nn: nn.Hardshrink(),
    "Softshrink": lambda nn: nn.Softshrink(0.3),
    "Hardsigmoid": lambda nn: nn.Hardsigmoid(),
    "Hardswish": lambda nn: nn.Hardswish(),
    "Tanhshrink": lambda nn: nn.Tanhshrink(),
    "Softmin": lambda nn: nn.Softmin(dim=1),
    "RMSNorm": lambda nn: nn.RMSNorm(4),
}
LOSSES: dict[str, Callable[[Any], Any]] = {
    "PairwiseDistance": lambda nn: nn.PairwiseDistance(p=3.0, keepdim=True),
    "SoftMarginLoss": lambda nn: nn.SoftMarginLoss(),
    "HingeEmbeddingLoss": lambda nn: nn.HingeEmbeddingLoss(margin=0.5, reduction="sum"),
}
OF_THREE: dict[str, Callable[[Any], Any]] = {
    "TripletMarginLoss": lambda nn: nn.TripletMarginLoss(swap=True),
    "GaussianNLLLoss": lambda nn: nn.GaussianNLLLoss(full=True),
    "MarginRankingLoss": lambda nn: nn.MarginRankingLoss(0.2),
    "CosineEmbeddingLoss": lambda nn: nn.CosineEmbeddingLoss(reduction="none"),
}
CASES = {**OF_ONE, **LOSSES, **OF_THREE}


def inputs(name: str) -> list[np.ndarray]:
    source = np.random.default_rng(4)
    arrays = [source.normal(size=(3, 4)) for _ in range(1 if name in OF_ONE else 2 if name in LOSSES else 3)]
    if name in ("SoftMarginLoss", "HingeEmbeddingLoss", "MarginRankingLoss"):
        arrays[-1] = np.sign(arrays[-1])
    if name == "CosineEmbeddingLoss":
        arrays[-1] = np.array([1.0, -1.0, 1.0])
    return [np.abs(array) for array in arrays] if name == "GaussianNLLLoss" else arrays


@pytest.mark.parametrize("name", CASES)
def test_module_agrees(name: str) -> None:
    seen = []
    for namespace in (engine, torch):
        module = CASES[name](namespace.nn).to(namespace.float64)
        tensors = [namespace.tensor(array) for array in inputs(name)]
        tensors[0].requires_grad_()
        result = module(*tensors)
        result.sum().backward()
        seen.append((result.detach().numpy(), tensors[0].grad.numpy(), type(module).__name__))
    np.testing.assert_allclose(seen[0][0], seen[1][0], rtol=1e-7)
    np.testing.assert_allclose(seen[0][1], seen[1][1], rtol=1e-7, atol=1e-10)
    assert seen[0][2] == seen[1][2]


NAN = float("nan")
VALUES: dict[str, Callable[[Any], Any]] = {
    "heaviside": lambda t: t.heaviside(t.tensor([-1.0, 0.0, 2.0]), t.tensor([0.5])),
    "fmax": lambda t: t.fmax(t.tensor([1.0, NAN, NAN]), t.tensor([NAN, 2.0, NAN])),
    "fmin": lambda t: t.fmin(t.tensor([1.0, NAN, 3.0]), t.tensor([NAN, 2.0, 2.0])),
    "nan_to_num": lambda t: t.nan_to_num(t.tensor([1.0, NAN, float("inf"), -float("inf")]), nan=7.0, posinf=9.0),
    "nanmean": lambda t: t.nanmean(t.tensor([[1.0, NAN], [3.0, 4.0]]), 0),
    "cummax": lambda t: t.cummax(t.tensor([1.0, 3.0, 3.0, NAN, 5.0]), 0)[1],
    "cummin": lambda t: t.cummin(t.tensor([4, 2, 2, 3]), 0)[1],
    "kthvalue": lambda t: t.kthvalue(t.tensor([[3.0, 1.0, 2.0]]), 2, keepdim=True)[1],
    "quantile of a matrix of ranks": lambda t: t.quantile(t.arange(6.0).reshape(2, 3), t.tensor([0.0, 0.5, 1.0]), 1),
    "quantile, one rank kept": lambda t: t.quantile(t.arange(6.0).reshape(2, 3), 0.25, keepdim=True),
    "matrix_power 0": lambda t: t.linalg.matrix_power(t.ones(2, 2, 2), 0),
    "tensor_split": lambda t: t.tensor_split(t.arange(5), (-3, 9))[1],
    "tril_indices": lambda t: t.tril_indices(3, 4, 1),
    "triu_indices": lambda t: t.triu_indices(3, 4, -1),
    "trapezoid at points": lambda t: t.trapezoid(t.arange(6.0).reshape(2, 3), t.tensor([0.0, 1.0, 3.0]), dim=1),
    "rot90 3": lambda t: t.rot90(t.arange(6).reshape(2, 3), 3),
    "float_power": lambda t: t.float_power(t.tensor([1, 2, 3]), 2),
    "vdot": lambda t: t.vdot(t.tensor([1 + 2j, 3j]), t.tensor([2 - 1j, 1j])),
    "empty parts": lambda t: t.tensor_split(t.arange(2), 3)[2],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_and_types_agree(name: str) -> None:
    ours, theirs = VALUES[name](engine), VALUES[name](torch)
    assert str(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
