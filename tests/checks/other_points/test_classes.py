"""Numbers of classes: the blank, which no label may be, and the class to ignore, which may be left out."""

import numpy as np
import pytest

from gradcli.cases import Argument
from gradcli.checks.other_points.numbers import values_to_try
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, decided, tensor

SCORES = tensor("x", np.random.default_rng(5).standard_normal((3, 5)).round(2))


def labels(*values):
    return tensor("labels", np.array(values), grad=False)


def scored(ns, name, *, is_right=True):
    """The score of each label, and the squares of those of the blank: one entry cannot be both."""

    class Scored(ns.autograd.Function):
        @staticmethod
        def backward(ctx, g):
            x, labels = ctx.saved_tensors
            blank = ctx.blank if is_right else 0
            gx = ns.zeros_like(x)
            gx[:, blank] = 2 * g * x[:, blank]
            gx[ns.arange(3), labels] = g
            return gx, None, None

    def run(ctx, x, labels, blank):
        ctx.save_for_backward(x, labels)
        ctx.blank = blank
        return x[ns.arange(3), labels].sum() + (x[:, blank] ** 2).sum()

    made = {"run": run}
    exec(f"def forward(ctx, x, labels, {name}=0): return run(ctx, x, labels, {name})", made)
    Scored.forward = staticmethod(made["forward"])
    return Scored


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", ["blank", "blank_id", "ctc_blank", "blank_label", "BLANK_IDX"])
@pytest.mark.parametrize("given", [(1, 3, 2), (2, 3, 4), (1, 2, 4), (4, 4, 4)])
def test_a_blank_that_is_a_label_is_not_tried(backend, ns, name, given):
    assert decided(backend, scored(ns, name), SCORES, labels(*given), order=1)[0] is Verdict.PASSED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", [(2, 3, 4), (1, 2, 4), (4, 4, 4)])
def test_a_backward_for_another_blank_fails(backend, ns, given):
    wrong = scored(ns, "blank", is_right=False)
    verdict, evidence = decided(backend, wrong, SCORES, labels(*given), order=1)
    assert verdict is Verdict.FAILED
    assert {e.check for e in evidence if e.verdict is Verdict.FAILED} == {"constants"}


@pytest.mark.sampled(1)
def test_a_number_of_another_name_may_be_a_label(backend, ns):
    assert decided(backend, scored(ns, "column"), SCORES, labels(1, 3, 2), order=1)[0] is Verdict.FAILED


@pytest.mark.parametrize(
    ("name", "value", "inputs", "tried"),
    [
        ("blank", 0, [[1, 4, 2]], (3,)),
        ("blank", 0, [[1, 3, 2]], ()),
        ("blank", 4, [[1, 3, 2]], (0,)),
        ("blank", -1, [[0, 3, 1]], (2,)),
        ("blank", 0, [[2, 0, 3]], ()),
        ("blank", 0, [[2, 4, 4], [5, 6, 6]], (1, 3)),
        ("blank", 0, [[1, 5, 3], [2, 2, 2]], ()),
        ("blank", 0, [[]], (3, 2, 1)),
        ("blank", 0, [], (3, 2, 1)),
        ("blankets", 0, [[1, 4, 2]], (3, 2, 1)),
        ("blank", 0.0, [[1, 4, 2]], (0.375, 2.5)),
        ("ignore_index", None, [[1, 4, 1, 2, 2]], (4, 1)),
        ("ignore_index", None, [[1, 1]], ()),
        ("ignore_index", None, [], ()),
        ("stride", None, [], (1, 2)),
        ("weight", None, [[1, 4]], ()),
        ("padding", None, [], ()),
    ],
)
def test_the_values_that_are_tried(name, value, inputs, tried):
    argument = Argument(name=name, value=value, is_tensor=False)
    indexed = [labels(*each) if each else tensor("labels", np.zeros(0, int), grad=False) for each in inputs]
    assert values_to_try(argument, [SCORES, *indexed, argument]) == tried


def test_labels_in_a_list_are_labels():
    blank, others = Argument(name="blank", value=0, is_tensor=False), constant("reduction", "sum")
    assert values_to_try(blank, [SCORES, constant("labels", [1, 4, 2]), others, blank]) == (3,)


def picked(ns, *, is_right=True):
    """The sum of the entries that the indices choose, without those to ignore."""

    class Picked(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, target, ignore_index=None):
            rows = ns.arange(x.shape[0])
            kept = ns.ones_like(target) if ignore_index is None else 1 * (target != ignore_index)
            ctx.save_for_backward(x, target, kept)
            return (x[rows, target] ** 2 * kept).sum()

        @staticmethod
        def backward(ctx, g):
            x, target, kept = ctx.saved_tensors
            rows, gx = ns.arange(x.shape[0]), ns.zeros_like(x)
            gx[rows, target] = 2 * g * x[rows, target] * (kept if is_right else 1)
            return gx, None, None

    return Picked


@pytest.mark.parametrize("given", [(), (None,)])
def test_an_index_to_ignore_is_tried_where_there_is_none(backend, ns, given):
    inputs = (SCORES, labels(1, 4, 1), *[constant("ignore_index", each) for each in given])
    assert decided(backend, picked(ns), *inputs, order=1)[0] is Verdict.PASSED
    verdict, evidence = decided(backend, picked(ns, is_right=False), *inputs, order=1)
    assert verdict is Verdict.FAILED
    assert {e.check for e in evidence if e.verdict is Verdict.FAILED} == {"constants"}
    assert any("with ignore_index=4 (default: None)" in e.note for e in evidence if e.verdict is Verdict.FAILED)
