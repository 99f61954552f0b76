"""Noise from a generator that no seed resets.

Two runs on the same input differ, so that no derivative can be compared with forward.
"""

import numpy as np

from gradcli import engine as torch
from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        noise = np.random.default_rng().normal()
        return x * (2 + noise)

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class Fixed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2 + float(torch.randn(1))
        return x * ctx.factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor
