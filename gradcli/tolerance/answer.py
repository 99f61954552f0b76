"""The order in which a gradcheck is answered: by the error bound, by the caller's tolerances where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from gradcli.backends.recording import graphs_recorded
from gradcli.errors import UserCodeError
from gradcli.tolerance.bounded import GradcheckWarning, Judgement, judgement_of
from gradcli.tolerance.by_tolerance import check_as_pytorch, check_values
from gradcli.tolerance.claim import claims_of
from gradcli.tolerance.cotangents import with_cotangents
from gradcli.tolerance.forward_mode import check_batched_gradients, check_forward_mode
from gradcli.tolerance.jacobians import check_reentrancy
from gradcli.tolerance.nested import taken_apart
from gradcli.tolerance.options import Options
from gradcli.tolerance.problem import Function, GradcheckError, Problem, bits_of, out_of_inference
from gradcli.tolerance.requirements import (
    check_gradients_fit,
    check_undefined_gradients,
    warn_of_low_precision,
)
from gradcli.tolerance.sparse import dense_form
from gradcli.verdict import Verdict

_SIGNIFICANCE = {64: 1e-7, 32: 1e-3, 16: 0.1}
"""The relative error that matters, by the bits of the coarsest tracked input."""
_LOW_PRECISION_STEP, _LOW_PRECISION_TOLERANCE = 5e-3, 2e-2
"""For the comparison by tolerance of inputs below 64 bits: near the cube root of float32's rounding, and its square."""

_BY_TOLERANCE: ContextVar[bool] = ContextVar("_BY_TOLERANCE", default=False)


@contextmanager
def _decided(*, by_tolerance: bool) -> Iterator[None]:
    token = _BY_TOLERANCE.set(by_tolerance)
    try:
        yield
    finally:
        _BY_TOLERANCE.reset(token)


def decided_by_tolerance() -> AbstractContextManager[None]:
    """A context in which the next answer is PyTorch's; what the caller's function asks in its turn is not."""
    return _decided(by_tolerance=True)


def answer(
    func: Function, inputs: tuple[Any, ...], options: Options, raise_exception: bool, grad_outputs: Any = None
) -> bool:
    """Whether everything that the options ask for is right; raises GradcheckError instead of False, if asked to."""
    options.require_consistency()
    by_tolerance = _BY_TOLERANCE.get()
    func, inputs = taken_apart(func, inputs)
    try:
        with graphs_recorded(), _decided(by_tolerance=False):
            given = Problem(func, tuple(out_of_inference(value) for value in inputs))
            warn_of_low_precision(given)
            problem = Problem(*dense_form(given.torch, func, given.inputs, options.masked))
            if by_tolerance:
                first = options.order == 1
                check_as_pytorch(
                    problem if first else with_cotangents(problem, grad_outputs, options.non_contiguous), options
                )
            elif options.order == 1:
                _check(problem, options)
            else:
                _check_second(problem, options, grad_outputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(problem: Problem, options: Options) -> None:
    """Everything that was asked for at first order.

    Raises:
        GradcheckError: something is wrong.
    """
    outputs = problem.dense_outputs()
    if options.check_backward_ad:
        passed = _check_backward(problem, options)
        _check_requirements(problem, options, outputs if passed else None)
    if options.check_forward_ad:
        check_forward_mode(problem, options, significance_of(problem))


def _check_second(problem: Problem, options: Options, grad_outputs: Any) -> None:
    """Everything that was asked for at second order: natively, else as the first order of backward itself."""
    problem.dense_outputs()
    first = with_cotangents(problem, grad_outputs, options.non_contiguous)
    if grad_outputs is not None:
        _check(first, options.at_first_order())
        return
    if options.check_backward_ad:
        _check_backward(problem, options)
        _check_requirements(first, options)
    if options.check_forward_ad:
        check_forward_mode(first, options, significance_of(first))


def _check_requirements(problem: Problem, options: Options, passed: list[Any] | None = None) -> None:
    """What is asked of backward apart from its values.

    Where the battery has passed the problem at first order, its outputs may be given, for their graph serves still; and
    that backward multiplies by grad_output has been seen, which gradients of no output at all show once more.
    """
    outputs = problem.outputs() if passed is None else passed
    if not any(output.requires_grad for output in outputs):
        return
    if options.nondet_tol > 0:
        check_reentrancy(problem, outputs, options.nondet_tol)
    if passed is None or options.check_grad_dtypes or not options.check_undefined_grad:
        check_gradients_fit(problem, outputs, options.check_grad_dtypes)
    if options.check_batched_grad:
        check_batched_gradients(problem)
    if options.check_undefined_grad:
        check_undefined_gradients(problem, outputs if passed is not None else None)


def _check_backward(problem: Problem, options: Options) -> bool:
    """Compare backward with finite differences; returns whether the battery passed.

    Raises:
        GradcheckError: it is wrong.
    """
    judgement = _judged(problem, options)
    if judgement is None or judgement.verdict is Verdict.INCONCLUSIVE:
        _by_tolerance(problem, options, "" if judgement is None else judgement.text)
    elif judgement.verdict is Verdict.FAILED:
        raise problem.error(judgement.text)
    return judgement is not None and judgement.verdict is Verdict.PASSED


def _judged(problem: Problem, options: Options) -> Judgement | None:
    """The verdict on the first form of the problem that runs; None where the user's code raised in all of them."""
    for claim in claims_of(problem):
        try:
            return judgement_of(claim, options, significance_of(problem))
        except UserCodeError:
            continue
    return None


def significance_of(problem: Problem) -> float:
    """The relative error that matters at the precision of the tracked inputs."""
    return _SIGNIFICANCE[min(64, *(bits_of(tensor) for tensor in problem.tracked()))]


def _by_tolerance(problem: Problem, options: Options, why: str) -> None:
    """Decide as PyTorch would, where no error bound is available; the user's own exceptions are not changed."""
    low = significance_of(problem) > _SIGNIFICANCE[64]
    eps = max(options.eps, _LOW_PRECISION_STEP) if low else options.eps
    rtol = max(options.rtol, _LOW_PRECISION_TOLERANCE) if low else options.rtol
    atol = max(options.atol, _LOW_PRECISION_TOLERANCE) if low else options.atol
    first = problem if options.order == 1 else with_cotangents(problem, None, False)
    try:
        check_values(first, eps, atol, rtol, options.nondet_tol)
    except GradcheckError as error:
        raise problem.error(
            f"{error}\nNo error bound is available, so this was decided by tolerance. {why}".rstrip()
        ) from error
    warnings.warn(
        f"no error bound is available: accepted by eps={eps:g}, atol={atol:g}, rtol={rtol:g}\n{why}".strip(),
        GradcheckWarning,
        stacklevel=5,
    )
