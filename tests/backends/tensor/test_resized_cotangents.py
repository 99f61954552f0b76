"""What a backward may do to grad_output on PyTorch itself is possible here too, and judged."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="resizing is a matter of PyTorch's storages")

import gradcli  # noqa: E402 - needs PyTorch, which may be absent
from gradcli.backends.registry import backend_named  # noqa: E402 - as above


class SumOfSquares(torch.autograd.Function):
    """Writes the gradient into grad_output, enlarged, and forgets what stood there."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.resize_as_(x).copy_(x).mul_(2)


def test_a_backward_that_resizes_grad_output_is_a_finding_and_no_error():
    x = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64, requires_grad=True)
    (case,) = gradcli.check(SumOfSquares, (x,), shrink=False).cases
    assert case.verdict.value == "failed", case.error
    assert {finding.kind.value for finding in case.findings} == {"ignores-grad-output", "mutates-grad-output"}


def unusual_tensors():
    whole = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    return {
        "transposed": whole.t(),
        "expanded": whole[0].expand(2, 3),
        "conjugate": torch.complex(whole, whole + 1).conj(),
        "negative": torch.complex(whole, whole + 1).conj().imag,
        "bfloat16": whole.bfloat16(),
        "sparse": whole.to_sparse(),
        "empty": whole[:0],
        "scalar": whole[1, 2],
        "tracked": whole.clone().requires_grad_(),
    }


@pytest.mark.parametrize("name", unusual_tensors())
def test_the_values_of_any_tensor_are_copied(name):
    framework = backend_named("torch").framework
    tensor = unusual_tensors()[name]
    seen = framework.to_array(tensor)
    dense = tensor.detach().to_dense() if name == "sparse" else tensor.detach()
    wanted = dense.resolve_conj().resolve_neg().to(torch.complex128 if dense.is_complex() else torch.float64)
    assert np.array_equal(seen, wanted.numpy())


def test_a_tensor_that_was_looked_at_can_still_be_resized():
    framework = backend_named("torch").framework
    fresh = torch.zeros(3)
    before = framework.to_array(fresh)
    fresh.resize_(5).fill_(1.0)
    assert before.tolist() == [0.0, 0.0, 0.0]
