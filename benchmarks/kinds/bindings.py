"""Kinds 6 and 17: signatures of all kinds, and results of backward that are of another number, shape or form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.kinds.member import case, member, normal


def products(ns: Any, spoilt: bool) -> Any:
    """x·y + y, of a Function that takes any number of tensors: Σ sin of products."""

    class Mixed(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return ns.sin(x) * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * ns.cos(x) * y * (1.5 if spoilt else 1), g * ns.sin(x)

    return Mixed


def _given(ns: Any) -> tuple[Any, Any]:
    return normal(ns, 3), normal(ns, 3, seed=1)


@member("6")
def tensors_then_a_keyword_with_a_default(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    def target(*tensors: Any, call: Any = None) -> Any:
        return (call or f.apply)(*tensors)

    return case(target, *_given(ns))


@member("6")
def defaults_before_varargs(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    def target(x: Any, scale: Any = 2.0, *rest: Any) -> Any:
        return f.apply(x, scale) + sum(r.sum() for r in rest)

    return case(target, *_given(ns), normal(ns, 2, seed=4))


@member("6")
def positional_only(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    def target(x: Any, y: Any, /, gain: float = 1.0, *, square: bool = False) -> Any:
        z = f.apply(x, y)
        return gain * (z * z if square else z)

    return case(target, *_given(ns))


@member("6")
def a_partial_with_keywords(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    def base(gain: float, x: Any, y: Any, *, offset: float) -> Any:
        return gain * f.apply(x, y) + offset

    return case(functools.partial(base, 0.5, offset=1.0), *_given(ns))


@member("6")
def a_bound_method(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    class Layer:
        def __init__(self) -> None:
            self.gain = 0.7

        def run(self, x: Any, *others: Any) -> Any:
            return self.gain * f.apply(x, others[0])

    return case(Layer().run, *_given(ns))


@member("6")
def an_object_with_call(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    class Layer:
        def __call__(self, x: Any, y: Any = None, **options: Any) -> Any:
            return f.apply(x, x if y is None else y) * options.get("gain", 1.0)

    return case(Layer(), *_given(ns))


@member("6")
def decorated_with_wraps(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    def logged(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def run(*args: Any, **kwargs: Any) -> Any:
            return inner(*args, **kwargs)

        return run

    @logged
    @logged
    def target(x: Any, y: Any, power: int = 1) -> Any:
        return f.apply(x, y) ** power

    return case(target, *_given(ns))


@member("6")
def wraps_that_adds_an_argument(ns: Any, spoilt: bool) -> Any:
    """The signature that `wraps` shows is not the one that is called: the decorator supplies the gain."""
    f = products(ns, spoilt)

    def with_gain(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def run(x: Any, y: Any) -> Any:
            return inner(2.0, x, y)

        return run

    @with_gain
    def target(gain: float, x: Any, y: Any) -> Any:
        return gain * f.apply(x, y)

    return case(target, *_given(ns))


@member("6")
def forward_with_varargs(ns: Any, spoilt: bool) -> Any:
    class Stack(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, dim: int, *tensors: Any) -> Any:
            ctx.dim = dim
            ctx.save_for_backward(*tensors)
            return ns.cat([t * t for t in tensors], dim)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            out, at = [], 0
            for k, t in enumerate(ctx.saved_tensors):
                n = t.shape[ctx.dim]
                out.append(2 * t * g.narrow(ctx.dim, at, n) * (2 if spoilt and k == 1 else 1))
                at += n
            return None, *out

    return case(Stack, 0, normal(ns, 2), normal(ns, 3), normal(ns, 1))


@member("6")
def forward_with_a_default_before_varargs(ns: Any, spoilt: bool) -> Any:
    class Total(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, first: Any, power: int = 2, *more: Any) -> Any:
            ctx.save_for_backward(first, *more)
            ctx.power = power
            return sum((t**power).sum() for t in (first, *more))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            first, *more = ctx.saved_tensors
            n = ctx.power
            by = [n * g * t ** (n - 1) for t in (first, *more)]
            return by[0], None, *(b * (2 if spoilt else 1) for b in by[1:])

    return case(Total, normal(ns, 3), 3, normal(ns, 2))


@member("6")
def given_by_name(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    def target(x: Any, *, y: Any, gain: float = 1.0) -> Any:
        return gain * f.apply(x, y)

    from benchmarks.kinds.member import Case

    x, y = _given(ns)
    return Case(target=target, inputs={"x": x, "y": y})


@member("6")
def given_by_name_inferred(ns: Any, spoilt: bool) -> Any:
    f = products(ns, spoilt)

    def target(x: Any, *, y: Any, gain: float = 1.0) -> Any:
        return gain * f.apply(x, y)

    return case(target)


# kind 17 ---------------------------------------------------------------------------------------------------------


def _linear(ns: Any, returned: Callable[..., Any]) -> Any:
    class Linear(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
            ctx.save_for_backward(input, weight)
            y = input @ weight.t()
            return y if bias is None else y + bias

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return returned(g @ w, g.t() @ x, g.sum(0))

    return Linear


RETURNED: dict[str, tuple[Any, str]] = {
    "one gradient too few": (lambda gx, gw, gb: (gx, gw), "failed wrong-arity"),
    "one gradient too many": (lambda gx, gw, gb: (gx, gw, gb, gb), "failed wrong-arity"),
    "only one": (lambda gx, gw, gb: gx, "failed wrong-arity"),
    "none at all": (lambda gx, gw, gb: None, "failed wrong-arity missing-gradient"),
    "flat gradients": (lambda gx, gw, gb: (gx.reshape(-1), gw, gb), "failed wrong-shape"),
    "a bias not summed": (lambda gx, gw, gb: (gx, gw, gb.unsqueeze(0)), "passed"),
    "a transposed weight": (lambda gx, gw, gb: (gx, gw.t(), gb), "failed transposed wrong-shape"),
    "a nested tuple": (lambda gx, gw, gb: ((gx, gw), gb), "failed"),
    "a number": (lambda gx, gw, gb: (gx, gw, 1.0), "failed"),
    "a NumPy number": (lambda gx, gw, gb: (gx, gw, gb.detach().numpy()[0]), "failed"),
    "a dictionary": (lambda gx, gw, gb: {"input": gx, "weight": gw, "bias": gb}, "failed"),
    "a NumPy array": (lambda gx, gw, gb: (gx, gw, gb.detach().numpy()), "failed"),
}
RIGHT: dict[str, Any] = {
    "a tuple": lambda gx, gw, gb: (gx, gw, gb),
}


def _take(name: str, returned: Any, said: str | None, **options: Any) -> None:
    def build(ns: Any, spoilt: bool) -> Any:
        given = normal(ns, 4, 3), normal(ns, 2, 3), normal(ns, 2)
        return case(_linear(ns, returned), *given, order=1, **options)

    build.__name__ = name
    member("17", right=None if said else "passed", wrong=said)(build)


for name, (returned, said) in RETURNED.items():
    _take(name, returned, said)
    _take(f"{name}, only gradient", returned, said, only="gradient")
for name, returned in RIGHT.items():
    _take(name, returned, None)
    _take(f"{name}, only gradient", returned, None, only="gradient")


def _single(name: str, returned: Callable[[Any], Any], right: str | None, wrong: str | None, **options: Any) -> None:
    def build(ns: Any, spoilt: bool) -> Any:
        class Sine(ns.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return ns.sin(x)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return returned(g * ns.cos(x))

        return case(Sine, normal(ns, 3), order=1, **options)

    build.__name__ = name
    member("17", right=right, wrong=wrong)(build)


for extra in ({}, {"only": "gradient"}):
    end = ", only gradient" if extra else ""
    _single(f"a list of one{end}", lambda g: [g], None, "failed", **extra)
    _single(f"a tuple of one{end}", lambda g: (g,), "passed", None, **extra)
    _single(f"a tuple of two with None{end}", lambda g: (g, None), "passed", None, **extra)


@member("17", right="passed", wrong="failed: bias")
def a_bias_that_was_left_out(ns: Any, spoilt: bool) -> Any:
    """The wrong one returns a gradient for a bias that it was not given."""
    back = (lambda gx, gw, gb: (gx, gw, gb)) if spoilt else (lambda gx, gw, gb: (gx, gw, None))
    return case(_linear(ns, back), normal(ns, 4, 3), normal(ns, 2, 3), order=1)
