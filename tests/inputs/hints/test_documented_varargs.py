"""What documentation says of `*masses` holds for each of them."""

from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict


def attraction(ns: Any, words: str, factor: float = 1, *, swaps: bool = False) -> type:
    """The energy of two bodies; backward has a factor for the positions, or the masses' gradients swapped."""

    class Pair(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, pos: Any, *masses: Any) -> Any:
            one, other = masses
            d = pos[0] - pos[1]
            ctx.save_for_backward(pos, one, other)
            return -one * other / ((d * d).sum() + 0.01) ** 0.5

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            pos, one, other = ctx.saved_tensors
            d = pos[0] - pos[1]
            squared = (d * d).sum() + 0.01
            force = factor * (g * one * other).sum() * d / squared**1.5
            of_mass = -g / squared**0.5
            masses = (one, other) if swaps else (other, one)
            return ns.stack([force, -force]), of_mass * masses[0], of_mass * masses[1]

    Pair.__doc__ = words
    return Pair


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("words", "shape", "domain"),
    [
        ("pos: (2, D); masses: two scalars", (), "normal"),
        ("pos: (2, D)\nmasses: positive scalars", (), "positive"),
        ("pos (2, D), masses (K,)", (4,), "normal"),
    ],
)
@pytest.mark.parametrize(
    ("mistake", "verdict"),
    [({}, Verdict.PASSED), ({"factor": 1.01}, Verdict.FAILED), ({"swaps": True}, Verdict.FAILED)],
)
@pytest.mark.usefixtures("unexplained")
def test_each_is_as_documented(
    ns: Any, words: str, shape: tuple[int, ...], domain: str, mistake: Any, verdict: Verdict
) -> None:
    (case,) = gradcli.check(attraction(ns, words, **mistake), order=1, shrink=False).cases
    shapes = [("pos", (2, 3)), ("masses[0]", shape), ("masses[1]", shape)]
    assert [(spec.name, spec.shape) for spec in case.inputs] == shapes
    assert {spec.domain for spec in case.inputs[1:]} == {domain}
    assert case.verdict is verdict, (case.findings, case.error)
