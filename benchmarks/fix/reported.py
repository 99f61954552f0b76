"""Public reports of wrong gradients, written again as small Functions that run on a CPU, each beside a right twin.

docs/findings/bugs.yaml says which case stands for which reports. Reports about one device, about offsets beyond 32 bits
and about checkers have no Function here.

Run: python -m benchmarks.fix_corpus --reported [--results FILE] [--workers N]
"""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("reported", "torch", __file__)


class Conic(Function):
    """The exponent of a Gaussian splat."""

    @staticmethod
    def forward(ctx, a, b, c, d):
        ctx.save_for_backward(a, b, c, d)
        x, y = d[:, 0], d[:, 1]
        return -0.5 * (a * x * x + c * y * y) - b * x * y

    @staticmethod
    def backward(ctx, grad_output):
        a, b, c, d = ctx.saved_tensors
        x, y = d[:, 0], d[:, 1]
        grad_a = -0.5 * grad_output * x * x
        grad_b = -grad_output * x * y
        grad_c = -0.5 * grad_output * y * y
        grad_d = grad_output[:, None] * torch.stack([-a * x - b * y, -c * y - b * x], 1)
        return grad_a, grad_b, grad_c, grad_d


PLANT(
    "Conic",
    "a=N b=N c=N d=Nx2",
    ("factor", "wrong-factor", "b", "grad_b = -grad_output * x * y", "grad_b = -0.5 * grad_output * x * y"),
    flags=True,
)


