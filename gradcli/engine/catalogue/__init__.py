"""One row for each operation: how it is called, on what, and where it is not smooth.

Tests, listings and specs read this table. A call takes the namespace first (this engine's, or another of its shape), so
that the same row can be run on both.
"""

from __future__ import annotations

import functools
from typing import Any

from gradcli.engine.catalogue.derived import derived_operations
from gradcli.engine.catalogue.matrices import matrix_operations
from gradcli.engine.catalogue.row import Domain, Operation, Sample, row
from gradcli.engine.catalogue.variants import variant_operations

__all__ = ["Domain", "Operation", "Sample", "operations"]

_ONE: tuple[Any, ...] = ([()], [(3,)], [(2, 3)], [(0, 2)])
_TWO: tuple[Any, ...] = ([(2, 3), (2, 3)], [(2, 3), (3,)], [(2, 1), (1, 3)], [(), (2,)], [(0, 2), (2,)])
_ALONG: tuple[Any, ...] = ([(3,)], [(2, 3)], [(2, 3, 2)])


def _unary(names: str, domain: Domain, kinks: str = "") -> list[Operation]:
    return [
        row(name, lambda t, x, name=name: getattr(t, name)(x), *_ONE, domain=domain, kinks=kinks)
        for name in names.split()
    ]


def _elementwise() -> list[Operation]:
    at_zero = "at 0"
    return [
        *_unary("neg exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan sigmoid erf erfc square sinc", Domain.UNIT),
        *_unary("log log1p log2 log10 sqrt rsqrt reciprocal lgamma digamma", Domain.POSITIVE),
        *_unary("asin acos atanh", Domain.UNIT),
        *_unary("acosh", Domain.ABOVE_ONE),
        *_unary("logit", Domain.PROBABILITY),
        *_unary("abs sign relu", Domain.APART, at_zero),
        *_unary("round floor ceil trunc frac", Domain.APART, "at whole numbers"),
    ]


def _binary() -> list[Operation]:
    positive = Domain.POSITIVE
    return [
        row("add", lambda t, x, y: t.add(x, y), *_TWO),
        row("add_alpha", lambda t, x, y: t.add(x, y, alpha=2.5), *_TWO),
        row("add_number", lambda _, x: 1.5 + x + 2, *_ONE),
        row("sub", lambda t, x, y: t.sub(x, y, alpha=0.5), *_TWO),
        row("rsub", lambda _, x: 2 - x, *_ONE),
        row("mul", lambda t, x, y: t.mul(x, y), *_TWO),
        row("mul_same", lambda _, x: x * x, *_ONE),
        row("div", lambda t, x, y: t.div(x, y), *_TWO, domain=positive),
        row("rdiv", lambda _, x: 3 / x, *_ONE, domain=positive),
        row("pow_number", lambda _, x: x**3 + x**2 + x**0.5 + x**-1 + x**0 + x**1, *_ONE, domain=positive),
        row("pow", lambda t, x, y: t.pow(x, y), *_TWO, domain=positive),
        row("rpow", lambda _, x: 2**x, *_ONE),
        row("remainder", lambda _, x, y: x % y, *_TWO, domain=positive, kinks="at multiples"),
        row("fmod", lambda t, x, y: t.fmod(x, y), *_TWO, domain=positive, kinks="at multiples"),
        row("atan2", lambda t, x, y: t.atan2(x, y), *_TWO, domain=positive),
        row("hypot", lambda t, x, y: t.hypot(x, y), *_TWO, domain=positive),
        row("logaddexp", lambda t, x, y: t.logaddexp(x, y), *_TWO),
        row("xlogy", lambda t, x, y: t.xlogy(x, y), *_TWO, domain=positive),
        row("lerp", lambda t, x, y: t.lerp(x, y, 0.3), *_TWO[:3]),
        row("addcmul", lambda t, x, y: t.addcmul(x, x, y, value=2), *_TWO[:2]),
        row("addcdiv", lambda t, x, y: t.addcdiv(x, x, y, value=2), *_TWO[:2], domain=positive),
        row("maximum", lambda t, x, y: t.maximum(x, y), *_TWO, kinks="where equal"),
        row("minimum", lambda t, x, y: t.minimum(x, y), *_TWO, kinks="where equal"),
        row("where", lambda t, x, y: t.where(x > 0, x, y), *_TWO[:3], kinks="where the condition changes"),
        row("clamp", lambda _, x: x.clamp(-0.5, 0.7), *_ONE, domain=Domain.APART, kinks="at the limits"),
        row("clamp_min", lambda _, x: x.clamp(min=0.1), *_ONE, domain=Domain.APART, kinks="at the limit"),
        row("masked_fill", lambda _, x: x.masked_fill(x > 0, 2.0), *_ONE, domain=Domain.APART),
        row("polygamma", lambda t, x: t.polygamma(1, x), *_ONE, domain=positive),
    ]


