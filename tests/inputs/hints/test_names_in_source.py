"""What source says of an argument: what is scattered is no index, what is called conj is no conjugate."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="index_add_ and image sizes in ctx are PyTorch's")


def edges(factor: float) -> type[Any]:
    class Edges(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, edge_weight, src, dst):
            ctx.save_for_backward(x, edge_weight, src, dst)
            return torch.zeros_like(x).index_add_(0, dst, x[src] * edge_weight.unsqueeze(-1))

        @staticmethod
        def backward(ctx, g):
            x, weight, src, dst = ctx.saved_tensors
            gx = torch.zeros_like(x).index_add(0, src, g[dst] * weight.unsqueeze(-1))
            return gx, factor * (g[dst] * x[src]).sum(-1), None, None

    return Edges


def test_what_is_scattered_has_a_gradient() -> None:
    case = gradcli.check(edges(1), shrink=False, order=1, samples=1, only=["gradient"]).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [spec.domain for spec in case.inputs] == ["normal", "normal", "indices", "indices"]
    for seed in (0, 1):
        wrong = gradcli.check(edges(2), shrink=False, order=1, samples=1, seed=seed, only=["gradient"]).cases[0]
        assert [(f.kind.value, f.input) for f in wrong.findings] == [("wrong-factor", "edge_weight")]


class Pixels(torch.autograd.Function):
    """`ctx.H` is a height; the helper of quaternions conjugates nothing that is complex."""

    sign = 1.0

    @classmethod
    def forward(cls, ctx, x, w):
        ctx.H, ctx.W = x.shape[-2:]
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def conj(x):
        return -x

    @classmethod
    def backward(cls, ctx, g):
        x, w = ctx.saved_tensors
        assert x.shape[-2:] == (ctx.H, ctx.W)
        return -Pixels.conj(g) * w, cls.sign * g * x


class PixelsOff(Pixels):
    sign = -1.0


@pytest.mark.parametrize(
    ("backward", "minds"),
    [
        ("return g * x.conj(), None", True),
        ("return torch.conj(x) * g", True),
        ("return jnp.conjugate(x) * g", True),
        ("return a.mH @ g, (a @ b).H", True),
        ("return g.adjoint()", True),
        ("h, w = ctx.H, ctx.W", False),
        ("return quat_conj(q) * g", False),
        ("return Quaternion.conj(q) * g", False),
        ("return quaternion.conj_by(q, g)", False),
    ],
)
def test_what_conjugates(backward: str, minds: bool) -> None:
    assert SourceHints(forward="", backward=backward, gradients=(True,)).minds_complex is minds


def test_an_image_size_in_ctx_asks_for_no_complex_inputs() -> None:
    assert gradcli.check(Pixels, shrink=False, order=1, samples=1, only=["gradient"]).cases[0].verdict is Verdict.PASSED
    found = gradcli.check(PixelsOff, shrink=False, order=1, only=["gradient"]).cases[0].findings
    assert [f.input for f in found] == ["w"]


def affine(factor: float) -> type[Any]:
    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, a, b):
            ctx.save_for_backward(x, a, b)
            return x * a + b

        @staticmethod
        def backward(ctx, g):
            x, a, b = ctx.saved_tensors
            return g * a, (g * x).sum().reshape(a.shape), factor * g.sum().view_as(b)

    return Affine


def test_two_numbers_whose_gradients_are_reshaped_sums() -> None:
    case = gradcli.check(affine(1), shrink=False, order=1, samples=1, only=["gradient"]).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [spec.shape for spec in case.inputs] == [(3, 4), (), ()]
    wrong = gradcli.check(affine(0.999), shrink=False, order=1, only=["gradient"]).cases[0]
    assert [f.input for f in wrong.findings] == ["b"]


def rms_norm(factor: float) -> Any:
    jax = pytest.importorskip("jax", reason="jnp.sum is JAX's")
    jnp = jax.numpy

    @jax.custom_vjp
    def norm(x, scale):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale

    def forward(x, scale):
        r = jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        return x * r * scale, (x, scale, r)

    def backward(kept, g):
        x, scale, r = kept
        hat, weighted = x * r, g * scale
        dx = r * (weighted - hat * jnp.mean(weighted * hat, -1, keepdims=True))
        return dx, factor * jnp.sum(g * hat, axis=tuple(range(g.ndim - 1)))

    norm.defvjp(forward, backward)
    return norm


@pytest.mark.usefixtures("unexplained")
def test_a_gradient_summed_over_some_axes_is_that_of_a_vector() -> None:
    case = gradcli.check(rms_norm(1), shrink=False, order=1, samples=1, only=["gradient"]).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [spec.shape for spec in case.inputs] == [(3, 4), (4,)]
    wrong = gradcli.check(rms_norm(0.999), shrink=False, order=1, samples=1, only=["gradient"]).cases[0]
    assert {e.input for e in wrong.evidence if e.verdict is Verdict.FAILED} == {"scale"}