class Subtract(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, -grad_output


PLANT("Subtract", "a=NxM b=NxM", ("sign", "wrong-sign", "b", "-grad_output", "grad_output.clone()"))


class PreNorm(Function):
    """RMS normalisation that also returns its input for the residual connection."""

    @staticmethod
    def forward(ctx, x, weight):
        r = (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
        ctx.save_for_backward(x, weight)
        return x * r * weight, x.clone()

    @staticmethod
    def backward(ctx, grad_norm, grad_residual):
        x, weight = ctx.saved_tensors
        r = (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
        h = x * r
        gw = grad_norm * weight
        dx = r * (gw - h * (gw * h).mean(-1, keepdim=True))
        return grad_residual + dx, (grad_norm * h).sum(0)


PLANT(
    "PreNorm",
    "x=NxM weight=M",
    (
        "association",
        "wrong-gradient missing-term ignores-grad-output wrong-factor",
        "x",
        "gw = grad_norm * weight",
        "gw = (grad_norm + grad_residual) * weight",
    ),
    ("missing-multiplicand", "wrong-factor", "x", "gw = grad_norm * weight", "gw = grad_norm"),
    ("statistics-constant", "missing-term", "x", "r * (gw - h * (gw * h).mean(-1, keepdim=True))", "r * gw"),
    (
        "zero-gradient",
        "missing-gradient wrong-gradient ignores-grad-output wrong-factor",
        "weight",
        "(grad_norm * h).sum(0)",
        "torch.zeros_like(weight)",
    ),
)


class LayerNormalisation(Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mu = x.mean(-1, keepdim=True)
        rstd = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        ctx.save_for_backward(x, gamma)
        return (x - mu) * rstd * gamma + beta

    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        rstd = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        h = (x - x.mean(-1, keepdim=True)) * rstd
        g = grad_output * gamma
        mean = g.mean(-1, keepdim=True)
        dx = rstd * (g - mean - h * (g * h).mean(-1, keepdim=True))
        return dx, (grad_output * h).sum(0), grad_output.sum(0)


PLANT(
    "LayerNormalisation",
    "x=NxM gamma=M beta=M",
    ("counted-twice", "missing-term wrong-factor", "x", "(g - mean - h *", "(g - 2 * mean - h *"),
    (
        "no-gradient",
        "missing-gradient",
        "gamma beta",
        "return dx, (grad_output * h).sum(0), grad_output.sum(0)",
        "return dx, None, None",
    ),
    ("wrong-axis", "wrong-shape missing-reduction wrong-reduction", "beta", "grad_output.sum(0)", "grad_output.sum(1)"),
    flags=True,
)


class SummedCrossEntropy(Function):
    """Cross entropy with the reduction that is asked for."""

    @staticmethod
    def forward(ctx, logits, labels, reduction="sum"):
        ctx.save_for_backward(logits, labels)
        ctx.reduction = reduction
        loss = F.nll_loss(logits.log_softmax(1), labels, reduction="none")
        return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()

    @staticmethod
    def backward(ctx, grad_output):
        logits, labels = ctx.saved_tensors
        grad = logits.softmax(1) - F.one_hot(labels, logits.shape[1])
        if ctx.reduction == "none":
            return grad * grad_output[:, None], None, None
        if ctx.reduction == "mean":
            grad = grad / len(labels)
        return grad * grad_output, None, None


PLANT(
    "SummedCrossEntropy",
    "logits=NxM labels=N,domain=indices,high=M reduction:'sum'",
    ("mode-ignored", "wrong-factor", "logits", 'if ctx.reduction == "mean":', "if True:"),
    flags=True,
)


class RowCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, labels):
        ctx.save_for_backward(logits, labels)
        return F.nll_loss(logits.log_softmax(1), labels, reduction="none")

    @staticmethod
    def backward(ctx, grad_output):
        logits, labels = ctx.saved_tensors
        grad = logits.softmax(1) - F.one_hot(labels, logits.shape[1])
        return grad * grad_output[:, None], None


PLANT(
    "RowCrossEntropy",
    "logits=NxM labels=N,domain=indices,high=M",
    (
        "first-cotangent",
        "ignores-grad-output wrong-gradient wrong-factor",
        "logits",
        "grad * grad_output[:, None]",
        "grad * grad_output[0]",
    ),
    (
        "zero-gradient",
        "ignores-grad-output missing-gradient wrong-factor wrong-gradient",
        "logits",
        "grad * grad_output[:, None]",
        "grad * 0",
    ),
    flags=True,
)


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


class BroadcastScale(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale[:, None]

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale[:, None], (grad_output * x).sum(1)


PLANT(
    "BroadcastScale",
    "x=NxN scale=N",
    ("wrong-axis", "wrong-reduction wrong-gradient transposed wrong-shape", "scale", ".sum(1)", ".sum(0)"),
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


class Softsign(Function):
    """Reverse and forward mode of one function."""

    @staticmethod
    def forward(x):
        return x / (1 + x.abs())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()) ** 2

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent / (1 + x.abs()).square()


PLANT(
    "Softsign",
    "x=NxM",
    ("forward-mode", "jvp-mismatch", "", "tangent / (1 + x.abs()).square()", "tangent / (1 + x.abs())"),
)


class PowerOfThree(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


PLANT(
    "PowerOfThree",
    "x=NxM",
    ("nan-at-zero", "non-finite-gradient", "x", "3 * x**2", "3 * x**3 / x"),
)


class Reflect(Function):
    """Coordinates reflected at a border."""

    @staticmethod
    def forward(ctx, x, border):
        ctx.save_for_backward(x)
        ctx.border = border
        return torch.where(x > border, 2 * border - x, x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > ctx.border, -grad_output, grad_output), None


PLANT(
    "Reflect",
    "x=NxM border:0.4",
    (
        "beyond-the-border",
        "wrong-entries wrong-sign",
        "x",
        "torch.where(x > ctx.border, -grad_output, grad_output)",
        "grad_output",
    ),
    (
        "operands-reversed",
        "wrong-sign wrong-entries wrong-gradient",
        "x",
        "-grad_output, grad_output)",
        "grad_output, -grad_output)",
    ),
    flags=True,
)


class Lookup(Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.shape)
        return grad.index_add(0, index, grad_output), None


PLANT(
    "Lookup",
    "table=NxM index=T,domain=indices,high=N",
    (
        "last-write-wins",
        "wrong-entries wrong-gradient",
        "table",
        "grad.index_add(0, index, grad_output)",
        "grad.index_put((index,), grad_output)",
    ),
    flags=True,
)


class OverlappingMaximum(Function):
    """The largest of each pair of neighbours."""

    @staticmethod
    def forward(ctx, x):
        left = x[:, :-1] >= x[:, 1:]
        ctx.save_for_backward(left)
        return torch.where(left, x[:, :-1], x[:, 1:])

    @staticmethod
    def backward(ctx, grad_output):
        (left,) = ctx.saved_tensors
        g = F.pad(grad_output * left, (0, 1))
        return g + F.pad(grad_output * ~left, (1, 0))


PLANT(
    "OverlappingMaximum",
    "x=NxM",
    (
        "overlaps-overwritten",
        "wrong-entries wrong-gradient missing-term",
        "x",
        "g + F.pad(grad_output * ~left, (1, 0))",
        "torch.where(g != 0, g, F.pad(grad_output * ~left, (1, 0)))",
    ),
)


class StridedConvolution(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return F.conv1d(x[:, None], weight[None, None], stride=2)[:, 0]

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        full = F.conv_transpose1d(grad_output[:, None], weight[None, None], stride=2)[:, 0]
        left = x.shape[1] - full.shape[1]
        grad_x = F.pad(full, (0, left))
        windows = x.unfold(1, len(weight), 2)
        return grad_x, torch.einsum("nt,ntk->k", grad_output, windows)


PLANT(
    "StridedConvolution",
    "x=Nx6 weight=3",
    (
        "output-padding",
        "wrong-shift wrong-entries wrong-gradient",
        "x",
        "F.pad(full, (0, left))",
        "F.pad(full, (left, 0))",
    ),
    flags=True,
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


class Race(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


PLANT(
    "Race",
    "x=NxM",
    (
        "update-lost",
        "nondeterministic-backward",
        "",
        "2 * x * grad_output",
        "2 * x * grad_output * (torch.rand(x.shape, dtype=x.dtype) > 0.3)",
    ),
)


class HalfMaximum(Function):
    """The maximum, its gradient shared among equal entries."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.max(1).values

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        most = (x == x.max(1, keepdim=True).values).to(x.dtype)
        return most * (grad_output / most.sum(1))[:, None]


PLANT(
    "HalfMaximum",
    "x=NxM",
    (
        "half-precision",
        "low-precision wrong-factor",
        "x",
        "(grad_output / most.sum(1))[:, None]",
        "(grad_output / most.sum(1)).half().double()[:, None]",
    ),
    flags=True,
)


class Steady(Function):
    """An infusion, with and without steady state."""

    @staticmethod
    def forward(ctx, dose, interval, steady=True):
        ctx.save_for_backward(dose, interval)
        ctx.steady = steady
        return dose * torch.exp(-interval) / (1 - torch.exp(-interval) if steady else 1.0)

    @staticmethod
    def backward(ctx, grad_output):
        dose, interval = ctx.saved_tensors
        e = torch.exp(-interval)
        if ctx.steady:
            return grad_output * e / (1 - e), -grad_output * dose * e / (1 - e) ** 2, None
        return grad_output * e, -grad_output * dose * e, None


PLANT(
    "Steady",
    "dose=N,domain=positive interval=N,domain=positive steady:True",
    (
        "one-mode-wrong",
        "wrong-factor missing-term",
        "interval",
        "-grad_output * dose * e / (1 - e) ** 2",
        "-grad_output * dose * e / (1 - e)",
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


class TutorialLoss(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x - y).pow(2).sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        grad = 2 * (x - y) * grad_output
        return grad, -grad


PLANT(
    "TutorialLoss",
    "x=NxM y=NxM",
    ("ones-for-cotangent", "ignores-grad-output", "x y", "2 * (x - y) * grad_output", "2 * (x - y) * torch.ones(())"),
    ("one-gradient", "wrong-arity", "", "return grad, -grad", "return grad"),
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


class Interpolates(Function):
    """A value between two others."""

    @staticmethod
    def forward(ctx, a, b, t):
        ctx.save_for_backward(a, b, t)
        return t * t * (b - a)

    @staticmethod
    def backward(ctx, grad_output):
        a, b, t = ctx.saved_tensors
        slope = t * t * grad_output
        return -slope, slope, 2 * t * grad_output * (b - a)


PLANT(
    "Interpolates",
    "a=NxM b=NxM t=NxM",
    (
        "parenthesis",
        "nonlinear-backward wrong-gradient missing-term wrong-factor",
        "t",
        "2 * t * grad_output * (b - a)",
        "2 * t * grad_output * b - a",
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


class Distance(Function):
    """Squared distances of each row to each other row."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x[:, None] - y).pow(2).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        slope = 2 * (x[:, None] - y) * grad_output[:, :, None]
        return slope.sum(1), -slope.sum(0)


PLANT(
    "Distance",
    "x=NxM y=KxM",
    ("axes-exchanged", "wrong-reduction wrong-shape swapped-gradients", "y", "-slope.sum(0)", "-slope.sum(1)"),
    flags=True,
)
