"""Masks, single numbers and halves of axes that docstrings of JAX's functions describe."""

import pytest

import gradcli
from gradcli.verdict import Verdict

jax = pytest.importorskip("jax")
jnp = jax.numpy


def masked_sum(factor):
    @jax.custom_vjp
    def softmax(s, keep):
        """s: (N, M), keep: (M,) bool."""
        p = jnp.exp(s) * keep[None]
        return p / p.sum(-1, keepdims=True)

    def forward(s, keep):
        p = softmax(s, keep)
        return p, p

    def backward(p, g):
        return p * (g - factor * (p * g).sum(-1, keepdims=True)), None

    softmax.defvjp(forward, backward)
    return softmax


def rotated(factor):
    @jax.custom_vjp
    def rotate(x, c, t):
        """x: (B, T, D); c: (T, D // 2); t: scalar."""
        one, two = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([one * c * t, two * c], axis=-1)

    def forward(x, c, t):
        return rotate(x, c, t), (x, c, t)

    def backward(kept, g):
        x, c, t = kept
        (one, two), (g1, g2) = jnp.split(x, 2, axis=-1), jnp.split(g, 2, axis=-1)
        of_c = (g1 * one * t + g2 * two).sum(0)
        return jnp.concatenate([g1 * c * t, g2 * c], axis=-1), of_c, factor * (g1 * one * c).sum()

    rotate.defvjp(forward, backward)
    return rotate


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("target", "shapes"), [(masked_sum, ((3, 4), (4,))), (rotated, ((4, 5, 6), (5, 3), ()))])
@pytest.mark.usefixtures("unexplained")
def test_masks_and_halves_of_axes_in_jax(target, shapes) -> None:
    case = gradcli.check(target(1.0), shrink=False, order=1, samples=1, only=["gradient"]).cases[0]
    assert case.verdict is Verdict.PASSED
    assert tuple(spec.shape for spec in case.inputs) == shapes
    assert gradcli.check(target(0.5), shrink=False, order=1, only=["gradient"]).verdict is Verdict.FAILED
