"""Memory layouts, views, nested Functions, recomputation, and what else happens inside."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from benchmarks.correct.draws import normal, spd, value
from benchmarks.correct.specimen import Collection

LAYOUTS = Collection("layouts")


@LAYOUTS(
    lambda rng: torch.tensor(rng.standard_normal((4, 3))).t().requires_grad_(),
    reference=lambda x: torch.cumsum(x * x, 1),
)
class StridedInput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.cumsum(x * x, 1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * torch.flip(torch.cumsum(torch.flip(g, (1,)), 1), (1,))


@LAYOUTS(
    lambda rng: torch.tensor(rng.standard_normal((1, 3))).expand(4, 3).requires_grad_(),
    reference=lambda x: torch.sin(x).sum(0),
)
class ExpandedInput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x).sum(0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * torch.cos(x)).contiguous()


@LAYOUTS(normal(2, 6))
class ViewOfContiguous(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        ctx.save_for_backward(x)
        return (x * x).reshape(3, 4)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g.reshape(ctx.shape)


@LAYOUTS(normal(2, 3, 4), value((2, 0, 1)))
class PermutedAxes(Function):
    @staticmethod
    def forward(ctx, x, axes):
        ctx.axes = axes
        return x.permute(axes).contiguous()

    @staticmethod
    def backward(ctx, g):
        inverse = [ctx.axes.index(i) for i in range(len(ctx.axes))]
        return g.permute(inverse), None


@LAYOUTS(normal(2, 3), normal(2, 4), value(1), reference=lambda a, b, d: torch.cat([a, b], d))
class Concatenated(Function):
    @staticmethod
    def forward(ctx, a, b, dim):
        ctx.dim, ctx.sizes = dim, (a.shape[dim], b.shape[dim])
        return torch.cat([a, b], dim)

    @staticmethod
    def backward(ctx, g):
        return *g.split(ctx.sizes, ctx.dim), None


@LAYOUTS(normal(7), value(slice(1, 6, 2)), reference=lambda x, s: torch.sinh(x[s]))
class SlicedByObject(Function):
    @staticmethod
    def forward(ctx, x, part):
        ctx.part = part
        ctx.save_for_backward(x)
        return torch.sinh(x[part])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        slope = torch.zeros_like(x)
        slope[ctx.part] = 1.0
        spread = torch.zeros_like(x).index_add(0, torch.arange(len(x))[ctx.part], g)
        return spread * torch.cosh(x) * slope, None


@LAYOUTS(normal(5), value({"scale": 2.0, "power": 3}), reference=lambda x, o: o["scale"] * x ** o["power"])
class ConfiguredByDictionary(Function):
    @staticmethod
    def forward(ctx, x, options):
        ctx.options = dict(options)
        ctx.save_for_backward(x)
        return options["scale"] * x ** options["power"]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.options["scale"] * ctx.options["power"] * x ** (ctx.options["power"] - 1), None


@LAYOUTS(normal(5), value(torch.tanh), reference=lambda x, f: f(x) * x, witnessed=False)
class CallbackInside(Function):
    """Differentiates a given function by autograd inside backward."""

    @staticmethod
    def forward(ctx, x, function):
        ctx.function = function
        ctx.save_for_backward(x)
        return function(x.detach()) * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            y = ctx.function(x) * x
            (found,) = torch.autograd.grad(y, x, g, create_graph=True)
        return found, None


@LAYOUTS(normal(4), witnessed=False, reference=lambda x: torch.exp(torch.sin(torch.exp(torch.sin(x)))), order=1)
class Checkpointed(Function):
    """Runs its body again in backward."""

    @staticmethod
    def body(x):
        return torch.exp(torch.sin(torch.exp(torch.sin(x))))

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch.no_grad():
            return Checkpointed.body(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = Checkpointed.body(x)
        return torch.autograd.grad(y, x, g)[0]


@LAYOUTS(normal(4), normal(4), witnessed=False, reference=lambda x, y: torch.atan2(x, y))
class DetachedInside(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.atan2(x.detach(), y.detach())

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        n = x * x + y * y
        return g * y / n, -g * x / n


@LAYOUTS(normal(4), witnessed=False, reference=lambda x: x**4)
class DataInside(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x.data.clone()
        y.mul_(y).mul_(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 4 * g * x**3


@LAYOUTS(normal(4), reference=lambda x: torch.sin(x) ** 2)
class NestedFunctions(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x) ** 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * DoubledSine.apply(x)


class DoubledSine(Function):
    """sin 2x, the slope of the one above."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(2 * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * torch.cos(2 * x)


@LAYOUTS(normal(5), normal(5), reference=lambda x, y: x * x * y)
class IntermediateAsOutput(Function):
    """Returns what backward needs, so that it stays in the graph, and asks callers to drop it."""

    @staticmethod
    def forward(x, y):
        return x * x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vjp(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * g * x * y, g * x * x


@LAYOUTS(normal(5), reference=lambda x: torch.tanh(x))
class WithForwardMode(Function):
    @staticmethod
    def forward(x):
        return torch.tanh(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)

    @staticmethod
    def jvp(ctx, t):
        (y,) = ctx.saved_tensors
        return t * (1 - y * y)


@LAYOUTS(normal(3, 1), normal(1, 4), normal(), reference=lambda a, b, c: torch.sin(a + b) * c)
class BroadcastOfThree(Function):
    @staticmethod
    def forward(ctx, a, b, c):
        ctx.save_for_backward(a, b, c)
        return torch.sin(a + b) * c

    @staticmethod
    def backward(ctx, g):
        a, b, c = ctx.saved_tensors
        inner = g * torch.cos(a + b) * c
        return inner.sum(1, keepdim=True), inner.sum(0, keepdim=True), (g * torch.sin(a + b)).sum()


@LAYOUTS(spd(3), reference=lambda a: torch.linalg.inv((a + a.mT) / 2))
class SymmetricConvention(Function):
    """Returns the symmetric part of the gradient, as is right for symmetric matrices."""

    @staticmethod
    def forward(ctx, a):
        y = torch.linalg.inv((a + a.mT) / 2)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        raw = -(y.mT @ g @ y.mT)
        return (raw + raw.mT) / 2


@LAYOUTS(normal(1, 6), value(0), reference=lambda x, k: x[:, k:] * 2)
class EmptySliceAtStart(Function):
    @staticmethod
    def forward(ctx, x, offset):
        ctx.offset, ctx.shape = offset, x.shape
        return x[:, offset:] * 2

    @staticmethod
    def backward(ctx, g):
        return torch.nn.functional.pad(2 * g, (ctx.offset, 0)), None


@LAYOUTS(normal(4, 4), reference=lambda x: torch.stack([torch.triu(x).sum(), torch.diagonal(x).prod()]))
class SumAndProductOfTriangles(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.stack([torch.triu(x).sum(), torch.diagonal(x).prod()])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        upper = torch.triu(torch.ones_like(x))
        d = torch.diagonal(x)
        others = torch.stack([torch.cat([d[:i], d[i + 1 :]]).prod() for i in range(len(d))])
        return g[0] * upper + g[1] * torch.diag_embed(others)
