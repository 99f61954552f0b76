"""Symmetric matrices are drawn where forward calls an operation for such, not where it only has a name like one."""

from typing import Any

import pytest

from gradcli.cases import CheckSpec
from gradcli.findings import FindingKind
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transposed", [True, False])
def test_a_local_name_chooses_no_domain(ns: Any, transposed: bool) -> None:
    class Volume(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            _, logdet = ns.linalg.slogdet(a)
            return logdet * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inverse = ns.linalg.inv(ctx.saved_tensors[0])
            return g * (inverse.mT if transposed else inverse)

    result = check_object(Volume, case_of(CheckSpec(target="module:Volume"), Settings(order=1, shrink=False)))
    assert result.verdict is (Verdict.PASSED if transposed else Verdict.FAILED)
    assert [f.kind for f in result.findings] == ([] if transposed else [FindingKind.TRANSPOSED])
    assert not any("is drawn from domain" in note for note in result.notes)


def test_a_call_does(ns: Any) -> None:
    class Factor(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            l = ns.linalg.cholesky(a)
            ctx.save_for_backward(l)
            return l * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (l,) = ctx.saved_tensors
            inverse = ns.linalg.inv(l)
            phi = (l.mT @ g).tril()
            phi = phi - ns.diag(ns.diagonal(phi)) / 2
            full = inverse.mT @ phi @ inverse
            return (full + full.mT) / 2

    result = check_object(Factor, case_of(CheckSpec(target="module:Factor"), Settings(order=1, shrink=False)))
    assert result.verdict is Verdict.PASSED, result
    assert any("is drawn from domain spd" in note for note in result.notes)


def forwards(ns: Any, form: str) -> Any:
    def through_logdet(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        return ns.logdet(a)

    def through_det(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        determinant = ns.linalg.det(a)
        return determinant.log()

    return through_logdet if form == "logdet" else through_det


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("form", ["logdet", "log of det"])
def test_a_determinant_whose_logarithm_is_taken_is_positive_and_not_of_a_symmetric_matrix(
    ns: Any, form: str, transposed: bool, seed: int
) -> None:
    class Volume(ns.autograd.Function):
        forward = staticmethod(forwards(ns, form))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inverse = ns.linalg.inv(ctx.saved_tensors[0])
            return g * (inverse.mT if transposed else inverse)

    result = check_object(Volume, case_of(CheckSpec(target="module:Volume"), Settings(order=1, seed=seed)))
    assert result.verdict is (Verdict.PASSED if transposed else Verdict.FAILED)
    assert [f.kind for f in result.findings] == ([] if transposed else [FindingKind.TRANSPOSED])
    assert any("is drawn from domain diagonally-dominant" in note for note in result.notes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.usefixtures("unexplained")
def test_a_matrix_of_a_solver_is_not_narrowed(ns: Any, factor: float) -> None:
    class Solve(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            l = ns.linalg.cholesky(a)
            y = ns.linalg.solve_triangular(l, b, upper=False)
            x = ns.linalg.solve_triangular(l.t(), y, upper=True)
            ctx.save_for_backward(a, x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, x = ctx.saved_tensors
            of_b = ns.linalg.solve(a, g)
            return -factor * of_b @ x.t(), of_b

    result = check_object(Solve, case_of(CheckSpec(target="module:Solve"), Settings(order=1, shrink=False)))
    assert [spec.domain for spec in result.inputs] == ["spd", "normal"]
    assert result.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED), result
