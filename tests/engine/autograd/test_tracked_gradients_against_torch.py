"""A gradient made with `create_graph=True` requires a gradient where PyTorch's does.

Where the second derivative is 0, the second gradient is zeros or None as it is there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine
from gradcli.engine.catalogue import operations

torch = pytest.importorskip("torch", reason="the reference for these gradients is PyTorch")

Call = Callable[..., Any]
WIDE, LONG, IMAGE, VOLUME = (2, 3), (1, 2, 6), (1, 2, 4, 4), (1, 1, 4, 4, 4)


def layer(name: str, *rest: Any, **options: Any) -> Call:
    return lambda t, *inputs: getattr(t.nn.functional, name)(*inputs, *rest, **options)


def labels(t: Any) -> Any:
    return t.tensor([0, 2])


def statistics(t: Any) -> tuple[Any, Any]:
    return t.zeros(3, dtype=t.float64), t.ones(3, dtype=t.float64)


CALLS: dict[str, tuple[Call, list[tuple[int, ...]]]] = {
    **{
        name: (layer(name), [WIDE])
        for name in ["relu6", "elu", "hardswish", "hardtanh", "hardshrink", "softshrink", "tanhshrink", "rrelu"]
    },
    "relu in place": (lambda t, x: (x * 2).relu_(), [WIDE]),
    "leaky_relu in place": (lambda t, x: t.nn.functional.leaky_relu_(x * 2), [WIDE]),
    "threshold in place": (lambda t, x: t.nn.functional.threshold_(x * 2, 0.2, 0.1), [WIDE]),
    "rrelu in place": (lambda t, x: t.nn.functional.rrelu_(x * 2), [WIDE]),
    "relu of a part": (lambda t, x: t.relu(x * 2)[0], [WIDE]),
    "prelu, a slope a channel": (layer("prelu"), [(2, 3, 2), (3,)]),
    "max_pool1d": (layer("max_pool1d", 2), [LONG]),
    "max_pool2d without a batch": (layer("max_pool2d", 2), [IMAGE[1:]]),
    "max_pool2d with indices": (lambda t, x: t.nn.functional.max_pool2d(x, 2, return_indices=True)[0], [IMAGE]),
    "max_pool3d": (layer("max_pool3d", 2), [VOLUME]),
    "avg_pool1d": (layer("avg_pool1d", 2), [LONG]),
    "avg_pool2d, a divisor": (layer("avg_pool2d", 3, divisor_override=2, ceil_mode=True), [IMAGE]),
    "avg_pool3d": (layer("avg_pool3d", 2), [VOLUME]),
    "lp_pool1d": (lambda t, x: t.nn.functional.lp_pool1d(x.exp(), 2, 2), [LONG]),
    "adaptive_avg_pool1d": (layer("adaptive_avg_pool1d", 2), [LONG]),
    "adaptive_avg_pool2d to 1": (layer("adaptive_avg_pool2d", 1), [IMAGE]),
    "adaptive_avg_pool3d": (layer("adaptive_avg_pool3d", 2), [VOLUME]),
    "adaptive_max_pool2d": (layer("adaptive_max_pool2d", 2), [IMAGE]),
    "adaptive_max_pool2d to 1": (layer("adaptive_max_pool2d", 1), [IMAGE]),
    **{f"pad, {mode}": (layer("pad", (1, 1), mode), [LONG]) for mode in ("reflect", "replicate", "circular")},
    "interpolate, area": (layer("interpolate", scale_factor=2, mode="area"), [IMAGE]),
    "interpolate, nearest": (layer("interpolate", scale_factor=2), [IMAGE]),
    "grid_sample, nearest": (layer("grid_sample", mode="nearest", align_corners=False), [IMAGE, (1, 2, 2, 2)]),
    "batch_norm in evaluation": (lambda t, x: t.nn.functional.batch_norm(x, *statistics(t)), [WIDE]),
    "batch_norm, affine": (lambda t, x, w, b: t.nn.functional.batch_norm(x, *statistics(t), w, b), [WIDE, (3,), (3,)]),
    "layer_norm, affine": (lambda t, x, w, b: t.nn.functional.layer_norm(x, (3,), w, b), [WIDE, (3,), (3,)]),
    "nll_loss, the sum": (lambda t, x: t.nn.functional.nll_loss(x, labels(t), reduction="sum"), [WIDE]),
    "nll_loss of images": (lambda t, x: t.nn.functional.nll_loss(x, t.zeros(1, 4, 4, dtype=t.int64)), [IMAGE]),
    "remainder": (lambda t, x, y: t.remainder(x, y.exp()), [WIDE, WIDE]),
    "power 1": (lambda t, x: x**1, [WIDE]),
    "power 0": (lambda t, x: x**0, [WIDE]),
    "0-norm": (lambda t, x: x.norm(0), [WIDE]),
    "product of one": (lambda t, x: x.sum().prod() + x.sum(), [WIDE]),
    "bernoulli": (lambda t, x: t.bernoulli(x.sigmoid()), [WIDE]),
    "clamp": (lambda t, x: x.clamp(-0.5, 0.5), [WIDE]),
    "clamp between tensors": (lambda t, x, y: t.clamp(x, y, y + 1), [WIDE, WIDE]),
    "maximum": (lambda t, x, y: t.maximum(x, y), [WIDE, WIDE]),
    "where": (lambda t, x, y: t.where(x > 0, x, y), [WIDE, WIDE]),
    "sort": (lambda t, x: x.sort(1)[0], [WIDE]),
    "median": (lambda t, x: x.median(), [WIDE]),
    "sign": (lambda t, x: x.sign(), [WIDE]),
    "floor": (lambda t, x: x.floor(), [WIDE]),
    "index": (lambda t, x: x[labels(t) // 2, labels(t)], [WIDE]),
    "zero_": (lambda t, x: (x * 2).zero_(), [WIDE]),
}


def second_gradients(t: Any, call: Call, arrays: list[Any]) -> list[Any]:
    """Return what the first gradients require, and their own gradients: values, None, or an error's first words."""
    inputs = [t.tensor(array, requires_grad=True) for array in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = call(t, *inputs)
    outputs = [y for y in (given if isinstance(given, (tuple, list)) else [given]) if y.requires_grad]
    if not outputs:
        return ["untracked"]
    seeds = [t.ones_like(y.detach()) for y in outputs]
    first = t.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True)
    found: list[Any] = [None if g is None else (g.requires_grad, g.grad_fn is None) for g in first]
    for g in first:
        if g is not None and g.requires_grad:
            try:
                again = t.autograd.grad((g * g).sum(), inputs, allow_unused=True, retain_graph=True)
            except RuntimeError as error:
                return ["stops" if "not implemented" in str(error) else str(error)]
            found += [None if h is None else h.detach().numpy(force=True) for h in again]
    return found


