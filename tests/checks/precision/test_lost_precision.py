"""A gradient of 64-bit inputs with the digits of float32: found, unless forward itself has no more."""

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.frameworks import examined, tensor

X = tensor("x", np.random.default_rng(0).normal(size=(3, 4)))
W = tensor("w", np.random.default_rng(1).normal(size=4))


def f32(ns, t):
    return t.to(ns.float32)


def f64(ns, t):
    return t.to(ns.float64)


def product(ns, x, w):
    return x * w


def inverse(ns, x):
    """y with y + sin(y) / 2 = x, by an iteration that stops early."""
    y = x * 0.5
    for _ in range(40):
        rest = y + 0.5 * ns.sin(y) - x
        if float(rest.abs().max()) < 1e-9:
            break
        y = y - rest / 1.3
    return y


def norms_backward(ns, g, x, w):
    size = (x**2).mean(-1, keepdim=True).sqrt()
    unit, along = x / size, g * w
    return f64(ns, (along - unit * (along * unit).mean(-1, keepdim=True)) / size), f64(ns, (g * unit).sum(0))


def of_two(ns, forward, backward):
    class OfTwo(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return forward(ns, x, w)

        @staticmethod
        def backward(ctx, g):
            return backward(ns, g, *ctx.saved_tensors)

    return OfTwo


WRONG = {
    "returned in float32": (product, lambda ns, g, x, w: (f32(ns, g * w), (g * x).sum(0)), "x"),
    "summed in float32": (product, lambda ns, g, x, w: (g * w, f32(ns, g * x).sum(0)), "w"),
    "computed in float32, cast back": (
        product,
        lambda ns, g, x, w: (f64(ns, f32(ns, g) * f32(ns, w)), (g * x).sum(0)),
        "x",
    ),
    "rounded at the end, cast back": (product, lambda ns, g, x, w: (g * w, f64(ns, f32(ns, (g * x).sum(0)))), "w"),
    "written into an array of float32": (
        product,
        lambda ns, g, x, w: (ns.tensor((g * w).detach().numpy().astype(np.float32)), (g * x).sum(0)),
        "x",
    ),
    "a factor in float32": (product, lambda ns, g, x, w: (g * f64(ns, f32(ns, w)), (g * x).sum(0)), "x"),
    "a factor in float32, summed": (product, lambda ns, g, x, w: (g * w, (g * f64(ns, f32(ns, x))).sum(0)), "w"),
    "a factor in float32 among others": (
        lambda ns, x, w: x.tanh() * w,
        lambda ns, g, x, w: (g * w * f64(ns, f32(ns, 1 - x.tanh() ** 2)), (g * x.tanh()).sum(0)),
        "x",
    ),
}
WRONG |= {
    "another input rounded to whole numbers": (
        lambda ns, x, w: ns.floor(x) * w,
        lambda ns, g, x, w: (0 * g * w, f64(ns, f32(ns, (g * ns.floor(x)).sum(0)))),
        "w",
    ),
    "a value of forward rounded in backward alone": (
        lambda ns, x, w: x.tanh() * w,
        lambda ns, g, x, w: (g * w * (1 - x.tanh() ** 2), f64(ns, (f32(ns, g) * f32(ns, x.tanh())).sum(0))),
        "w",
    ),
}
RIGHT = {
    "in float64": (product, lambda ns, g, x, w: (g * w, (g * x).sum(0))),
    "whole numbers": (lambda ns, x, w: 3 * x + 2 * w, lambda ns, g, x, w: (3 * g, 2 * g.sum(0))),
    "zeros in float32": (lambda ns, x, w: 3 * x + 0 * w, lambda ns, g, x, w: (3 * g, ns.zeros(4))),
    "a mask in float32": (
        lambda ns, x, w: x.clamp(min=0) + 2 * w,
        lambda ns, g, x, w: (g * f32(ns, x > 0), 2 * g.sum(0)),
    ),
    "ones in float32": (
        lambda ns, x, w: ns.sin(x) * w,
        lambda ns, g, x, w: (g * w * ns.cos(x) * ns.ones(3, 4), (g * ns.sin(x)).sum(0)),
    ),
    "forward in float32": (
        lambda ns, x, w: f32(ns, x) * f32(ns, w),
        lambda ns, g, x, w: (g * f32(ns, w), (g * f32(ns, x)).sum(0)),
    ),
    "forward in float32, cast back": (
        lambda ns, x, w: f64(ns, f32(ns, x) * f32(ns, w)),
        lambda ns, g, x, w: (f64(ns, f32(ns, g) * f32(ns, w)), f64(ns, (f32(ns, g) * f32(ns, x)).sum(0))),
    ),
    "forward in float32, then scaled": (
        lambda ns, x, w: f64(ns, f32(ns, x) * f32(ns, w)) * 0.1,
        lambda ns, g, x, w: (f64(ns, f32(ns, g * 0.1) * f32(ns, w)), f64(ns, (f32(ns, g * 0.1) * f32(ns, x)).sum(0))),
    ),
    "one input of forward in float32": (
        lambda ns, x, w: f64(ns, f32(ns, x)) * w,
        lambda ns, g, x, w: (f64(ns, f32(ns, g) * f32(ns, w)), f64(ns, (f32(ns, g) * f32(ns, x)).sum(0))),
    ),
    "a norm in float32, then scaled": (
        lambda ns, x, w: f64(ns, f32(ns, x) / (f32(ns, x) ** 2).mean(-1, keepdim=True).sqrt()) * w,
        lambda ns, g, x, w: norms_backward(ns, f32(ns, g), f32(ns, x), f32(ns, w)),
    ),
    "an iteration stopped early": (
        lambda ns, x, w: inverse(ns, x) * w,
        lambda ns, g, x, w: (g * w / (1 + 0.5 * ns.cos(inverse(ns, x))), (g * inverse(ns, x)).sum(0)),
    ),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("forward", "backward", "name"), WRONG.values(), ids=WRONG.keys())
def test_what_lost_bits_is_named_and_placed(backend, ns, forward, backward, name):
    verdict, _, findings = examined(backend, of_two(ns, forward, backward), X, W, order=1)
    assert verdict is Verdict.FAILED
    assert [(finding.kind, finding.input) for finding in findings] == [(FindingKind.LOW_PRECISION, name)]


def test_a_gradient_that_follows_no_small_steps_is_shown_and_not_put_down_to_float32_alone(backend, ns):
    """Terms that cancel leave a gradient as unchanged as rounding does."""
    forward, backward, _ = WRONG["a factor in float32"]
    (finding,) = examined(backend, of_two(ns, forward, backward), X, W, order=1)[2]
    assert "stays the same to the bit" in finding.message
    assert "or where terms cancel" in finding.message
    assert finding.entries
    assert all(3 * e.bound < abs(e.analytic - e.numeric) < 1e-7 * abs(e.numeric) for e in finding.entries)


@pytest.mark.sampled(11)
@pytest.mark.parametrize(("forward", "backward"), RIGHT.values(), ids=RIGHT.keys())
def test_what_has_as_many_bits_as_forward_passes(backend, ns, forward, backward):
    verdict, _, findings = examined(backend, of_two(ns, forward, backward), X, W, order=1)
    assert verdict is Verdict.PASSED, findings


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("forward", "backward", "name"), WRONG.values(), ids=WRONG.keys())
def test_inputs_of_float32_ask_for_no_more(backend, ns, forward, backward, name):
    single = [tensor(a.name, a.value.astype(np.float32)) for a in (X, W)]
    verdict, _, findings = examined(backend, of_two(ns, forward, backward), *single, order=1)
    assert verdict is Verdict.PASSED, findings


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_coarser_precisions_fail_as_well(backend, ns, dtype):
    if dtype == "bfloat16" and backend.name == "engine":
        pytest.skip("NumPy, and so the engine, has no bfloat16")
    coarse = of_two(ns, product, lambda ns, g, x, w: ((g * w).to(getattr(ns, dtype)), (g * x).sum(0)))
    verdict, _, findings = examined(backend, coarse, X, W, order=1)
    assert verdict is Verdict.FAILED
    assert {finding.input for finding in findings} == {"x"}


