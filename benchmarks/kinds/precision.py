"""Kinds 9 and 13: sums in float32 behind a detach, and gradients of few digits for inputs of many."""

from __future__ import annotations

from typing import Any

from benchmarks.kinds.member import case, leaf, member, normal


def short(ns: Any, x: Any) -> Any:
    return x.detach().to(ns.float32)


def reduced(ns: Any, value: Any, slope: Any, factor: float) -> Any:
    """value(x in float32), returned as float64, with the slope in float64."""

    class Reduced(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return value(short(ns, x)).to(ns.float64)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * g * slope(x)

    return Reduced


REDUCED: dict[str, tuple[Any, Any, Any]] = {
    "mean of squares": (lambda ns: lambda x: (x * x).mean(), lambda ns: lambda x: 2 * x / x.numel(), (10_000,)),
    "mean of squares of a matrix": (
        lambda ns: lambda x: (x * x).mean(),
        lambda ns: lambda x: 2 * x / x.numel(),
        (100, 100),
    ),
    "sum of exponentials": (lambda ns: lambda x: ns.exp(x).sum(), lambda ns: ns.exp, (3000,)),
    "mean of cosines": (lambda ns: lambda x: ns.cos(x).mean(), lambda ns: lambda x: -ns.sin(x) / x.numel(), (5000,)),
    "root of the mean of squares": (
        lambda ns: lambda x: ns.sqrt((x * x).mean()),
        lambda ns: lambda x: x / x.numel() / ns.sqrt((x * x).mean()),
        (4000,),
    ),
    "log of the sum of exponentials": (
        lambda ns: lambda x: ns.logsumexp(x, 0),
        lambda ns: lambda x: ns.softmax(x, 0),
        (2000,),
    ),
    "mean of softplus": (
        lambda ns: lambda x: ns.log(1 + ns.exp(x)).mean(),
        lambda ns: lambda x: 1 / (1 + ns.exp(-x)) / x.numel(),
        (6000,),
    ),
    "variance": (
        lambda ns: lambda x: ((x - x.mean()) ** 2).mean(),
        lambda ns: lambda x: 2 * (x - x.mean()) / x.numel(),
        (8000,),
    ),
}
for name, (value, slope, shape) in REDUCED.items():

    def build(ns: Any, spoilt: bool, value: Any = value, slope: Any = slope, shape: Any = shape) -> Any:
        return case(reduced(ns, value(ns), slope(ns), 0.5 if spoilt else 1.0), normal(ns, *shape), order=1)

    build.__name__ = f"{name} in float32"
    member("9")(build)


def cast(ns: Any, slope: Any, spoilt: bool, how: Any) -> Any:
    class Elementwise(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return ns.sin(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return how(ns, g, x) if spoilt else g * ns.cos(x)

    return case(Elementwise, leaf(ns, [0.5, -1.25, 0.75, 2.0]))


CASTS: dict[str, Any] = {
    "float at the end": lambda ns, g, x: (g * ns.cos(x)).float(),
    "float inside, double returned": lambda ns, g, x: (g * ns.cos(x).float()).double(),
    "a saved float32 slope": lambda ns, g, x: g * ns.cos(x.float()).double(),
    "grad_output in float32": lambda ns, g, x: g.float().double() * ns.cos(x),
    "grad output in half": lambda ns, g, x: g.half().double() * ns.cos(x),
    "grad output by parts": lambda ns, g, x: ns.stack([v.float().double() for v in g]) * ns.cos(x),
    "half": lambda ns, g, x: (g * ns.cos(x)).half().double(),
    "a buffer of float32": lambda ns, g, x: ns.zeros(4, dtype=ns.float32).copy_((g * ns.cos(x)).detach()),
    "all in float32": lambda ns, g, x: g.to(ns.float32) * ns.cos(x.to(ns.float32)),
    "exactly representable": lambda ns, g, x: g.float() * ns.cos(x).float(),
}
for name, how in CASTS.items():

    def build_cast(ns: Any, spoilt: bool, how: Any = how) -> Any:
        return cast(ns, None, spoilt, how)

    build_cast.__name__ = f"cast: {name}"
    member("13", wrong="failed low-precision wrong-dtype nonlinear-backward")(build_cast)


@member("13", wrong="failed low-precision wrong-dtype")
def exact_values_in_float32(ns: Any, spoilt: bool) -> Any:
    """The gradient of a sum is g, which loses its digits only where g has them."""

    class Sum(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape = x.shape
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ns.ones(ctx.shape, dtype=ns.float32 if spoilt else ns.float64) * (g.float() if spoilt else g)

    return case(Sum, normal(ns, 4))


@member("13", wrong="failed low-precision wrong-dtype")
def one_of_two_inputs(ns: Any, spoilt: bool) -> Any:
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b, (g.float() * a.float()) if spoilt else g * a

    return case(Product)
