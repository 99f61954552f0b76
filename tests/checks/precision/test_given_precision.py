"""A gradient that is wrong in float64 alone is judged in the inputs' own float32; one wrong in both fails."""

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch")
from torch.autograd import Function  # noqa: E402 - after PyTorch is known to be there


def weighted(factor):
    """tanh(x) times w; the gradient of w is rounded to bfloat16 for every dtype but float32, as a kernel does it."""

    class Weighted(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return torch.tanh(x) * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            dw = factor * (g * torch.tanh(x)).sum(0)
            if x.dtype is not torch.float32:
                dw = dw.bfloat16().to(dw.dtype)
            return g * w * (1 - torch.tanh(x) ** 2), dw

    return Weighted


def checked(factor, dtype):
    generator = np.random.default_rng(7)
    inputs = [torch.from_numpy(generator.normal(size=size)).to(dtype).requires_grad_() for size in ((3, 4), (4,))]
    report = gradcli.check(weighted(factor), tuple(inputs), order=1, samples=1, shrink=False)
    (case,) = report.cases
    return case


def test_a_gradient_right_in_float32_alone_passes_for_float32_inputs_with_a_note():
    case = checked(1.0, torch.float32)
    assert (case.verdict.value, case.findings) == ("passed", ())
    (note,) = [note for note in case.notes if "float64" in note]
    assert note.startswith("accepted: backward is right in float32, the inputs' dtype")
    assert 1e-6 < case.resolution < 1e-3


@pytest.mark.parametrize(("factor", "dtype"), [(1.0, torch.float64), (1.0001, torch.float32), (1.00002, torch.float32)])
def test_a_gradient_wrong_in_the_dtype_given_fails(factor, dtype):
    case = checked(factor, dtype)
    assert case.verdict.value == "failed"
    assert {finding.input for finding in case.findings} == {"w"}
    assert not any("right in float32" in note for note in case.notes)


ROOT = """
import {framework} as torch

class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (1 + x * x) ** 0.5

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * slope(x)

def slope(x):
    if x.dtype in (torch.{dtype},):
        {then}
    return x / (1 + x * x) ** 0.5
"""


@pytest.mark.parametrize(
    ("framework", "dtype"), [("torch", "float32"), ("torch", "bfloat16"), ("gradcli.engine", "float32")]
)
def test_a_formula_for_a_lower_precision_alone_is_tried_in_that_precision(tmp_path, framework, dtype):
    cases = []
    for then in ("return x", "return x * (1 + x * x) ** -0.5", "raise TypeError('no such kernel')"):
        file = tmp_path / f"root{len(cases)}.py"
        file.write_text(ROOT.format(framework=framework, dtype=dtype, then=then))
        cases += gradcli.check(f"{file}:Root", order=1, shrink=False, only=["gradient", "precision"]).cases
    assert [case.verdict.value for case in cases] == ["failed", "passed", "passed"]
    (finding,) = cases[0].findings
    assert f"x: backward in {dtype} differs from backward in float64" in finding.message
