"""An axis that backward fixes: refused where the axes have different lengths, wrong without an error where equal."""

from collections.abc import Callable
from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict

Backward = Callable[[Any, Any, Any, int], Any]
FORWARDS: dict[str, Callable[[Any, Any, int], Any]] = {
    "log-sum-exp": lambda ns, x, dim: ns.logsumexp(x, dim),
    "mean of squares": lambda ns, x, dim: (x * x).mean(dim),
    "norm": lambda ns, x, dim: (x * x).sum(dim).sqrt(),
}
BACKWARDS: dict[str, Callable[[int | None], Backward]] = {
    "log-sum-exp": lambda fixed: (
        lambda ns, g, x, dim: _whole(g, dim, fixed) * (x - ns.logsumexp(x, dim, keepdim=True)).exp()
    ),
    "mean of squares": lambda fixed: lambda ns, g, x, dim: _whole(g, dim, fixed) * 2 * x / x.shape[dim],
    "norm": lambda fixed: lambda ns, g, x, dim: _whole(g, dim, fixed) * x / (x * x).sum(dim, keepdim=True).sqrt(),
}


def _whole(g: Any, dim: int, fixed: int | None) -> Any:
    return g.unsqueeze(dim if fixed is None else fixed)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FORWARDS)
@pytest.mark.parametrize("default", [-1, 0])
def test_an_axis_that_backward_fixes_is_found(ns: Any, name: str, default: int, unexplained: None) -> None:
    def function_of(fixed: int | None) -> Any:
        class Reduced(ns.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any, dim: int = default) -> Any:
                ctx.save_for_backward(x)
                ctx.dim = dim
                return FORWARDS[name](ns, x, dim)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return BACKWARDS[name](fixed)(ns, g, x, ctx.dim), None

        return Reduced

    right, wrong = (gradcli.check(function_of(fixed), order=1, shrink=False).cases[0] for fixed in (None, default))
    assert right.verdict is Verdict.PASSED
    assert wrong.verdict is Verdict.FAILED
    assert {evidence.check for evidence in wrong.evidence if evidence.verdict is Verdict.FAILED} == {"constants"}


ORDERS = [[2, 0, 1], [1, 0, 2], [0, 2, 1]]
"""Each row is an order, and the second column is none."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fixed", [None, 1])
def test_given_orders_are_turned_along_with_the_axis(ns: Any, fixed: int | None, unexplained: None) -> None:
    class Reordered(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, order: Any, back: Any, dim: int) -> Any:
            ctx.save_for_backward(x, back)
            ctx.dim = dim if fixed is None else fixed
            return ns.gather(x.exp(), dim, order)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, back = ctx.saved_tensors
            return x.exp() * ns.gather(g, ctx.dim, back), None, None, None

    x, order = ns.tensor([[0.3, -0.8, 1.1], [0.6, 0.2, -0.4], [-1.2, 0.9, 0.7]], requires_grad=True), ns.tensor(ORDERS)
    case = gradcli.check(Reordered, (x, order, ns.argsort(order, 1), 1), order=1, shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if fixed is None else Verdict.FAILED), case
    failed = [evidence for evidence in case.evidence if evidence.verdict is Verdict.FAILED]
    assert all("with dim=0 (given: 1)" in str(evidence.note) for evidence in failed), failed
