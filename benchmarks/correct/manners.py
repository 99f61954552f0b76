"""What else honest Functions do: in-place work, odd arguments, several outputs, None."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from benchmarks.correct.draws import flags, normal, untracked, value, within
from benchmarks.correct.specimen import Collection

MANNERS = Collection("manners")


@MANNERS(normal(6), reference=lambda x: torch.sin(x), order=1)
class InPlaceSine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.cos(x), x.clone())
        x.sin_()
        ctx.mark_dirty(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@MANNERS(normal(6), reference=lambda x: torch.exp(x))
class InPlaceExponential(Function):
    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@MANNERS(normal(3, 4), normal(4))
class BufferInside(Function):
    """Writes into an array of its own."""

    @staticmethod
    def forward(ctx, x, w):
        out = torch.empty_like(x)
        for row in range(len(x)):
            out[row] = x[row] * w
        ctx.save_for_backward(x, w)
        return out

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)


@MANNERS(normal(5), value(2.5))
class TimesConstant(Function):
    @staticmethod
    def forward(ctx, x, constant):
        ctx.constant = constant
        return x * constant

    @staticmethod
    def backward(ctx, g):
        return g * ctx.constant, None


@MANNERS(within(0.3, 2), value(3), value(0.5))
class PowerOfInteger(Function):
    @staticmethod
    def forward(ctx, x, n, shift):
        ctx.n, ctx.shift = n, shift
        ctx.save_for_backward(x)
        return (x + shift) ** n

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * (x + ctx.shift) ** (ctx.n - 1), None, None


@MANNERS(normal(3, 4), value("mean"))
class ReductionByName(Function):
    @staticmethod
    def forward(ctx, x, reduction):
        ctx.save_for_backward(x)
        ctx.scale = 1 / x.numel() if reduction == "mean" else 1.0
        return (x**3).sum() * ctx.scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x * ctx.scale, None


@MANNERS(normal(3, 4), normal(5, 4), value(None))
class LinearWithoutBias(Function):
    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w, b)
        y = x @ w.mT
        return y if b is None else y + b

    @staticmethod
    def backward(ctx, g):
        x, w, b = ctx.saved_tensors
        gx = g @ w if ctx.needs_input_grad[0] else None
        gw = g.mT @ x if ctx.needs_input_grad[1] else None
        gb = g.sum(0) if b is not None and ctx.needs_input_grad[2] else None
        return gx, gw, gb


MANNERS.add(LinearWithoutBias, normal(3, 4), normal(5, 4), normal(5), name="linear with bias")
MANNERS.add(LinearWithoutBias, untracked(normal(3, 4)), normal(5, 4), normal(5), name="linear of a constant")


@MANNERS(normal(6), flags(6))
class DropoutByGivenMask(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask / 0.6

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask / 0.6, None


@MANNERS(normal(4), normal(4))
class SeveralOutputs(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, torch.sin(x), (x - y).sum()

    @staticmethod
    def backward(ctx, a, b, c):
        x, y = ctx.saved_tensors
        return a * y + b * torch.cos(x) + c, a * x - c


@MANNERS(normal(4), normal(4), reference=lambda x, y: (torch.exp(x) * y, x * x))
class UnusedOutputsAsNone(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return torch.exp(x) * y, x * x

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        gx = gy = None
        if a is not None:
            gx, gy = a * torch.exp(x) * y, a * torch.exp(x)
        if b is not None:
            gx = 2 * b * x if gx is None else gx + 2 * b * x
        return gx, gy


@MANNERS(normal(3, 5), reference=lambda x: (x.amax(1), x.argmax(1)))
class MaximumWithPlaces(Function):
    @staticmethod
    def forward(ctx, x):
        values, places = x.max(1)
        ctx.save_for_backward(places)
        ctx.mark_non_differentiable(places)
        ctx.columns = x.shape[1]
        return values, places

    @staticmethod
    def backward(ctx, g, _):
        (places,) = ctx.saved_tensors
        return torch.nn.functional.one_hot(places, ctx.columns).to(g.dtype) * g[:, None]


@MANNERS(normal(6), reference=lambda x: (torch.tanh(x), (x > 0).double()))
class FloatThatIsNoOutput(Function):
    """A float output marked as not differentiable."""

    @staticmethod
    def forward(x):
        return torch.tanh(x), (x > 0).to(x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, g, _):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


@MANNERS(normal(4), normal(4), reference=lambda x, y: x + torch.round(y.detach()))
class NoGradientForRounded(Function):
    """None for an input of zero derivative."""

    @staticmethod
    def forward(ctx, x, y):
        return x + torch.round(y)

    @staticmethod
    def backward(ctx, g):
        return g, None


@MANNERS(normal(3, 4))
class TransposedResult(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**3).t()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g.t()
