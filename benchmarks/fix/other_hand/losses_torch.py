"""Losses, in PyTorch."""

import math

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("losses", "torch", __file__)


class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, labels):
        log_p = logits.log_softmax(1)
        ctx.save_for_backward(logits, labels)
        return -log_p.gather(1, labels[:, None]).mean()

    @staticmethod
    def backward(ctx, grad_output):
        logits, labels = ctx.saved_tensors
        grad = logits.softmax(1)
        grad = grad - F.one_hot(labels, grad.shape[1])
        return grad_output * grad / len(labels), None


PLANT(
    "CrossEntropy",
    "logits=KxM labels=K,domain=indices,high=M",
    ("factor-of-size", "wrong-factor wrong-reduction", "logits", "grad / len(labels)", "grad"),
    ("factor-of-axis", "wrong-factor wrong-reduction", "logits", "grad / len(labels)", "grad / grad.shape[1]"),
    (
        "missing-term",
        "missing-term wrong-entries",
        "logits",
        "        grad = grad - F.one_hot(labels, grad.shape[1])\n",
        "",
    ),
    ("ignored-grad-output", "ignores-grad-output", "logits", "return grad_output * grad", "return grad"),
    (
        "sign",
        "wrong-sign",
        "logits",
        "grad = grad - F.one_hot(labels, grad.shape[1])",
        "grad = F.one_hot(labels, grad.shape[1]) - grad",
    ),
    (
        "exp-forgotten",
        "wrong-gradient missing-term",
        "logits",
        "grad = logits.softmax(1)",
        "grad = logits.log_softmax(1)",
    ),
    (
        "saved-intermediate",
        "not-twice-differentiable",
        "logits",
        """ctx.save_for_backward(logits, labels)
        return -log_p.gather(1, labels[:, None]).mean()

    @staticmethod
    def backward(ctx, grad_output):
        logits, labels = ctx.saved_tensors
        grad = logits.softmax(1)
""",
        """ctx.save_for_backward(log_p, labels)
        return -log_p.gather(1, labels[:, None]).mean()

    @staticmethod
    def backward(ctx, grad_output):
        log_p, labels = ctx.saved_tensors
        grad = log_p.exp()
""",
    ),
    flags=True,
)


class SmoothedCrossEntropy(Function):
    """Cross-entropy with label smoothing, one loss for each row."""

    @staticmethod
    def forward(ctx, logits, labels, smoothing):
        log_p = logits.log_softmax(-1)
        k = logits.shape[-1]
        target = torch.full_like(log_p, smoothing / k)
        target.scatter_(1, labels.unsqueeze(1), 1 - smoothing + smoothing / k)
        ctx.save_for_backward(logits, target)
        return -(target * log_p).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        logits, target = ctx.saved_tensors
        return (logits.softmax(-1) - target) * grad_output.unsqueeze(-1), None, None


PLANT(
    "SmoothedCrossEntropy",
    "logits=NxM labels=N,domain=indices,high=M smoothing:0.1",
    ("wrong-dim", "wrong-reduction wrong-gradient", "logits", "logits.softmax(-1)", "logits.softmax(0)"),
    ("missing-term", "missing-term", "logits", "(logits.softmax(-1) - target)", "logits.softmax(-1)"),
    ("sign-of-term", "wrong-sign missing-term", "logits", "- target)", "+ target)"),
    ("arity", "wrong-arity", "", "grad_output.unsqueeze(-1), None, None", "grad_output.unsqueeze(-1)"),
    ("wrong-function", "wrong-gradient missing-term", "logits", "logits.softmax(-1)", "logits.log_softmax(-1)"),
    flags=True,
)


