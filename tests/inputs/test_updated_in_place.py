"""Buffers that forward writes into, and that no output depends on, are inferred with what documentation says."""

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.backends.numpy.claims import GradientPair
from gradcli.verdict import Verdict


def centre(ns: Any, factor: float = 1, *, drops: bool = False, documentation: str = "") -> type:
    """x less its mean, which is also gathered in a buffer; backward has a factor, or lacks the mean."""

    class Centre(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, level: Any, momentum: float = 0.2) -> Any:
            mean = x.mean(0)
            level.mul_(1 - momentum).add_(mean.detach() * momentum)
            return (x - mean) * 2.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * 2.0 * (g if drops else g - g.mean(0)), None, None

    Centre.__doc__ = documentation
    return Centre


WORDS = [
    "x: (N, C); level: (C,), no gradient",
    "x: (N, C), level: (C,) without a gradient",
    "x, (N, C); level (C,)",
    "",
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("inherits", [False, True])
def test_a_right_gradient_passes(ns: Any, words: str, inherits: bool) -> None:
    base: Any = centre(ns, documentation=words)

    class Again(base):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return base.backward(ctx, g)

    (case,) = gradcli.check(Again if inherits else base, order=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)
    assert case.inputs[1].requires_grad is False
    if words:
        assert [spec.shape for spec in case.inputs] == [(3, 4), (4,)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("mistake", [{"factor": 1.01}, {"factor": -1}, {"drops": True}])
@pytest.mark.usefixtures("unexplained")
def test_a_wrong_gradient_fails(ns: Any, words: str, mistake: Any) -> None:
    (case,) = gradcli.check(centre(ns, **mistake, documentation=words), order=1, shrink=False).cases
    assert case.verdict is Verdict.FAILED, case.error
    assert {e.input for e in case.evidence if e.verdict is Verdict.FAILED} == {"x"}


def statistics(ns: Any, documentation: str, gradient: float) -> type:
    """A mean that an output depends on, with a gradient of its own if that is not 0; and a sum that is updated."""

    class Statistics(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, mean: Any, seen: Any) -> Any:
            made = (x - mean) ** 2
            ctx.save_for_backward(x, mean.clone())
            seen.add_(x.detach().sum(0))
            return made

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, mean = ctx.saved_tensors
            made = 2 * g * (x - mean)
            return made, -gradient * made.sum(0), None

    class Without(Statistics):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, mean = ctx.saved_tensors
            return 2 * g * (x - mean), None, None

    Statistics.__doc__ = documentation
    return Statistics if gradient else Without


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("words", "gradient", "verdict"),
    [
        ("x: (N, C), mean: (C,) no gradient, seen: (C,)", 0, Verdict.PASSED),
        ("x: (N, C), mean: (C,), seen: (C,)", 1, Verdict.PASSED),
        ("x: (N, C), mean: (C,), seen: (C,)", 1.01, Verdict.FAILED),
        ("x: (N, C), mean: (C,), seen: (C,)", 0, Verdict.FAILED),
    ],
)
def test_what_an_output_depends_on_needs_a_gradient(ns: Any, words: str, gradient: float, verdict: Verdict) -> None:
    (case,) = gradcli.check(statistics(ns, words, gradient), order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [spec.shape for spec in case.inputs] == [(3, 4), (4,), (4,)]


@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_in_numpy(factor: float, verdict: Verdict) -> None:
    def smoothed(x: Any, level: Any) -> Any:
        level += x.mean(0)
        return np.tanh(x)

    def gradient(x: Any, level: Any, g: Any) -> Any:
        return factor * g / np.cosh(x) ** 2, None

    pair = GradientPair(function=smoothed, gradient=gradient)
    (case,) = gradcli.check(pair, order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)


WRITES = {
    "augmented": "mean += 0.1 * (new - mean)",
    "method": "mean.lerp_(new, 0.1)",
    "view": "mean.data.mul_(0.9).add_(0.1 * new)",
    "subscript": "mean[:] = 0.9 * mean + 0.1 * new",
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_buffer_whose_old_values_an_output_depends_on_requires_no_gradient(
    ns: Any, write: str, factor: float, verdict: Verdict, tmp_path: Any
) -> None:
    name = ns.__name__
    path = tmp_path / "shifted.py"
    path.write_text(f"""
import {name} as ns
class Shift(ns.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean):
        old, new = mean.clone(), x.detach().mean(0)
        {WRITES[write]}
        return x - old
    @staticmethod
    def backward(ctx, g):
        return {factor} * g, None
""")
    (case,) = gradcli.check(f"{path}:Shift", order=1, shrink=False).cases
    assert case.verdict is verdict, case.error
    assert case.inputs[1].requires_grad is False


def test_what_backward_has_a_gradient_for_may_not_be_written_into(ns: Any) -> None:
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x.clone())
            y = x * w
            w.mul_(0.9)
            return y * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return None, g * x

    (case,) = gradcli.check(Scaled, order=1, shrink=False).cases
    assert case.verdict is Verdict.FAILED
    assert "mutates-input" in {finding.kind.value for finding in case.findings}


def observer(ns: Any, factor: float = 1, *, documentation: str = "") -> type:
    """x scaled by the range that two buffers without axes have after an update."""

    class Observer(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, lo: Any, hi: Any) -> Any:
            lo.copy_(ns.clamp(lo, max=-8.0))
            hi.copy_(ns.clamp(hi, min=8.0))
            ctx.width = (hi - lo).item()
            return (x - lo) / ctx.width

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g / ctx.width, None, None

    Observer.__doc__ = documentation
    return Observer


@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", ["lo scalar, hi scalar: buffers, no gradient; updated before use", ""])
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_buffers_without_axes(ns: Any, words: str, factor: float, verdict: Verdict) -> None:
    (case,) = gradcli.check(observer(ns, factor, documentation=words), order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [(spec.shape, spec.requires_grad) for spec in case.inputs[1:]] == [((), False)] * 2


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ["running_lo", "step", "x_seen"])
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_counter_of_any_name(name: str, factor: float, verdict: Verdict, tmp_path: Any, ns: Any) -> None:
    path = tmp_path / "counted.py"
    path.write_text(f"""
import {ns.__name__} as ns
class Counted(ns.autograd.Function):
    @staticmethod
    def forward(ctx, x, {name}):
        {name}.fill_(({name} + 1).item())
        return x * 3
    @staticmethod
    def backward(ctx, g):
        return {3 * factor} * g, None
""")
    (case,) = gradcli.check(f"{path}:Counted", order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert (case.inputs[1].shape, case.inputs[1].requires_grad) == ((), False)


def test_what_forward_adds_to_may_be_a_number(ns: Any) -> None:
    class Power(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: Any) -> Any:
            ctx.save_for_backward(x)
            n += 1
            ctx.n = n
            return x**n

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    (case,) = gradcli.check(Power, order=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)
    assert case.inputs[1].kind == "value"


@pytest.mark.sampled(1)
def test_the_flags_offered_for_a_buffer_give_a_tensor(ns: Any) -> None:
    class Refusing(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, lo: Any) -> Any:
            lo.copy_(x)
            raise ValueError("no")

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    (case,) = gradcli.check(Refusing, order=1, shrink=False).cases
    assert "-i x=3x4 -i lo=3x4,grad=false" in (case.error or "")
