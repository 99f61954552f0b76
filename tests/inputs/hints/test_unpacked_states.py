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


def damped(ns: Any, factor: float = 1.0) -> type:
    """A damped spring, whose stiffness and friction another function reads from `params`."""

    def force(u: Any, p: Any) -> Any:
        return p[0] * ns.sin(u) + p[1] * u

    class Damped(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, u: Any, params: Any) -> Any:
            ctx.save_for_backward(u, params)
            pull = force
            return pull(u, params) + u

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            u, p = ctx.saved_tensors
            return g * (1 + p[0] * ns.cos(u) + p[1]), ns.stack([(g * ns.sin(u)).sum(), factor * (g * u).sum()])

    return Damped


def gained(ns: Any, factor: float = 1.0) -> type:
    """Two gains of one signal, which are read one by one while a list is filled."""

    class Gained(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, u: Any, params: Any) -> Any:
            ctx.save_for_backward(u, params)
            parts = []
            parts.append(params[0] * u)
            parts.append(ns.exp(params[1]) * u)
            return ns.stack(parts)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            u, p = ctx.saved_tensors
            e = ns.exp(p[1])
            return p[0] * g[0] + e * g[1], ns.stack([(g[0] * u).sum(), factor * e * (g[1] * u).sum()])

    return Gained


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED), (0, Verdict.FAILED)])
@pytest.mark.parametrize("made", [damped, gained])
def test_numbers_that_are_read_by_place_are_one_tensor(ns: Any, made: Any, factor: float, verdict: Verdict) -> None:
    (case,) = gradcli.check(made(ns, factor), order=1, shrink=False).cases
    assert {spec.name: spec.shape for spec in case.inputs}["params"] == (2,)
    assert case.verdict is verdict, (case.findings, case.error)
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"params"})


def line(params: Any, x: Any) -> Any:
    return params[0] * x + np.sin(params[1])


@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.parametrize("held", [tuple, np.array])
def test_the_gradient_tells_an_array_from_a_tuple_in_numpy(held: Any, factor: float, verdict: Verdict) -> None:
    def gradient(params: Any, x: Any, g: Any) -> Any:
        slope, shift = (g * x).sum(), factor * (g * np.cos(params[1])).sum()
        return (slope, shift), g * params[0]

    def of_array(params: Any, x: Any, g: Any) -> Any:
        d = np.array([(g * x).sum(), factor * (g * np.cos(params[1])).sum()])
        return d, g * params[0]

    pair = GradientPair(function=line, gradient=gradient if held is tuple else of_array)
    (case,) = gradcli.check(pair, order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    names = [spec.name for spec in case.inputs]
    assert names == (["params", "x"] if held is np.array else ["params[0]", "params[1]", "x"])
