"""What the source of backward says of the arguments: which of them have a gradient."""

from typing import Any

import pytest

from gradcli.cases import CheckSpec
from gradcli.inputs.search.source_hints import read_hints
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict


def in_a_tuple(ctx: Any, g: Any) -> Any:
    return g, None


def by_name(ctx: Any, g: Any) -> Any:
    grads = 2 * g, 3 * g
    return grads  # noqa: RET504 - by name


def computed(ctx: Any, g: Any) -> Any:
    return tuple(g * n for n in range(2))


@pytest.mark.parametrize(
    ("backward", "has"), [(in_a_tuple, (True, False)), (by_name, (True, True)), (computed, (None, None))]
)
def test_which_arguments_have_a_gradient(backward: Any, has: tuple[bool | None, ...]) -> None:
    hints = read_hints(None, backward, ["x", "p"])
    assert tuple(hints.gradient_of(position) for position in (0, 1)) == has


@pytest.mark.parametrize("factor", [1, 1.001])
def test_an_argument_whose_gradient_is_returned_by_name_is_no_constant_in_jax(factor: float) -> None:
    """`p` stands for a whole number elsewhere; JAX would drop the gradient of a number."""
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    target = jax.custom_vjp(lambda x, p: x * p)

    def backward(kept, g):
        x, p = kept
        grads = (g * p, factor * (g * x).sum())
        return grads  # noqa: RET504 - by name

    target.defvjp(lambda *tensors: (target(*tensors), tensors), backward)
    result = check_object(
        target, case_of(CheckSpec(target="module:Target"), Settings(order=1, samples=1, shrink=False))
    )
    assert [spec.kind for spec in result.inputs] == ["tensor", "tensor"]
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
