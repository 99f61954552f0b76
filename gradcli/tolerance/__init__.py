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
    """Hold the gradients that backward gives against differences of forward, by an error bound.

    Args:
        func: takes the inputs, and returns a tensor or a tuple of them.
        inputs: a tensor or a tuple; those with requires_grad are differentiated by, others are constants.
        eps: the step of the comparison by tolerance, which decides only where no error bound could be had.
        atol: absolute tolerance of that comparison; where it is looser than the default, also an error that is allowed.
        rtol: relative tolerance, likewise.
        raise_exception: raise instead of returning False.
        nondet_tol: how much two runs of the same backward may differ, absolute.
        check_undefined_grad: see that backward takes None for gradients of outputs.
        check_grad_dtypes: see that gradients have the element type of their inputs.
        check_batched_grad: see that backward over a batch of cotangents agrees with backward for each.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: hold forward mode against differences too.
        check_backward_ad: False leaves backward unchecked.
        fast_mode: compare random projections, where tolerances decide; the error bound takes few evaluations anyway.
        masked: of sparse inputs, differentiate by the stored entries alone.

    Returns:
        True when all is right; False when it is not and `raise_exception` is off.

    Raises:
        GradcheckError: a gradient is wrong; also an instance of PyTorch's error where PyTorch is loaded.
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
    """Hold the derivatives of backward, by inputs and cotangents, against differences of backward, by an error bound.

    Args not named here are those of `gradcheck`.

    Args:
        grad_outputs: the cotangents to differentiate at; random ones unless given.
        gen_non_contig_grad_outputs: see that cotangents may lie non-contiguously in memory.
        check_fwd_over_rev: hold forward mode through backward against differences too.
        check_rev_over_rev: False leaves backward through backward unchecked.

    Returns:
        True when all is right; False when it is not and `raise_exception` is off.

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
