"""Which conjugates say that inputs may be complex: those of what is real at real inputs."""

import sys
from typing import Any

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.inputs.hints.conjugates import conjugates_arguments
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.sources import tree_of
from gradcli.verdict import Verdict

SPECTRUM = (
    "def forward(ctx, x, k):\n    X = ns.fft.rfft(x)\n    ctx.save_for_backward(X, k)\n    {more}\n    return x * k"
)


def conj(q: Any) -> Any:
    return q * 2


def conjugate(x: Any) -> Any:
    return x.conj() if x.is_complex() else x


class Air:
    H = 8.4


NAMES = {"conj": conj, "conjugate": conjugate, "quaternions": sys.modules[__name__], "Air": Air, "air": Air()}


@pytest.mark.parametrize(
    ("more", "backward", "minds"),
    [
        ("pass", "X, k = ctx.saved_tensors\nreturn g * k.conj()", True),
        ("pass", "X, k = ctx.saved_tensors\nreturn g * X.conj()", False),
        ("pass", "return g * ctx.saved_tensors[0].conj()", False),
        ("ctx.spectrum = 2 * X", "return g * ctx.spectrum.conj()", False),
        ("ctx.k = k", "return g * ctx.k.conj()", True),
        ("return X", "def backward(ctx, g):\n    return g.conj()", False),
        ("pass", "def backward(ctx, g):\n    return g.conj()", True),
        ("pass", "return g / ns.fft.fft(k).conj()", False),
        ("pass", "return ns.conj(ns.exp(1j * k)) * g", False),
        ("pass", "return ns.conj(ns.exp(k)) * g", True),
        ("pass", "return ns.fft.irfft(g).conj()", True),
        ("pass", "return ns.polar(k, k).mH @ g", False),
        ("pass", "return g * conj(k)", False),
        ("pass", "return g * quaternions.conj(k)", False),
        ("pass", "return g * conjugate(k)", True),
        ("pass", "def backward(ctx, g):\n    def conj(a):\n        return a * 2\n    return conj(g)", False),
        ("pass", "return g @ k.H", True),
        ("pass", "return g / Air.H", False),
        ("pass", "return g / air.H", False),
        ("pass", "return g / quaternions.Air.H", False),
        ("pass", "def backward(cls, ctx, g):\n    return g / cls.H", False),
        ("return ns.conj(k)", "return g", True),
        ("return conj(k)", "return g", False),
        ("return k.imag", "return g", True),
        ("return X.imag", "return g", False),
    ],
)
def test_what_says_that_inputs_may_be_complex(more: str, backward: str, minds: bool) -> None:
    forward = SPECTRUM.format(more=more)
    tree = tree_of(forward)
    assert tree is not None
    own = conjugates_arguments(tree, ("x", "k"), NAMES)
    hints = SourceHints(forward=forward, backward=backward, gradients=(), conjugated=own, names=NAMES)
    assert hints.minds_complex is minds


def product_of(ns: Any, factor: float) -> type:
    def conj(pairs: Any) -> Any:
        return ns.stack([pairs[..., 0], -pairs[..., 1]], -1)

    def product(a: Any, b: Any) -> Any:
        real = a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1]
        return ns.stack([real, a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]], -1)

    class Product(ns.autograd.Function):
        """Product of complex numbers stored as pairs, p, q: (..., 2)"""

        @staticmethod
        def forward(ctx: Any, p: Any, q: Any) -> Any:
            ctx.save_for_backward(p, q)
            return product(p, q)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            p, q = ctx.saved_tensors
            return product(g, conj(q)), factor * product(g, conj(p))

    return Product


@pytest.mark.sampled(3)
@pytest.mark.parametrize("factor", [1, 1.01, 0])
def test_a_helper_that_is_called_conj(ns: Any, factor: float) -> None:
    (case,) = gradcli.check(product_of(ns, factor), order=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [f.input for f in case.findings] == ([] if factor == 1 else ["q"])


def pressure_of(ns: Any, factor: float) -> type:
    class Pressure(ns.autograd.Function):
        P, H = 101.3, 8.4

        @staticmethod
        def forward(ctx: Any, height: Any) -> Any:
            p = Pressure.P * ns.exp(-height / Pressure.H)
            ctx.save_for_backward(p)
            return p

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (p,) = ctx.saved_tensors
            return -factor * g * p / Pressure.H

    return Pressure


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_constant_of_a_class_is_no_adjoint(ns: Any, factor: float) -> None:
    (case,) = gradcli.check(pressure_of(ns, factor), order=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert FindingKind.MISSING_CONJUGATE not in {f.kind for f in case.findings}


def circulant_of(ns: Any, factor: float) -> type:
    class Solution(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, c: Any, b: Any) -> Any:
            # c (n,) the first column, b (B, n)
            C = ns.fft.fft(c)
            x = ns.fft.ifft(ns.fft.fft(b) / C).real
            ctx.save_for_backward(C, x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            C, x = ctx.saved_tensors
            y = ns.fft.fft(g) / C.conj()
            return -factor * ns.fft.ifft((y * ns.fft.fft(x).conj()).sum(0)).real, ns.fft.ifft(y).real

    return Solution


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_transform_of_real_numbers(factor: float) -> None:
    torch = pytest.importorskip("torch")
    (case,) = gradcli.check(circulant_of(torch, factor), order=1, shrink=False).cases
    assert [spec.dtype for spec in case.inputs] == [None, None]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {f.input for f in case.findings} == (set() if factor == 1 else {"c"})


def test_a_failure_at_complex_inputs_names_them() -> None:
    torch = pytest.importorskip("torch")

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y.conj(), g * x

    (case,) = gradcli.check(Product, order=1, shrink=False).cases
    assert [f.kind for f in case.findings] == [FindingKind.MISSING_CONJUGATE]
    assert any("-i x=3x4,dtype=complex128 -i y=3x4,dtype=complex128" in note for note in case.notes)
