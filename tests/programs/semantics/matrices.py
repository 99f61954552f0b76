"""Programs on factorisations: the older functions beside those of linalg, printed results, diagonals."""

from __future__ import annotations

from typing import Any

from tests.programs.semantics.table import case, caught, name, plain


def _matrix(t: Any) -> Any:
    return t.tensor([[4.0, 1.0], [1.0, 3.0], [0.0, 2.0]], dtype=t.float64, requires_grad=True)


def _rounded(values: Any) -> Any:
    return [_rounded(entry) for entry in values] if isinstance(values, list) else round(values, 6)


def _outer(t: Any, factors: Any, *, transposed: bool) -> Any:
    """Put factors together again, and return the gradient of a sum of squares of them, which signs do not change."""
    u, s, v = factors
    return _rounded(plain((u[..., : len(s)] * s) @ (v[..., : len(s)].mT if transposed else v[: len(s)])))


@case
def older_singular_values(t: Any) -> Any:
    a = _matrix(t)
    shapes = [
        [list(part.shape) for part in made]
        for made in (t.svd(a), a.svd(), t.svd(a.mT), t.svd(a, some=False), a.svd(False), t.linalg.svd(a))
    ]
    (right,) = t.autograd.grad(t.svd(a).V.abs().sum(), a)
    (left,) = t.autograd.grad(t.svd(a)[0].abs()[0].sum(), a)
    return [
        shapes,
        _outer(t, t.svd(a), transposed=True),
        _outer(t, t.linalg.svd(a, full_matrices=False), transposed=False),
        _rounded(plain(t.svd(a)[2].abs())),
        _rounded(plain(t.linalg.svd(a).Vh.abs())),
        _rounded(plain(right)),
        _rounded(plain(left)),
        plain(t.svd(a, compute_uv=False)[2]),
        str(t.svd(a.detach(), compute_uv=False)).split("tensor")[0],
    ]


@case
def older_products_of_triangles(t: Any) -> Any:
    a = _matrix(t)
    square = a.mT @ a
    return [
        [list(part.shape) for made in (t.qr(a), a.qr(some=False), t.linalg.qr(a)) for part in made],
        _rounded(plain(t.qr(a).Q @ t.qr(a).R)),
        _rounded(plain(t.cholesky(square, True))),
        _rounded(plain(square.cholesky(True))),
        caught(lambda: t.linalg.cholesky(square, True), words=False),
    ]


@case
def diagonals_of_matrices(t: Any) -> Any:
    a = t.arange(24.0).reshape(2, 3, 4)
    return [plain(t.diagonal(a)), plain(t.linalg.diagonal(a)), plain(t.linalg.diagonal(a, offset=1, dim1=0))]


@case
def printed_results(t: Any) -> Any:
    a = t.diag(t.tensor([4.0, 1.0]))
    made = [
        t.aminmax(a), a.aminmax(dim=0), t.linalg.eigh(a), t.linalg.slogdet(a), t.frexp(a),
        t.linalg.inv_ex(a), t.linalg.cholesky_ex(a), t.linalg.solve_ex(a, a),
    ]  # fmt: skip
    heads = [t.linalg.svd(a), t.linalg.qr(a), t.svd(a), t.qr(a), t.linalg.eig(a), t.linalg.lstsq(a, a)]
    words = [str(result).split("tensor")[0] for result in (*made, *heads)]
    return [words, plain(a.aminmax().max), plain(a.aminmax(dim=0).min), str(a.aminmax())]


@case
def traces(t: Any) -> Any:
    a = t.tensor([[4.0, 1.0, 2.0], [1.0, 3.0, 5.0]], dtype=t.float64, requires_grad=True)
    t.trace(a * a).backward(create_graph=True)
    assert a.grad is not None
    (second,) = t.autograd.grad(a.grad.sum(), a)
    return [name(t.trace(a)), plain(a.grad), plain(second), plain(t.trace(t.ones(2, 2).long()))]


@case
def triangular_systems_the_older_way(t: Any) -> Any:
    a = t.tensor([[4.0, 1.0], [2.0, 3.0]], dtype=t.float64, requires_grad=True)
    b = t.tensor([[1.0], [2.0]], dtype=t.float64, requires_grad=True)
    found = []
    whole = {"upper": False, "transpose": True, "unitriangular": True}
    for options in ({}, {"upper": False}, {"transpose": True}, whole):
        solution, _ = b.triangular_solve(a, **options)
        found.append([_rounded(plain(part)) for part in (solution, *t.autograd.grad(solution.sum(), [a, b]))])
    return [found, str(t.triangular_solve(b.detach(), a.detach())).split("tensor")[0]]