def _reductions() -> list[Operation]:
    apart = Domain.APART
    return [
        row("sum", lambda _, x: x.sum(), *_ONE),
        row("sum_dim", lambda _, x: x.sum(-1) + x.sum(-1, keepdim=True).squeeze(-1), *_ALONG),
        row("sum_dims", lambda _, x: x.sum((0, -1)), [(2, 3)], [(2, 3, 2)]),
        row("mean", lambda _, x: x.mean(), *_ONE[:3]),
        row("mean_dim", lambda _, x: x.mean(0, keepdim=True), *_ALONG),
        row("prod", lambda _, x: x.prod(), *_ONE[:3]),
        row("prod_dim", lambda _, x: x.prod(-1), *_ALONG),
        row("prod_zero", lambda _, x: (x * (x > 0)).prod(-1), [(3,)], [(2, 3)], domain=apart),
        row("var", lambda _, x: x.var(), *_ONE[1:3]),
        row("var_dim", lambda _, x: x.var(0, correction=0), *_ALONG),
        row("std", lambda _, x: x.std(-1, keepdim=True), *_ALONG, domain=apart),
        row("norm", lambda _, x: x.norm(), *_ONE[:3], kinks="at 0"),
        row("norm_1", lambda _, x: x.norm(1, -1), *_ALONG, domain=apart, kinks="at 0"),
        row("norm_3", lambda _, x: x.norm(3, 0), *_ALONG, domain=apart, kinks="at 0"),
        row("norm_inf", lambda _, x: x.norm(float("inf")), [(3,)], [(2, 3)], domain=apart, kinks="where equal"),
        row("max", lambda _, x: x.max(), *_ONE[:3], domain=apart, kinks="where equal"),
        row("max_dim", lambda _, x: x.max(-1)[0], *_ALONG, domain=apart, kinks="where equal"),
        row("min_dim", lambda _, x: x.min(0, keepdim=True)[0], *_ALONG, domain=apart, kinks="where equal"),
        row("median", lambda _, x: x.median(-1)[0], *_ALONG, domain=apart, kinks="where equal"),
        row("nanmedian", lambda _, x: x.nanmedian(-1)[0], *_ALONG, domain=apart, kinks="where equal"),
        row("amax", lambda _, x: x.amax(0), *_ALONG, domain=apart, kinks="where equal"),
        row("amin", lambda _, x: x.amin((0, -1)), [(2, 3)], [(2, 3, 2)], domain=apart, kinks="where equal"),
        row("logsumexp", lambda _, x: x.logsumexp(-1), *_ALONG),
        row("softmax", lambda t, x: t.softmax(x, -1), *_ALONG),
        row("log_softmax", lambda t, x: t.log_softmax(x, 0), *_ALONG),
        row("cumsum", lambda _, x: x.cumsum(0), *_ALONG),
        row("cumprod", lambda _, x: x.cumprod(-1), *_ALONG, domain=Domain.POSITIVE),
        row("cumprod_zero", lambda _, x: (x * (x > 0)).cumprod(-1), [(4,)], [(2, 3)], domain=apart),
        row("nansum", lambda _, x: x.nansum(0), *_ALONG),
    ]


