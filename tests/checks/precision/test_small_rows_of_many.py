"""Outputs of very different derivatives, too many to be compared one by one: a mistake in small ones fails as well."""

from __future__ import annotations

import importlib

import pytest

import gradcli
from gradcli.verdict import Verdict

SINES, SLOPING, LONE = "three rows of sines", "rows that become smaller and smaller", "one small output"


def namespace(name):
    if name == "torch":
        pytest.importorskip("torch", reason="one of the frameworks")
    return importlib.import_module("gradcli.engine" if name == "engine" else name)


def weights(ns, kind, x):
    """The factor of every output, of the shape of the output."""
    if kind == SINES:
        return ns.tensor([1e-10, 1.0, 1e12], dtype=x.dtype)[:, None]
    if kind == SLOPING:
        return 10.0 ** (9 - 27 * ns.arange(150, dtype=x.dtype) / 150)[:, None]
    factors = [1.0] * len(x)
    factors[17] = 1e-12
    return ns.tensor(factors, dtype=x.dtype)


def function(ns, kind, spoilt, hidden=False):
    """w · sin(x), whose gradient is right if `spoilt` multiplies the entries of w by 1.

    If it is `hidden`, autodiff of forward's body gives nothing.
    """

    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            with ns.set_grad_enabled(not hidden):
                return weights(ns, kind, x) * ns.sin(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            product = spoilt(weights(ns, kind, x)) * g
            return (product if kind == LONE else product.sum(0)) * ns.cos(x)

    return Scaled


def times(ns, row, factor):
    def spoilt(w):
        numbers = w.tolist()
        numbers[row] = [factor * numbers[row][0]] if isinstance(numbers[row], list) else factor * numbers[row]
        return ns.tensor(numbers, dtype=w.dtype)

    return spoilt


@pytest.fixture
def check(unexplained):
    def run(ns, kind, size, spoilt=lambda w: w, *, hidden=False, **options):
        target = function(ns, kind, spoilt, hidden)
        (case,) = gradcli.check(target, {"x": {"shape": [size]}}, shrink=False, **options).cases
        return case

    return run


SIZES = [(SINES, 40), (SINES, 3000), (SINES, 10_000), (SLOPING, 5), (SLOPING, 300), (LONE, 5000), (LONE, 25_000)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.parametrize(("kind", "size"), SIZES)
def test_a_right_gradient_passes(check, name, kind, size):
    assert check(namespace(name), kind, size).verdict is Verdict.PASSED


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.parametrize("factor", [0.0, 0.9, 1.01])
@pytest.mark.parametrize(("kind", "size", "row"), [(*each, 0 if each[0] == SINES else 17) for each in SIZES])
@pytest.mark.usefixtures("unexplained")
def test_a_mistake_in_small_outputs_fails(check, name, kind, size, row, factor):
    ns = namespace(name)
    case = check(ns, kind, size, times(ns, row, factor), only=("gradient",), order=1)
    assert case.verdict is Verdict.FAILED
    assert {e.check for e in case.evidence if e.verdict is Verdict.FAILED} == {"gradient"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.parametrize("factor", [0.0, 0.9])
@pytest.mark.parametrize(
    ("kind", "size", "row"), [(SINES, 40, 0), (SINES, 3000, 0), (SLOPING, 5, 140), (LONE, 5000, 17)]
)
def test_a_mistake_in_small_outputs_fails_without_a_reference(check, name, kind, size, row, factor):
    ns = namespace(name)
    options = {"hidden": True, "only": ("gradient",), "order": 1}
    assert check(ns, kind, size, times(ns, row, factor), **options).verdict is Verdict.FAILED
    assert check(ns, kind, size, **options).verdict is Verdict.PASSED


def test_what_was_not_looked_at_is_noted(check):
    engine = namespace("engine")
    options = {"hidden": True, "only": ("gradient",), "order": 1}
    for spoilt in (times(engine, 0, 0.9), lambda w: w):
        case = check(engine, SINES, 10_000, spoilt, **options)
        assert case.verdict is Verdict.PASSED
        assert any(str(e.note).startswith("not checked: output entries whose derivatives") for e in case.evidence)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", [90, 149])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_fails_in_any_output_and_at_any_seed(row, seed):
    ns = namespace("engine")
    (case,) = gradcli.check(
        function(ns, SLOPING, times(ns, row, 0.9)),
        {"x": {"shape": [5]}},
        shrink=False,
        only=("gradient",),
        order=1,
        seed=seed,
    ).cases
    assert case.verdict is Verdict.FAILED
    (finding,) = case.findings
    assert f"the part of the gradient that comes from output[{row}, " in finding.message


def test_a_function_with_a_tail_passes():
    """x Φ(x) computed from 1 + erf: far out its values, its gradient and that of autodiff are rounding errors."""
    torch = namespace("torch")

    class Gelu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * (1 + torch.erf(4 * x)) / 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            density = 4 / torch.pi**0.5 * torch.exp(-16 * x * x)
            return g * (torch.erfc(-4 * x) / 2 + x * density)

    for size in (300, 30_000):
        (case,) = gradcli.check(Gelu, {"x": {"shape": [size]}}, shrink=False).cases
        assert case.verdict is Verdict.PASSED