@case
def gradients_of_samples(t: Any) -> Any:
    x = t.tensor([[1.0, 2.0, 4.0, 7.0, 0.0], [3.0, 1.0, 1.0, 5.0, 2.0], [0.0, 1.0, 8.0, 2.0, 2.0]], requires_grad=True)
    at = t.tensor([0.0, 0.5, 2.0, 3.0, 7.0])
    calls = [
        lambda: t.gradient(x), lambda: t.gradient(x, dim=1), lambda: t.gradient(x, spacing=2.0),
        lambda: t.gradient(x, spacing=(0.5, 2)), lambda: t.gradient(x, dim=1, spacing=(at,)),
        lambda: t.gradient(x, dim=(1, 0), edge_order=2), lambda: t.gradient(x, dim=1, spacing=(at,), edge_order=2),
        lambda: t.gradient(x[:2, 0]), lambda: t.gradient(x[0, :3], edge_order=2), lambda: t.gradient(x[0].long()),
        lambda: t.gradient(t.tensor([1.0, float("inf"), 3.0, 4.0])),
        lambda: t.gradient(x[:1]), lambda: t.gradient(x[:, :2], edge_order=2), lambda: t.gradient(x, edge_order=3),
    ]  # fmt: skip
    found = [caught(lambda call=call: _finite(plain(call()))) for call in calls]
    total = sum((part * part).sum() for part in t.gradient(x, spacing=0.5))
    return [found, _rounded(plain(t.autograd.grad(total, x)[0])), name(t.gradient(x)[0])]


def _finite(values: Any) -> Any:
    """Return numbers as text, so that NaN equals itself."""
    return [_finite(entry) for entry in values] if isinstance(values, list) else f"{values:.4g}"


@case
def slices_merged_along_an_axis(t: Any) -> Any:
    found = []
    for reduce in ("mean", "prod", "amax", "amin"):
        for include in (True, False):
            x = t.tensor([[1.0, 2.0], [4.0, 7.5], [0.5, 3.0]], dtype=t.float64, requires_grad=True)
            y = t.tensor([[3.0, 1.5], [5.0, 2.5], [9.0, 8.0]], dtype=t.float64, requires_grad=True)
            merged = x.index_reduce(0, t.tensor([2, 0, 2]), y, reduce, include_self=include)
            grads = t.autograd.grad((merged * merged).sum(), [x, y])
            found.append([_rounded(plain(part)) for part in (merged, *grads)])
    z = t.zeros(2)
    z.index_reduce_(0, t.tensor([1]), t.ones(1), "amax")
    bad = [
        caught(lambda: z.index_reduce(0, t.tensor([0]), t.ones(1), "sum")),
        caught(lambda: z.index_reduce(0, t.tensor([0]), t.ones(1).double(), "mean")),
        caught(lambda: t.index_reduce(z, 0, t.tensor([5]), t.ones(1), "mean")),
    ]
    return [found, plain(z), bad]


@case
def histograms_with_their_bins(t: Any) -> Any:
    x = t.tensor([1.0, 2.0, 4.0, 7.0, 0.0])
    made = [
        t.histogram(x, 3), x.histogram(3, range=(0.0, 5.0), density=True),
        t.histogram(x, t.tensor([0.0, 2.0, 5.0]), weight=x), x.double().histogram(2),
    ]  # fmt: skip
    return [[_rounded(plain(list(result))) for result in made], str(made[0]), str(made[3].hist.dtype)]


@case
def pseudo_inverses_of_singular_matrices(t: Any) -> Any:
    a = t.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.1], [3.0, 6.0, 9.1]])
    made = [t.linalg.pinv(a), t.pinverse(a), t.linalg.pinv(a.double(), 0.1), t.linalg.pinv(a.double(), rtol=0.1)]
    return [[[round(value, 2) for value in row] for row in plain(each)] for each in made]


@case
def spreads_with_means(t: Any) -> Any:
    x = t.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 1.5]])
    made = [
        t.var_mean(x), t.var_mean(x, 0, True), t.var_mean(x, 0, False), t.std_mean(x, 1, False, True),
        t.var_mean(x, False), t.std_mean(x, unbiased=False), t.std_mean(x, 1, keepdim=True),
        t.var_mean(x, correction=0),
    ]  # fmt: skip
    angles = t.tensor([-1, 2]).angle()
    return [[[_rounded(plain(part)) for part in pair] for pair in made], str(angles.dtype), _rounded(plain(angles))]


@case
def what_nodes_list(t: Any) -> Any:
    x = t.tensor([1.0, 2.0], requires_grad=True)
    nodes = [(x * x).grad_fn, x.exp().grad_fn, (x**2).grad_fn, (x / x).grad_fn, x.relu().grad_fn, x.tanh().grad_fn]
    return [[entry for entry in dir(node) if entry.startswith(("_saved", "_raw_saved"))] for node in nodes]