def _shapes() -> list[Operation]:
    return [
        row("view", lambda _, x: x.view(3, 2), [(2, 3)], [(6,)]),
        row("reshape_t", lambda _, x: x.t().reshape(-1), [(2, 3)]),
        row("flatten", lambda _, x: x.flatten(1), [(2, 3)], [(2, 3, 2)]),
        row("unsqueeze", lambda _, x: x.unsqueeze(-1) * x.unsqueeze(-1), *_ONE),
        row("squeeze", lambda _, x: x.squeeze(), [(1, 3, 1)], [(2, 1)]),
        row("expand", lambda _, x: x.expand(4, 2, 3), [(2, 3)], [(1, 3)], [(2, 1)]),
        row("repeat", lambda _, x: x.repeat(2, 3), [(2, 2)], [(3,)]),
        row("permute", lambda _, x: x.permute(2, 0, 1), [(2, 3, 4)]),
        row("transpose", lambda _, x: x.transpose(0, -1), [(2, 3)], [(2, 3, 4)]),
        row("movedim", lambda _, x: x.movedim(0, -1), [(2, 3, 4)]),
        row("T", lambda _, x: x.T @ x.mT.t(), [(2, 2)]),
        row("flip", lambda _, x: x.flip(0), *_ALONG),
        row("roll", lambda _, x: x.roll(1, 0) + x.roll(2), *_ALONG),
        row("chunk", lambda t, x: t.cat(x.chunk(2, 0)[::-1], 0), [(4,)], [(4, 2)]),
        row("split", lambda _, x: x.split([1, 2], 0), [(3,)], [(3, 2)]),
        row("unbind", lambda _, x: x.unbind(0), [(3,)], [(2, 3)]),
        row("narrow", lambda _, x: x.narrow(0, 1, 2), [(3,)], [(4, 2)]),
        row("diagonal", lambda _, x: x.diagonal(1), [(3, 3)], [(2, 4)]),
        row("diag", lambda t, x: t.diag(x, 1), [(3,)], [(3, 3)]),
        row("tril", lambda _, x: x.tril(), [(3, 3)], [(2, 2, 3)]),
        row("triu", lambda _, x: x.triu(1), [(3, 3)], [(2, 3)]),
        row("unfold", lambda _, x: x.unfold(0, 3, 2), [(7,)], [(5, 2)]),
        row("cat", lambda t, x, y: t.cat([x, y], -1), [(2, 3), (2, 2)], [(3,), (1,)]),
        row("stack", lambda t, x, y: t.stack([x, y, x], 1), [(2, 3), (2, 3)]),
        row("clone", lambda _, x: x.clone(), *_ONE),
        row("diff", lambda t, x: t.diff(x), *_ALONG),
        row("kron", lambda t, x, y: t.kron(x, y), [(2, 2), (1, 3)]),
        row("repeat_interleave", lambda t, x: t.repeat_interleave(x, 2, 0), [(3,)], [(2, 2)]),
    ]


def _indexing() -> list[Operation]:
    return [
        row("getitem", lambda _, x: x[1, :2] * x[..., -2:][0] * x[None, 0, 1], [(2, 3)]),
        row("getitem_step", lambda _, x: x[::2], [(5,)], [(3, 2)]),
        row("getitem_list", lambda _, x: x[[0, 2, 0]], [(3,)], [(3, 2)]),
        row("getitem_pairs", lambda t, x: x[t.tensor([0, 1, 0]), :, t.tensor([1, 0, 1])], [(2, 3, 2)]),
        row("getitem_mask", lambda _, x: x[x > 0], [(3,)], [(2, 3)], domain=Domain.APART),
        row("setitem", _setitem, [(2, 3), (3,)], [(3, 2), (2,)]),
        row("setitem_mask", _setitem_mask, [(2, 3), ()], domain=Domain.APART),
        row("in_place", lambda _, x: (x * 1).mul_(x).add_(1).exp_(), [(3,)], [(2, 3)], domain=Domain.UNIT),
        row("index_select", lambda t, x: x.index_select(0, t.tensor([1, 1, 0])), [(2,)], [(2, 3)]),
        row("gather", lambda t, x: x.gather(1, t.tensor([[0, 2, 2], [1, 0, 0]])), [(2, 3)]),
        row("scatter", lambda t, x, y: x.scatter(0, t.tensor([[1, 0, 1]]), y), [(2, 3), (1, 3)]),
        row("scatter_add", lambda t, x, y: x.scatter_add(0, t.tensor([[0, 0, 1], [0, 1, 1]]), y), [(2, 3), (2, 3)]),
        row("index_add", lambda t, x, y: x.index_add(0, t.tensor([0, 0]), y), [(3, 2), (2, 2)], [(3,), (2,)]),
        row(
            "index_fill",
            lambda t, x, y: x.index_fill(0, t.tensor([0, 2]), y) * x.index_fill(1, t.tensor([1]), 2.0),
            [(3, 2), ()],
        ),
        row("take", lambda t, x: x.take(t.tensor([5, 0, 5])), [(2, 3)]),
        row("masked_select", lambda _, x: x.masked_select(x > 0), [(2, 3)], domain=Domain.APART),
        row("sort", lambda _, x: x.sort(0, descending=True)[0], *_ALONG, domain=Domain.APART, kinks="where equal"),
        row("topk", lambda _, x: x.topk(2, 0)[0], [(3,)], [(2, 3)], domain=Domain.APART, kinks="where equal"),
    ]


