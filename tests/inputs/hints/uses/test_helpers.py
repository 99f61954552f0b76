"""Inputs for forwards that pass their arguments on to functions of the same file."""

import inspect

import pytest

from gradcli.inputs.hints.uses.helpers import helpers_source
from gradcli.verdict import Verdict
from tests.inputs.hints.uses.written import checked

HISTOGRAM = """
def spread(places, count, values):
    places = places.view((1,) * (len(values.shape) - 1) + (values.shape[-1],)).expand(values.shape)
    total = values.new_zeros((*values.shape[:-1], count))
    return total.scatter_add(-1, places, values), places


class Histogram(Function):
    @staticmethod
    def forward(ctx, h, count, values):
        total, places = spread(h, count, values)
        ctx.save_for_backward(places)
        return total

    @staticmethod
    def backward(ctx, grad):
        (places,) = ctx.saved_tensors
        return None, None, {gradient}
"""


@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [("grad.gather(-1, places)", Verdict.PASSED), ("2 * grad.gather(-1, places)", Verdict.FAILED)],
)
@pytest.mark.usefixtures("unexplained")
def test_an_index_is_known_by_what_a_helper_does_with_it(gradient, verdict, tmp_path):
    pytest.importorskip("torch")
    case = checked(tmp_path, HISTOGRAM.format(gradient=gradient), "Histogram", "torch")
    assert case.verdict is verdict, case
    assert [spec.domain for spec in case.inputs] == ["indices", "normal", "normal"]
    assert {each.input for each in case.evidence if each.verdict is Verdict.FAILED} <= {"values"}


def outer(x, y):
    return inner(x.contiguous(), z=y) + other(y)


def inner(a, z, x=1):
    """Say nothing."""
    n, c = a.shape
    return n * c * z * x


def other(value):
    return value


def changing(x):
    x = x.reshape(2, -1)
    return other(x)


def test_helpers_have_the_names_of_forward():
    text = helpers_source(outer, ["x", "y"])
    assert "n, c = x.shape" in text
    assert "return n * c * y * _x" in text
    assert "Say nothing" not in text
    assert "return y" in text


def test_what_has_another_value_is_not_followed():
    assert inspect.isfunction(changing)
    assert helpers_source(changing, ["x"]) == ""
