"""Inputs are bound to forward's parameters as Python binds a call, whatever the signature and the way to give them."""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.backends.registry import backend_named
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.runner.store.failures import load
from gradcli.runner.store.replay import replay
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.pairs import FRAMEWORKS, each_pair

SETTINGS = Settings(order=1, samples=1, shrink=False)
GRADIENT = replace(SETTINGS, only=("gradient",))
"""How inputs were given is over before the first check: all of them run where `by_tuple` gives the inputs."""
Product = Callable[..., Any]


@pytest.fixture(params=["engine", "torch"])
def ns(request: Any) -> Any:
    if request.param == "torch":
        pytest.importorskip("torch", reason="the torch backend needs PyTorch")
    return backend_named(request.param).framework.namespace


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


@each_pair(["ns"], ns=FRAMEWORKS, name=SIGNATURES, manner=MANNERS)
def test_callables_of_every_signature_are_called_as_python_does(ns: Any, name: str, manner: str) -> None:
    way, factor = MANNERS[manner]
    make, names = SIGNATURES[name]
    if (way is by_tuple and name in NOT_BY_POSITION) or (way is inferred and name in NOT_INFERRED):
        names = names[:1] if name in NOT_INFERRED else names
        way = by_name
    result = way(ns, make(product_of(ns, factor)), names)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert {finding.kind.value for finding in result.findings} <= {"wrong-factor"}


