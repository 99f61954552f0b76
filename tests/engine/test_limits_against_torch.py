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


def _whole_channels(result: Any) -> Any:
    """Return whether each channel was dropped or kept as a whole."""
    kept = result.reshape(50, -1) != 0
    return (kept.all(1) | ~kept.any(1)).all()


def _hooks_of_lbfgs(t: Any) -> list[str]:
    x, calls = t.zeros(1, requires_grad=True), []
    optimizer = t.optim.LBFGS([x])
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x - 1) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return calls


def _parametrized_twice(t: Any) -> Any:
    class Doubled(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def forward(self, x: Any) -> Any:
            return 2 * x

        def right_inverse(self, x: Any) -> Any:
            return x / 2

    layer = t.nn.Linear(1, 1)
    t.nn.init.ones_(layer.weight)
    for _ in range(2):
        t.nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
    return layer.weight


VALUES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "prelu at 0": (lambda t, x, w: t.nn.functional.prelu(x, w), [[0.0, -1.0, 2.0, inf], [0.3]]),
    "fmax at ties and NaN": (lambda t, x, y: t.fmax(x, y), [[1.0, nan, 2.0, nan], [1.0, 3.0, nan, nan]]),
    "fmin at ties and NaN": (lambda t, x, y: t.fmin(x, y), [[1.0, nan, 2.0, nan], [1.0, 3.0, nan, nan]]),
    "i0 near 0 and far": (lambda t, x: t.i0(x), [[0.0, -0.5, 8.0, 29.9, 30.1, -31.0, 300.0, 720.0, nan]]),
    "i1 near 0 and far": (lambda t, x: t.special.i1(x), [[0.0, -0.5, 8.0, 29.9, 30.1, -31.0, 300.0]]),
    "i0e near 0 and far": (lambda t, x: t.special.i0e(x), [[0.0, -0.5, 8.0, 29.9, 30.1, -31.0, 300.0, inf]]),
    "i1e near 0 and far": (lambda t, x: t.special.i1e(x), [[-0.5, 8.0, 29.9, 30.1, -31.0, 300.0]]),
    "pdist of equal rows": (lambda t, x: t.pdist(x), [[[1.0, 2.0], [1.0, 2.0], [0.0, -1.0]]]),
    "pdist of sums": (lambda t, x: t.pdist(x, 1.0), [[[1.0, 2.0], [1.0, 2.5], [0.0, -1.0]]]),
    "pdist of largest": (lambda t, x: t.pdist(x, inf), [[[1.0, 2.0], [1.0, 2.5], [0.0, -1.0]]]),
    "pdist of one row": (lambda t, x: t.pdist(x), [[[1.0, 2.0]]]),
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
    "rrelu at 0": (lambda t, x: t.nn.functional.rrelu(x), [[0.0, 1.0, -1.0]]),
    "hardsigmoid at its limits": (lambda t, x: t.nn.functional.hardsigmoid(x), [[-3.0, 3.0, 0.5, nan]]),
    "hardswish at its limits": (lambda t, x: t.nn.functional.hardswish(x), [[-3.0, 3.0, 0.5, 4.0, -4.0]]),
    "certain probabilities": (
        lambda t, p, y: t.nn.functional.binary_cross_entropy(p, y),
        [[0.0, 1.0, 0.0, 1.0, 0.3], [0.0, 0.0, 1.0, 1.0, 0.7]],
    ),
    "weighted probabilities of pixels": (
        lambda t, x, y: t.nn.functional.cross_entropy(x, y, t.tensor([1.0, 2.0, 3.0], dtype=x.dtype)),
        [[[[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]], [[[0.1, 0.2], [0.3, 0.4], [0.6, 0.4]]]],
    ),
    "grid on the border": (
        lambda t, x, grid: t.nn.functional.grid_sample(x, grid, padding_mode="border", align_corners=True),
        [[[[[1.0, 2.0], [3.0, 5.0]]]], [[[[-1.0, 0.2], [1.0, 0.3], [-2.0, 0.1]]]]],
    ),
    "p-norms of parts of windows": (
        lambda t, x: t.nn.functional.lp_pool1d(x, 2, 2, ceil_mode=True),
        [[[[1.0, 2.0, 3.0]]]],
    ),
    "cubic norm of negative numbers": (lambda t, x: t.nn.functional.lp_pool1d(x, 3, 2), [[[-1.0, -2.0, 1.0, 2.0]]]),
    "queries that attend to nothing": (
        lambda t, q: t.nn.functional.scaled_dot_product_attention(
            q, q, q, attn_mask=t.tensor([[False, False], [True, False]])
        ),
        [[[1.0, 2.0], [3.0, 4.0]]],
    ),
    "instance_norm in PyTorch's order": (
        lambda t, x, w, b: t.nn.functional.instance_norm(x, None, None, w, b, True, 0.1, 1e-3),
        [[[[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]]], [2.0, 3.0], [0.5, 1.0]],
    ),
    "every target ignored": (
        lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([-100, -100])),
        [[[1.0, 2.0], [3.0, 5.0]]],
    ),
    "one target ignored": (
        lambda t, x: t.nn.functional.nll_loss(x, t.tensor([1, -100])),
        [[[1.0, 2.0], [3.0, 5.0]]],
    ),
    "targets without weight": (
        lambda t, x: t.nn.functional.nll_loss(x, t.tensor([1, 1]), weight=t.tensor([1.0, 0.0], dtype=x.dtype)),
        [[[1.0, 2.0], [3.0, 5.0]]],
    ),
    "mode of a number": (lambda t, x: t.mode(x)[0], [3.0]),
    "kthvalue of a number": (lambda t, x: t.kthvalue(x, 1)[0], [3.0]),
}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "large integers": lambda t: t.div(t.tensor([2**62 + 1, -7, 7]), t.tensor([1, 2, -2]), rounding_mode="trunc"),
    "alpha_dropout of everything": lambda t: t.nn.functional.alpha_dropout(t.ones(3), 1.0, True),
    "gains of convolutions": lambda t: t.tensor([t.nn.init.calculate_gain("conv2d"), t.nn.init.calculate_gain("tanh")]),
    "parametrized twice": lambda t: _parametrized_twice(t),
    "dropout1d without a batch": lambda t: _whole_channels(t.nn.functional.dropout1d(t.ones(50, 20))),
    "dropout3d without a batch": lambda t: _whole_channels(t.nn.functional.dropout3d(t.ones(50, 2, 2, 5))),
    "Dropout1d without a batch": lambda t: _whole_channels(t.nn.Dropout1d()(t.ones(50, 20))),
    "mean of integers": lambda t: t.tensor([1, 2]).scatter_reduce(0, t.tensor([0, 0]), t.tensor([3, 3]), "mean"),
}
NAMES: dict[str, Callable[[Any], Any]] = {
    "part of a Sequential": lambda t: list(
        t.nn.Sequential(t.nn.Linear(1, 1), t.nn.ReLU(), t.nn.Linear(1, 1))[1:]._modules
    ),
    "RNN by position": lambda t: [t.nn.RNN(3, 4, 1, "relu", False).nonlinearity, t.nn.RNN(3, 4, 1, "relu", False).bias],
    "hooks of LBFGS": lambda t: _hooks_of_lbfgs(t),
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
    "one_hot": lambda t: t.nn.functional.one_hot(t.tensor([3]), 2),
    "one_hot of numbers": lambda t: t.nn.functional.one_hot(t.ones(2)),
    "layer_norm": lambda t: t.nn.functional.layer_norm(t.ones(2, 3), (4,)),
    "rms_norm": lambda t: t.nn.functional.rms_norm(t.ones(2, 3), (4,)),
    "group_norm": lambda t: t.nn.functional.group_norm(t.ones(2, 3, 4), 2),
    "batch_norm": lambda t: t.nn.functional.batch_norm(t.ones(2, 3), None, None),
    "gaussian_nll_loss": lambda t: t.nn.functional.gaussian_nll_loss(t.ones(2), t.ones(2), -t.ones(2)),
    "smooth_l1_loss": lambda t: t.nn.functional.smooth_l1_loss(t.ones(2), t.ones(2), beta=-1.0),
    "huber_loss": lambda t: t.nn.functional.huber_loss(t.ones(2), t.ones(2), delta=0.0),
    "alpha_dropout": lambda t: t.nn.functional.alpha_dropout(t.ones(2), 2.0, True),
    "interpolate": lambda t: t.nn.functional.interpolate(t.ones(1, 1, 4), 2, align_corners=True),
    "pad": lambda t: t.nn.functional.pad(t.ones(1, 1, 4), (1, 1), "reflect", 3.0),
    "orthogonal_": lambda t: t.nn.init.orthogonal_(t.ones(2)),
    "RNN": lambda t: t.nn.RNN(3, 4, 1, "sigmoid"),
    "groups of LBFGS": lambda t: t.optim.LBFGS([{"params": [t.ones(1)]}, {"params": [t.zeros(1)]}]),
    "Adagrad": lambda t: t.optim.Adagrad([t.ones(1)], lr_decay=-1.0),
    "RMSprop": lambda t: t.optim.RMSprop([t.ones(1)], alpha=-1.0),
    "options for other parameters": lambda t: t.optim.SGD([t.ones(1)]).load_state_dict(
        t.optim.SGD([t.ones(1), t.ones(1)]).state_dict()
    ),
    "max_pool1d": lambda t: t.nn.functional.max_pool1d(t.ones(1, 1, 2), 3),
}

