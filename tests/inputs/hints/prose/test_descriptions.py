"""Descriptions without a colon or a verb: numbers without axes, and what stands behind an interval."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("x (N,) states; c 0-dim tensor; s", {"c": "scalar"}),
        ("x (N,), c and s zero-dimensional arrays", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c the 0-d tensor limit", {}),
        ("x (N,), c > 0 and s scalars (0-d tensors)", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c > 0 and s >= 0.5 scalars", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c in (-1, 1) (scalar), s", {"c": "scalar"}),
        ("x (N,), c (), s ()", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c () is called with s", {}),
        ("linear if c > 0 and s scalars", {}),
        ("zero for x > 0 positive part of s", {}),
    ],
)
def test_numbers_without_axes(text: str, types: dict[str, str]) -> None:
    names = ("x", "c", "s")
    assert documented_values(names, "", text, shapes=documented_shapes(names, "", text)).types == types


def damped(ns: Any, documentation: str, factor: float) -> type:
    class Damped(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, v: Any, c: Any, s: Any) -> Any:
            ctx.save_for_backward(v, c, s)
            return s * v - c * v * v.abs()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            v, c, s = ctx.saved_tensors
            return g * (s - 2 * c * v.abs()), -factor * (g * v * v.abs()).sum(), (g * v).sum()

    return Damped


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize(
    "text",
    ["v (N, 3) velocities; c 0-dim tensor; s 0-d tensor", "v (N, 3) velocities, c > 0 and s > 0 scalars (0-d tensors)"],
)
def test_numbers_are_drawn_without_axes(ns: Any, text: str, factor: float) -> None:
    (case,) = gradcli.check(damped(ns, text, factor), order=1, shrink=False, only=("gradient",)).cases
    assert {spec.name: spec.shape for spec in case.inputs} == {"v": (4, 3), "c": (), "s": ()}
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"c"})