class BCEWithLogits(Function):
    @staticmethod
    def forward(ctx, z, target, pos_weight):
        ctx.save_for_backward(z, target, pos_weight)
        return (pos_weight * target * F.softplus(-z) + (1 - target) * F.softplus(z)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        z, target, pos_weight = ctx.saved_tensors
        p = torch.sigmoid(z)
        grad_z = (1 - target) * p - pos_weight * target * (1 - p)
        return grad_output * grad_z / z.numel(), None, None


PLANT(
    "BCEWithLogits",
    "z=NxM target=NxM,domain=unit,grad=false pos_weight=M,domain=positive,grad=false",
    ("other-factor-missing", "wrong-factor missing-term wrong-gradient", "z", "- pos_weight * target", "- target"),
    ("factor-of-size", "wrong-factor wrong-reduction", "z", "z.numel()", "len(z)"),
    ("factor-of-size", "wrong-factor wrong-reduction", "z", "grad_z / z.numel()", "grad_z"),
    ("missing-term", "missing-term wrong-factor", "z", "(1 - target) * p - pos_weight", "-pos_weight"),
    ("sign-of-term", "wrong-sign missing-term", "z", "* p - pos_weight", "* p + pos_weight"),
    (
        "wrong-slot",
        "missing-gradient unneeded-gradient",
        "z",
        "return grad_output * grad_z / z.numel(), None, None",
        "return None, grad_output * grad_z / z.numel(), None",
    ),
    flags=True,
)


class FocalLoss(Function):
    @staticmethod
    def forward(ctx, p, gamma):
        ctx.save_for_backward(p)
        ctx.gamma = gamma
        return -((1 - p) ** gamma) * torch.log(p)

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        gamma = ctx.gamma
        slope = gamma * (1 - p) ** (gamma - 1) * torch.log(p) - (1 - p) ** gamma / p
        return grad_output * slope, None


PLANT(
    "FocalLoss",
    "p=NxM,domain=unit gamma:2.5",
    ("missing-term", "missing-term", "p", "torch.log(p) - (1 - p) ** gamma / p", "torch.log(p)"),
    ("factor-missing", "wrong-factor missing-term", "p", "slope = gamma * (1", "slope = (1"),
    ("power", "wrong-factor missing-term wrong-gradient", "p", "** (gamma - 1)", "** gamma"),
    ("sign-of-term", "wrong-sign missing-term", "p", "torch.log(p) - (1", "torch.log(p) + (1"),
    flags=True,
)


class MarginRanking(Function):
    """Mean of max(0, margin - (positive - negative))."""

    @staticmethod
    def forward(ctx, positive, negative, margin):
        gap = margin - (positive - negative)
        ctx.save_for_backward(gap)
        return gap.clamp(min=0).mean()

    @staticmethod
    def backward(ctx, grad_output):
        (gap,) = ctx.saved_tensors
        active = (gap > 0).to(gap.dtype) / gap.numel()
        return -grad_output * active, grad_output * active, None


PLANT(
    "MarginRanking",
    "positive=NxM negative=NxM margin:0.5",
    (
        "swapped-two",
        "swapped-gradients wrong-sign",
        "positive negative",
        "-grad_output * active, grad_output * active",
        "grad_output * active, -grad_output * active",
    ),
    (
        "mask-missing",
        "wrong-entries wrong-gradient",
        "positive negative",
        "(gap > 0).to(gap.dtype) / gap.numel()",
        "torch.ones_like(gap) / gap.numel()",
    ),
    ("mask-side", "wrong-entries wrong-gradient", "positive negative", "(gap > 0)", "(gap < 0)"),
    ("factor-of-size", "wrong-factor wrong-reduction", "positive negative", "/ gap.numel()", "/ (gap > 0).sum()"),
    ("missing-gradient", "missing-gradient", "negative", "grad_output * active, None", "None, None"),
    flags=True,
)


class KLDivergence(Function):
    @staticmethod
    def forward(ctx, log_p, log_q):
        ctx.save_for_backward(log_p, log_q)
        return (log_p.exp() * (log_p - log_q)).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        log_p, log_q = ctx.saved_tensors
        p = log_p.exp()
        g = grad_output.unsqueeze(-1)
        return g * p * (log_p - log_q + 1), -g * p


PLANT(
    "KLDivergence",
    "log_p=NxM log_q=NxM",
    ("missing-term", "missing-term", "log_p", "(log_p - log_q + 1)", "(log_p - log_q)"),
    ("factor-missing", "wrong-factor", "log_p", "g * p * (log_p", "g * (log_p"),
    ("sign", "wrong-sign", "log_q", "-g * p", "g * p"),
    ("wrong-variable", "wrong-factor wrong-gradient", "log_q", "-g * p", "-g * log_q.exp()"),
)


class GaussianNLL(Function):
    @staticmethod
    def forward(ctx, mean, log_std, x):
        z = (x - mean) * torch.exp(-log_std)
        ctx.save_for_backward(mean, log_std, x)
        return (0.5 * z**2 + log_std + 0.5 * math.log(2 * math.pi)).sum()

    @staticmethod
    def backward(ctx, grad_output):
        mean, log_std, x = ctx.saved_tensors
        z = (x - mean) * torch.exp(-log_std)
        scaled = z * torch.exp(-log_std)
        return -grad_output * scaled, grad_output * (1 - z**2), grad_output * scaled


PLANT(
    "GaussianNLL",
    "mean=NxM log_std=NxM x=NxM",
    ("missing-term", "missing-term", "log_std", "grad_output * (1 - z**2)", "grad_output * -(z**2)"),
    ("factor-missing", "wrong-factor", "mean x", "z * torch.exp(-log_std)\n        return", "z\n        return"),
    (
        "sign-inner",
        "wrong-factor wrong-sign",
        "mean x",
        "scaled = z * torch.exp(-log_std)",
        "scaled = z * torch.exp(log_std)",
    ),
    (
        "swapped-three",
        "swapped-gradients wrong-sign",
        "mean log_std x",
        "return -grad_output * scaled, grad_output * (1 - z**2), grad_output * scaled",
        "return grad_output * scaled, -grad_output * scaled, grad_output * (1 - z**2)",
    ),
    ("factor-missing", "wrong-factor missing-term", "log_std", "(1 - z**2)", "(1 - 0.5 * z**2)"),
    ("additive-constant", "missing-term wrong-gradient", "log_std", "(1 - z**2)", "(1 + math.log(2 * math.pi) - z**2)"),
)


class QuantileLoss(Function):
    @staticmethod
    def forward(ctx, pred, y, q):
        err = y - pred
        ctx.save_for_backward(err)
        ctx.q = q
        return torch.maximum(q * err, (q - 1) * err)

    @staticmethod
    def backward(ctx, grad_output):
        (err,) = ctx.saved_tensors
        slope = torch.where(err > 0, ctx.q, ctx.q - 1)
        return -slope * grad_output, slope * grad_output, None


PLANT(
    "QuantileLoss",
    "pred=NxM y=NxM q:0.3",
    (
        "branch-wrong",
        "wrong-entries wrong-gradient wrong-sign",
        "pred y",
        "torch.where(err > 0, ctx.q, ctx.q - 1)",
        "torch.where(err > 0, ctx.q, 1 - ctx.q)",
    ),
    ("mask-side", "wrong-entries wrong-gradient", "pred y", "err > 0", "err < 0"),
    (
        "sign",
        "wrong-sign",
        "y",
        "return -slope * grad_output, slope * grad_output",
        "return -slope * grad_output, -slope * grad_output",
    ),
    flags=True,
)


class SoftDice(Function):
    @staticmethod
    def forward(ctx, p, t):
        overlap = (p * t).sum()
        total = p.sum() + t.sum()
        ctx.save_for_backward(p, t)
        return 1 - (2 * overlap + 1) / (total + 1)

    @staticmethod
    def backward(ctx, grad_output):
        p, t = ctx.saved_tensors
        overlap = (p * t).sum()
        total = p.sum() + t.sum() + 1
        grad_p = -2 * t / total + (2 * overlap + 1) / total**2
        grad_t = -2 * p / total + (2 * overlap + 1) / total**2
        return grad_output * grad_p, grad_output * grad_t


PLANT(
    "SoftDice",
    "p=NxM,domain=unit t=NxM,domain=unit",
    ("missing-term", "missing-term", "p", "-2 * t / total + (2 * overlap + 1) / total**2", "-2 * t / total"),
    (
        "epsilon",
        "missing-term wrong-factor wrong-gradient",
        "p t",
        "total = p.sum() + t.sum() + 1",
        "total = p.sum() + t.sum()",
    ),
    (
        "swapped-two",
        "swapped-gradients",
        "p t",
        "grad_output * grad_p, grad_output * grad_t",
        "grad_output * grad_t, grad_output * grad_p",
    ),
    (
        "power",
        "wrong-factor missing-term",
        "t",
        "-2 * p / total + (2 * overlap + 1) / total**2",
        "-2 * p / total + (2 * overlap + 1) / total",
    ),
    ("factor-missing", "wrong-factor missing-term", "p", "-2 * t / total", "-t / total"),
    flags=True,
)
