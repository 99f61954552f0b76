"""Arguments without a gradient where documentation lists those that have one, or a comment in backward says so."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.prose.differentiated import undifferentiated
from gradcli.verdict import Verdict

NAMES = ("x", "w", "y")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Only x gets a gradient.", {"w", "y"}),
        ("only x and w get a gradient", {"y"}),
        ("gradients w.r.t. x and w only", {"y"}),
        ("Differentiable with respect to `x`, `w` only.", {"y"}),
        ("gradients are computed only for x", {"w", "y"}),
        ("only the gradient for the x and the w is returned", {"y"}),
        ("only x and w are trained", {"y"}),
        ("the spectrum of y; we only fit x and the w", {"y"}),
        ("x, w: (N,) parameters\ny: (N,) data\nDifferentiable with respect to the parameters only.", {"y"}),
        ("Differentiable with respect to the parameters only.", set()),
        ("gradient w.r.t. x and w (the mesh is fixed)", {"y"}),
        ("Pathwise derivative with respect to x and w.", {"y"}),
        ("Gradients with respect to x and w.", set()),
        ("The gradient with respect to x is 2 x.", set()),
        ("Gradient w.r.t. x:\n2 x", set()),
        ("differentiable only for x > 0", set()),
        ("only x is differentiable at 0", set()),
        ("a gradient for x only where y is set", set()),
        ("gradients only for positive x", set()),
    ],
)
def test_lists_of_those_with_a_gradient(text: str, found: set[str]) -> None:
    assert undifferentiated(NAMES, "", text, "") == found
    assert undifferentiated(NAMES, "", text, "", numbers={"y"}) == found - {"y"}


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("no gradient for y", {"y"}),
        ("no gradient for the y", {"y"}),
        ("y: no gradient", {"y"}),
        ("y not differentiated", {"y"}),
        ("only x and w get a gradient", {"y"}),
        ("gradient w.r.t. x", set()),
        ("gradient w.r.t. x (y is fixed)", set()),
    ],
)
def test_comments_in_backward(comment: str, found: set[str]) -> None:
    backward = f"def backward(ctx, g):\n    # {comment}\n    return g, g, None\n"
    assert undifferentiated(NAMES, "", "", backward) == found


def scaled(ns: Any, documentation: str, factor: float) -> type:
    class Scaled(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, scale: Any, draws: Any) -> Any:
            ctx.save_for_backward(scale, draws)
            return scale.exp() * (draws - 0.5)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            scale, draws = ctx.saved_tensors
            return factor * g * scale.exp() * (draws - 0.5), None

    return Scaled


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize(
    "text",
    [
        "Only scale gets a gradient.",
        "scale (N, D), draws uniform in (0, 1), not differentiated",
        "centred noise, draws uniform, not differentiated",
        "scaled noise, draws uniform noise in (0,1) (no gradient)",
        "scale (N, D), draws: (N, D) [buffer]",
    ],
)
def test_what_is_left_out_needs_no_gradient(ns: Any, text: str, factor: float) -> None:
    (case,) = gradcli.check(scaled(ns, text, factor), order=1, shrink=False, only=("gradient",)).cases
    assert [spec.requires_grad for spec in case.inputs] == [None, False]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"scale"})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text", ["Gradient with respect to scale.", "draws uniform in (0, 1)", "scale not differentiated"]
)
def test_another_missing_gradient_fails(ns: Any, text: str) -> None:
    (case,) = gradcli.check(scaled(ns, text, 1), order=1, shrink=False, only=("gradient",)).cases
    assert {finding.input for finding in case.findings} == {"draws"}


def correlation(ns: Any, factor: float) -> type:
    class Correlation(ns.autograd.Function):
        """signal (T,), shift (), rate ()"""

        @staticmethod
        def forward(ctx: Any, signal: Any, shift: Any, rate: Any) -> Any:
            ctx.save_for_backward(signal, shift, rate)
            return (signal * (shift + rate * signal).cos()).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            signal, shift, rate = ctx.saved_tensors
            inner = -signal * (shift + rate * signal).sin()
            # no gradient for the signal
            return None, g * inner.sum(), factor * g * (signal * inner).sum()

    return Correlation


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_comment_in_backward_counts(ns: Any, factor: float) -> None:
    (case,) = gradcli.check(correlation(ns, factor), order=1, shrink=False, only=("gradient",)).cases
    assert [(spec.shape, spec.requires_grad) for spec in case.inputs] == [((3,), False), ((), None), ((), None)]
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"rate"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The prior is frozen.", {"prior_mean"}),
        ("matches a frozen prior", {"prior_mean"}),
        ("the prior means are detached", {"prior_mean"}),
        ("the prior gets no gradient", {"prior_mean"}),
        ("frozen base weight. q (N, D) W (K, D)", {"W"}),
        ("the weights are fixed", {"W"}),
        ("if the prior is fixed", set()),
        ("the prior is fixed to one in each row", set()),
        ("the mean is frozen", set()),
        ("the query is frozen", set()),
        ("the number of steps is fixed", set()),
        ("a fixed-point iteration; the weight is fixed-point", set()),
    ],
)
def test_nouns_that_are_frozen(text: str, found: set[str]) -> None:
    names = ("q", "query_mean", "prior_mean", "W", "n_steps")
    none = ("prior_mean", "W", "n_steps")
    assert undifferentiated(names, "", text, "", numbers={"n_steps"}, none=none) == found


def adapted(ns: Any, documentation: str, factor: float) -> type:
    class Adapted(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, h: Any, K: Any, gain: Any) -> Any:
            ctx.save_for_backward(h, K, gain)
            return (h @ K) * gain

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            h, kernel, gain = ctx.saved_tensors
            return (g * gain) @ kernel.T, None, factor * (g * (h @ kernel)).sum(0)

    return Adapted


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "factor", "wrong"),
    [
        ("frozen dense kernel. h (N, D)  K (D, M)  gain (M,)", 1, set()),
        ("frozen dense kernel. h (N, D)  K (D, M)  gain (M,)", 1.01, {"gain"}),
        ("h (N, D)  K (D, M)  gain (M,). The gain is frozen.", 1, {"K"}),
        ("dense kernel. h (N, D)  K (D, M)  gain (M,)", 1, {"K"}),
    ],
)
def test_a_frozen_noun_needs_no_gradient(ns: Any, text: str, factor: float, wrong: set[str]) -> None:
    (case,) = gradcli.check(adapted(ns, text, factor), order=1, shrink=False, only=("gradient",)).cases
    assert {finding.input for finding in case.findings} == wrong
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("w: (N,) step sizes and y: (N,) depths, without gradient", {"w", "y"}),
        ("x: (N,), w: (N,) step sizes, y: (N,) depths, both without gradient", {"w", "y"}),
        ("w (N,) step sizes and y (N,) depths, not differentiated", {"w", "y"}),
        ("w: (N,) step sizes, y: (N,) depths, without gradient", set()),
        ("w: (N,) step sizes; y: (N,) depths, without gradient", set()),
    ],
)
def test_what_closes_a_list_is_said_of_both(text: str, found: set[str]) -> None:
    assert undifferentiated(NAMES, "", text, "", none={"w", "y"}) == found
    assert undifferentiated(NAMES, "", text, "", none={"y"}) == set()


def rendered(ns: Any, factor: float) -> type:
    class Rendered(ns.autograd.Function):
        """Density times length and depth. x: (N,); w: (N,) step sizes and y: (N,) depths, without gradient."""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, y: Any) -> Any:
            ctx.save_for_backward(w, y)
            return (x * w * y).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            w, y = ctx.saved_tensors
            return factor * g * w * y, None, None

    return Rendered


@pytest.mark.parametrize("factor", [1, 1.01])
def test_two_arguments_of_a_list_need_no_gradient(ns: Any, factor: float) -> None:
    (case,) = gradcli.check(rendered(ns, factor), order=1, shrink=False, only=("gradient",)).cases
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"x"})
