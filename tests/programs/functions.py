"""The shared table of Functions: right ones with their inputs, written once for every framework of PyTorch's shape."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.cases import Argument


@dataclass(frozen=True)
class Row:
    """A Function's builder, the shapes (or values) of its arguments, and the highest order that is smooth."""

    name: str
    build: Callable[[Any], type]
    inputs: dict[str, Any] = field(default_factory=dict)


def arguments(row: Row, seed: int = 0) -> list[Argument]:
    """Arguments drawn from the row's shapes: a tuple is a shape, an array a fixed tensor, anything else a value."""
    generator = np.random.default_rng(seed)
    made = []
    for name, given in row.inputs.items():
        if isinstance(given, tuple):
            value = generator.normal(size=given)
            made.append(Argument(name=name, value=np.asarray(value), is_tensor=True, requires_grad=True))
        elif isinstance(given, np.ndarray):
            made.append(Argument(name=name, value=given, is_tensor=True, requires_grad=given.dtype.kind in "fc"))
        else:
            made.append(Argument(name=name, value=given, is_tensor=False))
    return made


def linear(ns):
    class Linear(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b=None):
            ctx.save_for_backward(x, w, b)
            y = x.mm(w.t())
            return y if b is None else y + b

        @staticmethod
        def backward(ctx, g):
            x, w, b = ctx.saved_tensors
            return g.mm(w), g.t().mm(x), None if b is None else g.sum(0)

    return Linear


def scaled(ns):
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(t, k):
            return t * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    return Scaled


def cube(ns):
    class Cube(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    return Cube


def exponential(ns):
    class Exponential(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    return Exponential


def relu(ns):
    class ReLU(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            g = g.clone()
            g[x < 0] = 0
            return g

    return ReLU


def softmax(ns):
    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = x.exp()
            y = e / e.sum(1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return y * (g - (g * y).sum(1, keepdim=True))

    return Softmax


def outer(ns):
    class Outer(ns.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.unsqueeze(1) * b.unsqueeze(0)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return (g * b.unsqueeze(0)).sum(1), (g * a.unsqueeze(1)).sum(0)

    return Outer


def two_outputs(ns):
    class SumAndProduct(ns.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a + b, a * b

        @staticmethod
        def backward(ctx, g1, g2):
            a, b = ctx.saved_tensors
            return g1 + g2 * b, g1 + g2 * a

    return SumAndProduct


def in_place(ns):
    class DoubleInPlace(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return DoubleInPlace


def masked(ns):
    class Masked(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = x > 0
            ctx.save_for_backward(mask)
            ctx.mark_non_differentiable(mask)
            return x * mask.to(x.dtype), mask

        @staticmethod
        def backward(ctx, g, _):
            (mask,) = ctx.saved_tensors
            return g * mask.to(g.dtype)

    return Masked


def square_norm(ns):
    class SquareNorm(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * x).sum()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    return SquareNorm


def layer_norm(ns):
    class LayerNorm(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, gamma, beta, eps):
            centred = x - x.mean(1, keepdim=True)
            spread = ((centred * centred).mean(1, keepdim=True) + eps).sqrt()
            ctx.save_for_backward(x, gamma)
            ctx.eps = eps
            return centred / spread * gamma + beta

        @staticmethod
        def backward(ctx, g):
            x, gamma = ctx.saved_tensors
            centred = x - x.mean(1, keepdim=True)
            spread = ((centred * centred).mean(1, keepdim=True) + ctx.eps).sqrt()
            xhat = centred / spread
            h = g * gamma
            gx = (h - h.mean(1, keepdim=True) - xhat * (h * xhat).mean(1, keepdim=True)) / spread
            return gx, (g * xhat).sum(0), g.sum(0), None

    return LayerNorm


def complex_square(ns):
    class ComplexSquare(ns.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return g * (2 * z).conj()

    return ComplexSquare


_POINTS = np.array([0.5 + 1.25j, -0.75 + 0.5j, 1.5 - 0.25j])

TABLE = (
    Row("linear", linear, {"x": (3, 4), "w": (5, 4), "b": (5,)}),
    Row("linear-no-bias", linear, {"x": (3, 4), "w": (5, 4), "b": None}),
    Row("scaled", scaled, {"t": (3, 2), "k": 5}),
    Row("cube", cube, {"x": (4,)}),
    Row("cube-scalar", cube, {"x": ()}),
    Row("exponential", exponential, {"x": (2, 3)}),
    Row("relu", relu, {"x": (3, 4)}),
    Row("softmax", softmax, {"x": (3, 4)}),
    Row("outer", outer, {"a": (3,), "b": (4,)}),
    Row("two-outputs", two_outputs, {"a": (3,), "b": (3,)}),
    Row("in-place", in_place, {"x": (2, 3)}),
    Row("masked", masked, {"x": (3, 4)}),
    Row("square-norm", square_norm, {"x": (5,)}),
    Row("layer-norm", layer_norm, {"x": (3, 5), "gamma": (5,), "beta": (5,), "eps": 1e-5}),
    Row("complex-square", complex_square, {"z": _POINTS}),
)
