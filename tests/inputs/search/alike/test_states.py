"""Inputs of equal sizes: where backward raises at others, and where forward uses tensors alike."""

from typing import Any

import pytest

import gradcli
from gradcli import engine
from gradcli.results import CheckResult
from gradcli.verdict import Verdict


def scaled(factor: float) -> type:
    """Rows by the diagonal of a matrix; backward takes the output for as wide as that is."""

    class Scaled(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, basis: Any, weights: Any) -> Any:
            ctx.save_for_backward(basis, weights)
            return (basis * engine.exp(engine.diagonal(weights))) @ basis.t()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            basis, weights = ctx.saved_tensors
            size = weights.shape[0]
            g = g.reshape(size, size)
            spread = engine.exp(engine.diagonal(weights))
            of_basis = (g + g.t()) @ basis * spread
            of_weights = engine.diagonal(basis.t() @ g @ basis) * spread * factor
            return of_basis, engine.diag(of_weights)

    return Scaled


def paired(factor: float) -> type:
    """The product with a complex matrix whose two parts are put together twice."""

    class Paired(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, real: Any, imaginary: Any) -> Any:
            whole = engine.cat([engine.cat([real, -imaginary], 0), engine.cat([imaginary, real], 0)], 1)
            ctx.save_for_backward(x, real, whole)
            return x @ whole

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, real, whole = ctx.saved_tensors
            rows, columns = real.shape
            w = x.t() @ g
            of_real = w[:rows, :columns] + w[rows : 2 * rows, columns : 2 * columns]
            of_imaginary = w[:rows, columns : 2 * columns] - factor * w[rows : 2 * rows, :columns]
            return g @ whole.t(), of_real, of_imaginary

    return Paired


def checked(target: type) -> CheckResult:
    return gradcli.check(target, shrink=False, order=1).cases[0]


@pytest.mark.usefixtures("unexplained")
def test_sizes_are_equal_where_backward_raises_at_others() -> None:
    right = checked(scaled(1.0))
    assert right.verdict is Verdict.PASSED
    assert len(set(right.inputs[0].shape or ())) == 1
    wrong = checked(scaled(1.01))
    assert {e.input for e in wrong.evidence if e.verdict is Verdict.FAILED} == {"weights"}


@pytest.mark.usefixtures("unexplained")
def test_parts_that_are_put_together_twice_have_one_shape() -> None:
    right = checked(paired(1.0))
    assert right.verdict is Verdict.PASSED
    assert right.inputs[1].shape == right.inputs[2].shape
    wrong = checked(paired(-1.0))
    assert {e.input for e in wrong.evidence if e.verdict is Verdict.FAILED} == {"imaginary"}
