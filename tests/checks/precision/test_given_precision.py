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
