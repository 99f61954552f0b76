"""What PyTorch's `gradcheck` and `gradgradcheck` answer, for engine tensors and torch tensors alike.

Derivatives are central differences with one fixed step, compared by tolerances (parameters and defaults: PyTorch 2.13,
`torch.autograd.gradcheck`). The engine's `autograd.gradcheck` is this one, for programs that rely on PyTorch's answers;
`gradcli.gradcheck` falls back on it where no error bound can be had.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.tolerance.forward_mode import check_batched_gradients, check_forward_mode
from gradcli.tolerance.jacobians import check_independence, compare_entries, compare_projections
from gradcli.tolerance.manners import check_gradients_fit, check_inputs, check_undefined_gradients
from gradcli.tolerance.options import Options
from gradcli.tolerance.problem import (
    Function,
    GradcheckError,
    Problem,
    array_of,
    as_tuple,
    differentiable,
    is_tensor,
)

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


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
    """Compare the gradients that backward gives with central differences.

    Args:
        func: takes the inputs, and returns a tensor or a tuple of them.
        inputs: a tensor or a tuple; those with requires_grad are differentiated by, others are constants.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise instead of returning False.
        nondet_tol: how much two runs of the same backward may differ.
        check_undefined_grad: see that backward takes None for gradients of outputs.
        check_grad_dtypes: see that gradients have the element type of their inputs.
        check_batched_grad: see that backward over a batch of cotangents agrees with backward for each.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: hold forward mode against differences, by an error bound and `rtol`.
        check_backward_ad: False leaves backward unchecked.
        fast_mode: compare one random projection of each Jacobian instead of all its entries.
        masked: has no effect; there are no sparse tensors.

    Returns:
        True when all agree; False when they do not and `raise_exception` is off.

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires a gradient.
    """
    del masked
    problem = Problem(func, as_tuple(inputs))
    try:
        if check_backward_ad:
            _check(problem, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
        if check_batched_grad:
            check_batched_gradients(problem)
        if check_forward_ad:
            batched = Options(check_batched_forward_grad=check_batched_forward_grad)
            check_forward_mode(problem, batched, significance=rtol)
    except RuntimeError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    problem: Problem,
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined_grad: bool,
    check_grad_dtypes: bool,
    fast_mode: bool,
) -> None:
    check_inputs(problem)
    outputs = problem.outputs()
    if not any(output.requires_grad for output in outputs):
        check_independence(problem, eps)
        return
    if fast_mode:
        compare_projections(problem, outputs, eps, atol, rtol)
    else:
        check_values(problem, eps, atol, rtol, nondet_tol)
    check_gradients_fit(problem, outputs, check_grad_dtypes)
    if check_undefined_grad:
        check_undefined_gradients(problem)


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
    """Compare second derivatives, by both inputs and cotangents, with central differences of the first.

    Args not named here are those of `gradcheck`.

    Args:
        grad_outputs: the cotangents to differentiate at; random ones unless given.
        gen_non_contig_grad_outputs: make the random cotangents non-contiguous.
        check_fwd_over_rev: hold forward mode through backward against differences.
        check_rev_over_rev: False leaves backward through backward unchecked.

    Returns:
        True when all agree; False when they do not and `raise_exception` is off.

    Raises:
        GradcheckError: a gradient is wrong.
        ValueError: no input requires a gradient.
    """
    first = with_cotangents(Problem(func, as_tuple(inputs)), grad_outputs, gen_non_contig_grad_outputs)
    return gradcheck(
        first.function,
        first.inputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def with_cotangents(problem: Problem, grad_outputs: Any, non_contiguous: bool) -> Problem:
    """The first derivatives of a problem, as a problem in its inputs and its cotangents, random unless given."""
    seeds = _second_seeds(problem, grad_outputs, non_contiguous)
    return Problem(_first_derivatives(problem), problem.inputs + tuple(seeds))


def check_values(problem: Problem, eps: float, atol: float, rtol: float, nondet_tol: float) -> None:
    """Compare all entries of the Jacobians by tolerance; outputs without a gradient must not depend on the inputs.

    Raises:
        GradcheckError: they differ.
    """
    outputs = problem.outputs()
    if any(output.requires_grad for output in outputs):
        compare_entries(problem, outputs, eps, atol, rtol, nondet_tol)
    else:
        check_independence(problem, eps)


def _first_derivatives(problem: Problem) -> Function:
    """Return the function of inputs and cotangents whose results are the first derivatives."""
    count = len(problem.inputs)

    def first_derivatives(*values: Any) -> Any:
        points = tuple(
            entry.requires_grad_() if is_tensor(entry) and entry.is_leaf and place in problem.places else entry
            for place, entry in enumerate(values[:count])
        )
        with problem.torch.enable_grad():
            outputs = [entry for entry in differentiable(problem.function(*points)) if entry.requires_grad]
            tracked = [points[place] for place in problem.places]
            found = problem.torch.autograd.grad(
                outputs, tracked, list(values[count:]), create_graph=True, allow_unused=True
            )
        return tuple(entry for entry in found if entry is not None)

    return first_derivatives


def _second_seeds(problem: Problem, given: Any, non_contiguous: bool) -> list[Any]:
    if given is not None:
        return list(as_tuple(given))
    source = np.random.default_rng(0)
    seeds = []
    for output in problem.outputs():
        if not output.requires_grad:
            continue
        y = array_of(output)
        values = source.standard_normal((*y.shape, 2) if non_contiguous else y.shape).astype(y.dtype)
        if y.dtype.kind == "c":
            values = values + (1j * source.standard_normal(values.shape)).astype(y.dtype)
        seed = problem.tensor(values, output)
        seeds.append((seed[..., 0] if non_contiguous else seed).detach().requires_grad_())
    return seeds
