"""Symmetric matrices: only what forward does not read is a matter of convention."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the specimens are PyTorch's as well as the engine's")

import numpy as np
import torch

import gradcli
from benchmarks.correct.draws import spd
from benchmarks.correct.triangles import READERS, doubled, folded, function, right
from gradcli import engine
from gradcli.numerics.reference.symmetric import NOTE, OTHER_SHARES
from gradcli.verdict import Verdict

WAYS = [
    pytest.param(torch, False, id="torch"),
    pytest.param(torch, True, id="torch, hidden"),
    pytest.param(engine, True, id="engine, hidden"),
]
BOTH = [pytest.param(r, id=r.name) for r in READERS if r.reads == "both"]
ONE = [pytest.param(r, id=r.name) for r in READERS if r.reads == "lower"]


def gradient_of(ns, reader, share, hidden):
    a = spd(3, 0.5, 3)(np.random.default_rng(len(reader.name))).detach().numpy()
    target = function(ns, reader, share, hidden=hidden)
    (case,) = gradcli.check(
        target, (ns.tensor(a, requires_grad=True),), order=1, seed=1, shrink=False, only=("gradient",)
    ).cases
    return next(e for e in case.evidence if e.check == "gradient")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("ns", "hidden"), WAYS)
@pytest.mark.parametrize("reader", BOTH)
@pytest.mark.usefixtures("unexplained")
def test_where_forward_reads_both_triangles_a_folded_gradient_fails(reader, ns, hidden) -> None:
    assert gradient_of(ns, reader, right, hidden).verdict is Verdict.PASSED
    assert gradient_of(ns, reader, folded, hidden).verdict is Verdict.FAILED


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("ns", "hidden"), WAYS)
@pytest.mark.parametrize("reader", ONE)
@pytest.mark.usefixtures("unexplained")
def test_where_forward_reads_one_triangle_both_ways_to_share_pass(reader, ns, hidden) -> None:
    shared, own = gradient_of(ns, reader, right, hidden), gradient_of(ns, reader, folded, hidden)
    assert (shared.verdict, own.verdict) == (Verdict.PASSED, Verdict.PASSED)
    assert shared.note == NOTE
    assert gradient_of(ns, reader, doubled, hidden).verdict is Verdict.FAILED


class ConjugateGradients(torch.autograd.Function):
    """The solution x of A x = b for symmetric A. Autodiff of the loop is right for symmetric changes of A only."""

    factor = 1.0

    @staticmethod
    def solved(a, b):
        x, r = torch.zeros_like(b), b
        p, size = r, r @ r
        for _ in range(40):
            if size <= 1e-24 * (b @ b):
                break
            step = size / (p @ (a @ p))
            x, r = x + step * p, r - step * (a @ p)
            p, size = r + (r @ r) / size * p, r @ r
        return x

    @classmethod
    def forward(cls, ctx, a, b):
        x = cls.solved(a, b)
        ctx.save_for_backward(a, x)
        return x

    @classmethod
    def backward(cls, ctx, g):
        a, x = ctx.saved_tensors
        y = cls.solved(a.mT, g)
        return -cls.factor * y[:, None] * x, y


class OffByOnePercent(ConjugateGradients):
    factor = 1.01


@pytest.mark.usefixtures("unexplained")
def test_where_autodiff_divides_the_gradient_otherwise_the_note_says_so() -> None:
    rng = np.random.default_rng(3)
    a, b = spd(2, 0.5, 3)(rng), torch.tensor(rng.standard_normal(2), requires_grad=True)
    for target, verdict in ((ConjugateGradients, Verdict.PASSED), (OffByOnePercent, Verdict.FAILED)):
        (case,) = gradcli.check(target, (a, b), order=1, seed=1, shrink=False, only=("gradient",)).cases
        found = next(e for e in case.evidence if e.check == "gradient" and e.input == "a")
        assert found.verdict is verdict
        if verdict is Verdict.PASSED:
            assert found.note == OTHER_SHARES
