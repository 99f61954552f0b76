"""Rows for functions that are made of other operations."""

from __future__ import annotations

from typing import Any

from gradcli.engine.catalogue.row import Domain, Operation, Sample, row

_APART, _POSITIVE = Domain.APART, Domain.POSITIVE


def _arranged() -> list[Operation]:
    return [
        row("fliplr_flipud", lambda t, x: t.fliplr(x) * t.flipud(x), [(2, 3)]),
        row("rot90", lambda t, x: (t.rot90(x), t.rot90(x, 2), t.rot90(x, -1, (1, 0))), [(2, 3)], [(2, 2, 2)]),
        row("atleast", lambda t, x: (t.atleast_1d(x), t.atleast_2d(x), t.atleast_3d(x)), [()], [(3,)], [(2, 3)]),
        row("column_stack", lambda t, x, y: t.column_stack([x, y]), [(3,), (3,)], [(3,), (3, 2)]),
        row("dstack", lambda t, x, y: t.dstack([x, y]), [(3,), (3,)], [(2, 3), (2, 3)]),
        row("broadcast_tensors", lambda t, x, y: t.mul(*t.broadcast_tensors(x, y)), [(2, 1), (3,)]),
        row("block_diag", lambda t, x, y: t.block_diag(x, y), [(2, 2), (3,)], [(), (1, 2)]),
        row("diagflat", lambda t, x: t.diagflat(x, 1), [(2, 2)]),
        row("tensor_split", lambda t, x: t.tensor_split(x, 3), [(5, 2)], [(4,)]),
        row("tensor_split_at", lambda t, x: t.tensor_split(x, (1, 3), 1), [(2, 4)]),
        row("tril_indices", lambda t, x: x[tuple(t.tril_indices(3, 3, -1))] * x[tuple(t.triu_indices(3, 3, 1))],
            [(3, 3)]),
        row("cartesian_prod", lambda t, x, y: t.cartesian_prod(x, y), [(3,), (2,)]),
    ]  # fmt: skip


def _elementwise() -> list[Operation]:
    return [
        row("fmax", lambda t, x, y: t.fmax(x, y), [(2, 3), (3,)], kinks="where equal"),
        row("fmin", lambda t, x, y: t.fmin(x, y), [(2, 3), (3,)], kinks="where equal"),
        row("nan_to_num", lambda t, x: t.nan_to_num(x) ** 2, [(2, 3)]),
        row("float_power", lambda t, x: t.float_power(x, 1.5), [(3,)], domain=_POSITIVE),
        row("ldexp", lambda t, x, y: t.ldexp(x, y), [(3,), (3,)]),
        row("logaddexp2", lambda t, x, y: t.logaddexp2(x, y), [(2, 3), (3,)]),
        row("threshold", lambda t, x: t.nn.functional.threshold(x, 0.1, 2.0), [(2, 3)], domain=_APART, kinks="at 0.1"),
        row("rrelu", lambda t, x: t.nn.functional.rrelu(x), [(2, 3)], domain=_APART, kinks="at 0"),
        row("hardshrink", lambda t, x: t.nn.functional.hardshrink(x), [(2, 3)], domain=_APART, kinks="at 0.5"),
        row("softshrink", lambda t, x: t.nn.functional.softshrink(x), [(2, 3)], domain=_APART, kinks="at 0.5"),
        row("hardsigmoid", lambda t, x: t.nn.functional.hardsigmoid(x), [(2, 3)], domain=_APART, kinks="at 3"),
        row("hardswish", lambda t, x: t.nn.functional.hardswish(x), [(2, 3)], domain=_APART, kinks="at 3"),
    ]


def _products() -> list[Operation]:
    return [
        row("cross", lambda t, x, y: t.cross(x, y, dim=-1), [(2, 3), (2, 3)]),
        row("linalg_cross", lambda t, x, y: t.linalg.cross(x, y, dim=0), [(3, 2), (3, 2)]),
        row("vdot", lambda t, x, y: t.vdot(x, y), [(3,), (3,)]),
        row("vecdot", lambda t, x, y: t.linalg.vecdot(x, y), [(2, 3), (2, 3)]),
        row("addmv", lambda t, x, a, v: t.addmv(x, a, v, beta=0.5, alpha=2), [(2,), (2, 3), (3,)]),
        row("addr", lambda t, x, u, v: t.addr(x, u, v, beta=0.5, alpha=2), [(2, 3), (2,), (3,)], [(2, 1), (2,), (1,)]),
        row("addbmm", lambda t, x, a, b: t.addbmm(x, a, b, beta=0.5, alpha=2),
            [(2, 2), (2, 2, 3), (2, 3, 2)], [(2, 2), (2, 2, 1), (2, 1, 2)]),
        row("multi_dot", lambda t, a, b, c: t.linalg.multi_dot([a, b, c]), [(2, 3), (3, 2), (2, 2)]),
        row("matrix_power", lambda t, x: (t.linalg.matrix_power(x, 3), t.linalg.matrix_power(x, -2)), [(2, 2)],
            domain=Domain.REGULAR),
        row("pairwise_distance", lambda t, x, y: t.nn.functional.pairwise_distance(x, y), [(2, 3), (2, 3)]),
        row("dist", lambda t, x, y: t.dist(x, y), [(2, 3), (2, 3)]),
    ]  # fmt: skip


