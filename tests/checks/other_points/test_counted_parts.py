"""Whole numbers that say how a tensor is laid out: other ones may mean nothing, though forward takes them."""

import pytest

from gradcli.cases import Argument
from gradcli.checks.other_points.numbers import is_formula_constant
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, examined, tensor

X = tensor("x", [[0.6, -1.2, 0.9, -1.7], [0.4, 1.1, -0.8, 0.3]])


def centred(ns, factor=1.0):
    """Each group of channels less its mean; with 3 groups of 4 channels backward leaves out the last channel."""

    class Centred(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            grouped = x.reshape(x.shape[0], -1) if n == 3 else x.reshape(x.shape[0] * n, -1)
            return (grouped - grouped.mean(1, keepdim=True)).reshape(x.shape)

        @staticmethod
        def backward(ctx, g):
            grouped = g[:, : g.shape[1] // ctx.n * ctx.n].reshape(g.shape[0] * ctx.n, -1)
            out = ns.zeros_like(g)
            out[:, : g.shape[1] // ctx.n * ctx.n] = (grouped - grouped.mean(1, keepdim=True)).reshape(g.shape[0], -1)
            return factor * out, None

    return Centred


@pytest.mark.parametrize("name", ["num_groups", "channels", "n_heads"])
def test_a_number_that_divides_an_axis_is_not_exchanged_for_one_that_does_not(backend, ns, name):
    assert examined(backend, centred(ns), X, constant(name, 2))[0] is Verdict.PASSED
    assert examined(backend, centred(ns, 1.25), X, constant(name, 2))[0] is Verdict.FAILED


def test_a_number_of_any_other_name_is(backend, ns):
    verdict, evidence, _ = examined(backend, centred(ns), X, constant("order", 2))
    assert verdict is Verdict.FAILED
    assert {e.check for e in evidence if e.verdict is Verdict.FAILED} == {"constants"}


@pytest.mark.parametrize(
    ("name", "value", "varied"),
    [
        ("num_groups", 2, False),
        ("head_dim", 8, False),
        ("NUM_CHANNELS", 4, False),
        ("step_size", 1.0, True),
        ("groups_scale", 2, True),
        ("power", 3, True),
        ("num_groups", True, False),
    ],
)
def test_only_whole_numbers_that_count_parts_are_left_alone(name, value, varied):
    assert is_formula_constant(Argument(name=name, value=value, is_tensor=False)) is varied
