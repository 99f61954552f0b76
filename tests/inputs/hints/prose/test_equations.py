"""Sizes that an equation in documentation gives, and the checks with inputs of these sizes."""

import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.prose.equations import with_equations
from gradcli.verdict import Verdict

SHAPES = {"x": ("B", "n"), "w": ("k", "p"), "v": ("l", "r")}


@pytest.mark.parametrize(
    ("text", "computed"),
    [
        ("with n = k * p", {"n": "k * p"}),
        ("k*p == n.", {"n": "k*p"}),
        ("n = 2 * l + 1 and r = n // p", {"n": "2 * l + 1", "r": "(2 * l + 1) // p"}),
        ("- n = k * p\n- r = 4", {"n": "k * p", "r": 4}),
        ("k * p = n, l * r = k * p", {"n": "k * p", "r": "(k * p) // (l)"}),
        ("l * r = k * p", {"r": "(k * p) // (l)"}),
        ("n = heads * p", {"n": "heads * p"}),
        ("n = 64", {}),
        ("the inverse if n = k, p > 2", {}),
        ("x = n * k, y = n", {}),
        ("n = k = p, n = k ** 2, n = f(k), k * n = n * p", {}),
    ],
)
def test_sizes_are_computed_from_others(text, computed):
    found = with_equations(SHAPES, ["x", "w", "v", "heads"], "", text)
    expected = {name: tuple(computed.get(axis, axis) for axis in shape) for name, shape in SHAPES.items()}
    assert found == expected


class TwoSided(Function):
    """x: (N, n), left: (a, c), right: (b, d), where n = a * b and a * d = b * c."""

    factor = 1.0

    @classmethod
    def forward(cls, ctx, x, left, right):
        (a, c), (b, d) = left.shape, right.shape
        if a * d != b * c:
            raise ValueError("the sizes do not fit")
        ctx.save_for_backward(x, left, right)
        return left.t() @ x.reshape(len(x), a, b) @ right

    @classmethod
    def backward(cls, ctx, g):
        x, left, right = ctx.saved_tensors
        whole = x.reshape(len(x), left.shape[0], right.shape[0])
        of_left = (whole @ right @ g.transpose(1, 2)).sum(0)
        of_right = ((left.t() @ whole).transpose(1, 2) @ g).sum(0)
        return (left @ g @ right.t()).reshape(*x.shape), of_left, cls.factor * of_right


class TwoSidedOff(TwoSided):
    """x: (N, n), left: (a, c), right: (b, d), where n = a * b and a * d = b * c."""

    factor = 1.001


def test_inputs_keep_the_equations():
    case = gradcli.check(TwoSided, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED, case.error
    (_, n), (a, c), (b, d) = (spec.shape for spec in case.inputs)
    assert n == a * b
    assert a * d == b * c
    assert a != c
    failed = gradcli.check(TwoSidedOff, shrink=False, order=1).cases[0]
    assert {finding.input for finding in failed.findings} == {"right"}
