"""Arguments that documentation says to get no gradient are tensors without one."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("y: observed counts (no gradient), x: same shape", {"y"}),
        ("y (N,): counts, not differentiated; x: (N,)", {"y"}),
        ("x: (N, 4)\ny (Tensor): (N, 4) boxes (x1, y1, x2, y2), no gradient", {"y"}),
        ("y (no gradient), x (N,)", {"y"}),
        ("x, y: (N,). y is not differentiable", {"y"}),
        ("x, y: (N,). y is treated as a constant", {"y"}),
        ("x, y: (N,). No gradient for y and m.", {"y", "m"}),
        ("x, y: (N,). y gets no gradient.", {"y"}),
        ("x, y: (N,). y, m get no gradient.", {"y", "m"}),
        ("y: does not require a gradient", {"y"}),
        ("y: constant, requires_grad=False", {"y"}),
        ("logits of x (N, C) and keys y (N, C), no gradient, that replace the first rows", {"y"}),
        ("logits of x (N, C) against a queue y (K, C) that is not differentiated; m (N,)", {"y"}),
        ("the distance of x to y, without gradient of m", set()),
        ("x is not differentiated with respect to m", {"m"}),
        ("y: (N,), not differentiable at 0", set()),
        ("x: (N,), no gradient clipping", set()),
        ("x: (N,), the gradient is that of y", set()),
        ("x (N, k); y (m, k) frozen, no gradient; m (N, m)", {"y"}),
        ("x (N, k), y (m, k) frozen, m (N, m)", {"y"}),
        ("Mean x moved by uniform noise y", {"y"}),
        ("y: standard normal noise (N,), x: (N,)", {"y"}),
        ("x (N,), y (N,) in (0, 1) noise; m (N,)", {"y"}),
        ("x (N,), y (N,) noise in (0, 1)", {"y"}),
        ("x (N,), y (N,) in (0, 1) frozen; m (N,)", {"y"}),
        ("x (N,), y (N,) in (0, 1) noise level", set()),
        ("y: noise level", set()),
        ("x (N,), y uniform in (0, 1), not differentiated", {"y"}),
        ("x, y ~ U(0.5, 1), not differentiated", {"x", "y"}),
        ("x scaled by y, not differentiated", {"y"}),
        ("x outside the box, no gradient", set()),
        ("y: bin edges (N,) [buffer]", {"y"}),
        ("y: (N,), buffer length", set()),
        ("y, m: (N,) stored moments, positive m, no gradient; x: (N,)", {"y", "m"}),
        ("y, m: (N,). m, no gradient", {"m"}),
        ("y, m: (N,), m gets no gradient", {"m"}),
        ("x: (N,) added to y (N,), no gradient", {"y"}),
        ("y and m are frozen moments of shape (N,)", {"y", "m"}),
        ("y (N,) is a detached copy of x", {"y"}),
        ("y, m: running statistics (N,)", {"y", "m"}),
        ("y: fixed embeddings (N, D)", {"y"}),
        ("y: the output of frozen layers (N, D)", set()),
        ("x (N,), y (N, K) centres of bins, no gradient, m scalar", {"y"}),
        ("x (N,), y (N,) clipped weights (no gradient)", {"y"}),
        ("x (N,); y [N] weights, not differentiated", {"y"}),
        ("x (N,), y (N,) weights where positive, no gradient", set()),
    ],
)
def test_what_says_so(text: str, constants: set[str]) -> None:
    shapes = documented_shapes(("x", "y", "m"), "", text)
    assert documented_values(("x", "y", "m"), "", text, shapes=shapes).constants == constants


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("y is a constant.", {"y"}),
        ("x / y, y and m are the vectors of the last step (constants)", {"y", "m"}),
        ("x / y, y and m are held fixed", {"y", "m"}),
        ("The weight y is frozen", {"y"}),
        ("x @ y with a frozen y", {"y"}),
        ("y: fixed random projection (D, K)", {"y"}),
        ("y: ground-truth boxes, x: predicted boxes", {"y"}),
        ("y, m constants; x (N, C)", {"y", "m"}),
        ("y: the spring constant", set()),
        ("the fixed point x of y", set()),
        ("x (N, C) fixed point of y", set()),
        ("y: constant of proportionality", set()),
        ("piecewise constant x", set()),
        ("the constant term y of x", set()),
        ("if y is a constant", set()),
    ],
)
def test_what_calls_an_argument_constant(text: str, fixed: set[str]) -> None:
    shapes = documented_shapes(("x", "y", "m"), "", text)
    assert documented_values(("x", "y", "m"), "", text, shapes=shapes).fixed == fixed


def nll_of(ns: Any, documentation: str, factor: float) -> type:
    class Loss(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, y: Any, log_mu: Any) -> Any:
            ctx.save_for_backward(y, log_mu)
            return (log_mu.exp() - y * log_mu).mean()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, log_mu = ctx.saved_tensors
            return None, factor * g * (log_mu.exp() - y) / y.numel()

    return Loss


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01, 0])
@pytest.mark.parametrize(
    "text",
    [
        "y: observed counts (no gradient), log_mu: same shape",
        "y (N, K) frozen, no gradient; log_mu (N, K)",
        "y and the mean's logarithm log_mu; y is a constant",
        "exp(log_mu) against noise y",
        "log_mu (N, K), y (N, K) in (0, 4) noise; compared",
    ],
)
def test_a_documented_constant_needs_no_gradient(ns: Any, text: str, factor: float) -> None:
    (case,) = gradcli.check(nll_of(ns, text, factor), order=1, shrink=False).cases
    assert case.inputs[0].requires_grad is False
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {f.input for f in case.findings} == (set() if factor == 1 else {"log_mu"})


def test_without_these_words_the_gradient_is_missing(ns: Any) -> None:
    (case,) = gradcli.check(nll_of(ns, "y: observed counts", 1), order=1, shrink=False).cases
    assert {f.input for f in case.findings} == {"y"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x (N, D); centre (D,), spread (D,) stored moments, no gradient", set()),
        ("x (N, D); centre (D,), spread (D,) stored moment, no gradient", {"centre"}),
        ("x (N, D), centre (D,), spread (D,) stored moments, no gradient", {"centre"}),
    ],
)
def test_one_noun_for_several_with_their_shapes(ns: Any, text: str, wrong: set[str]) -> None:
    (case,) = gradcli.check(whitened(ns, text, 1), order=1, shrink=False).cases
    assert {finding.input for finding in case.findings} == wrong


def whitened(ns: Any, documentation: str, factor: float) -> type:
    class Whitened(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, x: Any, centre: Any, spread: Any) -> Any:
            rate = 1 / (spread * spread + 0.1)
            ctx.save_for_backward(rate)
            return (x - centre) * rate

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (rate,) = ctx.saved_tensors
            return factor * g * rate, None, None

    return Whitened


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("text", "factor", "wrong"),
    [
        ("centre, spread: (D,) stored moments, positive spread, no gradient", 1, set()),
        ("centre and spread are frozen moments of shape (D,)", 1, set()),
        ("centre and spread are frozen moments of shape (D,)", 1.01, {"x"}),
        ("centre, spread: (D,). spread gets no gradient", 1, {"centre"}),
        ("centre, spread: moments of shape (D,)", 1, {"centre", "spread"}),
    ],
)
def test_several_constants(ns: Any, text: str, factor: float, wrong: set[str]) -> None:
    (case,) = gradcli.check(whitened(ns, text, factor), order=1, shrink=False).cases
    assert {finding.input for finding in case.findings} == wrong
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED)
