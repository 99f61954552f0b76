"""Callables of every signature, and the ways to give their inputs."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import gradcli
from gradcli.backends.registry import backend_named
from gradcli.cases import CheckSpec, InputsFrom
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings

SETTINGS = Settings(order=1, samples=1, shrink=False)


GRADIENT = replace(SETTINGS, only=("gradient",))
"""How inputs were given is over before the first check: all of them run where `by_tuple` gives the inputs."""


Product = Callable[..., Any]


def product_of(ns: Any, factor: float) -> Product:
    """sin(a)·b·k, whose gradient by a is off by `factor`."""

    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, k: float) -> Any:
            ctx.save_for_backward(a, b)
            ctx.k = k
            return ns.sin(a) * b * k

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return factor * g * ns.cos(a) * b * ctx.k, g * ns.sin(a) * ctx.k, None

    return Product.apply


def variadic(product: Product) -> Any:
    def call(*tensors: Any, call: Any = None) -> Any:
        assert call is None
        return product(tensors[0], tensors[1], 1.5)

    return call


def first_and_rest(product: Product) -> Any:
    return lambda x, *rest: product(x, rest[0], 1.5)


def default_before_rest(product: Product) -> Any:
    def call(x: Any, p: float = 2.0, *rest: Any) -> Any:
        return product(x, rest[0], p)

    return call


def by_keyword_alone(product: Product) -> Any:
    def call(x: Any, *, y: Any) -> Any:
        return product(x, y, 1.5)

    return call


def default_by_keyword(product: Product) -> Any:
    def call(x: Any, y: Any, *, scale: float = 2.0) -> Any:
        return product(x, y, scale)

    return call


def by_position_alone(product: Product) -> Any:
    def call(x: Any, y: Any, /) -> Any:
        return product(x, y, 1.5)

    return call


def default_by_position(product: Product) -> Any:
    def call(x: Any, y: Any, k: float = 3.0, /) -> Any:
        return product(x, y, k)

    return call


def partial_by_position(product: Product) -> Any:
    return functools.partial(lambda k, x, y: product(x, y, k), 2.0)


def partial_by_keyword(product: Product) -> Any:
    return functools.partial(functools.partial(lambda x, y, k: product(x, y, k), k=3.0), k=2.0)


class Holder:
    """Something with methods."""

    def __init__(self, product: Product) -> None:
        self.product = product

    def __call__(self, x: Any, y: Any, k: float = 1.5) -> Any:
        return self.product(x, y, k)

    def method(self, x: Any, y: Any) -> Any:
        return self.product(x, y, 2.5)


def passing_on(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def adding_one(function: Any) -> Any:
    """A decorator that gives the last argument itself."""

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args, 2.0)

    return wrapper


def with_its_own_parameters(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(x: Any, y: Any) -> Any:
        return function(x, y, 2.0)

    return wrapper


def nameless(function: Any) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def three(product: Product) -> Any:
    def call(x: Any, y: Any, k: float) -> Any:
        return product(x, y, k)

    return call


def options(product: Product) -> Any:
    def call(x: Any, **others: Any) -> Any:
        return product(x, others["y"] if "y" in others else x + 1, others.get("k", 1.5))

    return call


SIGNATURES: dict[str, tuple[Callable[[Product], Any], tuple[str, ...]]] = {
    "*args and a keyword": (variadic, ("tensors[0]", "tensors[1]")),
    "a parameter and *args": (first_and_rest, ("x", "rest[0]")),
    "a default before *args": (default_before_rest, ("x", "p", "rest[0]")),
    "a keyword-only parameter": (by_keyword_alone, ("x", "y")),
    "a keyword-only default": (default_by_keyword, ("x", "y")),
    "positional-only": (by_position_alone, ("x", "y")),
    "a positional-only default": (default_by_position, ("x", "y")),
    "partial, by position": (partial_by_position, ("x", "y")),
    "partial, by keyword twice": (partial_by_keyword, ("x", "y")),
    "a bound method": (lambda product: Holder(product).method, ("x", "y")),
    "an object to call": (Holder, ("x", "y")),
    "a decorator that passes on": (lambda product: passing_on(Holder(product).method), ("x", "y")),
    "one over another": (lambda product: passing_on(passing_on(by_position_alone(product))), ("x", "y")),
    "one that adds an argument": (lambda product: adding_one(three(product)), ("x", "y")),
    "one with its own parameters": (lambda product: with_its_own_parameters(three(product)), ("x", "y")),
    "one without wraps": (lambda product: nameless(Holder(product).method), ("one", "other")),
    "**kwargs": (options, ("x", "y")),
}


NOT_BY_POSITION = ("a keyword-only parameter", "**kwargs")


NOT_INFERRED = ("**kwargs",)


def drawn(ns: Any) -> Any:
    return ns.tensor(np.random.default_rng(3).normal(size=(3, 4)).tolist(), dtype=ns.float64, requires_grad=True)


def by_tuple(ns: Any, target: Any, names: tuple[str, ...]) -> CheckResult:
    values = tuple(2.0 if name == "p" else drawn(ns) for name in names)
    return gradcli.check(target, values, order=1, samples=1, shrink=False).cases[0]


def by_name(ns: Any, target: Any, names: tuple[str, ...]) -> CheckResult:
    values = {name: 2.0 if name == "p" else drawn(ns) for name in reversed(names)}
    return gradcli.check(target, values, order=1, samples=1, shrink=False, only="gradient").cases[0]


def by_flags(ns: Any, target: Any, names: tuple[str, ...]) -> CheckResult:
    flags = tuple(parse_argument("p=2.0") if name == "p" else parse_input(f"{name}=3x4") for name in names)
    return of_spec(ns, target, inputs=flags, inputs_from=InputsFrom.FLAGS)


def without_the_default(ns: Any, target: Any, names: tuple[str, ...]) -> CheckResult:
    flags = tuple(parse_input(f"{name}=3x4") for name in reversed(names) if name != "p")
    return of_spec(ns, target, inputs=flags, inputs_from=InputsFrom.FLAGS)


def inferred(ns: Any, target: Any, names: tuple[str, ...]) -> CheckResult:
    return of_spec(ns, target)


def of_spec(ns: Any, target: Any, **more: Any) -> CheckResult:
    backend = backend_named("torch" if ns.__name__ == "torch" else "engine")
    return check_object(target, case_of(CheckSpec(target=f"{__name__}:target", **more), GRADIENT), backends=(backend,))


WAYS = (by_tuple, by_name, by_flags, without_the_default, inferred)


MANNERS = {**{way.__name__: (way, 1) for way in WAYS}, "by_flags, wrong": (by_flags, 2)}
"""How the inputs are given, and the factor by which the gradient is off."""
