"""Whole numbers that were given and are all different stay so at other sizes, as indices that are assigned to must."""

import numpy as np
import pytest

import gradcli
from gradcli.inputs.drawing import is_given_distinct, with_distinct
from gradcli.verdict import Verdict

SOURCE = """\
import {framework} as torch
from {framework}.autograd import Function


class Rows(Function):
    @staticmethod
    def forward(ctx, x, indices):
        ctx.save_for_backward(indices)
        ctx.n = x.shape[0]
        return x[indices]

    @staticmethod
    def backward(ctx, g):
        (indices,) = ctx.saved_tensors
        out = torch.zeros((ctx.n, *g.shape[1:]), dtype=g.dtype)
        {put}
        return out, None
"""


@pytest.fixture(params=("gradcli.engine", "torch"))
def checked(request, tmp_path):
    if request.param == "torch":
        pytest.importorskip("torch")

    def check(put, indices, *, shrink=False):
        file = tmp_path / "rows.py"
        file.write_text(SOURCE.format(framework=request.param, put=put))
        given = {"x": {"shape": [6, 2]}, "indices": {"shape": [len(indices)], "value": indices}}
        return gradcli.check(f"{file}:Rows", given, order=1, shrink=shrink).cases[0]

    return check


@pytest.mark.sampled(2)
@pytest.mark.parametrize("indices", [[4, 0, 2], [3, 4, 5], [0, 1, 2]])
def test_an_assignment_is_right_where_no_index_repeats(checked, indices):
    case = checked("out[indices] = g", indices)
    assert case.verdict is Verdict.PASSED, case.findings


@pytest.mark.sampled(3)
@pytest.mark.parametrize("indices", [[4, 0, 2], [3, 4, 5]])
@pytest.mark.parametrize(
    "put",
    [
        "out[indices] = g * (len(indices) / 3 if len(indices) > 3 else 1)",
        "out.index_add_(0, indices, g * (1.5 if len(indices) > 3 else 1))",
        "out[indices[:3]] = g[:3]",
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_what_is_wrong_at_another_size_with_different_indices_fails(checked, put, indices):
    case = checked(put, indices)
    assert case.verdict is Verdict.FAILED
    assert {e.check for e in case.evidence if e.verdict is Verdict.FAILED} == {"sizes"}


def test_what_is_wrong_where_an_index_repeats_is_a_note_if_no_other_is_accepted(checked):
    """Indices from the end cannot be continued without knowing how far they may go."""
    case = checked("out[indices] = g", [-1, -2, -3], shrink=True)
    assert case.verdict is Verdict.PASSED, case.findings
    (note,) = [note for note in case.notes if "is wrong" in note]
    assert "a whole number is repeated there, and those you gave are all different" in note


def test_a_factor_that_depends_on_the_number_of_indices_fails_although_they_repeat(checked):
    case = checked("out.index_add_(0, indices % ctx.n, g * (1.5 if len(indices) > 3 else 1))", [-1, -2, -3])
    assert case.verdict is Verdict.FAILED


def test_what_is_wrong_where_given_indices_repeat_fails(checked):
    assert checked("out[indices] = g", [4, 0, 4]).verdict is Verdict.FAILED


def test_the_smallest_failing_input_keeps_indices_different(checked):
    case = checked("out.index_add_(0, indices[:2], g[:2])", [4, 0, 2], shrink=True)
    assert case.verdict is Verdict.FAILED
    (line,) = [line for line in case.smallest if line.startswith("indices")]
    numbers = [int(number) for number in line.partition("[")[2].strip("]").split(",")]
    assert len(set(numbers)) == len(numbers), line


@pytest.mark.parametrize(
    ("longer", "given", "largest", "expected"),
    [
        ([4, 4, 0, 0, 2], [4, 0, 2], 5, [4, 1, 0, 3, 2]),
        ([0, 0, 2, 2, 4], [0, 2, 4], None, [0, 1, 2, 3, 4]),
        ([4, 4, 2, 0], [4, 2, 0], None, [4, 2, 1, 0]),
        ([1, 1, 0], [1, 0], 1, None),
        ([1, 1, 0], [1, 0], 2, [2, 1, 0]),
        ([-1, -1, -2], [-1, -2], 5, None),
        ([10**12, 10**12, 3], [10**12, 3], None, [10**12, 4, 3]),
    ],
)
def test_copies_become_numbers_that_none_has(longer, given, largest, expected):
    made = with_distinct(np.array(longer), np.array(given), largest)
    assert (None if made is None else made.tolist()) == expected


def test_drawn_numbers_may_repeat():
    assert is_given_distinct(np.array([1, 0]), None)
    assert is_given_distinct(np.array([1, 0]), "literal")
    assert not is_given_distinct(np.array([1, 0]), "indices(high=2)")
    assert not is_given_distinct(np.array([1, 1]), "literal")
    assert not is_given_distinct(np.array([1]), "literal")
    assert not is_given_distinct(np.array([1.0, 2.0]), "literal")