def _setitem(_: Any, x: Any, y: Any) -> Any:
    z = x * 2
    z[1] = y
    z[:, 0] *= 3
    return z * z


def _setitem_mask(_: Any, x: Any, y: Any) -> Any:
    z = x * 2
    z[x > 0] = y
    return z * z


def _matrices() -> list[Operation]:
    definite, regular = Domain.DEFINITE, Domain.REGULAR
    right = Sample(shape=(3, 2))
    return [
        row("mm", lambda _, x, y: x.mm(y), [(2, 3), (3, 2)], [(0, 3), (3, 2)], [(2, 0), (0, 2)]),
        row("bmm", lambda _, x, y: x.bmm(y), [(2, 2, 3), (2, 3, 2)]),
        row("mv", lambda _, x, y: x.mv(y), [(2, 3), (3,)]),
        row("dot", lambda _, x, y: x.dot(y), [(3,), (3,)]),
        row("outer", lambda t, x, y: t.outer(x, y), [(3,), (2,)]),
        row("matmul", lambda _, x, y: x @ y, [(2, 3), (3,)], [(3,), (3, 2)], [(2, 2, 3), (3, 2)], [(2, 2, 3), (3,)],
             [(2, 1, 2, 3), (3, 3, 2)], [(3,), (2, 3, 2)]),
        row("addmm", lambda t, x, y, z: t.addmm(x, y, z, beta=0.5, alpha=2), [(2, 2), (2, 3), (3, 2)],
             [(2,), (2, 3), (3, 2)]),
        row("baddbmm", lambda t, x, y: t.baddbmm(x, x, y), [(2, 2, 2), (2, 2, 2)]),
        row("einsum", lambda t, x, y: t.einsum("ij,jk->ki", x, y), [(2, 3), (3, 2)]),
        row("einsum_trace", lambda t, x, y: t.einsum("ii,ij->j", x, y), [(3, 3), (3, 2)]),
        row("einsum_dots", lambda t, x, y: t.einsum("...ij,...jk", x, y), [(2, 2, 3), (2, 3, 2)]),
        row("tensordot", lambda t, x, y: t.tensordot(x, y, dims=([1], [0])), [(2, 3), (3, 2)]),
        row("trace", lambda t, x: t.trace(x), [(3, 3)]),
        row("inv", lambda t, x: t.linalg.inv(x), [(3, 3)], [(2, 2, 2)], domain=regular),
        row("det", lambda t, x: t.linalg.det(x), [(3, 3)], [(2, 2, 2)], domain=regular),
        row("slogdet", lambda t, x: t.linalg.slogdet(x)[1], [(3, 3)], [(2, 2, 2)], domain=regular),
        row("solve", lambda t, x, y: t.linalg.solve(x, y), [(3, 3), right],
             [(3, 3), Sample(shape=(3,))], domain=regular),
        row("cholesky", lambda t, x: t.linalg.cholesky((x + x.mT) / 2), [(3, 3)], [(2, 2, 2)], domain=definite),
        row("eigh", _eigh, [(3, 3)], domain=definite),
    ]  # fmt: skip


def _eigh(t: Any, x: Any) -> Any:
    """Return what does not depend on the sign that eigenvectors are given."""
    values, vectors = t.linalg.eigh((x + x.mT) / 2)
    return values, vectors * vectors


