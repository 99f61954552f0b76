"""`gradcli.gradcheck` in PyTorch's place: what a program sees that changes one import."""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from typing import Any

import pytest

import gradcli
from gradcli.tolerance import GradcheckError, GradcheckWarning, gradcheck, gradgradcheck
from tests.tolerance.frameworks import cut, doubled, frameworks, scaled

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
"""PyTorch's own, the first time that it is asked for forward mode."""


@pytest.fixture(params=frameworks(), ids=lambda module: module.__name__)
def torch(request: pytest.FixtureRequest) -> Any:
    return request.param


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


def matrix(torch: Any, rows: int, columns: int) -> Any:
    entries = [[0.3 * i - 0.7 * j + 0.1 * i * j + 0.4 for j in range(columns)] for i in range(rows)]
    return torch.tensor(entries, dtype=torch.float64, requires_grad=True)


@pytest.mark.sampled(1)
def test_right_and_wrong_are_told_apart_with_the_name_of_the_mistake(torch: Any) -> None:
    x = leaf(torch, 0.5, -1.5, 2.0)
    assert gradcheck(scaled(torch, 2.0), (x,))
    assert gradcheck(scaled(torch, 2.0001), x, raise_exception=False) is False
    with pytest.raises(GradcheckError) as caught:
        gradcheck(scaled(torch, 2.0001), x)
    text = str(caught.value)
    assert text.startswith("Jacobian mismatch for output 0 with respect to input 0,")
    assert "wrong-factor" in text
    assert "1.00005 times" in text
    assert "frameworks.py:" in text


@pytest.mark.sampled(4)
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_the_mode_of_the_caller_changes_no_answer(torch: Any, mode: str, check: Any) -> None:
    outside = leaf(torch, 0.5, -1.5, 2.0)
    with getattr(torch, mode)():
        inside = leaf(torch, 0.5, -1.5, 2.0)
        for x in (outside, inside):
            assert check(lambda x: (x * x * x).sum(), (x,))
            assert check(cut(torch), (x,), raise_exception=False) is (check is gradcheck)
        assert gradcheck(scaled(torch, 2.0), (inside,))
        assert gradcheck(scaled(torch, 2.0001), (inside,), raise_exception=False) is False
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_nothing_to_differentiate_by_passes_with_a_warning_and_nothing_to_differentiate_is_refused(torch: Any) -> None:
    empty = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    with pytest.warns(GradcheckWarning, match="no error bound is available"):
        assert gradcheck(lambda x: x * 2, (empty,))
    for returned in (None, 2.5, ()):
        with pytest.raises(ValueError, match=r"the function returned .*, and gradcheck compares tensors"):
            gradcheck(lambda x, it=returned: it, (leaf(torch, 0.5, 1.5),))


def test_an_error_that_pytorch_lets_pass_is_caught(torch: Any) -> None:
    from gradcli.tolerance import as_torch

    x = leaf(torch, 0.5, -1.5, 2.0)
    assert as_torch.gradcheck(scaled(torch, 2.0005), (x,))
    assert gradcheck(scaled(torch, 2.0005), (x,), raise_exception=False) is False


@pytest.mark.sampled(1)
def test_a_looser_tolerance_is_an_error_that_is_allowed_and_told(torch: Any) -> None:
    x = leaf(torch, 0.5, -1.5, 2.0)
    with pytest.warns(GradcheckWarning, match="as you asked, but the gradient is wrong"):
        assert gradcheck(scaled(torch, 2.01), x, rtol=1e-2)
    with pytest.warns(GradcheckWarning, match="wrong-factor"):
        assert gradcheck(scaled(torch, 2.01), x, atol=1e-1)
    assert not gradcheck(scaled(torch, 2.01), x, rtol=1e-3, raise_exception=False)
    assert not gradcheck(scaled(torch, 2.5), x, rtol=1e-2, raise_exception=False)


def test_a_looser_tolerance_does_not_excuse_a_broken_rule(torch: Any) -> None:
    writes = doubled(torch, lambda g: g.mul_(2.001))
    with pytest.raises(GradcheckError, match="mutates-grad-output"):
        gradcheck(writes, leaf(torch, 1.0, 2.0), rtol=0.1)


@pytest.mark.sampled(1)
def test_tensors_that_the_function_knows_by_identity(torch: Any) -> None:
    w, x = matrix(torch, 2, 3), matrix(torch, 4, 3).detach()
    before = w.detach().clone()
    square = scaled(torch, 2.0)
    assert gradcheck(lambda _: square(x @ w.t()), (w,))
    assert gradgradcheck(lambda _: square(x @ w.t()), (w,))
    wrong = scaled(torch, 2.001)
    with pytest.raises(GradcheckError, match="wrong-factor"):
        gradcheck(lambda _: wrong(x @ w.t()), (w,))
    assert (w.detach() == before).all()


