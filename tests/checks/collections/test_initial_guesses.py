"""Iterations from an initial guess: the solution does not depend on it, so no gradient is right for the guess alone."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict
from tests.pairs import in_turn

A = np.array([0.51, 0.87, 0.33])
GUESS = np.array([0.6, 0.45, 0.8])


def fixed_point(ns, step, slope, *, left_out):
    """The z with z = step(a, z); `slope` is dz/da there. Backward returns None for the argument `left_out`."""

    class FixedPoint(ns.autograd.Function):
        @staticmethod
        def forward(ctx, a, guess):
            z, change = guess, 1.0
            while change > 1e-8:
                following = step(ns, a, z)
                change = float((following - z).abs().max())
                z = following
            ctx.save_for_backward(a, z)
            return z

        @staticmethod
        def backward(ctx, g):
            gradient = g * slope(ns, *ctx.saved_tensors)
            return (None, gradient) if left_out == "a" else (gradient, None)

    return FixedPoint


STEPS = {
    "cosine": (lambda ns, a, z: a * ns.cos(z), lambda ns, a, z: ns.cos(z) / (1 + a * ns.sin(z))),
    "Newton's root": (lambda ns, a, z: (z + a / z) / 2, lambda ns, a, z: 1 / (2 * z)),
    "damped": (lambda ns, a, z: z + (a - z - z**3) / 3, lambda ns, a, z: 1 / (1 + 3 * z * z)),
}


@pytest.mark.sampled(1)
@in_turn("name", STEPS)
def test_none_for_the_guess_alone_is_right(ns, name) -> None:
    inputs = tuple(ns.tensor(value, requires_grad=True) for value in (A, GUESS))
    for left_out, verdict in (("guess", Verdict.PASSED), ("a", Verdict.FAILED)):
        target = fixed_point(ns, *STEPS[name], left_out=left_out)
        (case,) = gradcli.check(target, inputs, order=1, shrink=False, only=["returns", "gradient"]).cases
        assert case.verdict is verdict, (left_out, case.findings)
