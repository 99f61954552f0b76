"""PyTorch's own operations as plain callables: there is no body apart from the claim, so differences decide alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from benchmarks.correct.draws import Array, drawn
from benchmarks.correct.specimen import Collection

BODIES = Collection("bodies")

DRAWS: dict[str, Callable[[np.random.Generator], Array]] = {
    "normal": lambda rng: rng.standard_normal(6),
    "positive": lambda rng: np.abs(rng.standard_normal(6)) + 0.1,
    "small": lambda rng: 1e-8 * rng.standard_normal(6),
    "large": lambda rng: 30 * rng.standard_normal(6),
    "wide": lambda rng: rng.standard_normal(6) * 10.0 ** rng.integers(-6, 4, 6),
    "zeros": lambda rng: np.where(rng.random(6) < 0.5, 0.0, rng.standard_normal(6)),
    "ties": lambda rng: rng.integers(-1, 2, 6).astype(float),
    "whole": lambda rng: rng.integers(-3, 4, 6) + 0.5,
}


def _matrix(x: Any) -> Any:
    return x.reshape(2, 3) @ x.reshape(2, 3).T + 0.5 * torch.eye(2, dtype=x.dtype)


TABLE: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "relu": (torch.relu, ("normal", "small", "zeros", "ties")),
    "leaky relu": (lambda x: F.leaky_relu(x, 0.1), ("normal", "wide", "zeros")),
    "absolute value": (torch.abs, ("normal", "zeros")),
    "clamp": (lambda x: x.clamp(-1, 1), ("normal", "large", "ties")),
    "hard sigmoid": (F.hardsigmoid, ("normal", "large")),
    "hard tanh": (F.hardtanh, ("normal", "large")),
    "soft shrink": (F.softshrink, ("normal", "whole")),
    "hard shrink": (F.hardshrink, ("normal", "whole")),
    "elu": (F.elu, ("normal", "large", "zeros")),
    "gelu": (F.gelu, ("normal", "large")),
    "softplus": (F.softplus, ("normal", "large", "small")),
    "log sigmoid": (F.logsigmoid, ("normal", "large")),
    "log softmax": (lambda x: torch.log_softmax(x, 0), ("normal", "large", "wide")),
    "softmax": (lambda x: torch.softmax(x, 0), ("normal", "large", "ties")),
    "log of sum of exp": (lambda x: torch.logsumexp(x, 0), ("normal", "large")),
    "sort": (lambda x: torch.sort(x)[0], ("normal", "ties", "small")),
    "maximum": (lambda x: x.max(), ("normal", "ties")),
    "amax": (lambda x: x.amax(), ("normal", "ties")),
    "median": (lambda x: x.median(), ("normal", "ties")),
    "cumulative maximum": (lambda x: torch.cummax(x, 0)[0], ("normal", "ties")),
    "top two": (lambda x: torch.topk(x, 2)[0], ("normal", "ties")),
    "max pool": (lambda x: F.max_pool1d(x[None], 2)[0], ("normal", "ties")),
    "floor": (torch.floor, ("normal", "whole")),
    "sign": (torch.sign, ("normal", "zeros")),
    "fraction": (torch.frac, ("normal", "whole")),
    "norm": (lambda x: x.norm(), ("normal", "small", "zeros")),
    "one norm": (lambda x: x.norm(p=1), ("normal", "zeros")),
    "largest magnitude": (lambda x: x.norm(p=float("inf")), ("normal", "ties")),
    "normalised": (lambda x: x / (x.norm() + 1e-12), ("normal", "small", "large")),
    "variance": (lambda x: (x + 1e4).var(), ("normal", "small")),
    "layer norm": (lambda x: F.layer_norm(x, (6,)), ("normal", "small", "large")),
    "product": (torch.prod, ("normal", "zeros", "wide")),
    "cumulative product": (lambda x: torch.cumprod(x, 0), ("normal", "zeros")),
    "logarithm": (torch.log, ("positive",)),
    "log1p": (torch.log1p, ("positive", "small")),
    "expm1": (torch.expm1, ("normal", "small")),
    "square root": (torch.sqrt, ("positive",)),
    "reciprocal": (torch.reciprocal, ("normal", "wide")),
    "power": (lambda x: x.abs() ** 1.3, ("normal", "wide")),
    "tail of erf": (torch.erfc, ("normal", "large")),
    "log gamma": (torch.lgamma, ("positive",)),
    "digamma": (torch.digamma, ("positive",)),
    "Bessel": (torch.special.i0e, ("normal", "large")),
    "sinc": (torch.sinc, ("normal", "small", "zeros")),
    "fast sine": (lambda x: torch.sin(1e4 * x), ("normal",)),
    "atan2": (lambda x: torch.atan2(x[:3], x[3:]), ("normal", "wide")),
    "determinant": (lambda x: torch.linalg.det(_matrix(x)), ("normal", "small")),
    "inverse": (lambda x: torch.linalg.inv(_matrix(x)), ("normal", "large")),
    "Cholesky": (lambda x: torch.linalg.cholesky(_matrix(x)), ("normal",)),
    "eigenvalues": (lambda x: torch.linalg.eigvalsh(_matrix(x)), ("normal", "zeros")),
    "singular values": (lambda x: torch.linalg.svdvals(x.reshape(2, 3)), ("normal",)),
    "logarithm of det": (lambda x: torch.logdet(_matrix(x)), ("normal", "large")),
    "Huber": (lambda x: F.huber_loss(x, torch.zeros_like(x)), ("normal", "large", "whole")),
    "smooth l1": (lambda x: F.smooth_l1_loss(x, x * 0 + 1), ("normal", "whole")),
    "hinge": (lambda x: (1 - x).clamp(min=0).sum(), ("normal", "ties")),
    "cross entropy": (lambda x: F.cross_entropy(x[None], torch.tensor([2])), ("normal", "large")),
    "where": (lambda x: torch.where(x > 0, 2 * x, 3 * x), ("normal", "zeros", "small")),
    "float32 sine": (lambda x: torch.sin(x.float()).double(), ("normal",)),
    "float32 matrix": (lambda x: (_matrix(x).float() @ _matrix(x).float()).double(), ("normal",)),
    "offset": (lambda x: 1e8 + torch.sin(x), ("normal",)),
    "cancelling": (lambda x: (1 - torch.cos(x)) / x**2, ("normal",)),
}


def operation(body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The operation as a function of the user's own."""

    def called(x: Any) -> Any:
        return body(x)

    return called


ONCE = ("hard sigmoid", "sinc")
"""PyTorch gives no second derivative of the one, and NaN for that of the other at zero."""

for name, (body, draws) in TABLE.items():
    called_by_user = operation(body)
    for draw in draws:
        BODIES.add(
            called_by_user,
            drawn(DRAWS[draw]),
            name=f"{name}, {draw}",
            witnessed=False,
            unproved="autograd of PyTorch itself",
            limit=1 if name in ONCE else 2,
        )
