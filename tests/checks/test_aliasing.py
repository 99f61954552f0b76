"""Aliasing: one tensor in two places gets the sum of what two equal ones get."""

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.frameworks import examined, tensor
from tests.programs.functions import TABLE, arguments

INPUTS = tensor("x", [0.5, -1.25, 0.875]), tensor("y", [1.5, 0.25, -0.5])


def product(ns, forward=lambda ctx, x, y: x * y, gradients=lambda ctx, x, y, g: (g * y, g * x)):
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.same, ctx.keys = x is y, (id(x), id(y))
            ctx.save_for_backward(x, y)
            return forward(ctx, x, y)

        @staticmethod
        def backward(ctx, g):
            return gradients(ctx, *ctx.saved_tensors, g)

    return Product


def by_identity(ctx, x, y, g):
    return (g * y, None) if ctx.same else (g * y, g * x)


def cached_by_id(ctx, x, y, g):
    gradients = dict(zip(ctx.keys, (g * y, -g * x), strict=True))
    return gradients[ctx.keys[0]], -gradients[ctx.keys[1]]


def only_once(ctx, x, y, g):
    if ctx.same:
        raise RuntimeError("x has a gradient already")
    return g * y, g * x


def zero_for_itself(ctx, x, y):
    return x * 0 if ctx.same else x * y


def refuses_itself(ctx, x, y):
    if ctx.same:
        raise ValueError("x and y must be different tensors")
    return x * y


WRONG = {
    "told apart by identity": {"gradients": by_identity},
    "kept in a dict by id": {"gradients": cached_by_id},
    "backward refuses": {"gradients": only_once},
    "forward gives other values": {"forward": zero_for_itself},
    "forward refuses": {"forward": refuses_itself},
}


@pytest.mark.parametrize("mistake", WRONG.values(), ids=WRONG.keys())
def test_what_goes_wrong_with_one_tensor_twice_is_found_and_nothing_else(backend, ns, mistake):
    verdict, evidence, findings = examined(backend, product(ns, **mistake), *INPUTS)
    assert verdict is Verdict.FAILED
    assert [(finding.kind, finding.input) for finding in findings] == [(FindingKind.ALIASED_INPUTS, "x")]
    assert [e.check for e in evidence if e.verdict is Verdict.FAILED] == ["aliasing"]


def test_the_gradient_of_a_third_input_counts_too(backend, ns):
    class Weighted(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, w):
            ctx.same = x is y
            ctx.save_for_backward(x, y, w)
            return w * (x + y).sum()

        @staticmethod
        def backward(ctx, g):
            x, y, w = ctx.saved_tensors
            both = (g * w).expand(x.shape[0])
            return both, both, g * x.sum() if ctx.same else g * (x + y).sum()

    verdict, _, findings = examined(backend, Weighted, *INPUTS, tensor("w", 0.75))
    assert verdict is Verdict.FAILED
    assert [(finding.kind, finding.input) for finding in findings] == [(FindingKind.ALIASED_INPUTS, "w")]


def test_a_forward_that_writes_into_an_input_that_it_marks_may_go_its_own_way(backend, ns):
    class Added(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x.add_(2 * y)

        @staticmethod
        def backward(ctx, g):
            return g, 2 * g

    verdict, _, _ = examined(backend, Added, *INPUTS)
    assert verdict is Verdict.PASSED


RIGHT = {
    "product": {},
    "a difference, whose gradients cancel": {
        "forward": lambda ctx, x, y: x - y,
        "gradients": lambda ctx, x, y, g: (g, -g),
    },
    "the same array for both": {"forward": lambda ctx, x, y: x + y, "gradients": lambda ctx, x, y, g: (g, g)},
    "infinite where they are equal": {
        "forward": lambda ctx, x, y: 1 / (x - y),
        "gradients": lambda ctx, x, y, g: (-g / (x - y) ** 2, g / (x - y) ** 2),
    },
    "a shortcut that is right": {
        "gradients": lambda ctx, x, y, g: (2 * g * x, None) if ctx.same else (g * y, g * x),
    },
}


@pytest.mark.parametrize("parts", RIGHT.values(), ids=RIGHT.keys())
def test_right_functions_pass(backend, ns, parts):
    verdict, _, _ = examined(backend, product(ns, **parts), *INPUTS)
    assert verdict is Verdict.PASSED


def test_domains_that_the_first_leaves_are_tried_with_the_second(backend, ns):
    class Logarithm(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.same = x is y
            ctx.save_for_backward(x, y)
            return x * y.log()

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y.log(), g * x / y * (0.5 if ctx.same else 1.0)

    verdict, _, findings = examined(backend, Logarithm, INPUTS[0], tensor("y", [1.5, 0.25, 0.5]))
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [FindingKind.ALIASED_INPUTS]


@pytest.mark.sampled(15)
@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_the_table_passes_and_is_compared_where_two_inputs_fit(backend, ns, row):
    _, evidence, _ = examined(backend, row.build(ns), *arguments(row))
    noted = [e.verdict for e in evidence if e.check == "aliasing"]
    assert noted == ([Verdict.PASSED] if row.name in ("two-outputs", "layer-norm") else [])


def test_without_a_graph_it_is_skipped_and_the_reason_is_told():
    def weighted(x, y):
        return float(x @ y)

    given = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    report = gradcli.check(weighted, given, grad=lambda x, y: (y, x), shrink=False)
    shown = [e for e in report.cases[0].evidence if e.check == "aliasing"]
    assert [e.verdict for e in shown] == [Verdict.SKIPPED]
    assert "numpy keeps no graph" in shown[0].note
