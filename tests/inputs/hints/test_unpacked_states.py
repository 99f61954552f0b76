"""Arguments called like containers, which forward unpacks, are tensors where documentation or backward says so."""

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.backends.numpy.claims import GradientPair
from gradcli.verdict import Verdict


def pendulum(ns: Any, documentation: str = "", friction: float = 0.1) -> type:
    """The derivative of the state of a pendulum, whose backward has a coefficient of friction of its own."""

    class Pendulum(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, state: Any, length: float = 0.7) -> Any:
            theta, omega = state
            ctx.save_for_backward(state)
            ctx.length = length
            return ns.stack((omega, -9.81 / length * ns.sin(theta) - 0.1 * omega))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (state,) = ctx.saved_tensors
            return ns.stack((-g[1] * 9.81 / ctx.length * ns.cos(state[0]), g[0] - friction * g[1])), None

    Pendulum.__doc__ = documentation
    return Pendulum


@pytest.mark.sampled(9)
@pytest.mark.parametrize("words", ["", "state: (2,)", "state (2,) holds the angle and its velocity"])
@pytest.mark.parametrize(
    ("friction", "verdict"), [(0.1, Verdict.PASSED), (0.101, Verdict.FAILED), (0.0, Verdict.FAILED)]
)
@pytest.mark.usefixtures("unexplained")
def test_the_state_of_a_function(ns: Any, words: str, friction: float, verdict: Verdict) -> None:
    (case,) = gradcli.check(pendulum(ns, words, friction), order=1, shrink=False).cases
    assert [(spec.name, spec.shape) for spec in case.inputs] == [("state", (2,))]
    assert case.verdict is verdict, (case.findings, case.error)


def rate(state: Any) -> Any:
    """state: (2, N)"""
    theta, omega = state
    return omega**2 / 2 + 9.81 * (1 - np.cos(theta))


@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED), (0, Verdict.FAILED)])
def test_a_documented_shape_in_numpy(factor: float, verdict: Verdict) -> None:
    def gradient(state: Any, g: Any) -> Any:
        return g * np.stack([9.81 * np.sin(state[0]), factor * state[1]])

    (case,) = gradcli.check(GradientPair(function=rate, gradient=gradient), order=1, shrink=False).cases
    assert [(spec.name, spec.shape) for spec in case.inputs] == [("state", (2, 3))]
    assert case.verdict is verdict, (case.findings, case.error)


def energy(state: Any) -> Any:
    h, c = state
    return h * np.tanh(c)


@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_pair_of_arrays_stays_one(factor: float, verdict: Verdict) -> None:
    def gradient(state: Any, g: Any) -> Any:
        h, c = state
        return (g * np.tanh(c), factor * g * h / np.cosh(c) ** 2)

    (case,) = gradcli.check(GradientPair(function=energy, gradient=gradient), order=1, shrink=False).cases
    assert [spec.name for spec in case.inputs][-2:] == ["state[0]", "state[1]"]
    assert case.verdict is verdict, (case.findings, case.error)
