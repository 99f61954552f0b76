"""Rows of the catalogue: functions of matrices, parts written into copies, and rarer functions of numbers."""

from __future__ import annotations

from typing import Any

from gradcli.engine.catalogue.row import Domain, Operation, Sample, row

_APART, _POSITIVE, _PROBABILITY = Domain.APART, Domain.POSITIVE, Domain.PROBABILITY
_MATRIX: tuple[Any, ...] = ([(3, 3)], [(2, 2, 2)])


def _norms() -> list[Operation]:
    def by(order: Any) -> Any:
        return lambda t, x: t.linalg.matrix_norm(x, order)

    return [
        row("matrix_norm", by("fro"), *_MATRIX),
        *(row(f"matrix_norm_{order}", by(order), [(3, 2)], kinks="where equal") for order in ("nuc", 2, -2, 1, -1)),
        row("matrix_norm_inf", by(float("inf")), [(3, 2)], kinks="where equal"),
        row("linalg_norm", lambda t, x: t.linalg.norm(x, ord=3, dim=0, keepdim=True), [(3, 2)], domain=_APART),
        row("cond", lambda t, x: t.linalg.cond(x), [(3, 3)], domain=Domain.REGULAR),
        row("renorm", lambda t, x: t.renorm(x, 2, 0, 0.8), [(3, 2)], domain=_APART, kinks="at the limit"),
    ]


def _solutions() -> list[Operation]:
    def cholesky(t: Any, x: Any, y: Any) -> Any:
        return t.cholesky_solve(y, t.linalg.cholesky((x + x.mT) / 2))

    def triangular(t: Any, x: Any, y: Any) -> Any:
        lower = t.linalg.solve_triangular(x, y, upper=False)
        return lower, t.linalg.solve_triangular(x, y.mT, upper=True, left=False)

    right = Sample(shape=(3, 2))
    return [
        row("cholesky_solve", cholesky, [(3, 3), right], domain=Domain.DEFINITE),
        row("solve_triangular", triangular, [(3, 3), right], domain=Domain.REGULAR),
        row("eigvalsh", lambda t, x: t.linalg.eigvalsh((x + x.mT) / 2), [(3, 3)], domain=Domain.DEFINITE),
        row("matrix_exp", lambda t, x: t.linalg.matrix_exp(x), *_MATRIX, domain=Domain.UNIT),
        row("vander", lambda t, x: t.linalg.vander(x), [(3,)]),
        row("cov", lambda t, x: t.cov(x), [(2, 4)]),
        row("corrcoef", lambda t, x: t.corrcoef(x), [(2, 4)], domain=_APART),
        row("solve_right", lambda t, x, y: t.linalg.solve(x, y, left=False), [(2, 2), right], domain=Domain.REGULAR),
        row(
            "cholesky_upper",
            lambda t, x: t.linalg.cholesky((x + x.mT) / 2, upper=True),
            *_MATRIX[:1],
            domain=Domain.DEFINITE,
        ),
        row("eigvals", lambda t, x: t.view_as_real(t.linalg.eigvals(x)), *_MATRIX, domain=Domain.REGULAR),
        row(
            "eig",
            lambda t, x: t.linalg.eig(x).eigenvectors.abs() ** 2 * t.linalg.eig(x)[0].abs(),
            *_MATRIX,
            domain=Domain.REGULAR,
        ),
        row(
            "householder_product",
            lambda t, x, y: t.linalg.householder_product(x, y),
            [(4, 3), (2,)],
            [(2, 3, 2), (2, 2)],
            [(2, 2), (2,)],
        ),
        row(
            "tensorsolve",
            lambda t, x, y: (t.linalg.tensorsolve(x, y), t.linalg.tensorsolve(x, y, (0,))),
            [(2, 3, 2, 3), (2, 3)],
        ),
        row("tensorinv", lambda t, x: t.linalg.tensorinv(x, 1), [(4, 2, 2)]),
        row(
            "solve_ex",
            lambda t, x, y: (t.linalg.solve_ex(x, y)[0], t.linalg.inv_ex(x)[0]),
            [(2, 2), (2,)],
            domain=Domain.REGULAR,
        ),
        row("triangular_solve", lambda t, x, y: t.triangular_solve(y, x)[0], [(3, 3), right], domain=Domain.REGULAR),
        row("gradient", lambda t, x: (*t.gradient(x), *t.gradient(x, dim=1, edge_order=2, spacing=0.5)), [(2, 4)]),
        row("inner", lambda t, x, y: t.inner(x, y), [(2, 3), (2, 3)], [(3,), (3,)]),
    ]


