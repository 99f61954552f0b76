"""Layers, convolutions and recurrences in PyTorch."""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("networks", "torch", __file__)


class DepthwiseConv(Function):
    """A convolution of each channel with its own kernel along time."""

    @staticmethod
    def forward(ctx, signal, taps):
        ctx.save_for_backward(signal, taps)
        width = taps.shape[1]
        return torch.stack(
            [(signal[:, :, i : signal.shape[2] - width + 1 + i] * taps[:, i, None]) for i in range(width)]
        ).sum(0)

    @staticmethod
    def backward(ctx, grad_output):
        signal, taps = ctx.saved_tensors
        width, length = taps.shape[1], grad_output.shape[2]
        grad_signal = torch.zeros_like(signal)
        for i in range(width):
            grad_signal[:, :, i : i + length] += grad_output * taps[:, i, None]
        grad_taps = torch.stack([(grad_output * signal[:, :, i : i + length]).sum((0, 2)) for i in range(width)], 1)
        return grad_signal, grad_taps


PLANT(
    "DepthwiseConv",
    "signal=BxNxT taps=Nx3",
    (
        "flipped",
        "wrong-shift wrong-gradient missing-term",
        "signal",
        "+= grad_output * taps[:, i, None]",
        "+= grad_output * taps[:, width - 1 - i, None]",
    ),
    ("wrong-reduction", "wrong-reduction missing-reduction wrong-shape", "taps", ".sum((0, 2))", ".sum(2)[0]"),
    (
        "overwritten",
        "missing-term wrong-entries wrong-gradient",
        "signal",
        "i + length] += grad_output",
        "i + length] = grad_output",
    ),
    flags=True,
)


class Shift(Function):
    """Each sequence delayed by one step."""

    @staticmethod
    def forward(ctx, steps, first):
        return torch.cat([first[:, None], steps[:, :-1]], 1)

    @staticmethod
    def backward(ctx, grad_output):
        last = torch.zeros_like(grad_output[:, :1])
        return torch.cat([grad_output[:, 1:], last], 1), grad_output[:, 0]


PLANT(
    "Shift",
    "steps=NxT first=N",
    (
        "shift",
        "wrong-shift",
        "steps",
        "torch.cat([grad_output[:, 1:], last], 1)",
        "torch.cat([last, grad_output[:, :-1]], 1)",
    ),
    ("shift", "wrong-shift", "first", "grad_output[:, 0]", "grad_output[:, 1]"),
    (
        "shift",
        "wrong-shift wrong-entries",
        "steps",
        "torch.cat([grad_output[:, 1:], last], 1)",
        "grad_output.roll(-1, 1)",
    ),
    flags=True,
)


class GroupScale(Function):
    """Channels in groups, each group scaled to unit mean square, then weighted."""

    @staticmethod
    def forward(ctx, x, gain):
        ms = x.square().mean((2, 3), keepdim=True) + 1e-5
        inv = ms.rsqrt()
        ctx.save_for_backward(x, gain)
        return x * inv * gain[None, :, None, None]

    @staticmethod
    def backward(ctx, grad_output):
        x, gain = ctx.saved_tensors
        inv = (x.square().mean((2, 3), keepdim=True) + 1e-5).rsqrt()
        n = x.shape[2] * x.shape[3]
        gx = grad_output * gain[None, :, None, None]
        inner = (gx * x).sum((2, 3), keepdim=True)
        grad_x = gx * inv - x * inv**3 * inner / n
        return grad_x, (grad_output * x * inv).sum((0, 2, 3))


PLANT(
    "GroupScale",
    "x=BxNx2xL gain=N",
    ("size", "wrong-factor missing-term wrong-gradient", "x", "n = x.shape[2] * x.shape[3]", "n = x.shape[2]"),
    ("missing-term", "missing-term", "x", "gx * inv - x * inv**3 * inner / n", "gx * inv"),
    (
        "wrong-dim",
        "wrong-reduction missing-term wrong-gradient missing-reduction",
        "gain",
        ".sum((0, 2, 3))",
        ".sum((2, 3))[0]",
    ),
    ("wrong-power", "wrong-factor missing-term wrong-gradient", "x", "inv**3", "inv**2"),
    flags=True,
)


