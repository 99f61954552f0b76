"""Entries that share a gradient or receive several."""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("reported", "torch", __file__)


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
