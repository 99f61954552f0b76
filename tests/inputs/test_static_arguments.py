"""Arguments that JAX is told are no arrays."""

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.001, Verdict.FAILED)])
def test_what_is_declared_to_be_no_array_is_a_number(factor: float, verdict: Verdict) -> None:
    jax = pytest.importorskip("jax")

    def power(x: Any, base: Any) -> Any:
        return base**x

    target = jax.custom_vjp(power, nondiff_argnums=(1,))
    target.defvjp(
        lambda x, base: (power(x, base), x),
        lambda base, x, g: (factor * g * jax.numpy.log(base) * power(x, base),),
    )
    (result,) = gradcli.check(target, order=1, samples=1, shrink=False).cases
    assert result.verdict is verdict
    assert [spec.kind for spec in result.inputs] == ["tensor", "value"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.001, Verdict.FAILED)])
@pytest.mark.parametrize("by_name", [False, True], ids=["nondiff_argnums", "nondiff_argnames"])
@pytest.mark.parametrize("mask", [[True, False, False, True], [0.5, 0.0, 2.0, 1.0], [3, 0, 1, 2]], ids=str)
@pytest.mark.usefixtures("unexplained")
def test_an_array_that_is_not_differentiated_stays_one_where_the_call_is_compiled(
    mask: list[Any], by_name: bool, factor: float, verdict: Verdict
) -> None:
    """JAX refuses a traced array in the place of an argument that is declared to be none."""
    jax = pytest.importorskip("jax")
    numpy = jax.numpy

    def masked(params: Any, mask: Any, x: Any) -> Any:
        return params["w"] * numpy.sin(x) * mask

    declared = {"nondiff_argnames": ("mask",)} if by_name else {"nondiff_argnums": (1,)}
    target = jax.custom_vjp(masked, **declared)

    def backward(mask: Any, kept: Any, g: Any) -> Any:
        w, x = kept
        return {"w": (g * numpy.sin(x) * mask).sum()}, factor * g * w * numpy.cos(x) * mask

    target.defvjp(lambda params, mask, x: (masked(params, mask, x), (params["w"], x)), backward)
    inputs = ({"w": np.array(0.7)}, np.array(mask), np.random.default_rng(0).normal(size=(3, 4)))
    (result,) = gradcli.check(target, inputs, order=1, samples=1, shrink=False).cases
    assert result.verdict is verdict, (result.findings, result.error)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.001, Verdict.FAILED)])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.usefixtures("unexplained")
def test_an_accuracy_is_given_no_array(static: bool, factor: float, verdict: Verdict) -> None:
    """The rule holds where nothing is cut off: at a tensor of random numbers it is wrong."""
    jax = pytest.importorskip("jax")
    numpy = jax.numpy

    def cut(x: Any, rtol: Any = None) -> Any:
        return numpy.where(abs(x) > (1e-14 if rtol is None else rtol), x**3, 0 * x)

    if static:
        target = jax.custom_jvp(cut, nondiff_argnums=(1,))
        target.defjvp(lambda rtol, x, v: (cut(x[0], rtol), factor * 3 * x[0] ** 2 * v[0]))
    else:
        target = jax.custom_vjp(cut)
        target.defvjp(lambda x, rtol=None: (cut(x, rtol), x), lambda x, g: (factor * 3 * g * x**2, None))
    (result,) = gradcli.check(target, order=1, samples=1, shrink=False).cases
    assert [spec.name for spec in result.inputs] == ["x"]
    assert result.verdict is verdict, (result.findings, result.error)