POINTS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, inf, -inf, nan, 0.5]
OF_ONE: dict[str, Callable[[Any, Any], Any]] = {
    "clamp": lambda t, x: x.clamp(-1, 1) * 2,
    "clamp_min": lambda t, x: x.clamp(min=-1) * 2,
    "clamp_max to NaN": lambda t, x: x.clamp(max=nan) * 2,
    "clamp by tensors": lambda t, x: x.clamp(t.tensor(-1.0), t.tensor(1.0)) * 2,
    "abs": lambda t, x: x.abs(),
    "sign": lambda t, x: x.sign(),
    "sgn": lambda t, x: x.sgn(),
    "frac": lambda t, x: x.frac(),
    "logit": lambda t, x: x.logit(),
    "logit with eps": lambda t, x: x.logit(0.1),
    "entr": lambda t, x: t.special.entr(x),
    "elu": lambda t, x: t.nn.functional.elu(x, 2.0),
    "celu": lambda t, x: t.nn.functional.celu(x, 2.0),
    "selu": lambda t, x: t.nn.functional.selu(x),
}
OF_TWO: dict[str, Callable[[Any, Any, Any], Any]] = {
    "xlogy": lambda t, x, y: t.xlogy(x, y),
    "xlog1py": lambda t, x, y: t.special.xlog1py(x, y),
    "kl_div": lambda t, x, y: t.nn.functional.kl_div(x, y, reduction="none"),
    "logaddexp": lambda t, x, y: t.logaddexp(x, y),
    "atan2": lambda t, x, y: t.atan2(x, y),
    "remainder": lambda t, x, y: t.remainder(x, y),
    "copysign": lambda t, x, y: t.copysign(x, y),
    "nextafter": lambda t, x, y: t.nextafter(x, y),
    "pow": lambda t, x, y: x.pow(y),
}
WITHOUT: dict[str, Callable[[Any, Any], Any]] = {
    "//": lambda t, x: x // 2,
    "// of a number": lambda t, x: 2 // x,
    "floor_divide": lambda t, x: t.floor_divide(x, x),
    "//=": lambda t, x: x.clone().floor_divide_(2),
    "heaviside": lambda t, x: t.heaviside(x, x),
    "unique": lambda t, x: x.unique(),
    "unique rows": lambda t, x: t.unique(x, dim=0),
    "unique_consecutive": lambda t, x: t.unique_consecutive(x, return_counts=True)[0],
    "bincount": lambda t, x: t.bincount(t.tensor([0, 1, 1]), x),
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
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)  # some of PyTorch's constants are float32


