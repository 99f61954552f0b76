"""Rules of a Function that are broken: state, memory, in-place changes, counts, precision, and second derivatives."""

import torch
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("contract", "torch", __file__)


class CubeRoot(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.pow(1 / 3)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        slope = 1 / (3 * y * y)
        return grad_output * slope


PLANT(
    "CubeRoot",
    "x=NxM,domain=positive",
    ("mutated-grad-output", "mutates-grad-output", "", "return grad_output * slope", "return grad_output.mul_(slope)"),
    ("detach", "not-twice-differentiable", "", "slope = 1 / (3 * y * y)", "slope = (1 / (3 * y * y)).detach()"),
    ("low-precision", "low-precision", "x", "return grad_output * slope", "return grad_output * slope.float()"),
    (
        "low-precision",
        "low-precision",
        "x",
        "return grad_output * slope",
        "return (grad_output.float() * slope.float()).to(y.dtype)",
    ),
    (
        "nonlinear",
        "nonlinear-backward",
        "x",
        "return grad_output * slope",
        "return (grad_output * slope).clamp(-0.1, 0.1)",
    ),
    (
        "no-grad",
        "not-twice-differentiable",
        "",
        "        slope = 1 / (3 * y * y)",
        "        with torch.no_grad():\n            slope = 1 / (3 * y * y)",
    ),
    (
        "additive-constant",
        "ignores-grad-output nonlinear-backward wrong-gradient",
        "x",
        "return grad_output * slope",
        "return grad_output * slope + 1e-2",
    ),
    flags=True,
)


class Excite(Function):
    """A gate on channels."""

    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return x * torch.sigmoid(gate)

    @staticmethod
    def backward(ctx, grad_output):
        x, gate = ctx.saved_tensors
        s = torch.sigmoid(gate)
        grad_x = grad_gate = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * s
        if ctx.needs_input_grad[1]:
            grad_gate = (grad_output * x * s * (1 - s)).sum(0)
        return grad_x, grad_gate


PLANT(
    "Excite",
    "x=NxM gate=M",
    ("needs-input-grad", "needs-input-grad", "", "if ctx.needs_input_grad[1]:", "if ctx.needs_input_grad[0]:"),
    (
        "needs-input-grad",
        "needs-input-grad missing-gradient",
        "gate",
        "if ctx.needs_input_grad[1]:",
        "if not ctx.needs_input_grad[0]:",
    ),
    (
        "mutated-saved",
        "mutates-saved mutates-input",
        "gate",
        "(grad_output * x * s * (1 - s)).sum(0)",
        "(x.mul_(grad_output) * s * (1 - s)).sum(0)",
    ),
    (
        "wrong-slot",
        "missing-gradient swapped-gradients wrong-gradient",
        "x gate",
        "            grad_gate = (grad_output",
        "            grad_x = (grad_output",
    ),
    ("arity", "wrong-arity", "", "return grad_x, grad_gate", "return grad_x, grad_gate, s"),
    (
        "saved-after-change",
        "wrong-gradient wrong-factor",
        "gate",
        "return x * torch.sigmoid(gate)",
        "y = x * torch.sigmoid(gate)\n        ctx.save_for_backward(y, gate)\n        return y",
    ),
    flags=True,
)


class Momentum(Function):
    """What is needed for backward is kept on ctx."""

    scale = None

    @staticmethod
    def forward(ctx, x, scale):
        Momentum.scale = scale
        ctx.scale = scale
        ctx.save_for_backward(x)
        return x * x * scale

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * grad_output * x * ctx.scale, grad_output.mul(x * x).sum()


PLANT(
    "Momentum",
    "x=NxM scale=scalar",
    ("stale-state", "stateful", "", "grad_output * x * ctx.scale", "grad_output * x * Momentum.scale"),
    (
        "ctx-attribute",
        "not-twice-differentiable leaks-memory",
        "",
        "(x,) = ctx.saved_tensors",
        "x = ctx.saved_tensors[0].detach()",
    ),
    ("factor-missing", "wrong-factor", "x", "2 * grad_output", "grad_output"),
    (
        "extra-reduction",
        "wrong-reduction wrong-shape ignores-grad-output",
        "x",
        "return 2 * grad_output * x",
        "return 2 * grad_output.mean() * x",
    ),
    flags=True,
)


class MinMax(Function):
    """The least and the greatest value of each row."""

    @staticmethod
    def forward(ctx, x):
        low, high = x.min(1), x.max(1)
        ctx.save_for_backward(low.indices, high.indices)
        ctx.shape = x.shape
        return low.values, high.values

    @staticmethod
    def backward(ctx, grad_low, grad_high):
        i, j = ctx.saved_tensors
        grad = grad_low.new_zeros(ctx.shape)
        grad = grad.scatter_add(1, i.unsqueeze(1), grad_low.unsqueeze(1))
        return grad.scatter_add(1, j.unsqueeze(1), grad_high.unsqueeze(1))


PLANT(
    "MinMax",
    "x=NxM,domain=distinct",
    (
        "swapped-outputs",
        "wrong-gradient swapped-gradients wrong-entries",
        "x",
        "def backward(ctx, grad_low, grad_high)",
        "def backward(ctx, grad_high, grad_low)",
    ),
    (
        "missing-term",
        "ignores-grad-output missing-term wrong-entries",
        "x",
        "return grad.scatter_add(1, j.unsqueeze(1), grad_high.unsqueeze(1))",
        "return grad",
    ),
    (
        "wrong-variable",
        "wrong-entries wrong-gradient wrong-shift",
        "x",
        "grad.scatter_add(1, j.unsqueeze(1)",
        "grad.scatter_add(1, i.unsqueeze(1)",
    ),
    (
        "sign",
        "wrong-sign wrong-entries",
        "x",
        "j.unsqueeze(1), grad_high.unsqueeze(1))",
        "j.unsqueeze(1), -grad_high.unsqueeze(1))",
    ),
)


class KeptOutput(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(-x * x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return -2 * grad_output * x * y


PLANT(
    "KeptOutput",
    "x=NxM",
    (
        "kept-on-ctx",
        "leaks-memory",
        "",
        "ctx.save_for_backward(x, y)\n        return y\n\n    @staticmethod\n    def backward(ctx, grad_output):\n        x, y = ctx.saved_tensors",
        "ctx.save_for_backward(x)\n        ctx.y = y\n        return y\n\n    @staticmethod\n    def backward(ctx, grad_output):\n        (x,), y = ctx.saved_tensors, ctx.y",
    ),
    (
        "wrong-function",
        "wrong-factor wrong-gradient",
        "x",
        "-2 * grad_output * x * y",
        "-2 * grad_output * x * torch.exp(x * x)",
    ),
    (
        "one-row",
        "wrong-entries",
        "x",
        "return -2 * grad_output * x * y",
        "grad = -2 * grad_output * x * y\n        grad[0] *= 2\n        return grad",
    ),
    (
        "one-entry",
        "wrong-entries",
        "x",
        "return -2 * grad_output * x * y",
        "grad = -2 * grad_output * x * y\n        grad[-1, -1] = 0\n        return grad",
    ),
    (
        "cotangent-squared",
        "nonlinear-backward",
        "x",
        "-2 * grad_output * x * y",
        "-2 * grad_output * grad_output.abs() * x * y",
    ),
    (
        "cotangent-in-part",
        "ignores-grad-output wrong-gradient",
        "x",
        "-2 * grad_output * x * y",
        "-2 * grad_output[:1] * x * y",
    ),
    flags=True,
)
