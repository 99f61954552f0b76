"""The claim and the derivative of forward's body, pulled back at once, are what they are one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.backends.registry import backend_named
from gradcli.cases import Argument
from gradcli.numerics.maps.vector_map import VectorMap
from tests.programs.functions import TABLE, arguments

FRAMEWORKS = ["engine", "torch"]
GIVEN = [Argument(name="x", is_tensor=True, value=np.array([0.5, -0.25]), requires_grad=True)]


def namespace(name):
    return pytest.importorskip("torch" if name == "torch" else "gradcli.engine", reason="the backend is optional")


def bound(name, function, given):
    return backend_named(name).bind(function, given)


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_both_say_what_they_say_alone(row, name) -> None:
    subject = bound(name, row.build(namespace(name)), arguments(row))
    claim, witness = subject.derivative_map(1), subject.body_map(1)
    if witness is None:
        pytest.skip("forward's body has no derivative of its own")
    rows = np.random.default_rng(0).standard_normal((1, claim.codomain.size))
    before = subject.counters.forward, subject.counters.backward
    value, ours, theirs = claim.value_and_vjps_beside(witness, subject.point, rows)
    assert (subject.counters.forward - before[0], subject.counters.backward - before[1]) == (2, 2)
    expected, alone = claim.value_and_vjps(subject.point, rows)
    assert (value == expected).all()
    assert (ours == alone).all()
    assert (theirs == witness.vjp_many(subject.point, rows)).all()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_body_that_cannot_be_pulled_back_leaves_the_claim(name) -> None:
    ns = namespace(name)

    class Clipped(ns.autograd.Function):
        """Forward writes into what it has saved on the graph: fine without a graph, an error with one."""

        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            z = y * 2
            if y.requires_grad:
                y.add_(1)
                y.sub_(1)
            ctx.save_for_backward(y)
            return z

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return 2 * g * y

    subject = bound(name, Clipped, GIVEN)
    claim, witness = subject.derivative_map(1), subject.body_map(1)
    assert witness is not None
    rows = np.ones((1, 2))
    value, ours, theirs = claim.value_and_vjps_beside(witness, subject.point, rows)
    assert np.allclose(value, 2 * np.exp([0.5, -0.25]), rtol=1e-15)
    assert np.allclose(ours, [2 * np.exp([0.5, -0.25])], rtol=1e-15)
    assert theirs is None


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_backward_that_raises_is_blamed_alone(name) -> None:
    ns = namespace(name)

    class Raising(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no rule")

    subject = bound(name, Raising, GIVEN)
    claim, witness = subject.derivative_map(1), subject.body_map(1)
    with pytest.raises(Exception, match="no rule"):
        claim.value_and_vjps_beside(witness, subject.point, np.ones((1, 2)))


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_several_points_are_evaluated_as_one_is(name) -> None:
    row = TABLE[0]
    subject = bound(name, row.build(namespace(name)), arguments(row))
    map_ = subject.derivative_map(1)
    points = [subject.point * factor for factor in (0.5, 1.0, 1.5)]
    before = subject.counters.forward
    together = map_.values_at(points)
    assert subject.counters.forward - before == 3
    for found, point in zip(together, points, strict=True):
        assert (found == map_.value(point)).all()
        assert (found == VectorMap.values_at(map_, [point])[0]).all()


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_value_that_is_read_at_once_is_the_value(row, name) -> None:
    subject = bound(name, row.build(namespace(name)), arguments(row))
    map_ = subject.derivative_map(1)
    expected, before = map_.value(subject.point), subject.counters.forward
    assert (map_.seen_at(subject.point) == expected).all()
    assert subject.counters.forward - before == 1


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_values_outlive_the_call_although_forward_writes_all_into_one_buffer(name) -> None:
    ns = namespace(name)
    buffer = ns.zeros(2, dtype=ns.float64)

    class Buffered(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return buffer.copy_(x * x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    subject = bound(name, Buffered, GIVEN)
    map_ = subject.derivative_map(1)
    kept = [map_.value(subject.point), *map_.values_at([2 * subject.point, 3 * subject.point])]
    assert all((one == (k * subject.point) ** 2).all() for k, one in enumerate(kept, 1))
