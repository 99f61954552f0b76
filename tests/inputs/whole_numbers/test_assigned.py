"""Indices that forward assigns by are all different: PyTorch leaves open which value remains of equal ones."""

import ast

import pytest

import gradcli
from gradcli.inputs.hints.uses.assigned import assigned_by
from gradcli.verdict import Verdict

SOURCE = """
import {framework} as torch
from {framework}.autograd import Function


class Put(Function):
    @staticmethod
    def forward(ctx, values, indices, rows):
        ctx.save_for_backward(indices)
        output = torch.zeros(rows, *values.shape[1:], dtype=values.dtype)
        output[indices] = values
        return output

    @staticmethod
    def backward(ctx, g):
        (indices,) = ctx.saved_tensors
        return {gradient}, None, None


class Copy(Function):
    @staticmethod
    def forward(ctx, x, index, values):
        ctx.save_for_backward(index)
        return x.index_copy(0, index, values)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return {gradient}, None, g[index]
"""


def checked(tmp_path, name, gradient, framework="torch"):
    (tmp_path / "put.py").write_text(SOURCE.format(gradient=gradient, framework=framework))
    (case,) = gradcli.check(f"{tmp_path / 'put.py'}:{name}", order=1, shrink=False).cases
    return case


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "gradient", "verdict"),
    [
        ("Put", "g[indices]", Verdict.PASSED),
        ("Put", "g[indices.flip(0)]", Verdict.FAILED),
        ("Put", "1.001 * g[indices]", Verdict.FAILED),
        ("Put", "g[: len(indices)]", Verdict.FAILED),
        ("Copy", "g.index_fill(0, index, 0)", Verdict.PASSED),
        ("Copy", "g", Verdict.FAILED),
        ("Copy", "torch.zeros_like(g)", Verdict.FAILED),
        ("Copy", "1.001 * g.index_fill(0, index, 0)", Verdict.FAILED),
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_indices_differ_and_leave_entries_out(name, gradient, verdict, tmp_path):
    pytest.importorskip("torch")
    case = checked(tmp_path, name, gradient)
    assert case.verdict is verdict, (case.findings, case.error)
    (index,) = [spec for spec in case.inputs if spec.domain == "permutation"]
    assert dict(index.parameters)["high"] > index.shape[0]


def test_where_the_last_value_remains_the_cause_is_named(tmp_path):
    """As in NumPy, and in gradcli's own engine."""
    case = checked(tmp_path, "Put", "g[indices]", "gradcli.engine")
    assert case.verdict is Verdict.FAILED
    assert "rows whose number in indices occurs again later" in case.findings[0].message


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("out[i] = v", {"i"}),
        ("out[:, i.long()] = 2 * v", {"i"}),
        ("out = out.index_copy(0, i, v)", {"i"}),
        ("out.scatter_(1, i, v)", {"i"}),
        ("out = out.at[i].set(v)", {"i"}),
        ("out[i] = 0", set()),
        ("out[i] = -1.0", set()),
        ("out[i] += v", set()),
        ("out[i, j] = v", set()),
        ("out[k] = v", set()),
        ("v = x[i]", set()),
        ("out.scatter_(1, i, 1.0)", set()),
        ("out.scatter_(1, i, v, reduce='add')", set()),
        ("out = out.at[i].add(v)", set()),
    ],
)
def test_what_is_assigned_by(statement, found):
    tree = ast.parse(f"def forward(x, i, j, v):\n    {statement}\n    return out")
    assert assigned_by([tree, None], ("x", "i", "j", "v")) == found
