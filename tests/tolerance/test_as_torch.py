"""What PyTorch's gradcheck answers, by step and tolerance: the engine's own, for engine and torch tensors alike."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.tolerance.as_torch import GradcheckError, gradcheck, gradgradcheck
from tests.tolerance.frameworks import cut, doubled, frameworks, scaled

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")


@pytest.fixture(params=frameworks(), ids=lambda module: module.__name__)
def torch(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("fast", [False, True])
def test_right_and_wrong_are_told_apart(torch: Any, fast: bool) -> None:
    x = torch.tensor([[0.5, -1.5], [2.0, 0.1]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(scaled(torch, 2.0), (x,), fast_mode=fast)
    assert gradcheck(scaled(torch, 2.01), x, fast_mode=fast, raise_exception=False) is False
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(scaled(torch, 2.01), x, fast_mode=fast)
    assert gradcheck(scaled(torch, 2.01), x, fast_mode=fast, atol=1.0)


def test_a_mismatch_of_projections_shows_the_jacobians(torch: Any) -> None:
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as raised:
        gradcheck(scaled(torch, 2.5), (x,), fast_mode=True)
    shown = " ".join(str(raised.value).split())
    assert "Numerical: tensor([[ 1.0000, 0.0000], [ 0.0000, -3.0000]]" in shown
    assert "Analytical: tensor([[ 1.2500, 0.0000], [ 0.0000, -3.7500]]" in shown.replace("-0.0000", "0.0000")
    assert "The max per-element difference (slow mode) is: 0.75" in shown


@pytest.mark.parametrize("fast", [False, True])
def test_complex_gradients(torch: Any, fast: bool) -> None:
    z = torch.tensor([1 + 2j, -0.5 + 1j], dtype=torch.complex128, requires_grad=True)
    x = torch.tensor([1.5, 0.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda z, x: (z * z * x, (z * x).abs(), z.conj() / 2), (z, x), fast_mode=fast)
    with pytest.raises(GradcheckError):
        gradcheck(scaled(torch, 2.0), z, fast_mode=fast)  # the conjugate is missing


def test_second_derivatives(torch: Any) -> None:
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(lambda t: (t**3 * t.exp(), t.sin()), (x,))
    assert gradgradcheck(scaled(torch, 2.0), (x,), gen_non_contig_grad_outputs=True)

    assert gradcheck(cut(torch), (x,))
    with pytest.raises(GradcheckError):
        gradgradcheck(cut(torch), (x,))


def test_what_is_refused(torch: Any) -> None:
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        gradcheck(lambda t: t * 2, torch.ones(2, dtype=torch.float64))
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda t: t * 2, x, check_forward_ad=True, check_batched_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        gradcheck(lambda t: t * 2, torch.ones(2, requires_grad=True), eps=1e-2, atol=1e-2)


def test_undefined_gradients_must_be_taken(torch: Any) -> None:
    fragile = doubled(torch, lambda g: g * 2, materialize=False)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="undefined output grads"):
        gradcheck(fragile, x)
    assert gradcheck(fragile, x, check_undefined_grad=False)


def test_a_backward_that_differs_from_run_to_run(torch: Any) -> None:
    runs: list[int] = []

    def drifts(g: Any) -> Any:
        runs.append(1)
        return g * (2 + 1e-9 * len(runs))

    drifting = doubled(torch, drifts)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(drifting, x)
    assert gradcheck(drifting, x, nondet_tol=1e-3)


def of(torch: Any, forward: Any, backward: Any) -> Any:
    """A Function of one tensor, which it saves."""

    class Of(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(ctx, x)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            return backward(ctx.saved_tensors[0], *gs)

    return Of.apply


def _alternating() -> Any:
    calls: list[int] = []

    def backward(x: Any, g: Any) -> Any:
        calls.append(1)
        return g * 2 * x * (1 + 1e-7 * (len(calls) % 3))

    return backward


def _counting() -> Any:
    calls: list[int] = []

    def backward(x: Any, g: Any) -> Any:
        calls.append(1)
        return g * 2 * x * (1 + 1e-8 * len(calls))

    return backward


def _remembering() -> Any:
    """Adds a little of the cotangent that the call before was given."""
    last: list[Any] = []

    def backward(x: Any, g: Any) -> Any:
        gradient = g * 2 * x + (1e-8 * last[-1] if last else 0)
        last.append(g)
        return gradient

    return backward


def _random() -> Any:
    source = np.random.default_rng(0)
    return lambda x, g: g * 2 * x * (1 + 1e-8 * source.random())


def _growing() -> Any:
    scale = [1.0]

    def backward(x: Any, g: Any) -> Any:
        scale[0] *= 1 + 1e-8
        return g * 2 * x * scale[0]

    return backward


def _first_apart() -> Any:
    seen: set[bytes] = set()

    def backward(x: Any, g: Any) -> Any:
        key = g.detach().numpy().tobytes()
        again = key in seen
        seen.add(key)
        return g * 2 * x + (1e-6 if again else 0.0) * g

    return backward


UNSTEADY = [_alternating, _counting, _remembering, _random, _growing, _first_apart]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("make", UNSTEADY, ids=lambda make: make.__name__)
def test_a_backward_that_differs_or_remembers_is_refused_in_both_modes(torch: Any, make: Any, fast: bool) -> None:
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(of(torch, lambda ctx, x: x * x, make()), (x,), fast_mode=fast)
    if make is not _remembering:  # which gives a gradient for cotangents of zeros as well
        assert gradcheck(of(torch, lambda ctx, x: x * x, make()), (x,), fast_mode=fast, nondet_tol=1e-3)
    assert gradcheck(of(torch, lambda ctx, x: x * x, lambda x, g: g * 2 * x), (x,), fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_a_backward_that_is_wrong_and_differs_is_called_not_reentrant(torch: Any, fast: bool) -> None:
    runs: list[int] = []

    def backward(x: Any, g: Any) -> Any:
        runs.append(1)
        return g * 2 * x * (1 + 1e-2 * len(runs))

    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(of(torch, lambda ctx, x: x * x, backward), (x,), fast_mode=fast)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(of(torch, lambda ctx, x: x * x, lambda x, g: g * 1.98 * x), (x,), fast_mode=fast)


@pytest.mark.parametrize("extra", [3, None, "a"])
def test_an_output_that_is_not_a_tensor_is_refused(torch: Any, extra: Any) -> None:
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    with pytest.raises(AttributeError, match="object has no attribute 'requires_grad'"):
        gradcheck(lambda x: (x.sin(), extra), (x,))
    assert gradcheck(lambda x: (x.sin(), x.cos()), (x,))


def _marked(ctx: Any, x: Any) -> Any:
    beside = x * 3
    ctx.mark_non_differentiable(beside)
    return x * x, beside


@pytest.mark.parametrize("fast", [False, True])
def test_outputs_without_a_gradient_are_not_compared(torch: Any, fast: bool) -> None:
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    right, wrong = (lambda x, g, h, k=k: k * g * x for k in (2, 3))
    beside = {
        "marked": (of(torch, _marked, right), of(torch, _marked, wrong)),
        "detached": tuple((lambda x, k=k: (scaled(torch, k)(x), x.detach() * 3)) for k in (2, 3)),
        "detached, first": tuple((lambda x, k=k: (x.detach() * 3, scaled(torch, k)(x))) for k in (2, 3)),
        "rounded": tuple((lambda x, k=k: (scaled(torch, k)(x), x.detach().round())) for k in (2, 3)),
        "counted": tuple((lambda x, k=k: (scaled(torch, k)(x), (x > 0).sum())) for k in (2, 3)),
        "under no_grad": tuple((lambda x, k=k: (scaled(torch, k)(x), _without(torch, x))) for k in (2, 3)),
    }
    for name, (good, bad) in beside.items():
        assert gradcheck(good, (x,), fast_mode=fast), name
        with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
            gradcheck(bad, (x,), fast_mode=fast)
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 3, (x,), fast_mode=fast)


def _without(torch: Any, x: Any) -> Any:
    with torch.no_grad():
        return x * 3


@pytest.mark.parametrize("fast", [False, True])
def test_once_differentiable_is_refused_at_second_order_as_a_gradient_that_is_wrong(torch: Any, fast: bool) -> None:
    once = importlib.import_module(f"{torch.__name__}.autograd.function").once_differentiable

    class Once(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once  # type: ignore[misc]  # of the framework
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Once.apply, (x,), fast_mode=fast)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(Once.apply, (x,), fast_mode=fast)
    assert gradgradcheck(Once.apply, (x,), fast_mode=fast, raise_exception=False) is False


def test_both_have_one_signature_and_refuse_the_same_options(torch: Any) -> None:
    for ours, theirs in ((gradcli.gradcheck, gradcheck), (gradcli.gradgradcheck, gradgradcheck)):
        assert inspect.signature(ours) == inspect.signature(theirs)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for check in (gradcli.gradcheck, gradcheck):
        with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward_ad to be True"):
            check(lambda t: t * 2, x, check_backward_ad=False)
        with pytest.raises(AssertionError, match="Setting check_batched_grad=True requires check_backward_ad to be"):
            check(lambda t: t * 2, x, check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
        with pytest.raises(RuntimeError, match="expected atol to be zero or more, got atol=-1"):
            check(lambda t: t * 2, x, atol=-1.0)
        with pytest.raises(ValueError, match="boom"):
            check(of(torch, lambda ctx, x: x * x, _raising), x, raise_exception=False)


def _raising(x: Any, g: Any) -> Any:
    raise ValueError("boom")


@pytest.mark.sampled(1)
def test_a_check_inside_a_check_is_decided_by_its_own_rules(torch: Any) -> None:
    inner: list[bool] = []

    def asking(x: Any) -> Any:
        y = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
        inner.append(gradcli.gradcheck(scaled(torch, 2.0005), (y,), raise_exception=False))
        return x * x

    assert gradcheck(asking, (torch.ones(1, dtype=torch.float64, requires_grad=True),))
    assert inner
    assert not any(inner)


def test_the_engine_leads_to_the_same_functions() -> None:
    assert engine.autograd.gradcheck is gradcheck
    assert engine.autograd.gradgradcheck is gradgradcheck
    assert issubclass(engine.autograd.GradcheckError, RuntimeError)


def test_torch_catches_its_own_error_class() -> None:
    torch = pytest.importorskip("torch", reason="its error class is what is asked about")
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(sys.modules["torch.autograd.gradcheck"].GradcheckError):
        gradcheck(scaled(torch, 3.0), x)
