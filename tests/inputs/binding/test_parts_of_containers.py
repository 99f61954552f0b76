"""Keys, shapes and numbers of dicts, named tuples and dataclasses, which forward reads in functions that it calls."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.backends.numpy.claims import GradientPair
from gradcli.backends.registry import backend_named
from gradcli.cases import Argument
from gradcli.inputs.hints.containers.arguments import containers_of
from gradcli.runner.arguments.nested import folded, unfolded
from gradcli.verdict import Verdict


def dense(p: Any, x: Any) -> Any:
    return np.tanh(p["kernel"] @ x + p["offset"])


def spread(params: Any, x: Any) -> Any:
    return dense({**params, "kernel": params["kernel"] / 2}, x)


def copied(params: Any, x: Any) -> Any:
    return dense(dict(params, kernel=params["kernel"] / 2), x)


def joined(params: Any, x: Any) -> Any:
    halved = params | {"kernel": params["kernel"] / 2}
    return dense(halved, x)


def mapped(params: Any, x: Any) -> Any:
    tree = _Tree
    return dense(tree.map(lambda p: p / 2, params), x)


def replaced(params: Any, x: Any) -> Any:
    """The offset of `params` is never read."""
    return dense({**params, "offset": 0.5 * params["kernel"][:, 0]}, x)


def by_a_view(params: Any, x: Any) -> Any:
    return dense({key: value * 0.5 for key, value in params.items()}, x) * params["kernel"].sum()


class _Tree:
    map: Any


def described(function: Any) -> Any:
    return backend_named("numpy").describe(GradientPair(function=function, gradient=function))


@pytest.mark.parametrize("function", [spread, copied, joined, mapped])
def test_keys_are_read_from_a_changed_copy(function: Any) -> None:
    (held,) = containers_of(described(function)).values()
    assert set(held.value) == {"kernel", "offset"}


def test_a_key_that_a_copy_replaces_is_not_one_of_the_whole() -> None:
    (held,) = containers_of(described(replaced)).values()
    assert set(held.value) == {"kernel"}


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_key_that_forward_lacks_is_added(factor: float, verdict: Verdict) -> None:
    def gradient(params: Any, x: Any, g: Any) -> Any:
        kernel, offset = params["kernel"] / 2, params["offset"] / 2
        total, out = params["kernel"].sum(), np.tanh(kernel @ x + offset)
        inner = g * total * (1 - out**2)
        of_kernel = np.outer(inner, x) / 2 + (g * out).sum()
        return {"kernel": of_kernel, "offset": factor * inner / 2}, kernel.T @ inner

    (case,) = gradcli.check(GradientPair(function=by_a_view, gradient=gradient), order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert {spec.name for spec in case.inputs} >= {"params['kernel']", "params['offset']", "x"}


@dataclasses.dataclass
class Gate:
    weight: Any  # (H, H + D)
    bias: Any  # (H,)


class Spring(NamedTuple):
    stiffness: Any
    friction: Any
    inertia: Any


def gated(p: Gate, h: Any, x: Any) -> Any:
    """h (H,), x (D,)"""
    return np.tanh(p.weight @ np.concatenate([h, x]) + p.bias)


def test_comments_beside_fields_describe_them() -> None:
    (way, *_) = unfolded(described(gated), ())
    assert "weight: (H, H + D)\nbias: (H,)" in way.info.documentation
    assert not way.are_numbers


def test_a_constant_goes_into_a_field() -> None:
    def total(p: Spring, x: Any) -> Any:
        return p.stiffness * x

    leaves = [Argument(name=f"p.{name}", value=2, is_tensor=False) for name in ("stiffness", "inertia")]
    (held,) = folded([Argument(name="p", value=Spring(0, 0, 0), is_tensor=False), *leaves], described(total))[:1]
    assert held.value == Spring(2, 0, 2)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_three_fields_of_jax_are_numbers(factor: float, verdict: Verdict) -> None:
    jax = pytest.importorskip("jax")

    def rate(s: Any, p: Spring) -> Any:
        at, speed = s
        return jax.numpy.array([speed, -(p.stiffness * at + p.friction * speed) / (1 + p.inertia**2)])

    @jax.custom_vjp
    def stepped(s: Any, p: Spring) -> Any:
        """s (2,)"""
        return s + 0.1 * rate(s, p)

    def backward(kept: Any, g: Any) -> Any:
        of_s, of_p = jax.vjp(stepped.fun, *kept)[1](g)
        return of_s, of_p._replace(friction=factor * of_p.friction)

    stepped.defvjp(lambda s, p: (stepped.fun(s, p), (s, p)), backward)
    (case,) = gradcli.check(stepped, order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert {spec.shape for spec in case.inputs if spec.name.startswith("p.")} == {()}
