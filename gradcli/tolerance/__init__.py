"""`gradcheck` and `gradgradcheck`: PyTorch's signatures and return values, with a verdict from an error bound.

Parameters and defaults are those of PyTorch 2.13, `torch.autograd.gradcheck`; docs/gradcheck.md says what each one
means here. `as_torch` has the same functions with PyTorch's answers, by fixed step and tolerance.
"""

from __future__ import annotations

from typing import Any

from gradcli.tolerance.answer import answer
from gradcli.tolerance.bounded import GradcheckWarning
from gradcli.tolerance.options import Options
from gradcli.tolerance.problem import Function, GradcheckError, as_tuple

__all__ = ["GradcheckError", "GradcheckWarning", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients that backward returns with finite differences of forward and their error bound.

    Args:
        func: a function that takes the inputs, and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors; gradients by those with requires_grad are checked, others are constants.
        eps: the step of the comparison by tolerance, which decides only where no error bound is available.
        atol: the absolute tolerance of this comparison; a value above the default is also an error that you allow.
        rtol: the relative tolerance, likewise.
        raise_exception: raise GradcheckError instead of returning False.
        nondet_tol: how much two runs of the same backward may differ, as an absolute number.
        check_undefined_grad: check that backward accepts None as the gradient of an output.
        check_grad_dtypes: check that each gradient has the dtype of its input.
        check_batched_grad: check that backward for a batch of cotangents agrees with backward for each.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: compare forward mode with finite differences too.
        check_backward_ad: False leaves backward unchecked.
        fast_mode: compare random projections, where tolerances decide; the error bound needs few evaluations anyway.
        masked: for sparse inputs, check only the gradients by the stored entries.

    Returns:
        True if all gradients are right; False if one is wrong and `raise_exception` is False.

    Raises:
        GradcheckError: a gradient is wrong; also an instance of PyTorch's GradcheckError if PyTorch is loaded.
        ValueError: no input requires a gradient.
        AssertionError, RuntimeError: options that exclude each other; a tolerance below zero. As in PyTorch.
    """
    options = Options(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
        check_backward_ad=check_backward_ad,
        fast_mode=fast_mode,
        masked=bool(masked),
    )
    return answer(func, as_tuple(inputs), options, raise_exception)


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the derivatives of backward by inputs and cotangents with finite differences and their error bound.

    Arguments that are not listed here are those of `gradcheck`.

    Args:
        grad_outputs: the cotangents at which backward is differentiated; random ones unless given.
        gen_non_contig_grad_outputs: check that cotangents may be non-contiguous in memory.
        check_fwd_over_rev: compare forward mode through backward with finite differences too.
        check_rev_over_rev: False leaves backward through backward unchecked.

    Returns:
        True if all gradients are right; False if one is wrong and `raise_exception` is False.

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires a gradient.
        AssertionError: options that exclude each other, as in PyTorch.
    """
    options = Options(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
        order=2,
        non_contiguous=gen_non_contig_grad_outputs,
    )
    return answer(func, as_tuple(inputs), options, raise_exception, grad_outputs)
