"""Layers, normalisations and losses."""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("reported", "torch", __file__)


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


class MeanSquare(Function):
    @staticmethod
    def forward(ctx, pred, target):
        ctx.save_for_backward(pred, target)
        return (pred - target).pow(2).mean()

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        scale = grad_output.expand(pred.shape)
        grad = 2 * (pred - target) * scale / pred.numel()
        return grad, -grad


PLANT(
    "MeanSquare",
    "pred=NxM target=NxM",
    (
        "beyond-the-scalar",
        "wrong-entries wrong-factor missing-reduction wrong-gradient",
        "pred target",
        "scale = grad_output.expand(pred.shape)",
        "scale = F.pad(grad_output.reshape(1), (0, pred.numel() - 1)).reshape(pred.shape)",
    ),
)