@pytest.mark.sampled(1)
def test_second_derivatives(torch: Any) -> None:
    x = leaf(torch, 0.5, -1.5)
    assert gradgradcheck(lambda t: (t**3 * t.exp(), t.sin()), (x,))
    assert gradgradcheck(scaled(torch, 2.0), (x,), gen_non_contig_grad_outputs=True)
    given = leaf(torch, 1.0, -2.0)
    assert gradgradcheck(scaled(torch, 2.0), (x,), given)

    assert gradcheck(cut(torch), (x,))
    with pytest.raises(GradcheckError, match="not-twice-differentiable"):
        gradgradcheck(cut(torch), (x,))
    assert not gradgradcheck(cut(torch), (x,), given, raise_exception=False)


def test_a_first_order_that_is_wrong_is_not_the_second_order_s_fault(torch: Any) -> None:
    x = leaf(torch, 0.5, -1.5)
    assert not gradcheck(scaled(torch, 3.0), x, raise_exception=False)
    assert gradgradcheck(scaled(torch, 3.0), x)


@pytest.mark.sampled(1)
def test_low_precision_warns_and_does_not_fail(torch: Any) -> None:
    x = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert gradcheck(lambda t: t.sin() * t, x)
    weight = torch.tensor([[0.5, 1.0, -0.3]])
    with pytest.warns(UserWarning, match="not a double precision"):
        assert gradcheck(lambda t: weight @ t, x)
    with pytest.warns(UserWarning, match="not a double precision"):
        assert not gradcheck(scaled(torch, 2.1), x, raise_exception=False)


def test_forward_mode_and_batches(torch: Any) -> None:
    x, w = matrix(torch, 3, 2), matrix(torch, 2, 2)
    assert gradcheck(lambda a, b: (a @ b).sin(), (x, w), check_forward_ad=True, check_batched_grad=True)
    assert gradcheck(lambda a, b: (a @ b).sin(), (x, w), check_forward_ad=True, check_backward_ad=False)
    assert gradgradcheck(lambda a: a.sin() * a, (x,), check_fwd_over_rev=True, check_batched_grad=True)


def test_a_wrong_jvp_and_a_wrong_batch_are_found() -> None:
    torch = pytest.importorskip("torch", reason="the engine's Functions have no jvp of their own")

    class Jvp(torch.autograd.Function):  # type: ignore[misc]  # an optional framework
        factor = 2.0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0] * (2.0 if g.shape == ctx.saved_tensors[0].shape else 3.0)

        @classmethod
        def jvp(cls, ctx: Any, tangent: Any) -> Any:
            return cls.factor * ctx.saved_tensors[0] * tangent

    x = leaf(torch, 0.5, -1.5, 2.0)
    assert gradcheck(Jvp.apply, x, check_forward_ad=True)
    Jvp.factor = 2.001
    assert gradcheck(Jvp.apply, x)
    with pytest.raises(GradcheckError, match=r"(?s)Jacobian mismatch.*jvp-mismatch"):
        gradcheck(Jvp.apply, x, check_forward_ad=True)
    with pytest.raises(GradcheckError, match=r"(?s)Jacobian mismatch.*jvp-mismatch"):
        gradcheck(Jvp.apply, x, check_forward_ad=True, check_backward_ad=False)
    assert gradcheck(lambda t: t.sin(), x, check_forward_ad=True, check_batched_forward_grad=True)

    def branches(t: Any) -> Any:
        y = t * 2
        if y.requires_grad:
            y.register_hook(lambda g: g * float(g.sum() != 0))
        return y

    with pytest.raises(GradcheckError, match="batched gradient computation"):
        gradcheck(branches, x, check_batched_grad=True)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning")
def test_sparse_inputs() -> None:
    torch = pytest.importorskip("torch", reason="the engine has no sparse tensors")
    dense = matrix(torch, 3, 4).detach()
    right = torch.ones(4, 2, dtype=torch.float64)
    for made in (dense.to_sparse(), dense.to_sparse_csr()):
        sparse = made.requires_grad_()
        for masked in (True, False):
            assert gradcheck(lambda s: torch.sparse.mm(s, right), (sparse,), masked=masked)

    class Halved(torch.autograd.Function):  # type: ignore[misc]  # an optional framework
        @staticmethod
        def forward(ctx: Any, s: Any) -> Any:
            return s.to_dense()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g / 2).to_sparse()

    with pytest.raises(GradcheckError):
        gradcheck(Halved.apply, (dense.to_sparse().requires_grad_(),))
    with pytest.raises(ValueError, match="to_dense"):
        gradcheck(lambda s: s * 2, (dense.to_sparse().requires_grad_(),))