def _reductions() -> list[Operation]:
    ties = "where equal"
    return [
        row("var_mean", lambda t, x: (*t.var_mean(x, 0), *t.std_mean(x, -1, correction=0)), [(3, 2)]),
        row("aminmax", lambda t, x: t.aminmax(x, dim=0), [(3, 2)], domain=_APART, kinks=ties),
        row("nanmean", lambda t, x: t.nanmean(x, 0), [(3, 2)]),
        row("cummax", lambda t, x: t.cummax(x, 0)[0], [(4,)], [(3, 2)], domain=_APART, kinks=ties),
        row("cummin", lambda t, x: t.cummin(x, -1)[0], [(4,)], [(3, 2)], domain=_APART, kinks=ties),
        row("logcumsumexp", lambda t, x: t.logcumsumexp(x, 0), [(3,)], [(3, 2)]),
        row("kthvalue", lambda t, x: t.kthvalue(x, 2)[0], [(4,)], [(2, 3)], domain=_APART, kinks=ties),
        row("msort", lambda t, x: t.msort(x), [(4,)], [(3, 2)], domain=_APART, kinks=ties),
        row("quantile", lambda t, x: (t.quantile(x, 0.3, 0), t.quantile(x, t.tensor([0.1, 0.6], dtype=x.dtype))),
            [(4,)], [(3, 2)], domain=_APART, kinks=ties),
        row("quantile_keepdim", lambda t, x: t.quantile(x, t.tensor([0.1, 0.6], dtype=x.dtype), 1, True), [(2, 3)],
            domain=_APART, kinks=ties),
        row("trapezoid", lambda t, y, x: (t.trapezoid(y, x), t.trapezoid(y, dx=0.5)), [(2, 3), (3,)]),
    ]  # fmt: skip


def _placed() -> list[Operation]:
    def bags(mode: str) -> Any:
        def run(t: Any, x: Any) -> Any:
            indices = t.tensor([0, 2, 2, 1, 3, 0])
            offsets = t.tensor([0, 3, 3, 4])
            return t.nn.functional.embedding_bag(indices, x, offsets, mode=mode, padding_idx=3)

        return run

    def unpooled(t: Any, x: Any) -> Any:
        indices = t.tensor([[[[0, 3], [9, 15]]]])
        return (
            t.nn.functional.max_unpool2d(x, indices, 2)
            * t.nn.functional.max_unpool2d(x, indices, 2, 2, 0, (4, 5))[..., :4]
        )

    def resized(mode: str, **options: Any) -> Any:
        return lambda t, x: t.nn.functional.interpolate(x, mode=mode, **options)

    image = [(1, 2, 3, 4)]
    return [
        *(row(f"embedding_bag_{mode}", bags(mode), [(4, 3)], domain=_APART, kinks="where equal")
          for mode in ("sum", "mean", "max")),
        row("embedding_bag_weighted", lambda t, x, w: t.nn.functional.embedding_bag(
            t.tensor([[0, 1], [1, 1]]), x, mode="sum", per_sample_weights=w), [(3, 2), (2, 2)]),
        row("max_unpool", unpooled, [(1, 1, 2, 2)]),
        row("bicubic", resized("bicubic", size=(4, 2), align_corners=True), image),
        row("bicubic_scaled", resized("bicubic", scale_factor=(1.4, 0.6)), image),
        row("nearest_exact", resized("nearest-exact", size=(2, 5)), image),
    ]  # fmt: skip


def _losses() -> list[Operation]:
    def signs(t: Any, x: Any) -> Any:
        """Return 1 and -1 by turns, along the first axis."""
        return t.tensor([1.0, -1.0, 1.0], dtype=x.dtype)

    def labels(t: Any) -> Any:
        """Return the labels of two examples; the second has one."""
        return t.tensor([[3, 0, -1, 1], [1, -1, 0, 0]])

    margin, near = "at the margin", [(3, 2), (3, 2)]
    return [
        row("rms_norm", lambda t, x, w: t.nn.functional.rms_norm(x, (3,), w), [(2, 3), (3,)]),
        row("instance_norm", lambda t, x, w, b: t.nn.functional.instance_norm(x, weight=w, bias=b),
            [(2, 2, 3), (2,), (2,)], [(1, 2, 3), (2,), (2,)]),
        row("soft_margin_loss", lambda t, x: t.nn.functional.soft_margin_loss(x, signs(t, x)), [(3,)]),
        row("margin_ranking_loss", lambda t, x, y: t.nn.functional.margin_ranking_loss(x, y, signs(t, x), 0.3),
            [(3,), (3,)], kinks=margin),
        row("hinge_embedding_loss", lambda t, x: t.nn.functional.hinge_embedding_loss(x, signs(t, x)), [(3,)],
            domain=_APART, kinks=margin),
        row("cosine_embedding_loss", lambda t, x, y: t.nn.functional.cosine_embedding_loss(x, y, signs(t, x), -0.9),
            near, kinks=margin),
        row("triplet_margin_loss", lambda t, a, p, n: t.nn.functional.triplet_margin_loss(a, p, n, 2.0),
            [(2, 2), (2, 2), (2, 2)], kinks=margin),
        row("poisson_nll_loss", lambda t, x, y: t.nn.functional.poisson_nll_loss(x, y), near, domain=_POSITIVE),
        row("multilabel_margin_loss", lambda t, x: t.nn.functional.multilabel_margin_loss(x, labels(t)), [(2, 4)],
            domain=_APART, kinks=margin),
        row("ctc_loss", lambda t, x: t.nn.functional.ctc_loss(
                x.log_softmax(-1), labels(t)[:, :2], (4, 3), (2, 1), blank=2, reduction="sum"), [(4, 2, 5)]),
        row("gaussian_nll_loss", lambda t, x, y, v: t.nn.functional.gaussian_nll_loss(x, y, v, full=True),
            [(3, 2), (3, 2), Sample(shape=(3, 2), domain=_POSITIVE)]),
    ]  # fmt: skip


def derived_operations() -> tuple[Operation, ...]:
    """Return these rows."""
    return (*_arranged(), *_elementwise(), *_products(), *_reductions(), *_placed(), *_losses())
