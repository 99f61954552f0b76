"""Matrices of an iteration for a square root are positive definite, although it also runs with positive entries."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.search.domains import SPD, computes_of_matrices, domain_choices
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("forward", "is_so"),
    [
        ("y = 3 * torch.eye(n) - x.bmm(z)", True),
        ("y = np.eye(n) - x @ z", True),
        ("y = x @ z", False),
        ("y = np.eye(c)[labels] * x", False),
        ("@staticmethod\ndef forward(ctx, x): return x * torch.eye(3)", False),
    ],
)
def test_products_beside_a_unit_matrix(forward: str, is_so: bool) -> None:
    assert computes_of_matrices(forward) is is_so


def test_square_ones_come_first() -> None:
    of_matrices = list(domain_choices((0, 1), {0: (3, 4), 1: (5, 3, 3)}, thorough=False, of_matrices=True))
    assert of_matrices[0] == {1: SPD}
    assert of_matrices[1:] == list(domain_choices((0, 1), {0: (3, 4), 1: (5, 3, 3)}, thorough=False))


def root(ns: Any, factor: float) -> type:
    """Two steps of Newton's iteration for the root of a matrix of trace 1, times the root of the trace."""

    class Root(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            trace = ns.trace(a)
            unit = ns.eye(a.shape[0], dtype=a.dtype)
            scaled = a / trace
            half = (3 * unit - scaled) / 2
            y = scaled @ half
            ctx.save_for_backward(a, trace, scaled, half, y)
            return y * trace.sqrt()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, trace, scaled, half, y = ctx.saved_tensors
            inner = g * trace.sqrt()
            of_scaled = inner @ half - factor * (scaled @ inner) / 2
            of_trace = (g * y).sum() / (2 * trace.sqrt()) - (of_scaled * a).sum() / trace**2
            return of_scaled / trace + of_trace * ns.eye(a.shape[0], dtype=a.dtype)

    return Root


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("unexplained")
def test_a_gradient_that_is_right_for_symmetric_matrices(ns: Any) -> None:
    right = gradcli.check(root(ns, 1.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED
    assert [spec.domain for spec in right.inputs] == ["spd"]
    assert gradcli.check(root(ns, 1.01), shrink=False, order=1).verdict is Verdict.FAILED
