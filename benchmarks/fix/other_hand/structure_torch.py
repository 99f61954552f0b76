"""Convolution, pooling, indexing, sums along an axis and recurrences, in PyTorch."""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("structure", "torch", __file__)


class CausalConv(Function):
    """y[t] = sum over k of w[k] x[t - k], for each row."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        padded = F.pad(x, (len(w) - 1, 0))
        return padded.unfold(1, len(w), 1) @ w.flip(0)

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        k = len(w)
        after = F.pad(grad_output, (0, k - 1)).unfold(1, k, 1)
        before = F.pad(x, (k - 1, 0)).unfold(1, k, 1)
        grad_w = torch.einsum("nt,ntk->k", grad_output, before).flip(0)
        return after @ w, grad_w


PLANT(
    "CausalConv",
    "x=NxT w=N",
    ("kernel-not-flipped", "wrong-shift wrong-gradient wrong-entries", "x", "after @ w,", "after @ w.flip(0),"),
    ("kernel-not-flipped", "wrong-shift wrong-gradient wrong-entries", "w", "before).flip(0)", "before)"),
    (
        "padding-side",
        "wrong-shift wrong-gradient",
        "x",
        "F.pad(grad_output, (0, k - 1))",
        "F.pad(grad_output, (k - 1, 0))",
    ),
    ("padding-side", "wrong-shift wrong-gradient", "w", "F.pad(x, (k - 1, 0))", "F.pad(x, (0, k - 1))"),
    flags=True,
)


class Conv2d(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return F.conv2d(x, w, b, padding=1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = F.conv_transpose2d(g, w, padding=1)
        gw = F.conv2d(x.transpose(0, 1), g.transpose(0, 1), padding=1).transpose(0, 1)
        return gx, gw, g.sum((0, 2, 3))


PLANT(
    "Conv2d",
    "x=Bx2x5x5 w=2x2x3x3 b=2",
    (
        "kernel-not-flipped",
        "wrong-shift wrong-gradient wrong-factor transposed",
        "x",
        "F.conv_transpose2d(g, w, padding=1)",
        "F.conv2d(g, w.transpose(0, 1), padding=1)",
    ),
    ("wrong-axis", "wrong-reduction wrong-shape", "b", "g.sum((0, 2, 3))", "g.sum((1, 2, 3))"),
    ("mean-for-sum", "wrong-reduction wrong-factor", "b", "g.sum((0, 2, 3))", "g.mean((0, 2, 3))"),
    ("permuted-axes", "transposed", "w", "padding=1).transpose(0, 1)", "padding=1)"),
    (
        "permuted-axes",
        "transposed",
        "x",
        "F.conv_transpose2d(g, w, padding=1)",
        "F.conv_transpose2d(g, w.transpose(0, 1), padding=1)",
    ),
    ("missing-gradient", "missing-gradient", "b", "g.sum((0, 2, 3))", "None"),
    flags=True,
)


class AveragePool(Function):
    @staticmethod
    def forward(ctx, x, size):
        ctx.size = size
        n, length = x.shape
        return x.view(n, length // size, size).mean(-1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.repeat_interleave(ctx.size, dim=1) / ctx.size, None


PLANT(
    "AveragePool",
    "x=Nx6 size:2",
    ("factor-of-size", "wrong-factor wrong-reduction", "x", " / ctx.size, None", ", None"),
    (
        "repeat-for-interleave",
        "wrong-shift wrong-gradient wrong-entries transposed",
        "x",
        "grad_output.repeat_interleave(ctx.size, dim=1)",
        "grad_output.repeat(1, ctx.size)",
    ),
    ("factor-of-axis", "wrong-factor wrong-reduction", "x", "/ ctx.size, None", "/ grad_output.shape[1], None"),
    flags=True,
)


class MaxOverTime(Function):
    @staticmethod
    def forward(ctx, x):
        best, where = x.max(dim=1)
        ctx.save_for_backward(where)
        ctx.length = x.shape[1]
        return best

    @staticmethod
    def backward(ctx, grad_output):
        (where,) = ctx.saved_tensors
        grad = grad_output.new_zeros(len(where), ctx.length)
        return grad.scatter(1, where.unsqueeze(1), grad_output.unsqueeze(1))


PLANT(
    "MaxOverTime",
    "x=NxM,domain=distinct",
    (
        "off-by-one",
        "wrong-shift wrong-gradient wrong-entries",
        "x",
        "grad.scatter(1, where.unsqueeze(1)",
        "grad.scatter(1, (where.unsqueeze(1) + 1) % ctx.length",
    ),
    (
        "spread-evenly",
        "wrong-gradient wrong-entries wrong-factor",
        "x",
        "grad.scatter(1, where.unsqueeze(1), grad_output.unsqueeze(1))",
        "grad + grad_output.unsqueeze(1) / ctx.length",
    ),
    (
        "ignored-grad-output",
        "ignores-grad-output",
        "x",
        "where.unsqueeze(1), grad_output.unsqueeze(1))",
        "where.unsqueeze(1), 1.0)",
    ),
)


class Embedding(Function):
    """Rows of a table; row 0 stands for padding and is not trained."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.rows = len(table)
        keep = (index > 0).to(table.dtype).unsqueeze(-1)
        return table[index] * keep

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        keep = (index > 0).to(grad_output.dtype).unsqueeze(-1)
        grad = grad_output.new_zeros(ctx.rows, grad_output.shape[-1])
        return grad.index_add(0, index, grad_output * keep), None