def _scatters() -> list[Operation]:
    def reduced(reduce: str) -> Any:
        def run(t: Any, x: Any, y: Any) -> Any:
            index = t.tensor([[0, 1, 2], [0, 0, 2]])
            return x.scatter_reduce(0, index, y, reduce), x.scatter_reduce(1, index, y, reduce, include_self=False)

        return run

    def merged(reduce: str) -> Any:
        return lambda t, x, y: x.index_reduce(0, t.tensor([0, 2, 2, 1]), y, reduce)

    shapes = [(3, 3), (2, 3)]
    return [
        *(row(f"scatter_reduce_{name}", reduced(name), shapes, domain=_APART, kinks="where equal")
          for name in ("sum", "mean", "prod", "amax", "amin")),
        *(row(f"index_reduce_{name}", merged(name), [(3, 2), (4, 2)], domain=_APART, kinks="where equal")
          for name in ("mean", "prod", "amax")),
        row("select_scatter", lambda t, x, y: t.select_scatter(x, y, 0, 1), [(2, 3), (3,)]),
        row("slice_scatter", lambda t, x, y: t.slice_scatter(x, y, 0, 0, 4, 2), [(4, 2), (2, 2)]),
        row("diagonal_scatter", lambda t, x, y: t.diagonal_scatter(x, y), [(3, 3), (3,)]),
        row("fill_diagonal", lambda _, x: (x * 2).fill_diagonal_(3.0), [(3, 3)]),
        row("sum_to_size", lambda _, x: x.sum_to_size(1, 3), [(2, 2, 3)]),
    ]  # fmt: skip


def _numbers() -> list[Operation]:
    return [
        row("frexp", lambda t, x: t.frexp(x).mantissa, [()], [(2, 3)], domain=_APART, kinks="at powers of two"),
        row("erfinv", lambda t, x: t.erfinv(x), [()], [(2, 3)], domain=_PROBABILITY),
        row("i0", lambda t, x: t.i0(x), [()], [(2, 3)], domain=_APART),
        row("i1", lambda t, x: t.special.i1(x), [(2, 3)], domain=_APART),
        row("i0e", lambda t, x: t.special.i0e(x), [(2, 3)], domain=_APART, kinks="at 0"),
        row("i1e", lambda t, x: t.special.i1e(x), [(2, 3)], domain=_APART, kinks="at 0"),
        row("ndtr", lambda t, x: t.special.ndtr(x), [(2, 3)], domain=_APART),
        row("log_ndtr", lambda t, x: t.special.log_ndtr(x), [(2, 3)], domain=_APART),
        row("mvlgamma", lambda t, x: t.mvlgamma(x + 1, 3), [(2, 3)], domain=_POSITIVE),
        row("ndtri", lambda t, x: t.special.ndtri(x), [(2, 3)], domain=_PROBABILITY),
        row("entr", lambda t, x: t.special.entr(x), [(2, 3)], domain=_POSITIVE),
        row("xlog1py", lambda t, x, y: t.special.xlog1py(x, y), [(2, 3), (3,)], domain=_POSITIVE),
        row("copysign", lambda t, x, y: t.copysign(x, y), [(2, 3), (3,)], domain=_APART, kinks="at 0"),
        row("cumulative_trapezoid", lambda t, x: t.cumulative_trapezoid(x), [(2, 3)]),
        row("div_rounded", lambda t, x, y: t.div(x, y, rounding_mode="floor") + x, [(2, 3), (3,)], domain=_POSITIVE),
        row("median_of_all", lambda _, x: x.median(), [(3,)], [(2, 3)], domain=_APART, kinks="where equal"),
        row("nanmedian_of_all", lambda _, x: x.nanmedian(), [(3,)], [(2, 3)], domain=_APART, kinks="where equal"),
        row("transpose_", lambda _, x: (x * 2).t_().unsqueeze_(0).mul_(3), [(2, 3)]),
    ]


def matrix_operations() -> tuple[Operation, ...]:
    """Return these rows."""
    return (*_norms(), *_solutions(), *_scatters(), *_numbers())
