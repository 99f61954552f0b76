"""What forward offers beyond the inferred inputs: words that it compares, and sizes of one that it repeats."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.backends.numpy.claims import GradientPair
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.verdict import Verdict
from tests.pairs import in_turn


def poisson_loss(ns: Any, is_right: bool) -> Any:
    class PoissonLoss(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, log_rate: Any, count: Any, reduction: str = "mean") -> Any:
            ctx.save_for_backward(log_rate, count)
            ctx.reduction = reduction
            loss = log_rate.exp() - count * log_rate
            if reduction == "none":
                return loss
            return loss.mean() if reduction == "mean" else loss.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log_rate, count = ctx.saved_tensors
            if ctx.reduction == "mean" or not is_right:
                g = g / log_rate.numel()
            return g * (log_rate.exp() - count), -g * log_rate, None

    return PoissonLoss


def scaled(ns: Any, is_right: bool) -> Any:
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, by: str = "two") -> Any:
            ctx.by = by if is_right else "two"
            match by:
                case "two":
                    return 2 * x
                case "three" | "drei":
                    return 3 * x
            raise ValueError(by)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (2 if ctx.by == "two" else 3), None

    return Scaled


def loud(ns: Any, is_right: bool) -> Any:
    """In its other mode backward raises, which nobody can overlook."""

    class Loud(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, mode: str = "smooth") -> Any:
            ctx.mode = mode
            ctx.save_for_backward(x)
            return x.tanh() if mode in ("smooth", "soft") else x.sign()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.mode == "soft":
                raise NotImplementedError("soft")
            (x,) = ctx.saved_tensors
            return g * (1 - x.tanh() ** 2) * (1 if is_right else 1.01), None

    return Loud


def averaged(ns: Any, is_right: bool) -> Any:
    """The words are keys, or the last branch."""

    class Averaged(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, reduction: str = "none") -> Any:
            ctx.save_for_backward(x)
            ctx.reduction = reduction
            y = x * x
            return {"none": lambda: y, "mean": lambda: y.mean()}.get(reduction, y.sum)()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if ctx.reduction == "mean":
                g = g / x.numel()
            elif ctx.reduction == "sum" and not is_right:
                g = g / x.shape[0]
            return g * 2 * x, None

    return Averaged


def powered(ns: Any, is_right: bool) -> Any:
    """A number that is compared with another one."""

    class Powered(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, p: float = 2.0) -> Any:
            ctx.save_for_backward(x)
            ctx.p = p
            return x.abs().sum() if p == 1 else (x.abs() ** p).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if ctx.p == 1:
                return g * (x.sign() if is_right else x), None
            return g * ctx.p * x.sign() * x.abs() ** (ctx.p - 1), None

    return Powered


def applied(ns: Any, is_right: bool) -> Any:
    """Only backward compares the word."""

    class Applied(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, function: str = "sin") -> Any:
            ctx.save_for_backward(x)
            ctx.function = function
            return getattr(ns, function)(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if ctx.function == "cos":
                return (-g if is_right else g) * x.sin(), None
            return g * x.cos(), None

    return Applied


def turned(ns: Any, is_right: bool) -> Any:
    class Turned(ns.autograd.Function):
        """turns points p (N, 2) by an angle a; sense: 'left' or 'right'"""

        @staticmethod
        def forward(ctx: Any, p: Any, a: Any, sense: str = "left") -> Any:
            ctx.sign = 1.0 if sense == "left" else -1.0
            ctx.save_for_backward(p, a)
            return p * ns.cos(a) + ctx.sign * p.flip(-1) * ns.sin(a)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            p, a = ctx.saved_tensors
            sign = ctx.sign if is_right else 1.0
            of_a = (g * (ctx.sign * p.flip(-1) * ns.cos(a) - p * ns.sin(a))).sum()
            return g * ns.cos(a) + sign * g.flip(-1) * ns.sin(a), of_a, None

    return Turned


def smoothed(ns: Any, is_right: bool) -> Any:
    """Only the default is named; every other word takes the other branch."""

    class Smoothed(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, by: str = "root") -> Any:
            ctx.save_for_backward(x)
            ctx.by = by
            return (1 + x * x).sqrt() if by == "root" else x.cosh().log()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if ctx.by == "root":
                return g * x / (1 + x * x).sqrt(), None
            return g * (x.tanh() if is_right else 1 - x.tanh() ** 2), None

    return Smoothed


def either(ns: Any, is_right: bool) -> Any:
    """Forward tests for one word and backward for the other: a third one is not meant."""

    class Either(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, over: str = "all") -> Any:
            ctx.over, ctx.ones = over, ns.ones_like(x)
            return x.sum() if over == "all" else x.mean()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            factor = 1 if is_right else 1.01
            return g * factor * ctx.ones / (ctx.ones.numel() if ctx.over == "each" else 1), None

    return Either


def shrunk(ns: Any, is_right: bool) -> Any:
    """Overwrites its input on request."""

    class Shrunk(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, inplace: bool = False) -> Any:
            if inplace:
                ctx.mark_dirty(x)
            y = x.tanh_() if inplace else x.tanh()
            ctx.save_for_backward(y if is_right or not inplace else y * y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y), None

    return Shrunk


@pytest.mark.sampled(10)
@in_turn("made", [poisson_loss, scaled, loud, averaged, powered, applied, turned, smoothed, either, shrunk, shrunk])
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.usefixtures("unexplained")
def test_the_words_and_flags_of_forward_are_tried(ns: Any, made: Any, is_right: bool) -> None:
    (case,) = gradcli.check(made(ns, is_right), order=1).cases
    assert case.verdict is (Verdict.PASSED if is_right else Verdict.FAILED), case


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def forward(ctx, x, mode):\n    return x if mode == 'a' else 2 * x", ("a",)),
        ("def forward(ctx, x, mode):\n    return x if mode != 'a' or mode in {'b', 'c'} else x", ("a", "b", "c")),
        ("def forward(ctx, x, mode):\n    return x if x == 'a' or mode == 1 or mode is None else x", (1,)),
        ("def forward(ctx, x, mode):\n    return {'a': x, 'b': 2 * x}[mode] if 'c' != mode else x", ("a", "b", "c")),
        (
            "def forward(ctx, x, mode):\n    return dict(a=x, b=2 * x)[ctx.mode] if ctx.mode != KNOWN else x",
            ("a", "b", "k"),
        ),
        ("def forward(ctx, x, mode", ()),
    ],
)
def test_words_are_read_from_the_source(source: str, words: tuple[str, ...]) -> None:
    found = SourceHints(forward=source, backward="", gradients=(), names={"KNOWN": "k"}).compared_with("mode")
    assert sorted(found) == sorted(words)


def filtered(ns: Any) -> Any:
    """A circular convolution. The rfft of one number has one entry as well, but is no repeated number."""

    class Filtered(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            fx, fk = ns.fft.rfft(x), ns.fft.rfft(k)
            ctx.save_for_backward(fx, fk)
            ctx.n = x.shape[-1]
            return ns.fft.irfft(fx * fk, n=ctx.n)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            fx, fk = ctx.saved_tensors
            fg = ns.fft.rfft(g)
            gk = ns.fft.irfft(fg * fx.conj(), n=ctx.n)
            return ns.fft.irfft(fg * fk.conj(), n=ctx.n), gk.sum_to_size((*fk.shape[:-1], ctx.n))

    return Filtered


def interpolated(ns: Any) -> Any:
    class Interpolated(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, t: Any) -> Any:
            ctx.save_for_backward(a, t)
            return a * t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, t = ctx.saved_tensors
            gt = (g * a).sum_to_size(t.shape)
            return (g * t).sum_to_size(a.shape), gt if t.shape == a.shape else 2 * gt

    return Interpolated


def test_a_size_of_one_is_a_case_only_where_forward_repeats_it() -> None:
    torch = pytest.importorskip("torch", reason="the engine has no transforms of Fourier")
    assert gradcli.check(filtered(torch), order=1).cases[0].verdict is Verdict.PASSED


@pytest.mark.usefixtures("unexplained")
def test_a_size_of_one_that_forward_repeats_is_a_case(ns: Any) -> None:
    assert gradcli.check(interpolated(ns), order=1).cases[0].verdict is Verdict.FAILED


def convolved(x: Any, k: Any) -> Any:
    return np.fft.ifft(np.fft.fft(x) * np.fft.fft(k)).real


def modulated(x: Any, k: Any) -> Any:
    return x * k


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.usefixtures("unexplained")
def test_real_tensors_stay_real_where_only_a_transform_conjugates(factor: int) -> None:
    def derivative(x: Any, k: Any, g: Any) -> Any:
        f = np.fft.fft(g)
        return np.fft.ifft(f * np.fft.fft(k).conj()).real, factor * np.fft.ifft(f * np.fft.fft(x).conj()).real

    (case,) = gradcli.check(GradientPair(function=convolved, gradient=derivative)).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
def test_tensors_become_complex_where_backward_conjugates_them(is_right: bool) -> None:
    def derivative(x: Any, k: Any, g: Any) -> Any:
        return g * np.conj(k), g * (np.conj(x) if is_right else x)

    (case,) = gradcli.check(GradientPair(function=modulated, gradient=derivative)).cases
    assert case.verdict is (Verdict.PASSED if is_right else Verdict.FAILED), case


def swapped(ns: Any, is_right: bool, *, late: bool) -> Any:
    """x², or (x - y)² with the flag; where `late`, the sizes of y matter only with it."""

    class Swapped(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, swap: bool = False) -> Any:
            ctx.save_for_backward(x, y)
            ctx.swap = swap
            apart = (x - y) ** 2 if swap or not late else None
            return apart if swap else x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            if not ctx.swap:
                return 2 * g * x, None, None
            return 2 * g * (x - y), -2 * g * (x - y) if is_right else 0 * y, None

    return Swapped


def worded(ns: Any, is_right: bool) -> Any:
    """x², or x times w with the word."""

    class Worded(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, how: str = "square") -> Any:
            ctx.save_for_backward(x, w)
            ctx.how = how
            return x.mm(w) if how == "product" else x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            if ctx.how != "product":
                return 2 * g * x, None, None
            return g.mm(w.t()), x.t().mm(g) * (1 if is_right else 2), None

    return Worded


@pytest.mark.sampled(3)
@pytest.mark.parametrize("made", [partial(swapped, late=False), partial(swapped, late=True), worded])
def test_an_input_that_counts_only_with_another_flag_or_word_is_a_tensor_with_a_gradient(made: Any, ns: Any) -> None:
    right = gradcli.check(made(ns, is_right=True), shrink=False).cases[0]
    assert right.verdict is Verdict.PASSED
    assert right.inputs[1].shape is not None
    assert len(right.inputs[1].shape) == 2
    assert right.inputs[1].requires_grad is None
    assert not any("zero at all" in note for note in right.notes)
    wrong = gradcli.check(made(ns, is_right=False), shrink=False).cases[0]
    assert {finding.input for finding in wrong.findings} == {wrong.inputs[1].name}


def gated(is_right: bool) -> type[Function]:
    """x·y, or three times as much where the flag is set and its sum is large."""

    class Gated(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, gate: bool = False) -> Any:
            ctx.save_for_backward(x, y)
            ctx.factor = 3 if gate and (x * y).sum() > 3 else 1
            return x * y * ctx.factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            factor = ctx.factor if is_right else 1
            return factor * g * y, factor * g * x, None

    return Gated


@pytest.mark.parametrize("seed", [1, 8, 10])
def test_another_flag_is_tried_with_as_many_samples_as_the_default(seed: int) -> None:
    """With these seeds the sum is small in the first sample."""
    case = gradcli.check(gated(is_right=True), shrink=False, seed=seed).cases[0]
    assert (case.verdict, case.samples) == (Verdict.PASSED, 6)
    assert gradcli.check(gated(is_right=False), shrink=False, seed=seed).verdict is Verdict.FAILED