def functions_of(ns: Any, factor: float) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Functions whose forward has a signature of each kind, in both styles."""

    def run(ctx: Any, a: Any, b: Any, k: float) -> Any:
        ctx.save_for_backward(a, b)
        ctx.k = k
        return ns.sin(a) * b * k

    class Base(ns.autograd.Function):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return factor * g * ns.cos(a) * b * ctx.k, g * ns.sin(a) * ctx.k

    class Later(Base):
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs[:2])
            ctx.k = 1.5

    class Variadic(Base):
        @staticmethod
        def forward(ctx: Any, *tensors: Any, call: Any = None) -> Any:
            return run(ctx, tensors[0], tensors[1], 1.5)

    class Rest(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, *rest: Any) -> Any:
            return run(ctx, x, rest[0], 1.5)

    class DefaultBeforeRest(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, p: float = 2.0, *rest: Any) -> Any:
            return run(ctx, x, rest[0], p)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            by_x, by_rest = Base.backward(ctx, g)
            return by_x, None, by_rest

    class ByPosition(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, /) -> Any:
            return run(ctx, x, y, 1.5)

    class ByKeyword(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, *, scale: float = 1.5) -> Any:
            return run(ctx, x, y, scale)

    class OfClass(Base):
        @classmethod
        def forward(cls, ctx: Any, x: Any, y: Any) -> Any:
            return run(ctx, x, y, 1.5)

    class Decorated(Base):
        @staticmethod
        @passing_on
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return run(ctx, x, y, 1.5)

    class LaterVariadic(Later):
        @staticmethod
        def forward(*tensors: Any) -> Any:
            return ns.sin(tensors[0]) * tensors[1] * 1.5

    class LaterByPosition(Later):
        @staticmethod
        def forward(x: Any, y: Any, /) -> Any:
            return ns.sin(x) * y * 1.5

    class LaterDefault(Later):
        @staticmethod
        def forward(x: Any, y: Any, k: float = 1.5) -> Any:
            return ns.sin(x) * y * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            *tensors, ctx.k = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (*Base.backward(ctx, g), None)

    two, pair = ("x", "y"), ("tensors[0]", "tensors[1]")
    return {
        "*args and a keyword": (Variadic, pair),
        "its apply": (Variadic.apply, pair),
        "a parameter and *args": (Rest, ("x", "rest[0]")),
        "a default before *args": (DefaultBeforeRest, ("x", "p", "rest[0]")),
        "positional-only": (ByPosition, two),
        "a keyword-only default": (ByKeyword, two),
        "a class method": (OfClass, two),
        "decorated": (Decorated, two),
        "*args and setup_context": (LaterVariadic, pair),
        "positional-only and setup_context": (LaterByPosition, two),
        "a default and setup_context": (LaterDefault, two),
    }


FUNCTIONS = (
    *("*args and a keyword", "its apply", "a parameter and *args", "a default before *args", "positional-only"),
    *("a keyword-only default", "a class method", "decorated", "*args and setup_context"),
    *("positional-only and setup_context", "a default and setup_context"),
)


@each_pair(["ns"], ns=FRAMEWORKS, name=FUNCTIONS, manner=MANNERS)
def test_functions_of_every_signature_are_called_as_python_does(ns: Any, name: str, manner: str) -> None:
    way, factor = MANNERS[manner]
    target, names = functions_of(ns, factor)[name]
    result = way(ns, target, names)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert {finding.kind.value for finding in result.findings} <= {"wrong-factor"}


@pytest.mark.parametrize("kind", ["variadic", "by keyword", "by position", "decorated", "its own"])
def test_modules_of_every_signature_are_called_as_python_does(ns: Any, kind: str) -> None:
    product = product_of(ns, 2)

    class Scale(ns.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = ns.nn.Parameter(ns.ones(4, dtype=ns.float64) * 1.5)

    class Variadic(Scale):
        def forward(self, *xs: Any, call: Any = None) -> Any:
            assert call is None
            return product(xs[0], xs[1] * self.w, 1.0)

    class ByKeyword(Scale):
        def forward(self, x: Any, y: Any, *, k: float = 2.0) -> Any:
            return product(x, y * self.w, k)

    class ByPosition(Scale):
        def forward(self, x: Any, y: Any, /) -> Any:
            return product(x, y * self.w, 1.0)

    class Decorated(Scale):
        @passing_on
        def forward(self, x: Any, y: Any) -> Any:
            return product(x, y * self.w, 1.0)

    module: Any = {
        "variadic": Variadic, "by keyword": ByKeyword, "by position": ByPosition, "decorated": Decorated,
        "its own": Decorated,
    }[kind]()  # fmt: skip
    if kind == "its own":
        module.forward = lambda x, y, power=2.0: product(x, y * module.w, power)
    names = ("xs[0]", "xs[1]") if kind == "variadic" else ("x", "y")
    for way in (by_flags, inferred):
        result = way(ns, module, names)
        assert [finding.input for finding in result.findings] == [names[0]], result


def wrong_variadic(*tensors: Any, call: Any = None) -> Any:
    return product_of(engine, 2)(tensors[0], tensors[1], 1.5)


def wrong_default(x: Any, p: float = 2.0, *rest: Any) -> Any:
    return product_of(engine, 2)(x, rest[0], p)


def wrong_by_keyword(x: Any, *, y: Any, k: float = 2.0) -> Any:
    return product_of(engine, 2)(x, y, k)


def wrong_options(x: Any, **others: Any) -> Any:
    return product_of(engine, 2)(x, others["y"], 2.0)


wrong_added = adding_one(three(product_of(engine, 2)))


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("wrong_variadic", ("tensors[1]", "tensors[0]")),
        ("wrong_default", ("rest[0]", "x")),
        ("wrong_by_keyword", ("y", "x")),
        ("wrong_options", ("y", "x")),
        ("wrong_added", ("x", "y")),
    ],
)
def test_a_saved_failure_is_called_in_the_same_way(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    specs: tuple[InputSpec, ...] = tuple(parse_input(f"{flag}=3x4") for flag in flags)
    spec = CheckSpec(target=f"{__name__}:{name}", inputs=specs, inputs_from=InputsFrom.FLAGS)
    result = check_object(globals()[name], case_of(spec, Settings(order=1, samples=1)), failures=tmp_path)
    assert [finding.kind.value for finding in result.findings] == ["wrong-factor"]
    (file,) = tmp_path.glob("*.json")
    again = replay(load(file))
    assert [finding.kind.value for finding in again.findings] == ["wrong-factor"]


def test_too_many_by_position_names_what_can_be_given_by_name() -> None:
    with pytest.raises(UsageError, match=r"expected at most 1 inputs \(x\), got 2; y, k can be given by name, in a di"):
        gradcli.check(wrong_by_keyword, (np.ones(3), np.ones(3)), shrink=False)


def np_product(x: Any, *rest: Any, scale: float = 1.0) -> Any:
    return np.sin(x) * rest[0] * scale


PAIRS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "a cotangent before the default": (
        lambda x, p=2: np.sin(x) * p,
        lambda factor: lambda x, g, p=2: factor * g * np.cos(x) * p,
        (3,),
    ),
    "a cotangent behind the default": (
        lambda x, p=2: np.sin(x) * p,
        lambda factor: lambda x, p, g: factor * g * np.cos(x) * p,
        (),
    ),
    "a cotangent behind a default that is given": (
        lambda x, p=2: np.sin(x) * p,
        lambda factor: lambda x, p, g: factor * g * np.cos(x) * p,
        (3,),
    ),
    "a cotangent first": (lambda x: np.sin(x), lambda factor: lambda g, x: factor * g * np.cos(x), ()),
    "*args": (
        np_product,
        lambda factor: lambda x, *rest, g: (factor * g * np.cos(x) * rest[0], g * np.sin(x)),
        (np.ones((3, 4)) * 1.5,),
    ),
    "other names": (lambda x, p=2: np.sin(x) * p, lambda factor: lambda t, q, g: factor * g * np.cos(t) * q, (3,)),
    "an elementwise derivative": (
        lambda x, p=2: np.sin(x) * p,
        lambda factor: lambda x, p=2: factor * np.cos(x) * p,
        (),
    ),
    "a derivative that needs the default": (
        lambda x, p=2: np.sin(x) * p,
        lambda factor: lambda x, p: factor * np.cos(x) * p,
        (),
    ),
    "positional-only": (lambda x, /: np.sin(x), lambda factor: lambda x, g, /: factor * g * np.cos(x), ()),
    "partial": (
        functools.partial(lambda p, x: np.sin(x) * p, 2.0),
        lambda factor: lambda x, g: factor * g * np.cos(x) * 2,
        (),
    ),
    "a method": (
        Holder(lambda x, y, k: np.sin(x) * y * k).method,
        lambda factor: lambda x, y, g: (factor * g * np.cos(x) * y * 2.5, g * np.sin(x) * 2.5),
        (np.ones((3, 4)) * 1.5,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("name", PAIRS)
def test_a_derivative_of_numpy_is_called_with_the_functions_arguments_by_name(name: str, factor: int) -> None:
    function, gradient, more = PAIRS[name]
    x = np.random.default_rng(1).normal(size=(3, 4))
    report = gradcli.check(function, (x, *more), grad=gradient(factor), order=1, shrink=False)
    assert report.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), report


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("kind", ["variadic", "default", "by position", "by keyword", "decorated", "partial"])
def test_functions_of_jax_are_called_as_python_does(kind: str, factor: int) -> None:
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    jnp = jax.numpy

    @jax.custom_vjp
    def product(a: Any, b: Any) -> Any:
        return jnp.sin(a) * b

    product.defvjp(
        lambda a, b: (product(a, b), (a, b)),
        lambda kept, g: (factor * g * jnp.cos(kept[0]) * kept[1], g * jnp.sin(kept[0])),
    )

    def with_call(*xs: Any, call: Any = None) -> Any:
        assert call is None
        return product(xs[0], xs[1])

    def default(x: Any, y: Any, p: float = 2.0) -> Any:
        return product(x, y) * jnp.asarray(p)

    def by_position(x: Any, y: Any, /) -> Any:
        return product(x, y) * jnp.ones(())

    def by_keyword(x: Any, y: Any, *, k: float = 2.0) -> Any:
        return product(x, y) * jnp.asarray(k)

    target: Any = {
        "variadic": with_call, "default": default, "by position": by_position, "by keyword": by_keyword,
        "decorated": passing_on(default), "partial": functools.partial(default, p=3.0),
    }[kind]  # fmt: skip
    names = ("xs[0]", "xs[1]") if kind == "variadic" else ("x", "y")
    values = [jnp.array([0.5, -1.25, 2.0]), jnp.array([1.5, 0.75, -0.5])]
    for given in (tuple(values), dict(zip(names, values, strict=True))):
        report = gradcli.check(target, given, order=1, samples=1, shrink=False)
        assert report.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), report
