"""A program that returns several tensors: no choice of the trace may make their gradients cancel."""

import numpy as np
import pytest

import gradcli
from gradcli.runner.traceable import DrawnCotangents
from tests.tracing.tracing import fate


def opposite(f):
    x = f.ones(2, requires_grad=True)
    return x * 2, x * -2


def opposite_losses(f):
    x = f.ones(2, requires_grad=True)
    return (x * 2).sum(), (x * -2).sum()


def many_that_cancel_in_pairs(f):
    x = f.ones(1, requires_grad=True)
    return {"signs": [x * sign for _ in range(4) for sign in (1, -1)]}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("program", [opposite, opposite_losses, many_that_cancel_in_pairs])
def test_gradients_that_add_up_to_zero_are_not_hidden(framework, program, seed):
    found = fate(gradcli.trace(lambda: program(framework), seed=seed), "x")
    assert found.grad.norm > 0
    assert found.symptom is None


def test_a_gradient_that_is_zero_for_every_output_is_still_reported(framework):
    def program():
        x = framework.ones(2, requires_grad=True)
        return x - x, (x - x).sum()

    found = fate(gradcli.trace(program), "x")
    assert found.grad.norm == 0
    assert "cancel" in found.why


def test_the_gradient_of_a_loss_is_that_of_its_own_backward(framework):
    def program():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        return (x * x).sum()

    assert fate(gradcli.trace(program), "x").grad.values == (2.0, 4.0)


def test_the_factors_keep_the_sets_of_numbers_apart_and_exact():
    drawn = DrawnCotangents(0)
    numbers = [set(np.abs(drawn.next((200,)))) for _ in range(9)]
    assert all(np.float16(value) == value for found in numbers for value in found)
    assert not numbers[0] & numbers[1]
    assert all(1.0 not in found for found in numbers[1:])
    assert DrawnCotangents(0).next(()) == 1