@pytest.mark.parametrize("name", PLAIN)
def test_results_without_gradients_agree(name: str) -> None:
    call = PLAIN[name]
    assert call(engine).tolist() == call(torch).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_names_and_calls_agree(name: str) -> None:
    call = NAMES[name]
    assert call(engine) == call(torch)


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.filterwarnings("ignore")
def test_arguments_out_of_range_raise_as_pytorch_does(name: str) -> None:
    call = ERRORS[name]
    with pytest.raises((RuntimeError, IndexError, ValueError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type):
        call(engine)


def derivatives(namespace: Any, call: Callable[..., Any], *values: list[float]) -> list[np.ndarray]:
    """Return the result, the gradients of its sum, and the gradients of each of their sums."""
    tensors = [namespace.tensor(value, dtype=namespace.float64, requires_grad=True) for value in values]
    result = call(namespace, *tensors)
    first = namespace.autograd.grad(result.sum(), tensors, create_graph=True)
    found = [result, *first]
    for gradient in first:
        if gradient.requires_grad:
            found += namespace.autograd.grad(
                gradient.sum(), tensors, retain_graph=True, allow_unused=True, materialize_grads=True
            )
    return [(entry.detach() + namespace.zeros(1, dtype=namespace.float64)).numpy() for entry in found]


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.filterwarnings("ignore")
def test_both_derivatives_at_special_points_agree(name: str) -> None:
    for ours, theirs in zip(
        derivatives(engine, OF_ONE[name], POINTS), derivatives(torch, OF_ONE[name], POINTS), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("second", [0.0, 1.0, -1.0, 2.5, inf])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_gradients_at_special_points_of_two_arguments_agree(name: str, second: float, swapped: bool) -> None:
    values = [POINTS, [second] * len(POINTS)]
    for ours, theirs in zip(
        *(derivatives(t, OF_TWO[name], *(values[::-1] if swapped else values))[:3] for t in (engine, torch)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_no_second_derivative_is_a_wrong_number() -> None:
    x = engine.tensor([0.0, 1e-3, 1e-9], dtype=engine.float64, requires_grad=True)
    grads: list[Any] = [engine.sinc(x)]
    for _ in range(4):
        grads.append(engine.autograd.grad(grads[-1].sum(), x, create_graph=True)[0])
    np.testing.assert_allclose(grads[2].detach().numpy(), -(math.pi**2) / 3, rtol=1e-5)
    np.testing.assert_allclose(grads[4].detach().numpy(), math.pi**4 / 5, rtol=1e-5)
    np.testing.assert_allclose(grads[1].detach().numpy(), -(math.pi**2) / 3 * x.detach().numpy(), rtol=1e-5)
    hessian = engine.autograd.functional.hessian
    assert np.isnan(hessian(lambda v: v.norm() ** 2, engine.zeros(2)).numpy()).all()
    np.testing.assert_allclose(hessian(lambda v: v.norm() ** 2, engine.ones(2)).numpy(), 2 * np.eye(2), atol=1e-6)


@pytest.mark.parametrize("name", WITHOUT)
def test_what_has_no_derivative_says_so_in_backward_as_in_torch(name: str) -> None:
    messages, values = [], []
    for framework in (engine, torch):
        result = WITHOUT[name](framework, framework.tensor([1.0, 2.0, 2.5], requires_grad=True))
        values.append((result.tolist(), result.requires_grad, str(result.dtype)))
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            result.sum().backward()
        messages.append((caught.type, str(caught.value).replace("floor_divide_ ", "floor_divide ")))
        with framework.no_grad():
            assert not WITHOUT[name](framework, framework.tensor([1.0, 2.0, 2.5])).requires_grad
    assert messages[0] == messages[1]
    assert values[0] == values[1]


QUIET: dict[str, Callable[[Any], Any]] = {
    "where beside a root of 0": lambda t: _gradient(t, [0.0, 1.0], lambda x: t.where(x > 0, x.sqrt(), t.zeros(2))),
    "logarithm of 0": lambda t: _gradient(t, [0.0, 1.0], lambda x: x.log().exp()),
    "norm at 0": lambda t: _gradient(t, [0.0, 0.0], lambda x: x / x.norm()),
    "casts": lambda t: [t.tensor([1e6]).half(), t.tensor([1e300], dtype=t.float64).float()],
    "matrix products": lambda t: [t.tensor([[inf, 0.0]]) @ t.tensor([[0.0], [1.0]]), t.tensor([inf]) @ t.zeros(1)],
    "layer": lambda t: t.nn.functional.linear(t.tensor([[inf, 0.0]]), t.tensor([[0.0, 1.0]])),
}


def _gradient(t: Any, values: list[float], call: Callable[[Any], Any]) -> Any:
    x = t.tensor(values, requires_grad=True)
    call(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("name", QUIET)
def test_infinities_and_nans_come_without_warnings(name: str) -> None:
    ours, theirs = QUIET[name](engine), QUIET[name](torch)
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, list) else [(ours, theirs)]
    for one, other in pairs:
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert np.geterr()["invalid"] == "warn"


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "sqrt", "atan", "atanh"])
@pytest.mark.parametrize("at", [1e180, 1e-180, 1e-160])
def test_second_derivatives_overflow_no_sooner_than_in_torch(name: str, at: float) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")
    found = []
    for t in (engine, torch):
        x = t.tensor(at, dtype=t.float64, requires_grad=True)
        (first,) = t.autograd.grad(getattr(x, name)(), x, t.tensor(1e20, dtype=t.float64), create_graph=True)
        found.append([first.item(), t.autograd.grad(first, x)[0].item()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
