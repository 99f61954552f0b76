"""Indices that come before the array in which they are looked up: JAX's message says that they are indices."""

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
    assert [spec.domain for spec in case.inputs if spec.name == "permutation"] == ["indices"], case.error
    assert [finding.input for finding in case.findings] == ["val"] * wrong
