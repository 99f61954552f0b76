"""A gradient that is projected on symmetric changes, or on those that keep a sum or norm, is right for these."""

import pytest

import gradcli
from gradcli.engine import autograd

pytestmark = pytest.mark.usefixtures("uncorrected")

SQUARE = {"x": {"shape": [3, 3]}}
ROWS = {"x": {"shape": [2, 3]}}


def symmetric(x, g):
    return (g + g.mT) / 2


def antisymmetric(x, g):
    return (g - g.mT) / 2


def centred(x, g):
    return g - g.mean(-1, keepdim=True)


def tangent(x, g):
    unit = x / (x * x).sum(-1, keepdim=True) ** 0.5
    return g - (g * unit).sum(-1, keepdim=True) * unit


def function_with(projection, factor=1.0):
    class Product(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp() * x.roll(1, 0)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            right = grad * x.exp() * x.roll(1, 0) + (grad * x.exp()).roll(-1, 0)
            return projection(x, right) * factor

    return Product


def messages(projection, inputs, factor=1.0):
    case = gradcli.check(function_with(projection, factor), inputs, order=1, samples=1, shrink=False).cases[0]
    return [finding.message for finding in case.findings]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("projection", "inputs", "changes"),
    [
        (symmetric, SQUARE, "symmetric changes of x"),
        (antisymmetric, SQUARE, "antisymmetric changes of x"),
        (centred, ROWS, "changes of x that keep its sum along its last axis"),
        (centred, {"x": {"shape": [4]}}, "changes of x that keep its sum"),
        (tangent, ROWS, "changes of x that keep its norm along its last axis"),
    ],
)
def test_a_projected_gradient_is_right_for_some_changes(projection, inputs, changes):
    found = messages(projection, inputs)
    assert any(f"; the returned gradient is right for {changes} alone" in text for text in found), found
    wrong = messages(projection, inputs, 1.01)
    assert wrong
    assert not any("alone" in text for text in wrong)


@pytest.mark.parametrize("change", [lambda x, g: 0 * g, lambda x, g: g * 2, lambda x, g: g.mT, lambda x, g: g + 1])
def test_no_changes_are_named_for_another_mistake(change):
    found = messages(change, SQUARE)
    assert found
    assert not any("alone" in text for text in found)


def with_constant(x, g):
    return g + g.sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("domain", "projection", "shape", "changes"),
    [
        ("simplex", with_constant, [2, 3], "changes of x that keep its sum along its last axis"),
        ("spd", lambda x, g: g + (g - g.mT), [3, 3], "symmetric changes of x"),
    ],
)
def test_an_input_of_a_domain_only_changes_within_it(domain, projection, shape, changes):
    text = f"the returned gradient is right for {changes} alone"
    inside = {"x": {"shape": shape, "domain": domain}}
    assert any(text in found for found in messages(projection, inside))
    assert not any("alone" in found for found in messages(projection, inside, 1.01))
    assert not any("alone" in found for found in messages(projection, {"x": {"shape": shape}}))
