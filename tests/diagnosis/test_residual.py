"""Terms whose coefficient is another number for each slice, matrix products, and functions of the input are told."""

import warnings

import numpy as np
import pytest

import gradcli
from gradcli.backends.tensor.maps import TensorMap
from gradcli.diagnosis.slips.search import SlipSearch
from gradcli.engine import tensor
from gradcli.engine.autograd import Function
from gradcli.findings import FindingKind as K
from tests.programs.planted import assert_told, found, function, ns


def scaled(x, axes):
    mean = x.mean(axes, keepdim=True)
    return x - mean, 1 / (((x - mean) ** 2).mean(axes, keepdim=True) + 1e-5).sqrt()


def norm(axes, *, first, second, affine=False):
    """A normalisation over axes, with the terms of the mean and of the variance in its backward, or without."""

    def forward(x, *weights):
        centred, root = scaled(x, axes)
        return centred * root * weights[0] + weights[1] if affine else centred * root

    def backward(g, x, *rest):
        centred, root = scaled(x, axes)
        hat, wide = centred * root, g * rest[0] if affine else g
        gx = wide - first * wide.mean(axes, keepdim=True) - second * hat * (wide * hat).mean(axes, keepdim=True)
        return (root * gx, (g * hat).sum(0), g.sum(0)) if affine else root * gx

    return function(forward, backward)


def unit(x):
    return x / (x * x).sum(-1, keepdim=True).sqrt()


SILU = function(lambda x: x * x.sigmoid(), lambda g, x, y: g * x.sigmoid())
PRODUCT = function(lambda x: x * x.sin(), lambda g, x, y: g * x * x.cos())
SQUARE = function(lambda a: a @ a, lambda g, a, y: g @ a.t())
GRAM = function(lambda x: x.t() @ x, lambda g, x, y: x @ g)
QUADRATIC = function(lambda x, a: x @ (a @ x), lambda g, x, a, y: (g * (a @ x), g * x.unsqueeze(1) * x))
VARIANCE = function(lambda x: ((x - x.mean()) ** 2).mean(), lambda g, x, y: g * 2 * x / 7)
DIAGONAL = function(lambda x: x.softmax(-1), lambda g, x, y: g * y * (1 - y))

DROPPED = {
    "mean": (norm(-1, first=0, second=1), ((3, 5),), "c·sum(grad_output, axis 1), where c is constant along"),
    "variance": (norm(-1, first=1, second=0), ((3, 5),), "c·output·sum(grad_output·output, axis 1)"),
    "both": (norm(-1, first=0, second=0), ((3, 5),), "lacks the terms c·sum(grad_output, axis 1) and d·"),
    "mean, too small": (norm(-1, first=0.5, second=1), ((3, 5),), "has the term c·sum(grad_output, axis 1) with"),
    "variance, too large": (norm(-1, first=1, second=2), ((3, 5),), "has the term c·output·sum("),
    "both, too small": (norm(-1, first=0.5, second=0.5), ((3, 5),), "has the terms c·sum(grad_output, axis 1) and d·"),
    "batch": (norm(0, first=0, second=1), ((5, 3),), "constant along axis 0"),
    "channels": (norm((0, 2), first=0, second=1), ((3, 2, 3),), "constant along axes 0, 2"),
    "affine mean": (
        norm(-1, first=0, second=1, affine=True),
        ((3, 5), (5,), (5,)),
        "c·sum(grad_output·arg1, axis 1)",
    ),
    "affine variance": (
        norm(-1, first=1, second=0, affine=True),
        ((3, 5), (5,), (5,)),
        "c·(arg0 - mean(arg0))·sum(grad_output·arg1·(arg0 - mean(arg0)), axis 1)",
    ),
    "unit": (
        function(unit, lambda g, x, y: g / (x * x).sum(-1, keepdim=True).sqrt()),
        ((4, 3),),
        "c·output·sum(grad_output·",
    ),
    "log-softmax": (function(lambda x: x.log_softmax(-1), lambda g, x, y: g * 1), ((3, 4),), "exp(output)"),
    "diagonal": (DIAGONAL, ((3, 4),), "only the diagonal of the Jacobian"),
    "variance of all": (VARIANCE, ((7,),), "that is the same in every entry"),
    "silu": (SILU, ((3, 4),), "sigmoid(arg0)·(1 - sigmoid(arg0))"),
    "sine": (PRODUCT, ((3, 4),), "grad_output·sin(arg0)"),
    "square": (SQUARE, ((3, 3),), "arg0ᵀ @ grad_output"),
    "gram": (GRAM, ((4, 3),), "arg0 @ grad_outputᵀ"),
    "quadratic": (QUADRATIC, ((4,), (4, 4)), "grad_output·arg1ᵀ @ arg0"),
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", DROPPED)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_form_of_what_is_lacking_is_told(name, seed):
    made, shapes, says = DROPPED[name]
    assert_told(K.MISSING_TERM, says, made, shapes, seed)


OTHERWISE = {
    "a wrong function": (function(lambda x: x.softmax(-1), lambda g, x, y: g * (y * y - x)), ((3, 4),)),
    "a matrix not transposed": (function(lambda x, w: x @ w, lambda g, x, w, y: (g @ w, x.t() @ g)), ((3, 3), (3, 3))),
    "a sum of all, wrong": (function(lambda x: (x.sum()).sin() + 0 * x, lambda g, x, y: g.sum() * x.exp()), ((4,),)),
    "a mask turned round": (function(lambda x: x.clamp(min=0), lambda g, x, y: g * (x < 0)), ((4, 5),)),
    "one number": (
        function(lambda x: (x * x).sum(), lambda g, x, y: g * (x + ns.tensor([0.3, 0.1, 0.7, 0.2]))),
        ((4,),),
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", OTHERWISE)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_term_is_made_up(name, seed):
    made, shapes = OTHERWISE[name]
    (finding,) = found(made, *shapes, seed=seed)
    assert finding.kind in (K.WRONG_GRADIENT, K.WRONG_ENTRIES, K.IGNORES_GRAD_OUTPUT), finding.message


@pytest.mark.parametrize("name", ["mean", "variance", "both", "channels", "affine variance", "unit", "diagonal"])
def test_it_is_told_by_the_entries_of_the_check_where_forward_is_too_slow_to_measure_them_again(monkeypatch, name):
    monkeypatch.setattr("gradcli.diagnosis.table._SECONDS", 0.0)
    made, shapes, says = DROPPED[name]
    assert_told(K.MISSING_TERM, says, made, shapes, 0)


@pytest.mark.parametrize("name", OTHERWISE)
def test_no_term_is_made_up_of_them(monkeypatch, name):
    monkeypatch.setattr("gradcli.diagnosis.table._SECONDS", 0.0)
    test_no_term_is_made_up(name, 0)


def unnormed(g, x):
    return g / (x * x).sum(-1, keepdim=True).sqrt()


@pytest.mark.parametrize("seconds", [0.0, 1.0])
@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            function(lambda x, z: (unit(x), z * z), lambda g, h, x, z, y, w: (unnormed(g, x), 2 * h * z)),
            "c·output·sum(grad_output[0]·output, axis 1)",
        ),
        (
            function(lambda z, x: (z * z, unit(x)), lambda h, g, z, x, w, y: (2 * h * z, unnormed(g, x))),
            "c·output·sum(grad_output[1]·output, axis 1)",
        ),
        (
            function(lambda x, z: (x.softmax(-1), z * z), lambda g, h, x, z, y, w: (g * y * (1 - y), 2 * h * z)),
            "only the diagonal of the Jacobian",
        ),
    ],
)
def test_of_several_outputs_it_is_told_of_the_one_that_is_wrong(monkeypatch, made, says, seconds):
    monkeypatch.setattr("gradcli.diagnosis.table._SECONDS", seconds)
    assert_told(K.MISSING_TERM, says, made, ((3, 4), (3, 4)), 0)


