"""What backward writes, saves and keeps, and the order of memory that it counts on."""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("reported", "torch", __file__)


class RowPool(Function):
    """The mean of each pair of columns; a kernel that reads memory in order."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.reshape(x.shape[0], -1, 2).mean(2)

    @staticmethod
    def backward(ctx, grad_output):
        g = grad_output.contiguous()
        flat = g.as_strided((g.numel(),), (1,))
        return (flat / 2).repeat_interleave(2).reshape(ctx.shape)


PLANT(
    "RowPool",
    "x=Nx{2*M}",
    ("strides", "non-contiguous", "", "g = grad_output.contiguous()", "g = grad_output.view_as(grad_output)"),
    flags=True,
)


class InPlaceLoss(Function):
    """A loss whose backward may reuse the memory of what forward was given."""

    @staticmethod
    def forward(ctx, logits, labels):
        ctx.save_for_backward(logits, labels)
        return F.nll_loss(logits.log_softmax(1), labels)

    @staticmethod
    def backward(ctx, grad_output):
        logits, labels = ctx.saved_tensors
        grad = logits.softmax(1)
        return (grad - F.one_hot(labels, logits.shape[1])) * grad_output / len(labels), None


PLANT(
    "InPlaceLoss",
    "logits=NxM labels=N,domain=indices,high=M",
    (
        "overwrites-input",
        "mutates-input mutates-saved",
        "",
        "grad = logits.softmax(1)",
        "grad = logits.copy_(logits.softmax(1))",
    ),
    flags=True,
)


class Shift(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        scaled = grad_output * x.cos()
        return scaled


PLANT(
    "Shift",
    "x=NxM",
    (
        "overwrites-cotangent",
        "mutates-grad-output",
        "",
        "scaled = grad_output * x.cos()",
        "scaled = grad_output.mul_(x.cos())",
    ),
)


class ScaleInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 3
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output


PLANT("ScaleInPlace", "x=NxM", ("not-marked-dirty", "mutates-input", "", "y = x * 3", "y = x.mul_(3)"))


class SavedExponential(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x)
        return y * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        y = x.exp()
        return grad_output * (y + y * x)


PLANT(
    "SavedExponential",
    "x=NxM",
    (
        "intermediate-saved",
        "not-twice-differentiable wrong-second-order",
        "",
        "ctx.save_for_backward(x)\n        return y * x\n\n    @staticmethod\n    def backward(ctx, grad_output):\n"
        "        (x,) = ctx.saved_tensors\n        y = x.exp()",
        "ctx.save_for_backward(x, y)\n        return y * x\n\n    @staticmethod\n    def backward(ctx, grad_output):\n"
        "        x, y = ctx.saved_tensors",
    ),
)


class StaleBuffer(Function):
    """Sums of neighbours, with a gradient buffer."""

    buffer = torch.zeros(0)

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[:-1] * 2

    @staticmethod
    def backward(ctx, grad_output):
        grad = torch.zeros(ctx.shape, dtype=grad_output.dtype)
        grad[:-1] = 2 * grad_output
        return grad


PLANT(
    "StaleBuffer",
    "x=M",
    (
        "tail-not-written",
        "stateful nondeterministic-backward wrong-entries wrong-gradient",
        "x",
        "grad = torch.zeros(ctx.shape, dtype=grad_output.dtype)",
        "grad = torch.rand(ctx.shape, dtype=grad_output.dtype)",
    ),
    flags=True,
)


class Accumulates(Function):
    """A product whose backward keeps a sum."""

    total = None

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = 2 * x * grad_output
        return grad


PLANT(
    "Accumulates",
    "x=NxM",
    (
        "counted-again",
        "stateful nondeterministic-backward nonlinear-backward second-backward-fails",
        "x",
        "        return grad\n",
        "        kept = Accumulates.total\n        same = kept is not None and kept.shape == grad.shape\n"
        "        Accumulates.total = kept + grad if same else grad\n        return Accumulates.total\n",
    ),
)


class KeepsOutput(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y * y)


PLANT(
    "KeepsOutput",
    "x=NxM",
    (
        "leak",
        "leaks-memory",
        "",
        "ctx.save_for_backward(y)\n        return y\n\n    @staticmethod\n    def backward(ctx, grad_output):\n"
        "        (y,) = ctx.saved_tensors",
        "ctx.y = y\n        return y\n\n    @staticmethod\n    def backward(ctx, grad_output):\n        y = ctx.y",
    ),
)


class CosineRows(Function):
    """The sine; its backward reads memory in order."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        flat = x.reshape(-1)
        return (flat.cos() * grad_output.reshape(-1)).reshape(x.shape)


PLANT(
    "CosineRows",
    "x=NxM",
    ("strides-of-input", "non-contiguous", "", "x.reshape(-1)", "x.as_strided((x.numel(),), (1,))"),
    ("view-of-input", "non-contiguous", "", "x.reshape(-1)", "x.view(-1)"),
)


class Power(Function):
    """A power; its backward keeps the exponent on ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.power = 3
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        power = ctx.power
        return power * x ** (power - 1) * grad_output


PLANT(
    "Power",
    "x=NxM",
    (
        "changed-by-backward",
        "stateful nondeterministic-backward second-backward-fails",
        "x",
        "        power = ctx.power\n",
        "        power = ctx.power\n        ctx.power = power - 1\n",
    ),
)
