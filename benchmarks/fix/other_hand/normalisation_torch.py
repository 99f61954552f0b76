"""Softmax, norms, variances and normalisation, in PyTorch."""

import torch
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("normalisation", "torch", __file__)


class RowSoftmax(Function):
    @staticmethod
    def forward(ctx, logits):
        p = torch.softmax(logits, dim=-1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        inner = (grad_output * p).sum(-1, keepdim=True)
        return p * (grad_output - inner)


PLANT(
    "RowSoftmax",
    "logits=NxM",
    ("missing-term", "missing-term", "logits", "p * (grad_output - inner)", "p * grad_output"),
    ("mean-for-sum", "wrong-reduction missing-term", "logits", ".sum(-1, keepdim=True)", ".mean(-1, keepdim=True)"),
    ("wrong-axis", "wrong-reduction", "logits", ".sum(-1, keepdim=True)", ".sum(0, keepdim=True)"),
    (
        "factor-missing",
        "wrong-factor missing-term wrong-gradient",
        "logits",
        "(grad_output * p).sum",
        "grad_output.sum",
    ),
    (
        "wrong-function",
        "wrong-gradient missing-term wrong-factor",
        "logits",
        "p * (grad_output - inner)",
        "p * (1 - p) * grad_output",
    ),
    ("sign-of-term", "wrong-sign missing-term", "logits", "(grad_output - inner)", "(grad_output + inner)"),
)


class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.logsumexp(x, dim=1)
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, out = ctx.saved_tensors
        return grad_output.unsqueeze(1) * torch.exp(x - out.unsqueeze(1))


PLANT(
    "LogSumExp",
    "x=KxK",
    (
        "wrong-axis",
        "wrong-gradient wrong-reduction wrong-factor transposed ignores-grad-output wrong-entries",
        "x",
        "out.unsqueeze(1))",
        "out.unsqueeze(0))",
    ),
    (
        "wrong-axis",
        "wrong-gradient transposed wrong-reduction wrong-factor",
        "x",
        "grad_output.unsqueeze(1)",
        "grad_output.unsqueeze(0)",
    ),
    ("factor-missing", "wrong-factor", "x", "torch.exp(x - out.unsqueeze(1))", "torch.exp(x)"),
    (
        "sign",
        "wrong-sign wrong-factor wrong-gradient",
        "x",
        "torch.exp(x - out.unsqueeze(1))",
        "torch.exp(out.unsqueeze(1) - x)",
    ),
    flags=True,
)


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps):
        mu = x.mean(-1, keepdim=True)
        rstd = (x.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        xhat = (x - mu) * rstd
        ctx.save_for_backward(x, gamma)
        ctx.eps = eps
        return gamma * xhat + beta

    @staticmethod
    def backward(ctx, dy):
        x, gamma = ctx.saved_tensors
        mu = x.mean(-1, keepdim=True)
        rstd = (x.var(-1, unbiased=False, keepdim=True) + ctx.eps).rsqrt()
        xhat = (x - mu) * rstd
        dxhat = dy * gamma
        dx = dxhat - dxhat.mean(-1, keepdim=True) - xhat * (dxhat * xhat).mean(-1, keepdim=True)
        return rstd * dx, (dy * xhat).sum(0), dy.sum(0), None


PLANT(
    "LayerNorm",
    "x=NxM gamma=M beta=M eps:0.01",
    ("missing-term", "missing-term", "x", " - xhat * (dxhat * xhat).mean(-1, keepdim=True)", ""),
    ("missing-term", "missing-term", "x", "dxhat - dxhat.mean(-1, keepdim=True) - xhat", "dxhat - xhat"),
    (
        "sum-for-mean",
        "wrong-reduction missing-term",
        "x",
        "(dxhat * xhat).mean(-1, keepdim=True)",
        "(dxhat * xhat).sum(-1, keepdim=True)",
    ),
    ("factor-missing", "wrong-factor", "x", "return rstd * dx,", "return dx,"),
    ("other-factor-missing", "wrong-factor", "x", "dxhat = dy * gamma", "dxhat = dy"),
    (
        "wrong-axis",
        "wrong-reduction",
        "x",
        "dxhat - dxhat.mean(-1, keepdim=True)",
        "dxhat - dxhat.mean(0, keepdim=True)",
    ),
    ("mean-for-sum", "wrong-reduction wrong-factor", "beta", "dy.sum(0), None", "dy.mean(0), None"),
    ("wrong-variable", "wrong-factor wrong-gradient", "gamma", "(dy * xhat).sum(0)", "(dy * x).sum(0)"),
    ("wrong-variable", "wrong-factor missing-term wrong-gradient", "x", "(dxhat * xhat).mean", "(dxhat * x).mean"),
    (
        "swapped-two",
        "swapped-gradients",
        "gamma beta",
        "(dy * xhat).sum(0), dy.sum(0), None",
        "dy.sum(0), (dy * xhat).sum(0), None",
    ),
    (
        "epsilon",
        "wrong-gradient wrong-factor",
        "x gamma",
        "keepdim=True) + ctx.eps).rsqrt()",
        "keepdim=True)).rsqrt() + ctx.eps",
    ),
    (
        "wrong-argument",
        "wrong-factor wrong-gradient wrong-reduction",
        "x gamma",
        "unbiased=False, keepdim=True) + ctx.eps",
        "unbiased=True, keepdim=True) + ctx.eps",
    ),
    flags=True,
)


class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight):
        inv = torch.rsqrt((x * x).mean(-1, keepdim=True))
        ctx.save_for_backward(x, weight)
        return x * inv * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        inv = torch.rsqrt((x * x).mean(-1, keepdim=True))
        gw = grad_output * weight
        grad_x = inv * gw - x * inv**3 * (gw * x).mean(-1, keepdim=True)
        grad_weight = (grad_output * x * inv).sum(0)
        return grad_x, grad_weight