PLANT(
    "Embedding",
    "table=MxN index=T,domain=indices,high=M",
    ("mask-tie", "wrong-entries", "table", "keep = (index > 0).to(grad_output", "keep = (index >= 0).to(grad_output"),
    ("mask-missing", "wrong-entries", "table", "grad_output * keep", "grad_output"),
    (
        "duplicates-overwritten",
        "wrong-entries wrong-gradient ignores-grad-output",
        "table",
        "grad.index_add(",
        "grad.index_copy(",
    ),
    ("mask-tie", "wrong-entries", "table", "keep = (index > 0).to(grad_output", "keep = (index > 1).to(grad_output"),
    flags=True,
)


class CausalMean(Function):
    """The mean of all values up to each time."""

    @staticmethod
    def forward(ctx, x):
        counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
        return x.cumsum(1) / counts

    @staticmethod
    def backward(ctx, grad_output):
        counts = torch.arange(1, grad_output.shape[1] + 1, dtype=grad_output.dtype)
        g = grad_output / counts
        return g.flip(1).cumsum(1).flip(1)


PLANT(
    "CausalMean",
    "x=NxM",
    (
        "off-by-one",
        "wrong-factor wrong-gradient wrong-shift",
        "x",
        "torch.arange(1, grad_output.shape[1] + 1,",
        "torch.arange(2, grad_output.shape[1] + 2,",
    ),
    (
        "order-forgotten",
        "wrong-shift wrong-gradient wrong-reduction",
        "x",
        "g.flip(1).cumsum(1).flip(1)",
        "g.cumsum(1)",
    ),
    ("factor-missing", "wrong-factor", "x", "g = grad_output / counts", "g = grad_output"),
    ("off-by-one", "missing-term wrong-shift", "x", "g.flip(1).cumsum(1).flip(1)", "g.flip(1).cumsum(1).flip(1) - g"),
    ("wrong-dim", "wrong-reduction wrong-gradient", "x", "g.flip(1).cumsum(1).flip(1)", "g.flip(1).cumsum(0).flip(1)"),
)


class FiniteDifference(Function):
    """Second differences along the last axis, with the ends left out."""

    @staticmethod
    def forward(ctx, u, spacing):
        ctx.spacing = spacing
        return (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2]) / spacing**2

    @staticmethod
    def backward(ctx, g):
        g = g / ctx.spacing**2
        return F.pad(g, (2, 0)) - 2 * F.pad(g, (1, 1)) + F.pad(g, (0, 2)), None


PLANT(
    "FiniteDifference",
    "u=NxT spacing:0.5",
    ("power", "wrong-factor", "u", "g = g / ctx.spacing**2", "g = g / ctx.spacing"),
    ("sign-of-term", "wrong-sign missing-term wrong-entries", "u", "- 2 * F.pad(g, (1, 1))", "+ 2 * F.pad(g, (1, 1))"),
    ("missing-term", "missing-term", "u", " + F.pad(g, (0, 2)), None", " + 0 * F.pad(g, (0, 2)), None"),
    ("padding-side", "wrong-shift wrong-gradient", "u", "F.pad(g, (1, 1))", "F.pad(g, (2, 0))"),
    flags=True,
)


class StridedPick(Function):
    @staticmethod
    def forward(ctx, x, stride):
        ctx.stride, ctx.shape = stride, x.shape
        return x[:, ::stride].clone()

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output.new_zeros(ctx.shape)
        grad[:, :: ctx.stride] = grad_output
        return grad, None


PLANT(
    "StridedPick",
    "x=NxT stride:2",
    (
        "off-by-one-stride",
        "wrong-shift",
        "x",
        "grad[:, :: ctx.stride] = grad_output",
        "grad[:, 1 :: ctx.stride] = grad_output",
    ),
    (
        "stride-forgotten",
        "wrong-gradient wrong-shift wrong-entries",
        "x",
        "grad[:, :: ctx.stride] = grad_output",
        "grad[:, : grad_output.shape[1]] = grad_output",
    ),
    flags=True,
)


class RNNCell(Function):
    @staticmethod
    def forward(ctx, x, h, w, u):
        out = torch.tanh(x @ w + h @ u)
        ctx.save_for_backward(x, h, w, u, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, h, w, u, out = ctx.saved_tensors
        da = grad_output * (1 - out * out)
        return da @ w.T, da @ u.T, x.T @ da, h.T @ da


PLANT(
    "RNNCell",
    "x=NxN h=NxN w=NxN u=NxN",
    ("transposed-operand", "transposed", "h", "da @ u.T", "da @ u"),
    ("swapped-two", "swapped-gradients", "w u", "x.T @ da, h.T @ da", "h.T @ da, x.T @ da"),
    (
        "swapped-three",
        "swapped-gradients",
        "x h w u",
        "return da @ w.T, da @ u.T, x.T @ da, h.T @ da",
        "return da @ u.T, x.T @ da, h.T @ da, da @ w.T",
    ),
    ("chain-rule-forgotten", "wrong-factor", "x h w u", "da = grad_output * (1 - out * out)", "da = grad_output"),
    ("wrong-variable", "swapped-gradients wrong-gradient wrong-factor", "x", "da @ w.T", "da @ u.T"),
    flags=True,
)
