"""What PyTorch's gradcheck answers, by step and tolerance: the engine's own, for engine and torch tensors alike."""

from __future__ import annotations

import sys
from typing import Any

import pytest

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


def test_the_engine_leads_to_the_same_functions() -> None:
    assert engine.autograd.gradcheck is gradcheck
    assert engine.autograd.gradgradcheck is gradgradcheck
    assert issubclass(engine.autograd.GradcheckError, RuntimeError)


def test_torch_catches_its_own_error_class() -> None:
    torch = pytest.importorskip("torch", reason="its error class is what is asked about")
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(sys.modules["torch.autograd.gradcheck"].GradcheckError):
        gradcheck(scaled(torch, 3.0), x)
