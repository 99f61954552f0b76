"""Derivatives of NumPy functions and functions of JAX are called with the arguments by name, as Python binds them."""

import functools
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict
from tests.inputs.binding.signatures import Holder, passing_on


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
@pytest.mark.usefixtures("unexplained")
def test_a_derivative_of_numpy_is_called_with_the_functions_arguments_by_name(name: str, factor: int) -> None:
    function, gradient, more = PAIRS[name]
    x = np.random.default_rng(1).normal(size=(3, 4))
    report = gradcli.check(function, (x, *more), grad=gradient(factor), order=1, shrink=False)
    assert report.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), report


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("kind", ["variadic", "default", "by position", "by keyword", "decorated", "partial"])
@pytest.mark.usefixtures("unexplained")
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
