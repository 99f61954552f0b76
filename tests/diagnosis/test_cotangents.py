"""What backward does with grad_output is told where it is proven: a part of it, its sum, another order of it."""

import numpy as np
import pytest

from gradcli.findings import FindingKind as K
from tests.programs.planted import assert_told, found, function, ns


def exponential(use):
    return function(lambda x: x.exp(), lambda g, x, y: y * use(g))


def linear_with(use):
    return function(lambda x, b: 2 * x + b, lambda g, x, b, y: (2 * g, use(g)))


def two(backward):
    return function(lambda x: (x.sin(), x.exp()), backward)


PLANTED = {
    "first": (exponential(lambda g: g[0]), ((4,),), K.IGNORES_GRAD_OUTPUT, "only grad_output[0]"),
    "flat": (exponential(lambda g: g.flatten()[0]), ((3, 4),), K.IGNORES_GRAD_OUTPUT, "only grad_output[0, 0]"),
    "row": (exponential(lambda g: g[1:2]), ((3, 4),), K.IGNORES_GRAD_OUTPUT, "only grad_output[1, :]"),
    "bias": (linear_with(lambda g: g[0] * 1), ((3, 4), (4,)), K.MISSING_REDUCTION, "a sum over axis 0"),
    "doubled": (linear_with(lambda g: g[0] * 2), ((3, 4), (4,)), K.IGNORES_GRAD_OUTPUT, "only grad_output[0, :]"),
    "corner": (linear_with(lambda g: g[-1, 0] * 1), ((3, 4), ()), K.MISSING_REDUCTION, "a sum over axes 0, 1"),
    "plane": (linear_with(lambda g: g[:, 1][1] * 1), ((2, 3, 4), (4,)), K.MISSING_REDUCTION, "over axes 0, 1"),
    "mean": (exponential(lambda g: g.mean()), ((3, 4),), K.IGNORES_GRAD_OUTPUT, "the sum or the mean of grad_output"),
    "sum": (exponential(lambda g: g.sum()), ((3, 4),), K.IGNORES_GRAD_OUTPUT, "the sum or the mean of grad_output"),
    "rows": (exponential(lambda g: g.mean(1, keepdim=True)), ((3, 4),), K.IGNORES_GRAD_OUTPUT, "along axis 1"),
    "second output": (two(lambda g, h, x, y, z: g * x.cos()), ((4,),), K.IGNORES_GRAD_OUTPUT, "of output 1"),
    "first output": (two(lambda g, h, x, y, z: h * x.exp()), ((4,),), K.IGNORES_GRAD_OUTPUT, "of output 0"),
    "exchanged": (two(lambda g, h, x, y, z: h * x.cos() + g * z), ((4,),), K.WRONG_GRADIENT, "and 1 were exchanged"),
    "reversed": (exponential(lambda g: g.flip(0)), ((5,),), K.WRONG_GRADIENT, "reversed along axis 0"),
    "two reversed": (exponential(lambda g: g.flip(0)), ((2,),), K.WRONG_GRADIENT, "reversed along axis 0"),
    "transposed": (exponential(lambda g: g.t()), ((3, 3),), K.WRONG_GRADIENT, "grad_output were transposed"),
    "off by one": (exponential(lambda g: g.roll(1, 0)), ((5,),), K.WRONG_SHIFT, "off by 1"),
    "other axis": (linear_with(lambda g: g.sum(1)), ((4, 4), (4,)), K.WRONG_REDUCTION, "the output except axis 1"),
    "every axis": (linear_with(lambda g: g.sum() + 0 * g[0]), ((3, 4), (4,)), K.WRONG_REDUCTION, "over all axes"),
}  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_use_of_grad_output_is_told(name, seed):
    made, shapes, kind, says = PLANTED[name]
    assert_told(kind, says, made, shapes, seed)


OTHERWISE = {
    "a forgotten factor": (
        function(lambda x, s: x * s, lambda g, x, s, y: (g * s, g.sum())),
        ((3, 4), ()),
        K.WRONG_GRADIENT,
    ),
    "a lost region": (
        function(lambda x: 2 * x, lambda g, x, y: 2 * g * ns.tensor([1.0, 0.0, 0.0, 0.0])),
        ((4,),),
        K.WRONG_ENTRIES,
    ),
    "a mean subtracted from nothing": (
        function(lambda x: x - x.mean(), lambda g, x, y: g * 0 - g.mean()),
        ((4,),),
        K.MISSING_TERM,
    ),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_other_mistakes_are_not_said_to_ignore_grad_output(name):
    made, shapes, kind = OTHERWISE[name]
    (finding,) = found(made, *shapes)
    assert finding.kind is kind, finding.message


def thresholded(mask, sign):
    """Soft thresholding; `mask` says where the gradient flows, `sign` what that of the threshold is multiplied by."""

    def backward(g, x, limit, y):
        on = mask(x, limit).to(x.dtype)
        return g * on, (-g * sign(x) * on).sum()

    return function(lambda x, limit: x.sign() * (x.abs() - limit).clamp(min=0), backward)


def test_a_mask_that_leaves_one_entry_is_not_taken_for_a_missing_sum():
    x = np.array([[-1.5, 2.0, -0.9], [-1.1, -2.4, 0.1]])
    limit = np.array(0.5)
    assert found(thresholded(lambda x, limit: x.abs() > limit, lambda x: x.sign()), x, limit) == ()
    findings = found(thresholded(lambda x, limit: x > limit, lambda x: 1), x, limit)
    assert [finding.input for finding in findings] == ["arg0", "arg1"]
    assert all(finding.kind is not K.MISSING_REDUCTION for finding in findings)
    lost = thresholded(lambda x, limit: x.abs() > limit, lambda x: x.sign() * ns.tensor([[0.0, 1, 0], [0, 0, 0]]))
    (finding,) = found(lost, x, limit)
    assert finding.kind is K.MISSING_REDUCTION


def scaled_rows(of_scale):
    return function(lambda s, x: s * x.tanh(), lambda g, s, x, y: (of_scale(g * x.tanh()), g * s * (1 - x.tanh() ** 2)))


def sine_and_square(square):
    backward = lambda g, t, y: g[:, 0] * t.cos() + square * 2 * t * g[:, 1]  # noqa: E731
    return function(lambda t: ns.stack([t.sin(), t**2], -1), backward)


@pytest.mark.parametrize(
    ("made", "shapes", "kind", "says"),
    [
        (scaled_rows(lambda each: each.sum(0)), ((4,), (3, 4)), None, ""),
        (scaled_rows(lambda each: each[1] * 1), ((4,), (3, 4)), K.MISSING_REDUCTION, "is a sum over axis 0"),
        (sine_and_square(1), ((4,),), None, ""),
        (sine_and_square(0), ((4,),), K.IGNORES_GRAD_OUTPUT, "uses only grad_output[:, 0]: the gradient stays"),
    ],
)
def test_a_sum_is_missing_only_where_forward_does_the_same_along_the_axis(made, shapes, kind, says):
    if kind is None:
        assert found(made, *shapes) == ()
    else:
        assert_told(kind, says, made, shapes, 0)
