"""The comparison that PyTorch makes: central differences with one fixed step, compared with backward by tolerances."""

from __future__ import annotations

from gradcli.tolerance.forward_mode import check_batched_gradients, check_forward_mode
from gradcli.tolerance.jacobians import check_independence, compare_entries, compare_projections
from gradcli.tolerance.options import Options
from gradcli.tolerance.problem import Problem
from gradcli.tolerance.requirements import check_gradients_fit, check_undefined_gradients, refuse_overlaps


def check_as_pytorch(problem: Problem, options: Options) -> None:
    """Everything that was asked for, decided as PyTorch decides it.

    Raises:
        GradcheckError: something is wrong.
        RuntimeError: elements of an input share memory.
    """
    if options.check_backward_ad:
        _check_backward(problem, options)
    if options.check_batched_grad:
        check_batched_gradients(problem)
    if options.check_forward_ad:
        check_forward_mode(problem, options, significance=options.rtol)


def _check_backward(problem: Problem, options: Options) -> None:
    refuse_overlaps(problem)
    outputs = problem.tensor_outputs()
    if not any(output.requires_grad for output in outputs):
        check_independence(problem, options.eps)
        return
    if options.fast_mode:
        compare_projections(problem, outputs, options.eps, options.atol, options.rtol, options.nondet_tol)
    else:
        compare_entries(problem, outputs, options.eps, options.atol, options.rtol, options.nondet_tol)
    check_gradients_fit(problem, outputs, options.check_grad_dtypes)
    if options.check_undefined_grad:
        check_undefined_gradients(problem)


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