def test_complex_gradients_are_held_by_their_parts(backend, ns):
    z = tensor("z", X.value + 1j * X.value[::-1])

    def squared(single):
        class Squared(ns.autograd.Function):
            @staticmethod
            def forward(ctx, z):
                ctx.save_for_backward(z)
                return z * z

            @staticmethod
            def backward(ctx, g):
                gradient = 2 * g * ctx.saved_tensors[0].conj()
                return gradient.to(ns.complex64) if single else gradient

        return Squared

    verdict, _, findings = examined(backend, squared(True), z, order=1)
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.LOW_PRECISION]
    assert examined(backend, squared(False), z, order=1)[0] is Verdict.PASSED


def test_numpy_gradients_are_held_by_their_dtype():
    x = (np.random.default_rng(0).normal(size=5),)

    def cubes(x):
        return x**3

    def total(x):
        return (x**3).sum()

    def slope(x):
        return 3 * x**2

    def slope_in_single(x):
        return slope(x).astype(np.float32)

    def double(x):
        return 2 * x

    exact = gradcli.check(double, x, grad=lambda x: np.full(x.shape, 2.0, np.float32), shrink=False)
    assert exact.verdict is Verdict.PASSED
    for function in (cubes, total):
        report = gradcli.check(function, x, grad=slope_in_single, shrink=False)
        assert [finding.kind for finding in report.cases[0].findings] == [FindingKind.LOW_PRECISION]
        assert gradcli.check(function, x, grad=slope, shrink=False).verdict is Verdict.PASSED


@pytest.mark.sampled(1)
def test_a_fixed_number_of_bisections_is_not_taken_for_rounding(backend, ns):
    """The claim stays the same where the derivative of the body changes, but it is not a rounded form of that."""

    class Budget(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            low, high = x.min() - 1, x.max()
            for _ in range(30):
                middle = (low + high) / 2
                above = ns.clamp(x - middle, 0, 1).sum() > 2
                low, high = ns.where(above, middle, low), ns.where(above, high, middle)
            y = ns.clamp(x - (low + high) / 2, 0, 1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            inside = ((y > 0) & (y < 1)).to(g.dtype)
            return inside * (g - (inside * g).sum() / inside.sum().clamp(min=1))

    x = tensor("x", np.random.default_rng(11).normal(size=6))
    verdict, _, findings = examined(backend, Budget, x, order=1)
    assert verdict is not Verdict.FAILED, findings
