"""Whole numbers that say how a tensor is laid out: other ones may mean nothing, though forward takes them."""

from dataclasses import replace

import pytest

import gradcli
from gradcli.cases import Argument
from gradcli.checks.other_points.numbers import is_formula_constant
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, decided, tensor

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
    assert decided(backend, centred(ns), X, constant(name, 2))[0] is Verdict.PASSED
    assert decided(backend, centred(ns, 1.25), X, constant(name, 2))[0] is Verdict.FAILED


@pytest.mark.sampled(1)
def test_a_number_of_any_other_name_is(backend, ns):
    verdict, evidence = decided(backend, centred(ns), X, constant("order", 2))
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
        ("axis", -1, True),
        ("offset", 0.0, True),
        ("dilation", 1, True),
        ("seed", 0, False),
        ("world_size", 1, True),
        ("kernel_size", 3, False),
    ],
)
def test_only_whole_numbers_that_count_parts_are_left_alone(name, value, varied):
    assert is_formula_constant(Argument(name=name, value=value, is_tensor=False)) is varied


def delayed(ns, is_right):
    """x plus itself moved on by some places."""

    class Delayed(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, places):
            ctx.places = places
            return x + ns.roll(x, places, -1)

        @staticmethod
        def backward(ctx, g):
            return g + ns.roll(g, -ctx.places if is_right else -1, -1), None

    return Delayed


def shifted(ns, is_right):
    class Shifted(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.by = by if is_right else 0.0
            ctx.save_for_backward(x)
            return x * (x + by)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (2 * x + ctx.by), None

    return Shifted


@pytest.mark.parametrize(("made", "name", "value"), [(delayed, "dilation", 1), (shifted, "offset", 0.0)])
def test_a_number_that_lays_out_nothing_is_exchanged_whatever_its_name(backend, ns, made, name, value):
    assert decided(backend, made(ns, is_right=True), X, constant(name, value))[0] is Verdict.PASSED
    verdict, evidence = decided(backend, made(ns, is_right=False), X, constant(name, value))
    assert verdict is Verdict.FAILED
    assert {e.check for e in evidence if e.verdict is Verdict.FAILED} == {"constants"}


def thinned(ns, factor=1.0):
    """Every nth column; backward is for every column."""

    class Thinned(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            return x[:, ::n] ** 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * factor * g * x[:, : g.shape[1]], None

    return Thinned


def test_a_number_that_may_lay_out_a_tensor_keeps_its_value_where_shapes_change(backend, ns):
    assert decided(backend, thinned(ns), X, constant("stride", 1))[0] is Verdict.PASSED
    assert decided(backend, thinned(ns, 1.25), X, constant("stride", 1))[0] is Verdict.FAILED


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fixed", [True, False])
def test_a_seed_is_exchanged_only_where_the_user_gave_it(backend, ns, fixed):
    given = replace(constant("seed", 1), fixed=fixed)
    assert decided(backend, delayed(ns, is_right=True), X, given)[0] is Verdict.PASSED
    wrong = decided(backend, delayed(ns, is_right=False), X, given)[0]
    assert wrong is (Verdict.FAILED if fixed else Verdict.PASSED)


def sliced(ns, weight):
    class Sliced(ns.autograd.Function):
        """The columns in some slices, the later ones with larger weights; 3 slices of 4 columns are 2."""

        @staticmethod
        def forward(ctx, x, slices=2):
            step = -(-x.shape[-1] // slices)
            ctx.ends = list(range(0, x.shape[-1], step))
            ctx.step = step
            return tuple((n + 1.0) * x[..., i : i + step] for n, i in enumerate(ctx.ends))

        @staticmethod
        def backward(ctx, *gs):
            return ns.cat([weight(n) * g for n, g in enumerate(gs)], -1), None

    return Sliced


def powers(ns, last):
    class Powers(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, count=2):
            ctx.save_for_backward(x)
            return tuple(x ** (k + 1) for k in range(count))

        @staticmethod
        def backward(ctx, *gs):
            (x,) = ctx.saved_tensors
            return sum((k + 1.0) * x**k * g for k, g in enumerate(gs[:last])), None

    return Powers


@pytest.mark.sampled(2)
@pytest.mark.parametrize("made_of", [sliced, powers])
def test_more_outputs_than_by_default_are_tried(ns, made_of):
    right, wrong = {sliced: (lambda n: n + 1.0, lambda n: 1.0 + min(n, 1)), powers: (None, 2)}[made_of]
    (case,) = gradcli.check(made_of(ns, right), order=1).cases
    assert case.verdict is Verdict.PASSED
    (case,) = gradcli.check(made_of(ns, wrong), order=1, shrink=False).cases
    assert [e.check for e in case.evidence if e.verdict is Verdict.FAILED] == ["constants"]
    assert "=3 (default: 2)" in case.findings[0].message
