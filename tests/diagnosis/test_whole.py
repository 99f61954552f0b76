"""A gradient for a derivative of zero is named as that only where the derivative is known to be zero."""

from types import SimpleNamespace

import numpy as np
import pytest

import gradcli
from gradcli.diagnosis.whole import surrogate
from gradcli.engine.autograd import Function
from gradcli.findings import SURROGATE_ADVICE, FindingKind
from tests.programs.planted import found, function, ns


def suspect(numeric, bound, claimed):
    mismatch = SimpleNamespace(
        numeric=np.atleast_2d(numeric), bound=np.atleast_2d(bound), claimed=np.atleast_2d(claimed), complete=True
    )
    return SimpleNamespace(name="x", mismatch=mismatch)


@pytest.mark.parametrize(("numeric", "bound"), [(0.0, 0.0), (1e-9, 1e-8), (-0.02, 0.03)])
def test_a_derivative_that_is_known_to_be_zero_is_called_zero(numeric, bound):
    kind, message, _ = surrogate(suspect([numeric, 0.0], [bound, 0.0], [1.0, -1.0]))
    assert kind is FindingKind.WRONG_GRADIENT
    assert "where forward's derivative is zero, in all 2 entries" in message


def test_entries_that_backward_leaves_at_zero_are_not_counted():
    _, message, _ = surrogate(suspect([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]))
    assert "where forward's derivative is zero, in 1 of the 3 entries of the Jacobian" in message


@pytest.mark.parametrize(
    ("numeric", "bound"), [(-11.2, np.inf), (0.02, 0.5), (1e-3, 1e-4), (0.0, np.nan)], ids=["inf", "wide", "off", "nan"]
)
def test_a_derivative_that_may_be_another_number_is_not(numeric, bound):
    assert surrogate(suspect([numeric, 0.0], [bound, 0.0], [1.0, -1.0])) is None


def layer(share, gain):
    class Layer(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x) if gain == 1 else gain * x

        @staticmethod
        def backward(ctx, g):
            return share * g

    return Layer


@pytest.mark.parametrize("share", [-1.0, 0.5, -0.3])
def test_a_factor_of_a_forward_that_returns_its_input_may_be_meant(share):
    (case,) = gradcli.check(layer(share, 1), {"x": {"shape": [3, 4]}}, order=1, shrink=False).cases
    (finding,) = case.findings
    assert finding.kind is (FindingKind.WRONG_SIGN if share == -1 else FindingKind.WRONG_FACTOR)
    assert finding.message.endswith(SURROGATE_ADVICE)


@pytest.mark.parametrize("share", [-1.0, 0.5])
def test_a_factor_of_another_forward_is_a_mistake(share):
    (case,) = gradcli.check(layer(share, 2), {"x": {"shape": [3, 4]}}, order=1, shrink=False).cases
    assert SURROGATE_ADVICE not in case.findings[0].message


LEAKS = {
    "right": (lambda g, x, y: g * ns.where(x < 1, 1.0, 0.5), None),
    "zero beyond the bound": (lambda g, x, y: g * ns.where(x < 1, 1.0, 0.0), False),
    "zero everywhere": (lambda g, x, y: g * ns.where(x < 1, 0.0, 0.0), True),
}


@pytest.mark.parametrize("name", LEAKS)
def test_zeros_at_these_values_alone_are_no_missing_gradient(name):
    backward, is_missing = LEAKS[name]
    made = function(lambda x: ns.where(x < 1, x, (x + 1) / 2), backward)
    findings = found(made, np.array([1.5, 2.25, 3.0]))
    assert (is_missing is None) == (not findings)
    for finding in findings:
        assert (finding.kind is FindingKind.MISSING_GRADIENT) == is_missing, finding.message


REPEATED = {
    "a sum over the rows": (lambda g, x, y: (g + 0 * x).expand(4, 3) * 0.25, None),
    "its mean": (lambda g, x, y: (g + 0 * x).expand(4, 3), "the framework sums over axis 0, and the sum"),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_gradient_with_an_axis_more_that_is_summed_wrongly_lacks_no_factor(name):
    backward, says = REPEATED[name]
    findings = found(function(lambda x: x.sum(), backward), (3,))
    assert [f.kind for f in findings] == ([] if says is None else [FindingKind.MISSING_REDUCTION])
    assert all(says in f.message for f in findings)


def halved(share):
    """The positive entries times a scalar; the gradient of the entries is wrong by a share of their number."""

    def backward(g, x, s, y):
        on = (x > 0).to(x.dtype)
        return g * s * on * share(on), (g * x * on).sum()

    return function(lambda x, s: x * (x > 0).to(x.dtype) * s, backward)


@pytest.mark.parametrize(
    ("share", "factor", "says"),
    [
        (lambda on: 0.5, "1/2", "is 1/2 of the right one everywhere"),
        (lambda on: on.sum() / 6, None, "changes with the inputs: 1/2 here, "),
    ],
)
def test_a_factor_that_counts_entries_is_not_called_the_same_everywhere(share, factor, says):
    (finding,) = found(halved(share), np.array([0.5, -1.0, 2.0, 1.25, -0.75, -0.25]), ())
    assert finding.kind is FindingKind.WRONG_FACTOR
    assert finding.factor == factor
    assert says in finding.message


@pytest.mark.parametrize(("power", "factor"), [(-1, None), (0, "2")])
def test_a_factor_that_the_inputs_change_is_no_number(power, factor):
    """The norm, whose gradient x / |x| is multiplied by 2 |x|**power."""
    made = function(lambda x: (x * x).sum() ** 0.5, lambda g, x, y: 2 * g * x / y * y**power)
    (finding,) = found(made, np.array([0.5, -1.0, 2.0, 1.25, -0.75, -0.25]))
    assert (finding.kind, finding.factor) == (FindingKind.WRONG_FACTOR, factor)
    assert ("changes with the inputs" in finding.message) is (factor is None)


def test_the_factor_of_one_number_is_not_called_the_same_everywhere_either():
    made = function(
        lambda x, s: (x > 0).to(x.dtype) * s,
        lambda g, x, s, y: (g * 0, (g * (x > 0)).sum() * (x > 0).to(x.dtype).sum() / 6),
    )
    (finding,) = found(made, np.array([0.5, -1.0, 2.0, 1.25, -0.75, -0.25]), ())
    assert "everywhere" not in finding.message
