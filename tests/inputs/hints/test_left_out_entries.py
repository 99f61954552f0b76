"""Forwards that leave out entries at an end of an axis: the rest has the size that it is combined with."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.equal_parts import left_out_of, lengthened
from gradcli.verdict import Verdict


def test_what_slices_leave_out() -> None:
    assert left_out_of("u = n[1:]; v = x[..., :-2]") == (1, 2)
    assert left_out_of("a = x[0::2]; b = x[1:3]; c = x[:2]; d = x[-1:]") == ()


def test_which_sizes_the_axes_need() -> None:
    assert list(lengthened([(5, 2)], {0: 3, 1: 4, 2: 5}, (1,))) == [(0, 6)]


def rotation(ns: Any, *, projects: bool = True, factor: float = 1) -> type:
    """Vectors rotated by a quaternion, which forward normalises; backward may lack the projection for that."""

    def cross(a: Any, b: Any) -> Any:
        x, y, z = a[..., 0], a[..., 1], a[..., 2]
        p, q, r = b[..., 0], b[..., 1], b[..., 2]
        return ns.stack([y * r - z * q, z * p - x * r, x * q - y * p], -1)

    class Rotate(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, v: Any) -> Any:
            assert v.shape[-1] == 3
            n = q / (q * q).sum() ** 0.5
            w, u = n[0], n[1:]
            u = u + 0 * v
            t = 2 * cross(u, v)
            ctx.save_for_backward(q, v)
            return v + w * t + cross(u, t)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            q, v = ctx.saved_tensors
            length = (q * q).sum() ** 0.5
            n = q / length
            w, u = n[0], n[1:] + 0 * v
            t = 2 * cross(u, v)
            gt = w * g + cross(g, u)
            gu = cross(t, g) + 2 * cross(v, gt)
            gn = ns.cat([(g * t).sum().reshape(1), gu.reshape(-1, 3).sum(0)])
            return (gn - n * (gn * n).sum() * projects) / length, factor * (g + 2 * cross(gt, u))

    return Rotate


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("mistake", "verdict"),
    [({}, Verdict.PASSED), ({"projects": False}, Verdict.FAILED), ({"factor": 1.01}, Verdict.FAILED)],
)
@pytest.mark.usefixtures("unexplained")
def test_a_quaternion(ns: Any, mistake: Any, verdict: Verdict) -> None:
    (case,) = gradcli.check(rotation(ns, **mistake), order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert case.inputs[0].shape == (4,)
    assert {e.input for e in case.evidence if e.verdict is Verdict.FAILED} == (
        {"q"} if "projects" in mistake else {"v"} if mistake else set()
    )
