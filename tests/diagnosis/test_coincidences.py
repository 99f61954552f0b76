"""What holds only because entries of the inputs happen to be equal is not given as the mistake's name."""

import math

import numpy as np
import pytest

from gradcli.diagnosis.factor import describe_factor
from gradcli.findings import FindingKind as K
from tests.programs.planted import ENGINE, found, function, ns

EQUAL = {
    "a factor": (function(lambda x: x * x * x, lambda g, x, y: g * x), np.full(3, 2.0)),
    "a sign": (function(lambda x: x**3, lambda g, x, y: -3 * g * x**4), np.ones((2, 3))),
    "a factor of one entry": (function(lambda x: (3 * x).sin(), lambda g, x, y: g * x.cos()), np.array([0.4])),
    "a factor of three outputs": (
        function(lambda x: ns.stack([x * x, 2 * x * x]), lambda g, x, y: (g[0] + 2 * g[1]) * x * x),
        np.array(0.7),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_quotient_at_these_inputs_alone_is_no_factor(name):
    made, values = EQUAL[name]
    (finding,) = found(made, values)
    assert finding.kind in (K.WRONG_GRADIENT, K.MISSING_TERM), finding.message
    assert finding.factor is None


def test_a_symmetric_gradient_is_not_called_transposed():
    turned = np.array([[0.0, 0.0], [2.0, 0.0]])
    made = function(lambda x: (x**3).sum() / 3 + 2 * x[0, 1], lambda g, x, y: g * (x * x + ns.tensor(turned)))
    (finding,) = found(made, np.array([[1.0, 2.0], [2.0, 5.0]]))
    assert finding.kind is K.WRONG_ENTRIES, finding.message


def test_a_roll_of_equal_entries_is_not_called_a_shift():
    made = function(lambda x: (x * x).sum() / 2, lambda g, x, y: g * x.sort()[0])
    (finding,) = found(made, np.array([3.0, 1.0, 1.0]))
    assert finding.kind is not K.WRONG_SHIFT, finding.message


class Reordered(ns.autograd.Function):
    @staticmethod
    def forward(ctx, x, order):
        ctx.order = order
        return x[:, order]

    @staticmethod
    def backward(ctx, g):
        return g[:, ctx.order.argsort()], None


class ReorderedAgain(Reordered):
    @staticmethod
    def backward(ctx, g):
        order = ctx.order
        return g[:, order], None


@pytest.mark.parametrize("order", [[1, 3, 0, 2], [1, 2, 3, 0]])
def test_an_order_that_one_permutation_has_is_not_taken_for_every_one(order):
    assert found(Reordered, (3, 4), np.array(order)) == ()
    (finding,) = found(ReorderedAgain, (3, 4), np.array(order))
    assert "`g[:, order]` where `g[:, order.argsort()]` belongs" in finding.message
    assert finding.kind is K.WRONG_SHIFT


def test_an_order_that_one_sorted_input_has_is_not_taken_for_every_one():
    x = np.array([0.5, 1.5, -0.7, 1.1])
    taken = lambda x, g: g[x.argsort()]  # noqa: E731
    assert found(function(lambda x: x.sort()[0], lambda g, x, y: taken(x.argsort(), g)), x) == ()
    findings = found(function(lambda x: x.sort()[0], lambda g, x, y: taken(x, g)), x)
    assert findings
    assert not any("were reversed" in f.message or "rolled" in f.message for f in findings)


def test_equal_inputs_do_not_hide_swapped_gradients():
    made = function(lambda a, b: a * b * b, lambda g, a, b, y: (2 * g * a * b, g * b * b))
    findings = found(made, np.full(3, 2.0), np.full(3, 2.0))
    assert {(f.kind, f.input) for f in findings} == {(K.SWAPPED_GRADIENTS, "arg0"), (K.SWAPPED_GRADIENTS, "arg1")}


def test_a_factor_that_changes_with_the_inputs_is_said_to():
    made = function(lambda x: (x * x).sum().sqrt(), lambda g, x, y: g * x)
    (finding,) = found(made, (4,))
    assert finding.kind is K.WRONG_FACTOR
    assert "changes with the inputs" in finding.message


class Scaled(ns.autograd.Function):
    @staticmethod
    def forward(ctx, x, stride, damping=0.3):
        ctx.stride = stride
        return x * stride

    @staticmethod
    def backward(ctx, g):
        return g * ctx.stride, None, None


@pytest.mark.parametrize(
    ("shape", "stride", "factor", "told"),
    [
        ((3, 4), 2, 1 / 4, "4 is the size of axis 1 of output: a mean where a sum is meant?"),
        ((3, 5), 2, 1 / 4, "2 is the value of the argument arg1: arg1 squared was left out as a factor?"),
        ((3, 5), 2, 2, "2 is the value of the argument arg1: arg1 is an extra factor?"),
        ((3, 5), 0.7, 0.7, "0.7 is the value of the argument arg1: arg1 is an extra factor"),
        ((3, 5), 0.5, 0.5, "0.5 is the value of the argument arg1: arg1 is an extra factor?"),
        ((3, 5), 0.7, 0.3, "0.3 is the value of the argument damping: damping is an extra factor"),
    ],
)
def test_a_cause_that_small_numbers_suggest_is_asked_and_sizes_go_before_squares(shape, stride, factor, told):
    subject = ENGINE.bind(Scaled, ENGINE.adopt([np.ones(shape), stride]))
    assert describe_factor(factor, subject).because == told


@pytest.mark.parametrize("stride", [math.inf, -math.inf, math.nan, 1e200, 1e-200])
def test_a_number_that_no_square_can_be_made_of_is_no_factor(stride):
    subject = ENGINE.bind(Scaled, ENGINE.adopt([np.zeros((3, 5)), stride]))
    assert (describe_factor(1.5, subject).text, describe_factor(1.5, subject).because) == ("3/2", "")
    assert (
        describe_factor(0.3, subject).because == "0.3 is the value of the argument damping: damping is an extra factor"
    )


def test_a_factor_beyond_all_digits_is_no_whole_number():
    factor = describe_factor(1 / 4.14e-21, ENGINE.bind(Scaled, ENGINE.adopt([np.ones(3), 0.7])))
    assert factor.text == "2.41545894e+20"
    assert not factor.is_recognised
