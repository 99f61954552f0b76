"""A term that the source adds is called extra; an argument that it divides by is divided by once too often."""

import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.verdict import Verdict

OBJECTIVE = """import numpy as np


def objective(W, H, V, alpha=0.1):
    R = V - W @ H
    loss = 0.5 * np.sum(R**2) + 0.5 * alpha * np.sum(W**2)
    dW = -R @ H.T + alpha * W
    dH = -W.T @ R {of_h}
    return loss, dW, dH
"""


def checked(of_h, folder):
    """A loss with its gradients, whose second one has a term `of_h`."""
    path = folder / f"objective_{abs(hash(of_h))}.py"
    path.write_text(OBJECTIVE.format(of_h=of_h))
    (case,) = gradcli.check(f"{path}:objective", order=1, samples=1, shrink=False).cases
    return case


def test_the_right_gradient_passes(tmp_path):
    assert checked("", tmp_path).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("of_h", "says"),
    [
        ("+ alpha * H", "has the extra term 1/10·grad_output·H; without it, it is right"),
        ("+ 0.25 * H", "has the extra term 1/4·grad_output·H; without it, it is right"),
        ("- alpha * H", "lacks the term 1/10·grad_output·H"),
        ("+ alpha * (H + 0)", "lacks the term -1/10·grad_output·H"),
    ],
)
def test_a_term_that_the_source_adds_is_called_extra(of_h, says, tmp_path):
    case = checked(of_h, tmp_path)
    assert case.verdict is Verdict.FAILED
    assert says in case.findings[0].message


def softplus(power):
    """The logarithm of 1 + exp(beta·x) over beta, whose gradient has beta to a power."""

    class Softplus(Function):
        @staticmethod
        def forward(ctx, x, beta=0.7):
            ctx.save_for_backward(x)
            ctx.beta = beta
            return (1 + (beta * x).exp()).log() / beta

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            slope = g * (ctx.beta * x).sigmoid()
            if power == 1:
                return slope * ctx.beta, None
            return slope, None

    class Divided(Softplus):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (ctx.beta * x).sigmoid() / ctx.beta, None

    return Divided if power == -1 else Softplus


@pytest.mark.parametrize(
    ("power", "says"), [(1, "beta is an extra factor"), (-1, "beta was divided by once too often"), (0, None)]
)
def test_an_argument_that_backward_divides_by_was_not_left_out(power, says):
    (case,) = gradcli.check(softplus(power), order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if says is None else Verdict.FAILED)
    assert says is None or says in case.findings[0].message
