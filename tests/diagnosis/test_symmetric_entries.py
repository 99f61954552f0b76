"""The table of a wrong gradient compares what can be compared: symmetric parts, and a grad_output that shows it."""

import re

import pytest

import gradcli
from gradcli.engine import autograd
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

pytestmark = pytest.mark.usefixtures("uncorrected")


def lower(change):
    class Lower(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a.tril() ** 2

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return change(2 * g * a.tril())

    return gradcli.check(Lower, {"a": {"shape": [3, 3], "domain": "spd"}}, order=1, samples=1, shrink=False).cases[0]


@pytest.mark.parametrize("change", [lambda g: g, lambda g: (g + g.mT) / 2])
def test_a_gradient_of_one_triangle_may_be_divided_between_both(change):
    assert lower(change).verdict is Verdict.PASSED


@pytest.mark.parametrize("change", [lambda g: g + g.mT, lambda g: 1.01 * (g + g.mT) / 2, lambda g: (g + g.mT) / 4])
def test_a_wrong_gradient_of_one_triangle_is_compared_by_its_symmetric_part(change):
    case = lower(change)
    assert case.verdict is Verdict.FAILED
    assert not any("is right" in note for note in case.notes)
    (finding,) = case.findings
    assert finding.entries
    assert all(abs(e.analytic - e.numeric) > 3 * e.bound for e in finding.entries)


def of_eigenvalues(change, framework="gradcli.engine"):
    own = pytest.importorskip(framework)

    class Eigenvalues(own.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            values, vectors = own.linalg.eigh(a)
            ctx.save_for_backward(vectors)
            return values

        @staticmethod
        def backward(ctx, g):
            (vectors,) = ctx.saved_tensors
            return change((vectors * g) @ vectors.mT)

    inputs = {"a": {"shape": [3, 3], "domain": "spd"}}
    return gradcli.check(Eigenvalues, inputs, order=1, samples=1, shrink=False).cases[0]


def on_diagonal(matrix):
    return matrix.diagonal().diag()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda g: 2 * g - on_diagonal(g), "off the diagonal (6 of 9 entries); there the returned gradient is 2 times"),
        (lambda g: g / 2 + on_diagonal(g) / 2, "off the diagonal (6 of 9 entries); there the returned gradient is 0.5"),
        (lambda g: g + on_diagonal(g), "on the diagonal (3 of 9 entries); there the returned gradient is 2 times"),
    ],
)
def test_entries_of_a_symmetric_gradient_that_are_counted_twice_are_told(change, says):
    assert of_eigenvalues(lambda g: g).verdict is Verdict.PASSED
    (finding,) = of_eigenvalues(change).findings
    assert finding.kind is FindingKind.WRONG_ENTRIES
    assert says in finding.message


@pytest.mark.parametrize("change", [lambda g: 1.01 * g, lambda g: g + 0.5 * (g @ g)])
def test_other_mistakes_are_not_said_to_be_on_or_off_the_diagonal(change):
    (finding,) = of_eigenvalues(change).findings
    assert "diagonal" not in finding.message


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("factor", "kind", "says"),
    [
        (2.0, FindingKind.WRONG_FACTOR, "is 2 times the right one everywhere"),
        (-1.0, FindingKind.WRONG_SIGN, "is -1 times the right one everywhere"),
        (1.01, FindingKind.WRONG_FACTOR, "is 1.01 times the right one everywhere"),
    ],
)
def test_a_factor_of_a_symmetric_gradient_is_told(factor, kind, says, framework):
    assert of_eigenvalues(lambda g: g, framework).verdict is Verdict.PASSED
    (finding,) = of_eigenvalues(lambda g: factor * g, framework).findings
    assert finding.kind is kind
    assert says in finding.message
    (finding,) = of_eigenvalues(lambda g: g + 0.01 * (g @ g), framework).findings
    assert "times" not in finding.message


def test_a_gradient_whose_symmetric_part_is_right_is_told():
    class Quadratic(autograd.Function):
        @staticmethod
        def forward(ctx, a, x):
            ctx.save_for_backward(a, x)
            return (a + a.mT) / 2 @ x

        @staticmethod
        def backward(ctx, g):
            a, x = ctx.saved_tensors
            return g[:, None] * x[None, :], (a + a.mT) / 2 @ g

    inputs = {"a": {"shape": [3, 3], "domain": "spd"}, "x": {"shape": [3]}}
    (finding,) = gradcli.check(Quadratic, inputs, order=1, samples=1).cases[0].findings
    assert finding.message.endswith("and its symmetric part (the mean of it and its transpose) is right for all")


def test_a_missing_gradient_is_shown_where_it_is_not_zero():
    class Sharpened(autograd.Function):
        @staticmethod
        def forward(ctx, x, t):
            y = (x * t).softmax(-1)
            ctx.save_for_backward(y, t)
            return y

        @staticmethod
        def backward(ctx, g):
            y, t = ctx.saved_tensors
            return t * y * (g - (g * y).sum(-1, keepdim=True)), None

    inputs = {"x": {"shape": [3, 4]}, "t": {"shape": [1]}}
    (finding,) = gradcli.check(Sharpened, inputs, order=1, samples=1).cases[0].findings
    assert "is not zero" in finding.message
    assert any(abs(e.numeric) > 3 * e.bound for e in finding.entries)


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("returned", "kind"),
    [(lambda a, g: g @ a + a @ g, FindingKind.TRANSPOSED), (lambda a, g: 1.3 * g @ a + a @ g, None)],
)
def test_a_transpose_that_is_right_for_symmetric_matrices_is_told(returned, kind, framework):
    own = pytest.importorskip(framework)

    class Square(own.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return returned(a, g).mT

    case = gradcli.check(Square, {"a": {"shape": [3, 3], "domain": "spd"}}, order=1, samples=1, shrink=False).cases[0]
    (finding,) = case.findings
    assert (finding.kind is FindingKind.TRANSPOSED) == (kind is not None)
    assert "mix up" not in finding.message


def test_the_size_of_an_error_is_that_for_symmetric_changes():
    """Forward reads one triangle, so a gradient that is divided between both is off by half in each entry."""
    (finding,) = lower(lambda g: 1.003 * (g + g.mT) / 2 + 0.002 * g.sum() * g.new_ones(3, 3)).findings
    size = re.search(r"by up to ([\d.]+) %", finding.message)
    assert size is not None
    assert 0.3 < float(size[1]) < 1
