"""Kinds 10 and 11: inputs that gradcli chooses, and gradients that are wrong only at other ordinary values."""

from __future__ import annotations

from typing import Any

from benchmarks.kinds.member import case, leaf, member

SHAPE = "failed wrong-shape missing-reduction wrong-gradient wrong-reduction"


@member("10")
def swish_with_a_scalar_beta(ns: Any, spoilt: bool) -> Any:
    class Swish(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, beta: Any) -> Any:
            ctx.save_for_backward(x, beta)
            return x * ns.sigmoid(beta * x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, beta = ctx.saved_tensors
            s = ns.sigmoid(beta * x)
            return g * (s + (0.5 if spoilt else 1) * beta * x * s * (1 - s)), (g * x * x * s * (1 - s)).sum()

    return case(Swish)


@member("10")
def prelu_with_one_slope(ns: Any, spoilt: bool) -> Any:
    class PReLU(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, slope: Any) -> Any:
            ctx.save_for_backward(x, slope)
            return ns.where(x > 0, x, slope * x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, slope = ctx.saved_tensors
            gs = ns.where(x > 0, x * 0, g * x).sum()
            return ns.where(x > 0, g, slope * g), gs * (2 if spoilt else 1)

    return case(PReLU)


@member("10")
def weight_normalisation(ns: Any, spoilt: bool) -> Any:
    """g·v/|v| by rows: g of n×1."""

    class WeightNorm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any, g: Any) -> Any:
            n = ns.sqrt((v * v).sum(1, keepdim=True))
            ctx.save_for_backward(v, g, n)
            return g * v / n

        @staticmethod
        def backward(ctx: Any, d: Any) -> Any:
            v, g, n = ctx.saved_tensors
            gg = (d * v).sum(1, keepdim=True) / n
            return g / n * d - (0 if spoilt else 1) * g * gg * v / n**2, gg

    return case(WeightNorm, order=1)


@member("10")
def temperature_softmax(ns: Any, spoilt: bool) -> Any:
    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Any, temperature: Any) -> Any:
            z = logits / temperature
            y = ns.softmax(z, -1)
            ctx.save_for_backward(logits, temperature, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            logits, t, y = ctx.saved_tensors
            gz = y * (g - (g * y).sum(-1, keepdim=True))
            return gz / t, (1 if spoilt else -1) * (gz * logits).sum() / t**2

    return case(Softmax)


@member("10")
def layer_scale(ns: Any, spoilt: bool) -> Any:
    class LayerScale(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, gamma: Any) -> Any:
            ctx.save_for_backward(x, gamma)
            return x * gamma

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, gamma = ctx.saved_tensors
            return g * gamma, (g * x).mean(0) if spoilt else (g * x).sum(0)

    return case(LayerScale)


@member("10", wrong="passed: sums")
def affine_with_a_bias(ns: Any, spoilt: bool) -> Any:
    """The other one leaves the sum of the bias's gradient over the rows to the framework."""

    class Affine(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, b: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g @ w.t(), x.t() @ g, g if spoilt else g.sum(0)

    return case(Affine)


@member("10", wrong=SHAPE)
def first_entry_only(ns: Any, spoilt: bool) -> Any:
    class Exp(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return ns.exp(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            d = g * ns.exp(x)
            return d.reshape(-1)[:1] if spoilt else d

    return case(Exp)


@member("10", wrong=SHAPE)
def scalar_gradient_for_a_vector(ns: Any, spoilt: bool) -> Any:
    class Norm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x * x).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return (2 * g * x).sum() if spoilt else 2 * g * x

    return case(Norm)


@member("10", wrong=SHAPE)
def bias_of_channels(ns: Any, spoilt: bool) -> Any:
    class Channels(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, bias: Any) -> Any:
            return ns.tanh(x + bias[None, :, None]) if False else x * 2 + bias[None, :, None]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g, g.sum((0, 2)) if not spoilt else g.sum(0)

    return case(Channels)


@member("10")
def learnable_clip(ns: Any, spoilt: bool) -> Any:
    """PACT: a learnable upper limit for all entries."""

    class PACT(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, alpha: Any) -> Any:
            ctx.save_for_backward(x, alpha)
            return ns.minimum(ns.relu(x), ns.abs(alpha))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, alpha = ctx.saved_tensors
            a = ns.abs(alpha)
            inside = ((x > 0) & (x < a)).to(g.dtype)
            above = (x >= a).to(g.dtype)
            return g * inside, (1 if spoilt else ns.sign(alpha)) * (g * above).sum()

    return case(PACT)


@member("10")
def scaled_dot_product(ns: Any, spoilt: bool) -> Any:
    class Scores(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, scale: Any) -> Any:
            ctx.save_for_backward(q, k, scale)
            return scale * q @ k.t()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            q, k, s = ctx.saved_tensors
            return s * g @ k, s * g.t() @ q * (2 if spoilt else 1), (g * (q @ k.t())).sum()

    return case(Scores)


# kind 11 ---------------------------------------------------------------------------------------------------------


def elementwise(ns: Any, value: Any, slope: Any) -> Any:
    class Elementwise(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return value(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * slope(x)

    return Elementwise


ELSEWHERE: dict[str, Any] = {
    "overflow of a sigmoid": lambda ns, s: (
        lambda x: ns.sigmoid(x),
        (lambda x: ns.exp(-x) / (1 + ns.exp(-x)) ** 2) if s else (lambda x: ns.sigmoid(x) * ns.sigmoid(-x)),
        [0.5, -1.0, 2.0],
    ),
    "softplus beyond its threshold": lambda ns, s: (
        lambda x: ns.where(x > 20, x, ns.log(1 + ns.exp(ns.minimum(x, x * 0 + 20)))),
        (lambda x: ns.where(x > 20, x * 0, ns.sigmoid(x)))
        if s
        else (lambda x: ns.where(x > 20, x * 0 + 1, ns.sigmoid(x))),
        [0.5, -1.0, 2.0],
    ),
    "slope below zero": lambda ns, s: (
        lambda x: ns.where(x > 0, x, ns.exp(x) - 1),
        (lambda x: ns.where(x > 0, x * 0 + 1, x * 0 + 1) if s else ns.where(x > 0, x * 0 + 1, ns.exp(x))),
        [0.5, 1.0, 2.0],
    ),
    "absolute value of positive numbers": lambda ns, s: (
        lambda x: ns.abs(x) * x,
        (lambda x: 2 * x) if s else (lambda x: 2 * ns.abs(x)),
        [0.5, 1.0, 2.0],
    ),
    "hard sigmoid's upper end": lambda ns, s: (
        lambda x: (x / 6 + 0.5).clamp(0, 1),
        (lambda x: (x > -3).to(x.dtype) / 6) if s else (lambda x: ((x > -3) & (x < 3)).to(x.dtype) / 6),
        [0.5, -1.0, 2.0],
    ),
    "sinc at zero": lambda ns, s: (
        lambda x: ns.where(x == 0, x * 0 + 1, ns.sin(x) / ns.where(x == 0, x * 0 + 1, x)),
        (lambda x: (ns.cos(x) * x - ns.sin(x)) / (x * x))
        if s
        else (lambda x: ns.where(x == 0, x * 0, (ns.cos(x) * x - ns.sin(x)) / ns.where(x == 0, x * 0 + 1, x * x))),
        [0.5, 1.0, 2.0],
    ),
    "cube root of negative numbers": lambda ns, s: (
        lambda x: ns.sign(x) * ns.abs(x) ** (5 / 3),
        (lambda x: 5 / 3 * x * ns.abs(x) ** (-1 / 3)) if s else (lambda x: 5 / 3 * ns.abs(x) ** (2 / 3)),
        [0.5, 1.0, 2.0],
    ),
    "softplus beyond four": lambda ns, s: (
        lambda x: ns.log1p(ns.exp(-ns.abs(x))) + ns.maximum(x, x * 0),
        (lambda x: ns.where(x > 4, x * 0 + 1, ns.sigmoid(x))) if s else ns.sigmoid,
        [0.5, -1.0, 2.0],
    ),
    "tanh beyond three": lambda ns, s: (
        ns.tanh,
        (lambda x: ns.where(ns.abs(x) > 3, x * 0, 1 - ns.tanh(x) ** 2)) if s else (lambda x: 1 - ns.tanh(x) ** 2),
        [0.5, -1.0, 2.0],
    ),
    "sigmoid linear unit below minus four": lambda ns, s: (
        lambda x: x * ns.sigmoid(x),
        (lambda x: ns.where(x < -4, x * 0, ns.sigmoid(x) * (1 + x * ns.sigmoid(-x))))
        if s
        else (lambda x: ns.sigmoid(x) * (1 + x * ns.sigmoid(-x))),
        [0.5, -1.0, 2.0],
    ),
    "log cosh of large numbers": lambda ns, s: (
        lambda x: ns.abs(x) + ns.log1p(ns.exp(-2 * ns.abs(x))) - 0.6931471805599453,
        (lambda x: (ns.exp(x) - ns.exp(-x)) / (ns.exp(x) + ns.exp(-x))) if s else ns.tanh,
        [0.5, 1.0, -2.0],
    ),
}
for name, make in ELSEWHERE.items():
    for inferred in (True, False):
        if name in ("sinc at zero",) and not inferred:
            continue

        def build(ns: Any, spoilt: bool, make: Any = make, inferred: bool = inferred) -> Any:
            value, slope, x = make(ns, spoilt)
            target = elementwise(ns, value, slope)
            return case(target, order=1) if inferred else case(target, leaf(ns, x), order=1)

        build.__name__ = f"{name}{', inferred' if inferred else ', given'}"
        said = "failed" if inferred else "passed" if name == "cube root of negative numbers" else "passed: wrong"
        if name in ("overflow of a sigmoid", "log cosh of large numbers"):
            said = "passed: overflow"  # NaN at 800, where many a formula in use overflows as well
        member("11", wrong=said)(build)