def test_undefined_gradients_and_drifting_runs(torch: Any) -> None:
    runs: list[int] = []

    def drifts(g: Any) -> Any:
        runs.append(1)
        return g * (2 + 1e-8 * (len(runs) % 2))

    fragile, drifting = doubled(torch, lambda g: g * 2, materialize=False), doubled(torch, drifts)
    x = leaf(torch, 1.0, 2.0)
    with pytest.raises(GradcheckError, match="undefined output grads"):
        gradcheck(fragile, x)
    assert gradcheck(fragile, x, check_undefined_grad=False)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(drifting, x)
    assert gradcheck(drifting, x, nondet_tol=1e-6)


def test_what_cannot_be_bounded_is_decided_by_tolerance_and_told(torch: Any) -> None:
    x = leaf(torch, 1.0, 2.0)
    with pytest.warns(GradcheckWarning, match="no error bound is available"):
        assert gradcheck(lambda t: t.detach() * 0 + 1, x)
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda t: t.detach() * 2, x)


def test_exceptions_of_the_function_come_out_as_they_are(torch: Any) -> None:
    def refuses(_: Any) -> Any:
        raise LookupError("no table")

    x = leaf(torch, 1.0, 2.0)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda t: t * (1 // 0), x)
    with pytest.raises(LookupError, match="no table"):
        gradcheck(doubled(torch, refuses), x)
    with pytest.raises(LookupError, match="no table"):
        gradcheck(doubled(torch, refuses), x, raise_exception=False)


def test_options_that_exclude_each_other(torch: Any) -> None:
    x = leaf(torch, 1.0, 2.0)
    with pytest.raises(AssertionError, match="check_forward_ad or check_backward_ad"):
        gradcheck(lambda t: t, x, check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_batched_grad"):
        gradcheck(lambda t: t, x, check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
    with pytest.raises(AssertionError, match="check_fwd_over_rev or check_rev_over_rev"):
        gradgradcheck(lambda t: t, x, check_rev_over_rev=False, check_undefined_grad=False)
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        gradcheck(lambda t: t * 2, x.detach())


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck], ids=["gradcheck", "gradgradcheck"])
@pytest.mark.parametrize("name", ["atol", "rtol"])
@pytest.mark.parametrize("value", [-1, -1e-5, math.nan])
def test_tolerances_below_zero_are_refused(torch: Any, check: Any, name: str, value: float) -> None:
    x = leaf(torch, 1.0, 2.0)
    for raise_exception in (True, False):
        with pytest.raises(RuntimeError, match=f"expected {name} to be zero or more, got {name}={value}"):
            check(lambda t: t * t, x, raise_exception=raise_exception, **{name: value})
    assert check(lambda t: t * t, x, **{name: 0}, eps=-1e-6)


def test_random_masks_and_constants_among_the_inputs(torch: Any) -> None:
    x = leaf(torch, 1.0, 2.0, 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(lambda t, k, mask: t * k * mask, (x, 3, torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)))
    if torch.__name__ == "torch":
        assert gradcheck(torch.nn.functional.dropout, (matrix(torch, 3, 4),))


def test_the_signatures_are_pytorch_s() -> None:
    torch = pytest.importorskip("torch", reason="its signatures are what is asked about")
    theirs = sys.modules["torch.autograd.gradcheck"]
    for ours, name in ((gradcheck, "gradcheck"), (gradgradcheck, "gradgradcheck")):
        wanted = inspect.signature(vars(theirs)[name]).parameters
        found = inspect.signature(ours).parameters
        assert list(found) == list(wanted)
        for parameter in wanted:
            assert found[parameter].kind == wanted[parameter].kind
            assert found[parameter].default == wanted[parameter].default
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(vars(theirs)["GradcheckError"]):
        gradcli.gradcheck(scaled(torch, 3.0), x)
    assert gradcli.gradgradcheck(scaled(torch, 2.0), x)


def test_gradients_that_numpy_has_no_form_for_are_read():
    torch = pytest.importorskip("torch", reason="the operator is PyTorch's")
    assert gradcli.gradcheck(torch.sgn, torch.tensor([0.5, -2.0, 3.0], dtype=torch.float64, requires_grad=True))
    turned = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True)
    assert gradcli.gradcheck(lambda z: z.conj().imag, turned)
