"""A dropped term is named with its form; a gradient that is wrong in another way is not said to lack one."""

import pytest

from gradcli import check
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.programs.planted import assert_told, found, function


def ramp(x):
    return (x.abs() <= 3) * 1.0


def sigmoid(x):
    return 1 / (1 + (-x).exp())


DROPPED = {
    "elementwise": (
        function(lambda x: x**3 + x**2, lambda g, x, y: g * 3 * x * x),
        ((3, 4),),
        "2·grad_output·arg0",
    ),
    "through the output": (
        function(lambda x: x * sigmoid(x), lambda g, x, y: g * (sigmoid(x) - y * sigmoid(x))),
        ((3, 4),),
        "grad_output·output",
    ),
    "softmax without its sum": (
        function(lambda x: x.softmax(-1), lambda g, x, y: g * y),
        ((3, 4),),
        "-output·sum(grad_output·output, axis 1)",
    ),
    "mean subtracted": (
        function(lambda x: x - x.mean(-1, keepdim=True), lambda g, x, y: g * 1),
        ((3, 4),),
        "-1/4·sum(grad_output, axis 1)",
    ),
    "regulariser": (
        function(lambda x: x.sin().sum() + 0.5 * (x * x).sum(), lambda g, x, y: g * x.cos()),
        ((5,),),
        "grad_output·arg0",
    ),
    "of another input": (
        function(lambda x, w: x * x.sin() + x * w, lambda g, x, w, y: (g * (x.sin() + x * x.cos()), g * x)),
        ((3, 4), (3, 4)),
        "grad_output·arg1",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DROPPED)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_dropped_term_is_told(name, seed):
    made, shapes, term = DROPPED[name]
    assert_told(FindingKind.MISSING_TERM, f"lacks the term {term}; with the term added", made, shapes, seed)


OTHERWISE = {
    "another function": (function(lambda x: x.sin(), lambda g, x, y: g * (0.9 * x).cos()), ((3, 4),)),
    "a wrong exponent": (function(lambda x: (x * x + 1) ** 0.5, lambda g, x, y: g * x / (x * x + 1)), ((3, 4),)),
    "a hard term": (
        function(lambda x: x.exp().sin(), lambda g, x, y: g * x.exp() * (x.exp().cos() + 0.1 * x.tanh())),
        ((3, 4),),
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_gradient_that_is_wrong_otherwise_is_not_said_to_lack_a_term(name):
    made, shapes = OTHERWISE[name]
    (finding,) = found(made, *shapes)
    assert finding.kind is FindingKind.WRONG_GRADIENT, finding.message


def test_matrix_products_of_an_output_with_more_axes_than_the_input_fit_or_are_left_out():
    squares = function(lambda x: x.unsqueeze(2) * x.unsqueeze(1), lambda g, x, y: (g * x.unsqueeze(2).sin()).sum(1))
    (finding,) = found(squares, (4, 3))
    assert finding.kind is FindingKind.WRONG_GRADIENT, finding.message


BRANCHED = function(lambda x: x.clamp(-3, 3) ** 2 / 4 + x, lambda g, x, y: g * (1 + ramp(x) * x / 4))
HERE = "at inputs such as these, but not at others that are larger"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_term_of_one_branch_is_not_said_to_be_right_in_the_other(seed):
    everywhere = function(lambda x: x * x / 4 + x, lambda g, x, y: g * (1 + x / 4))
    right = function(lambda x: x.clamp(-3, 3) ** 2 / 4 + x, lambda g, x, y: g * (1 + ramp(x) * x / 2))
    for made, fails, limited in ((BRANCHED, True, True), (everywhere, True, False), (right, False, False)):
        drawn = {"x": {"shape": [3, 4]}}
        case = check(made, drawn, order=1, samples=1, seed=seed, only=("gradient",), shrink=False).cases[0]
        assert case.verdict is (Verdict.FAILED if fails else Verdict.PASSED)
        for finding in case.findings:
            assert finding.kind is FindingKind.MISSING_TERM
            assert "1/4·grad_output·x" in finding.message
            assert (HERE in finding.message) is limited