@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_told_by_the_slopes_over_wide_steps_of_a_forward_that_computes_in_float32(monkeypatch, seed):
    monkeypatch.setattr("gradcli.diagnosis.table._SECONDS", 0.0)

    def in_float32(x):
        x = x.detach().numpy().astype(np.float32)
        return ns.tensor((x / np.sqrt((x * x).sum(-1, keepdims=True))).astype(np.float64))

    made = function(in_float32, lambda g, x, y: unnormed(g, x))
    assert_told(K.MISSING_TERM, "c·output·sum(grad_output·output, axis 1)", made, ((3, 4),), seed)


def test_where_each_call_is_slow_it_is_told_before_backward_is_searched(monkeypatch):
    monkeypatch.setattr(TensorMap, "is_costly", property(lambda _: True))
    monkeypatch.setattr("gradcli.diagnosis.table._SECONDS", 0.0)
    searched = []
    monkeypatch.setattr(SlipSearch, "slip_for", lambda _, place: searched.append(place))
    made, shapes, says = DROPPED["unit"]
    assert_told(K.MISSING_TERM, says, made, shapes, 0)
    assert not searched


class Untold(Function):
    """Backward returns random numbers, so that every form is tried; exp(output), one of its parts, has a square that
    overflows.
    """

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        y = x
        for _ in range(5):
            y = (y * y.sin()).roll(1, -1) + y
        return y.sum() + 500

    @staticmethod
    def backward(ctx, g):
        return g * tensor(np.random.default_rng(0).normal(size=ctx.shape))


def test_what_overflows_in_a_measurement_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (case,) = gradcli.check(Untold, shrink=False).cases
    assert [finding.kind for finding in case.findings] == [K.WRONG_GRADIENT]


def roughness(x):
    return (x * x).sum() + 0.5 * ((x - x.roll(1, 0)) ** 2).sum()


def spread(x):
    return (x * x).sum() + 0.5 * ((x - x.mean()) ** 2).sum()


@pytest.mark.parametrize(
    ("forward", "backward", "right", "says"),
    [
        (spread, lambda g, x, y: g * 2 * x, lambda g, x, y: g * (3 * x - x.mean()), "proportional to (arg0 - mean("),
        (
            roughness,
            lambda g, x, y: g * 2 * x,
            lambda g, x, y: g * (4 * x - x.roll(1, 0) - x.roll(-1, 0)),
            None,
        ),
        (
            lambda x: 2 * x + x.sum(),
            lambda g, x, y: 2 * g,
            lambda g, x, y: 2 * g + g.sum(),
            "lacks the term sum(grad_output)",
        ),
        (
            lambda x: 3 * x + x.roll(1, 0) + x.roll(-1, 0),
            lambda g, x, y: 2 * g,
            lambda g, x, y: 3 * g + g.roll(1, 0) + g.roll(-1, 0),
            None,
        ),
    ],
)
def test_a_term_that_only_three_entries_have_is_not_named(forward, backward, right, says):
    """Of three entries, an entry and both of its neighbours are all."""
    assert found(function(forward, right), (3,)) == ()
    kind = K.WRONG_GRADIENT if says is None else K.MISSING_TERM
    assert_told(kind, says or "the returned gradient is wrong by up to", function(forward, backward), ((3,),), 0)
