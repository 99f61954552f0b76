"""A mode that rewrites PyTorch's operations, entered by the user's code and not exited, is the error of its case."""

import pytest

import gradcli
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


class Doubling(TorchDispatchMode):
    """Doubles what every product gives."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.mul.Tensor and not kwargs else result


class Square(torch.autograd.Function):
    """A right square."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class EntersInForward(Square):
    """Enters the mode in forward."""

    @staticmethod
    def forward(ctx, x):
        Doubling().__enter__()
        return Square.forward(ctx, x)


class EntersInBackward(Square):
    """Enters the mode in backward, twice."""

    @staticmethod
    def backward(ctx, grad_output):
        Doubling().__enter__()
        Doubling().__enter__()
        return Square.backward(ctx, grad_output)


class ExitsAgain(Square):
    """Enters a mode and exits it."""

    @staticmethod
    def backward(ctx, grad_output):
        with TorchDispatchMode():
            pass
        return Square.backward(ctx, grad_output)


@pytest.mark.parametrize(("function", "phase"), [(EntersInForward, "forward"), (EntersInBackward, "backward")])
def test_a_mode_that_is_left_entered_is_an_error_and_exited(function, phase):
    report = gradcli.check(function, (torch.ones(3, dtype=torch.float64, requires_grad=True),), shrink=False)
    assert report.verdict is Verdict.ERROR
    assert f"{phase} raised ModeLeftError: the target left Doubling switched on" in str(report.cases[0].error)
    assert torch._C._len_torch_dispatch_stack() == 0


def test_a_mode_that_is_exited_again_is_no_error():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert gradcli.check(ExitsAgain, (x,), shrink=False).verdict is Verdict.PASSED


class Counting(TorchDispatchMode):
    """Changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_caller_stays_entered():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with Counting():
        report = gradcli.check(Square, (x,), shrink=False)
        assert torch._C._len_torch_dispatch_stack() == 1
    assert report.verdict is Verdict.PASSED
