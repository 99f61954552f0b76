"""Arguments that may be indices by their place or name: JAX's message tells, and a gradient says that they are none."""

from typing import Any

import pytest

import gradcli


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize("first", [True, False], ids=["indices first", "indices last"])
def test_indices_of_take_are_found_in_either_place(first, wrong):
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    jnp = jax.numpy

    def chosen(val, where):
        return jnp.take(val, where, axis=0)

    def gradient(kept, g):
        val, where = kept
        return jnp.zeros_like(val).at[where].add(1.01 * g if wrong else g)

    if first:

        def permute(permutation, val):
            return chosen(val, permutation)

        rule = jax.custom_vjp(permute)
        rule.defvjp(lambda p, val: (chosen(val, p), (val, p)), lambda kept, g: (None, gradient(kept, g)))
    else:

        def permute(val, permutation):
            return chosen(val, permutation)

        rule = jax.custom_vjp(permute)
        rule.defvjp(lambda val, p: (chosen(val, p), (val, p)), lambda kept, g: (gradient(kept, g), None))
    (case,) = gradcli.check(rule, order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert [spec.domain for spec in case.inputs if spec.name == "permutation"] == ["permutation"], case.error
    assert [finding.input for finding in case.findings] == ["val"] * wrong


def _of_links(joints: Any, lengths: Any, g: Any, factor: float) -> tuple[Any, Any]:
    total = joints.cumsum(0)
    return (g * lengths).flip(0).cumsum(0).flip(0), factor * g * total


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_name_of_indices_counts_less_than_a_gradient(ns: Any, factor: float) -> None:
    """Backward hands its work on, so that its source does not tell which arguments get a gradient."""

    class Links(ns.autograd.Function):
        """joints: (n,), lengths: (n,) of the links"""

        @staticmethod
        def forward(ctx: Any, joints: Any, lengths: Any) -> Any:
            ctx.save_for_backward(joints, lengths)
            return ns.stack([joints.cumsum(0) * lengths])[0]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return _of_links(*ctx.saved_tensors, g, factor)

    (case,) = gradcli.check(Links, order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert [spec.domain for spec in case.inputs] == ["normal", "normal"], case.error
    assert [finding.input for finding in case.findings] == ["lengths"] * (factor != 1.0)
