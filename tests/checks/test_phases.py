"""Complex eigenvectors, whose phases are arbitrary: right gradients pass, wrong ones fail."""

from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict


def hermitian(ns: Any, gl: Any, gv: Any, values: Any, vectors: Any, *, is_right: bool) -> Any:
    """The gradient of a Hermitian matrix."""
    apart = values.unsqueeze(-2) - values.unsqueeze(-1) + ns.diag_embed(ns.ones_like(values))
    inside = (vectors.mH if is_right else vectors.mT) @ gv / apart
    inside = inside - ns.diag_embed(ns.diagonal(inside)) + ns.diag_embed(gl)
    found = vectors @ inside @ vectors.mH
    return (found + found.mH) / 2


def general(ns: Any, gl: Any, gv: Any, values: Any, vectors: Any, *, is_right: bool) -> Any:
    """The gradient of a real matrix with eigenvectors of length 1."""
    apart = (values.unsqueeze(-2) - values.unsqueeze(-1)).conj() + ns.diag_embed(ns.ones_like(values))
    inside = vectors.mH @ gv
    if is_right:  # else the vectors may change their lengths
        inside = inside - vectors.mH @ (vectors * ns.diagonal(inside).real)
    inside = inside / apart
    inside = inside - ns.diag_embed(ns.diagonal(inside)) + ns.diag_embed(gl)
    return (ns.linalg.inv(vectors).mH @ inside @ vectors.mH).real


CASES = {
    "eigh": (hermitian, {"shape": [3, 3], "dtype": "complex128", "domain": "spd"}),
    "eig": (general, {"shape": [3, 3]}),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_right", [True, False])
def test_a_gradient_need_not_follow_the_phase(name: str, is_right: bool, unexplained: None) -> None:
    torch = pytest.importorskip("torch")
    gradient, matrix = CASES[name]

    class Decomposed(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            values, vectors = getattr(torch.linalg, name)(a)
            ctx.save_for_backward(values, vectors)
            return values, vectors

        @staticmethod
        def backward(ctx: Any, gl: Any, gv: Any) -> Any:
            return gradient(torch, gl, gv, *ctx.saved_tensors, is_right=is_right)

    case = gradcli.check(Decomposed, {"a": matrix}, samples=1, shrink=False, only=["gradient", "higher-order"]).cases[0]
    failed = {(e.check, e.output) for e in case.evidence if e.verdict is Verdict.FAILED}
    assert failed == (set() if is_right else {("gradient", 1)})
    assert case.verdict is (Verdict.PASSED if is_right else Verdict.FAILED), case