def _networks() -> list[Operation]:
    def f(name: str, *calls: Any, domain: Domain = Domain.REAL, kinks: str = "", **options: Any) -> Operation:
        return row(
            name, lambda t, *xs: getattr(t.nn.functional, name)(*xs, **options), *calls, domain=domain, kinks=kinks
        )

    return [
        *(f(name, *_ONE) for name in ["softplus", "logsigmoid", "silu", "gelu", "mish", "softsign", "tanhshrink"]),
        *(f(name, *_ONE, domain=Domain.APART, kinks="at 0") for name in ["leaky_relu", "elu", "selu", "celu"]),
        f("hardtanh", *_ONE, domain=Domain.APART, kinks="at the limits"),
        f("relu6", *_ONE, domain=Domain.APART, kinks="at the limits"),
        f("glu", [(4,)], [(2, 4)]),
        f("prelu", [(2, 3), (1,)], domain=Domain.APART),
        f("linear", [(2, 3), (4, 3), (4,)], [(3,), (4, 3), (4,)], [(2, 2, 3), (4, 3), (4,)], [(2, 3), (4, 3)]),
        f("bilinear", [(2, 3), (2, 4), (5, 3, 4), (5,)], [(2, 2), (2, 3), (2, 2, 3), (2,)]),
        f("mse_loss", [(2, 3), (2, 3)]),
        f("l1_loss", [(2, 3), (2, 3)], kinks="where equal"),
        f("smooth_l1_loss", [(2, 3), (2, 3)]),
        f("huber_loss", [(2, 3), (2, 3)]),
        f("binary_cross_entropy", [(2, 3), (2, 3)], domain=Domain.PROBABILITY),
        f("binary_cross_entropy_with_logits", [(2, 3), (2, 3)]),
        f("kl_div", [(2, 3), (2, 3)], domain=Domain.PROBABILITY, reduction="sum"),
        f("cosine_similarity", [(2, 3), (2, 3)]),
        f("normalize", [(2, 3)]),
        f("layer_norm", [(2, 3)], normalized_shape=(3,)),
        f("group_norm", [(2, 4, 3)], num_groups=2),
        f("batch_norm", [(4, 3)], [(2, 3, 4)], running_mean=None, running_var=None, training=True),
        f("conv1d", [(2, 3, 5), (4, 3, 2), (4,)], [(2, 2, 3), (2, 2, 2), (2,)], stride=2, padding=1),
        f("conv2d", [(1, 2, 4, 5), (3, 2, 2, 3), (3,)], [(1, 2, 2, 4), (2, 2, 2, 2), (2,)], padding=(1, 0),
          dilation=(1, 2)),
        row("conv2d_groups", lambda t, x, w: t.nn.functional.conv2d(x, w, groups=2), [(2, 4, 3, 3), (2, 2, 2, 2)]),
        f("conv_transpose2d", [(1, 2, 3, 3), (2, 3, 2, 2), (3,)], [(1, 2, 2, 2), (2, 2, 2, 2), (2,)], stride=2,
          padding=1, output_padding=1),
        f("max_pool2d", [(1, 2, 4, 4)], kernel_size=2, domain=Domain.APART, kinks="where equal"),
        f("avg_pool2d", [(1, 2, 4, 4)], kernel_size=2, stride=1, padding=1),
        f("adaptive_avg_pool2d", [(1, 2, 5, 4)], output_size=(2, 3)),
        row("unfold_images", lambda t, x: t.nn.functional.unfold(x, 2, stride=2), [(1, 2, 4, 4)]),
        f("pixel_shuffle", [(1, 4, 2, 2)], upscale_factor=2),
        f("pad", [(2, 3)], [(3,)], pad=(1, 2)),
        row("nll_loss", lambda t, x: t.nn.functional.nll_loss(x, t.tensor([0, 2])), [(2, 3)]),
        row("cross_entropy", lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, 2]), label_smoothing=0.1),
             [(2, 3)]),
        row("embedding", lambda t, w: t.nn.functional.embedding(t.tensor([[0, 1], [1, 1]]), w), [(3, 2)]),
    ]  # fmt: skip


@functools.cache
def operations() -> tuple[Operation, ...]:
    """Return all rows."""
    return (
        *_elementwise(),
        *_binary(),
        *_reductions(),
        *_shapes(),
        *_indexing(),
        *_matrices(),
        *_networks(),
        *variant_operations(),
        *derived_operations(),
        *matrix_operations(),
    )