def compare(call: Call, arrays: list[Any]) -> None:
    ours, theirs = (second_gradients(t, call, arrays) for t in (engine, torch))
    if theirs == ["stops"]:
        return
    assert len(ours) == len(theirs)
    for mine, reference in zip(ours, theirs, strict=True):
        if isinstance(reference, np.ndarray):
            assert mine is not None
            np.testing.assert_allclose(mine, reference, rtol=1e-7, atol=1e-9)
        else:
            assert mine == reference


@pytest.mark.parametrize("row", operations(), ids=lambda row: row.name)
def test_rows_of_the_catalogue(row: Any) -> None:
    for number, samples in enumerate(row.samples):
        source = np.random.default_rng(number)
        compare(row.call, [sample.draw(source) for sample in samples])


@pytest.mark.parametrize("name", CALLS)
def test_other_calls(name: str) -> None:
    call, shapes = CALLS[name]
    source = np.random.default_rng(3)
    compare(call, [source.permutation(int(np.prod(shape))).reshape(shape) * 0.3 - 0.8 for shape in shapes])


def penalised(t: Any) -> list[Any]:
    """Return the gradients of a penalty on the slope of a small critic with a pool and piecewise linear layers."""
    nn = t.nn
    critic = nn.Sequential(nn.Conv1d(1, 2, 2), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(4, 3), nn.Hardtanh())
    critic = critic.double()
    with t.no_grad():
        for number, parameter in enumerate(critic.parameters()):
            parameter.copy_(t.cos(t.arange(parameter.numel()) * 1.7 + number).reshape(parameter.shape))
    x = t.tensor([[[0.3, -1.0, 0.4, 2.0, -0.7]]], dtype=t.float64, requires_grad=True)
    (slope,) = t.autograd.grad(critic(x).sum(), x, create_graph=True)
    (slope.norm() - 1).pow(2).backward()
    return [None if leaf.grad is None else leaf.grad.numpy() for leaf in [x, *critic.parameters()]]


def test_a_gradient_penalty() -> None:
    for mine, reference in zip(penalised(engine), penalised(torch), strict=True):
        assert (mine is None) == (reference is None)
        if mine is not None:
            np.testing.assert_allclose(mine, reference, rtol=1e-10, atol=1e-12)


def test_a_penalty_on_the_slope_of_relu_alone() -> None:
    def slope(t: Any) -> Any:
        x = t.tensor([1.5, -2.0, 0.0], requires_grad=True)
        (g,) = t.autograd.grad(t.relu(x).sum(), x, create_graph=True)
        (g.norm() - 2).pow(2).backward()
        return x.grad.tolist()

    assert slope(engine) == slope(torch) == [0.0, 0.0, 0.0]


def test_a_bias_that_no_other_gradient_uses_counts_as_unused() -> None:
    def unused(t: Any) -> str:
        x, w, b = (t.ones(*shape).requires_grad_() for shape in ((1, 1, 4), (1, 1, 2), (1,)))
        g = t.autograd.grad(t.nn.functional.conv1d(x, w, b).sum(), b, create_graph=True)[0]
        assert g.requires_grad
        with pytest.raises(RuntimeError) as caught:
            t.autograd.grad(g.sum(), x)
        return str(caught.value)

    assert unused(engine) == unused(torch)