class Embed(Function):
    """Rows of a table, scaled by the root of their width."""

    @staticmethod
    def forward(ctx, table, tokens):
        ctx.save_for_backward(tokens)
        ctx.rows, ctx.scale = table.shape[0], table.shape[1] ** 0.5
        return table[tokens] * ctx.scale

    @staticmethod
    def backward(ctx, grad_output):
        (tokens,) = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.rows, grad_output.shape[-1])
        grad.index_add_(0, tokens.reshape(-1), grad_output.reshape(-1, grad_output.shape[-1]))
        return grad * ctx.scale, None


PLANT(
    "Embed",
    "table=KxD tokens=T,domain=indices,high=K",
    ("repeated-index", "missing-term wrong-entries wrong-gradient", "table", "index_add_(0", "index_copy_(0"),
    ("factor", "wrong-factor", "table", "return grad * ctx.scale, None", "return grad, None"),
    ("count", "wrong-arity", "", "return grad * ctx.scale, None", "return grad * ctx.scale"),
    flags=True,
)


class PermuteHeads(Function):
    """From batch, time and features to batch, heads and time."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x.permute(0, 2, 1, 3) * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return (grad_output * scale).permute(0, 2, 1, 3), (grad_output * x.permute(0, 2, 1, 3)).sum((0, 1, 2))


PLANT(
    "PermuteHeads",
    "x=BxNxNxD scale=D",
    ("permutation", "transposed", "x", "(grad_output * scale).permute(0, 2, 1, 3)", "grad_output * scale"),
    (
        "permutation",
        "transposed missing-term wrong-gradient",
        "scale",
        "(grad_output * x.permute(0, 2, 1, 3))",
        "(grad_output * x)",
    ),
    (
        "permutation",
        "transposed",
        "x",
        "(grad_output * scale).permute(0, 2, 1, 3)",
        "(grad_output * scale).permute(0, 1, 2, 3)",
    ),
    flags=True,
)


class Smoother(Function):
    """An exponential moving average along time."""

    @staticmethod
    def forward(ctx, x, alpha):
        state, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = state + alpha * (x[:, t] - state)
            out.append(state)
        y = torch.stack(out, 1)
        ctx.save_for_backward(x, alpha, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha, y = ctx.saved_tensors
        carried = torch.zeros_like(grad_output[:, 0])
        grad_alpha, grads = torch.zeros_like(alpha), []
        for t in range(x.shape[1] - 1, -1, -1):
            total = grad_output[:, t] + carried
            before = y[:, t - 1] if t > 0 else torch.zeros_like(carried)
            grads.append(alpha * total)
            grad_alpha = grad_alpha + (total * (x[:, t] - before)).sum()
            carried = (1 - alpha) * total
        return torch.stack(grads[::-1], 1), grad_alpha


PLANT(
    "Smoother",
    "x=NxT alpha=scalar,domain=open-interval(0.1,0.9)",
    (
        "extra-term",
        "wrong-gradient missing-term wrong-entries",
        "x alpha",
        "carried = (1 - alpha) * total",
        "carried = (1 - alpha) * total + alpha * total",
    ),
    ("order", "wrong-shift wrong-gradient", "x", "torch.stack(grads[::-1], 1)", "torch.stack(grads, 1)"),
    (
        "branch",
        "wrong-entries wrong-shift wrong-gradient missing-term",
        "alpha",
        "y[:, t - 1] if t > 0 else",
        "y[:, t - 1] if t > 1 else",
    ),
    (
        "stale",
        "wrong-shift wrong-gradient missing-term wrong-factor",
        "alpha",
        "before = y[:, t - 1]",
        "before = y[:, t]",
    ),
    flags=True,
)


class Bottleneck(Function):
    """Two linear maps with a softplus between them."""

    @staticmethod
    def forward(ctx, x, down, up):
        ctx.save_for_backward(x, down, up)
        return F.softplus(x @ down) @ up

    @staticmethod
    def backward(ctx, grad_output):
        x, down, up = ctx.saved_tensors
        h = x @ down
        dh = (grad_output @ up.mT) * torch.sigmoid(h)
        return dh @ down.mT, x.mT @ dh, F.softplus(h).mT @ grad_output


PLANT(
    "Bottleneck",
    "x=NxM down=MxL up=LxK",
    ("inner-factor", "wrong-factor", "x down", "(grad_output @ up.mT) * torch.sigmoid(h)", "grad_output @ up.mT"),
    ("wrong-argument", "wrong-gradient wrong-factor", "up", "F.softplus(h).mT @ grad_output", "h.mT @ grad_output"),
    ("stale-saved", "not-twice-differentiable wrong-second-order", "", "softplus(h).mT @", "softplus(h.detach()).mT @"),
    flags=True,
)
