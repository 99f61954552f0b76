"""Arguments that JAX is told are no arrays."""

from typing import Any

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
