"""The smallest inputs as they are printed, and what is said of their shapes."""

from typing import NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.cases import Argument
from gradcli.findings import FindingKind
from gradcli.runner.outcome.notes import doubtful_shapes
from gradcli.runner.outcome.pasted import pasted
from gradcli.verdict import Verdict


class Affine(NamedTuple):
    w: object
    b: object


def tensor(name, value):
    return Argument(name=name, value=np.array(value), is_tensor=True, requires_grad=True)


def constant(name, value):
    return Argument(name=name, value=value, is_tensor=False)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            [constant("p", {"W": 0, "b": 0}), tensor("p['W']", [[1.0]]), tensor("p['b']", [0.0]), tensor("x", 2.0)],
            ("p = {'W': [[1.0]], 'b': [0.0]}", "x = 2.0"),
        ),
        (
            [constant("p", {"W": 0, "rate": 0.5}), tensor("p['W']", [1.0])],
            ("p = {'W': [1.0], 'rate': 0.5}",),
        ),
        (
            [constant("p", Affine(0, 0)), tensor("p.w", [1.0]), tensor("p.b", 0.0)],
            ("p = Affine(w=[1.0], b=0.0)",),
        ),
        (
            [
                constant("layers", [(0, 0), (0, 0)]),
                *(tensor(f"layers[{i}][{j}]", [1.0]) for i in (0, 1) for j in (0, 1)),
            ],
            ("layers = [([1.0], [1.0]), ([1.0], [1.0])]",),
        ),
        ([constant("p", 3), tensor("q", [1.0])], ("p = 3", "q = [1.0]")),
        ([constant("p", {"a": 1}), tensor("p['z']", [1.0])], ("p = {'a': 1}", "p['z'] = [1.0]")),
    ],
)
def test_a_container_is_one_line_with_its_tensors(arguments, lines):
    assert pasted(arguments) == lines


AFFINE = """
import numpy as np


def affine_forward(x, w, b):
    \"\"\"x of shape (N, D), w of shape (D, M){of_b}\"\"\"
    return x.dot(w) + b, (x, w, b)


def affine_backward(dout, cache):
    x, w, b = cache
    return dout.dot(w.T), x.T.dot(dout), {db}
"""


def test_a_documented_shape_is_not_said_to_be_a_guess(tmp_path):
    path = tmp_path / "affine_wrong.py"
    path.write_text(AFFINE.format(of_b=", b of shape (M,)", db="np.sum(dout)"))
    (case,) = gradcli.check(f"{path}:affine_forward", order=1, samples=1).cases
    assert case.verdict is Verdict.FAILED
    assert case.findings[0].kind is FindingKind.WRONG_SHAPE
    assert not any("gradcli inferred the shape of b" in note for note in case.notes)
    assert doubtful_shapes(case.inputs, case.findings)
    assert not doubtful_shapes(case.inputs, case.findings, {"b"})


def test_the_right_bias_passes(tmp_path):
    path = tmp_path / "affine_right.py"
    path.write_text(AFFINE.format(of_b=", b of shape (M,)", db="dout.sum(0)"))
    (case,) = gradcli.check(f"{path}:affine_forward", order=1, samples=1).cases
    assert case.verdict is Verdict.PASSED