PLANT(
    "RMSNorm",
    "x=NxM weight=M",
    ("power", "wrong-factor missing-term wrong-gradient", "x", "inv**3", "inv**2"),
    ("missing-term", "missing-term", "x", "inv * gw - x * inv**3 * (gw * x).mean(-1, keepdim=True)", "inv * gw"),
    ("factor-missing", "wrong-factor", "weight", "(grad_output * x * inv).sum(0)", "(grad_output * x).sum(0)"),
    ("other-factor-missing", "wrong-factor missing-term", "x", "(gw * x).mean", "(grad_output * x).mean"),
    (
        "wrong-axis",
        "wrong-reduction missing-term",
        "x",
        "(gw * x).mean(-1, keepdim=True)",
        "(gw * x).mean(0, keepdim=True)",
    ),
)


class BatchNorm(Function):
    @staticmethod
    def forward(ctx, x, scale, shift):
        mean, var = x.mean(0), x.var(0, unbiased=False)
        inv_std = 1 / torch.sqrt(var + 1e-3)
        ctx.save_for_backward(x, scale)
        return (x - mean) * inv_std * scale + shift

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        n = x.shape[0]
        mean, var = x.mean(0), x.var(0, unbiased=False)
        inv_std = 1 / torch.sqrt(var + 1e-3)
        centred = x - mean
        g = grad_output * scale
        grad_var = -0.5 * (g * centred).sum(0) * inv_std**3
        grad_mean = -(g * inv_std).sum(0)
        grad_x = g * inv_std + grad_var * 2 * centred / n + grad_mean / n
        return grad_x, (grad_output * centred * inv_std).sum(0), grad_output.sum(0)


PLANT(
    "BatchNorm",
    "x=KxM scale=M shift=M",
    ("factor-missing", "wrong-factor missing-term", "x", "-0.5 * (g * centred)", "-(g * centred)"),
    ("factor-of-size", "wrong-factor missing-term wrong-reduction", "x", "grad_mean / n", "grad_mean"),
    ("factor-of-size", "wrong-factor missing-term wrong-reduction", "x", "x.shape[0]", "(x.shape[0] - 1)"),
    ("factor-of-axis", "wrong-factor missing-term wrong-reduction", "x", "n = x.shape[0]", "n = x.shape[1]"),
    ("missing-term", "missing-term", "x", "+ grad_var * 2 * centred / n ", ""),
    ("sign-of-term", "wrong-sign missing-term", "x", "grad_mean = -(g", "grad_mean = (g"),
    ("power", "wrong-factor missing-term", "x", "inv_std**3", "inv_std"),
    ("in-place", "mutates-grad-output", "scale shift", "g = grad_output * scale", "g = grad_output.mul_(scale)"),
    flags=True,
)


