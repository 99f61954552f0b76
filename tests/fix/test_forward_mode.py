"""A jvp that is wrong is written anew, by backward's formula or by differentiating forward; a right one stays."""

import pytest

from tests import warm

HEAD = """import torch
from torch.autograd import Function


class Own(Function):
    @staticmethod
    def forward(FORWARD):
        return VALUE

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

"""
TANH = (
    HEAD.replace("FORWARD", "x").replace("VALUE", "x.tanh()")
    + """    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / x.cosh() ** 2

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent / x.cosh() ** 2
"""
)
RUNNING = (
    HEAD.replace("FORWARD", "x").replace("VALUE", "x.sin().cumsum(1)")
    + """    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.flip(1).cumsum(1).flip(1) * x.cos()

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return (tangent * x.cos()).cumsum(1)
"""
)
PRODUCT = (
    HEAD.replace("FORWARD", "x, w").replace("VALUE", "x @ w")
    + """    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w.T, x.T @ grad_output

    @staticmethod
    def jvp(ctx, x_t, w_t):
        x, w = ctx.saved_tensors
        return x_t @ w + x @ w_t
"""
)
ONE_LINE = "-        return tangent / x.cosh()\n+        return tangent / x.cosh() ** 2\n"
CASES = {
    "each output of one input": (TANH, ("tangent / x.cosh() ** 2", "tangent / x.cosh()"), ONE_LINE),
    "outputs of several inputs": (
        RUNNING,
        ("(tangent * x.cos()).cumsum(1)", "tangent * x.cos()"),
        "as the vjp of forward's vjp",
    ),
    "two tangents": (PRODUCT, ("x_t @ w + x", "x_t @ w - x"), "push_forward((x_t, w_t))[0]"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_jvp_is_written_anew_and_a_right_one_stays(name, tmp_path):
    pytest.importorskip("torch")
    text, (right, wrong), shown = CASES[name]
    own = tmp_path / "own.py"
    own.write_text(text)
    assert "there is nothing to fix" in warm.run_for_text(["fix", "own.py:Own"], tmp_path, imports="torch").stdout
    own.write_text(text.replace(right, wrong))
    done = warm.run_for_text(["fix", "own.py:Own", "--write", "--force"], tmp_path, imports="torch")
    assert done.returncode == 0, done.stdout
    assert shown in done.stdout
    again = ["check", "own.py:Own", "--only", "gradient", "--only", "forward-mode"]
    assert warm.run_for_text(again, tmp_path, imports="torch").returncode == 0
