"""Mistakes at zeros alone: backward divides zero by zero, or is as wrong as autodiff; points where no slope exists."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the Functions are PyTorch's as well as the engine's")

import numpy as np
import torch

import gradcli
from gradcli import engine
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

SOME, NONE = [1.0, 0.0, -2.0], [0.0, 0.0, 0.0]
FLAT = {
    "x |x|": (lambda ns, x: x * x.abs(), lambda ns, g, x: g * (x.abs() + x * x / x.abs()), SOME),
    "|x| to 1.5": (lambda ns, x: x.abs() ** 1.5, lambda ns, g, x: g * 1.5 * x.abs() ** 1.5 / x, SOME),
    "x tanh x": (
        lambda ns, x: x * ns.tanh(x),
        lambda ns, g, x: g * x * ns.tanh(x) * (1 / x + (1 - ns.tanh(x) ** 2) / ns.tanh(x)),
        SOME,
    ),
    "squared norm": (lambda ns, x: (x * x).sum(), lambda ns, g, x: g * 2 * x * (x / x), NONE),
    "cube of the norm": (
        lambda ns, x: (x * x).sum() ** 1.5,
        lambda ns, g, x: g * 3 * (x * x).sum() ** 1.5 * x / (x * x).sum(),
        NONE,
    ),
    "products of pairs, two factors zero": (
        lambda ns, x: x[:2] * x[2:],
        lambda ns, g, x: ns.cat([g, g]) * ns.cat([x[:2] * x[2:]] * 2) / x,
        [2.0, 0.0, -1.5, 0.0],
    ),
    "product of all": (
        lambda ns, x: ns.stack([x[0] * x[1] * x[2] * x[3], x[0]]),
        lambda ns, g, x: g[0] * x[0] * x[1] * x[2] * x[3] / x + g[1] * ns.tensor([1.0, 0.0, 0.0, 0.0], dtype=x.dtype),
        [1.5, 0.0, -2.0, 0.0],
    ),
    "Huber": (
        lambda ns, x: ns.where(x.abs() < 1.5, x * x / 2, 1.5 * x.abs() - 1.125),
        lambda ns, g, x: g * ns.where(x.abs() < 1.5, x * x / x, 1.5 * x / x.abs()),
        SOME,
    ),
}
"""forward, a backward that is NaN at zero, and the point."""
STEEP = {
    "root of |x|": (lambda ns, x: x.abs() ** 0.5, lambda ns, g, x: g * 0.5 * x.abs() ** 0.5 / x, SOME),
    "root of x": (lambda ns, x: x**0.5, lambda ns, g, x: g * 0.5 / x**0.5, [1.0, 0.0, 2.0]),
    "x log |x|": (
        lambda ns, x: ns.where(x == 0, 0 * x, x * ns.log(x.abs() + (x == 0))),
        lambda ns, g, x: g * (ns.log(x.abs()) + x / x),
        SOME,
    ),
}
"""The same where slopes are infinite."""
PLACES = (torch, engine)


def evidence_of(ns, forward, backward, point, *, mended):
    class AtZero(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(ns, x.detach())

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            found = backward(ns, g, x)
            return ns.where(x == 0, 0 * x, found) if mended else found

    x = ns.tensor(np.array(point), requires_grad=True)
    with np.errstate(all="ignore"):
        report = gradcli.check(AtZero, (x,), order=1, seed=4, shrink=False, only=("gradient",))
    return report.cases[0]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("ns", PLACES, ids=["torch", "engine"])
@pytest.mark.parametrize("name", FLAT)
def test_nan_where_the_slope_is_zero_fails_and_zero_passes(name, ns) -> None:
    wrong = evidence_of(ns, *FLAT[name], mended=False)
    assert wrong.verdict is Verdict.FAILED
    assert {f.kind for f in wrong.findings} == {FindingKind.NON_FINITE_GRADIENT}
    assert evidence_of(ns, *FLAT[name], mended=True).verdict is Verdict.PASSED


@pytest.mark.parametrize("ns", PLACES, ids=["torch", "engine"])
@pytest.mark.parametrize("name", STEEP)
def test_nan_where_there_is_no_slope_is_told_and_no_failure(name, ns) -> None:
    case = evidence_of(ns, *STEEP[name], mended=False)
    assert case.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE)
    (evidence,) = (e for e in case.evidence if e.check == "gradient")
    assert "but forward has no derivative here" in str(evidence.note)


def turned(ns, x):
    """Each row x becomes x sin|x| / |x|, with its derivative."""
    squares = (x * x).sum(-1, keepdim=True)
    lengths = ns.where(squares > 0, squares, 1 + 0 * squares).sqrt()
    return x * ns.where(squares > 0, ns.sin(lengths) / lengths, 1 + 0 * squares)


def of_turned(ns, x, g, mended):
    squares = (x * x).sum(-1, keepdim=True)
    safe = ns.where(squares > 0, squares, 1 + 0 * squares) if mended else squares
    lengths = safe.sqrt()
    ratio, change = ns.sin(lengths) / lengths, (ns.cos(lengths) - ns.sin(lengths) / lengths) / safe
    if mended:
        ratio = ns.where(squares > 0, ratio, 1 + 0 * squares)
    return g * ratio + x * change * (g * x).sum(-1, keepdim=True)


def sinc(ns, x):
    return ns.where(x == 0, 1 + 0 * x, ns.sin(x) / x)


def of_sinc(ns, x, g, mended):
    found = (x * ns.cos(x) - ns.sin(x)) / (x * x)
    return g * (ns.where(x == 0, 0 * x, found) if mended else found)


def parts(ns, x):
    """x itself as the sum of its positive and its negative part; autodiff gives it the slope 0 at zero."""
    return ns.sin(ns.where(x > 0, x, 0 * x) + ns.where(x < 0, x, 0 * x))


def of_parts(ns, x, g, mended):
    return g * ns.cos(x) * (1 if mended else (x != 0).to(x.dtype))


def within(ns, x):
    """The nearest point of the unit ball; autodiff and backward are NaN at its centre."""
    length = (x * x).sum().sqrt()
    return ns.where(length <= 1, x, x / length)


def of_within(ns, x, g, mended):
    length = (x * x).sum().sqrt()
    inside = g if mended else g + 0 * x / length
    return ns.where(length <= 1, inside, (g - x / length * (g * x / length).sum()) / length)


def unit(ns, x):
    """Each row divided by its length, or by a small number if that is larger: forward is finite at zero, and jumps."""
    lengths = (x * x).sum(-1, keepdim=True).sqrt()
    return x / ns.where(lengths > 1e-12, lengths, 1e-12 + 0 * lengths)


def of_unit(ns, x, g, mended):
    lengths = (x * x).sum(-1, keepdim=True).sqrt()
    rows = x / lengths
    return (g - rows * (g * rows).sum(-1, keepdim=True)) / lengths


@pytest.mark.sampled(12)
@pytest.mark.parametrize("ns", PLACES, ids=["torch", "engine"])
@pytest.mark.parametrize("mended", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize(
    ("forward", "backward", "shape", "outcome"),
    [
        (turned, of_turned, [3, 4], "failure"),
        (sinc, of_sinc, [5], "failure"),
        (parts, of_parts, [5], "failure"),
        (parts, of_parts, [4, 5], "failure"),
        (within, of_within, [4], "note"),
        (unit, of_unit, [3, 4], "nothing"),
    ],
    ids=["row of zeros", "zero, as autodiff", "parts", "many parts", "zeros, as autodiff", "a jump"],
)
@pytest.mark.usefixtures("unexplained")
def test_zeros_that_gradcli_tries(ns, forward, backward, shape, outcome, mended) -> None:
    class AtZeros(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(ns, x)

        @staticmethod
        def backward(ctx, g):
            return backward(ns, ctx.saved_tensors[0], g, mended)

    (case,) = gradcli.check(AtZeros, {"x": {"shape": shape}}, order=1, shrink=False, samples=1).cases
    fails = outcome == "failure" and not mended
    assert case.verdict is (Verdict.FAILED if fails else Verdict.PASSED)
    assert {e.check for e in case.evidence if e.verdict is Verdict.FAILED} == ({"other-inputs"} if fails else set())
    told = any("autodiff of forward's body is not finite there either" in note for note in case.notes)
    assert told is (outcome == "note" and not mended)


def product(ns, words, *, divides):
    """All partial products, with a gradient that divides by the entries or leaves one out at a time."""

    class Products(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if x.dim() != 1:
                raise ValueError
            ctx.save_for_backward(x)
            return x.detach().cumprod(0)

        @staticmethod
        @ns.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            one = ns.ones_like(x)
            if divides:
                sums = (g * x.cumprod(0)).flip(0).cumsum(0).flip(0)
                return ns.where(x == 0, 0 * x, sums / ns.where(x == 0, one, x))
            place = ns.arange(len(x))
            return ns.stack([(g * ns.where(place == i, one, x).cumprod(0))[i:].sum() for i in range(len(x))])

    Products.__doc__ = f"Partial products of x (5,){words}"
    return Products


def elementwise(ns, forward, derivative):
    class Elementwise(ns.autograd.Function):
        """x (N,), may be zero"""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x.detach())

        @staticmethod
        @ns.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * derivative(x)

    return Elementwise


@pytest.mark.parametrize(
    ("words", "divides", "verdict"),
    [
        (", zeros allowed", False, Verdict.PASSED),
        (", zeros allowed", True, Verdict.FAILED),
        ("", True, Verdict.PASSED),
        (", zeros not allowed", True, Verdict.PASSED),
    ],
)
def test_a_product_at_documented_zeros(ns, words, divides, verdict):
    (case,) = gradcli.check(product(ns, words, divides=divides), shrink=False).cases
    assert case.verdict is verdict
    assert {f.kind for f in case.findings} <= {FindingKind.SPECIAL_POINT}
    assert all("x[2] = 0" in f.message for f in case.findings)


@pytest.mark.parametrize("at_zero", [0.0, 0.5, 1.0])
def test_any_slope_is_right_at_a_kink(ns, at_zero):
    def derivative(x):
        return ns.where(x == 0, at_zero + 0 * x, 1.0 * (x > 0))

    (case,) = gradcli.check(elementwise(ns, lambda x: x.clamp(min=0), derivative), shrink=False).cases
    assert case.verdict is Verdict.PASSED


@pytest.mark.parametrize(("at_zero", "verdict"), [(0.5, Verdict.PASSED), (0.0, Verdict.FAILED)])
def test_a_quotient_with_its_limit_at_zero(ns, at_zero, verdict):
    def filled(x, quotient, limit):
        return ns.where(x == 0, limit + 0 * x, quotient(ns.where(x == 0, 1 + 0 * x, x)))

    target = elementwise(
        ns,
        lambda x: filled(x, lambda x: x.expm1() / x, 1.0),
        lambda x: filled(x, lambda x: (x.exp() * x - x.expm1()) / x**2, at_zero),
    )
    assert gradcli.check(target, shrink=False).verdict is verdict