class UnitNorm(Function):
    """Rows scaled to length one."""

    @staticmethod
    def forward(ctx, x):
        length = x.norm(dim=1, keepdim=True)
        y = x / length
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        length = x.norm(dim=1, keepdim=True)
        along = (grad_output * y).sum(1, keepdim=True)
        return (grad_output - along * y) / length


PLANT(
    "UnitNorm",
    "x=NxM",
    ("missing-term", "missing-term", "x", "(grad_output - along * y) / length", "grad_output / length"),
    ("factor-missing", "wrong-factor", "x", "(grad_output - along * y) / length", "grad_output - along * y"),
    ("power", "wrong-factor", "x", "along * y) / length", "along * y) / length**2"),
    (
        "saved-intermediate",
        "not-twice-differentiable",
        "x",
        """ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        length = x.norm(dim=1, keepdim=True)
""",
        """ctx.save_for_backward(y, length)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, length = ctx.saved_tensors
""",
    ),
    (
        "other-factor-missing",
        "missing-term wrong-factor wrong-gradient",
        "x",
        "(grad_output - along * y)",
        "(grad_output - along)",
    ),
)


class StdOfRows(Function):
    @staticmethod
    def forward(ctx, x):
        std = x.std(dim=1)
        ctx.save_for_backward(x, std)
        return std

    @staticmethod
    def backward(ctx, grad_output):
        x, std = ctx.saved_tensors
        centred = x - x.mean(1, keepdim=True)
        return (grad_output / std).unsqueeze(1) * centred / (x.shape[1] - 1)


PLANT(
    "StdOfRows",
    "x=NxM",
    ("factor-of-size", "wrong-factor wrong-reduction", "x", "(x.shape[1] - 1)", "x.shape[1]"),
    ("factor-of-axis", "wrong-factor wrong-reduction", "x", "(x.shape[1] - 1)", "(x.shape[0] - 1)"),
    ("missing-term", "missing-term", "x", "centred = x - x.mean(1, keepdim=True)", "centred = x"),
    ("factor-extra", "wrong-factor", "x", "* centred / (x", "* 2 * centred / (x"),
    ("power", "wrong-factor", "x", "(grad_output / std)", "(grad_output / std**2)"),
)


class CosineSimilarity(Function):
    @staticmethod
    def forward(ctx, a, b):
        na, nb = a.norm(dim=-1), b.norm(dim=-1)
        cos = (a * b).sum(-1) / (na * nb)
        ctx.save_for_backward(a, b)
        return cos

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
        g = grad_output.unsqueeze(-1)
        cos = (a * b).sum(-1, keepdim=True) / (na * nb)
        grad_a = g * (b / (na * nb) - cos * a / na**2)
        grad_b = g * (a / (na * nb) - cos * b / nb**2)
        return grad_a, grad_b


PLANT(
    "CosineSimilarity",
    "a=NxM b=NxM",
    ("swapped-two", "swapped-gradients", "a b", "return grad_a, grad_b", "return grad_b, grad_a"),
    ("missing-term", "missing-term", "a", "g * (b / (na * nb) - cos * a / na**2)", "g * (b / (na * nb))"),
    ("wrong-variable", "wrong-factor missing-term wrong-gradient", "b", "cos * b / nb**2", "cos * b / na**2"),
    ("power", "wrong-factor missing-term wrong-gradient", "a", "cos * a / na**2", "cos * a / na"),
    ("sign-of-term", "wrong-sign missing-term", "a", "(b / (na * nb) - cos", "(b / (na * nb) + cos"),
)
