"""Functions of symmetric matrices: those that read one triangle, and those that read both or their mean.

`right` is the gradient shared as PyTorch shares it; `folded` moves all of it into the lower triangle, which is as good
where forward reads that triangle alone, and wrong where it reads both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.correct.draws import spd
from benchmarks.correct.specimen import Collection
from gradcli import engine

TRIANGLES = Collection("triangles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A function of a symmetric matrix: `body(ns, a)`, and `vjp(ns, g, a)` symmetric; `reads` one triangle or both."""

    name: str
    body: Callable[[Any, Any], Any]
    vjp: Callable[[Any, Any, Any], Any]
    reads: str


def _mean(a: Any) -> Any:
    return (a + a.t()) / 2


def _lower(ns: Any, a: Any) -> Any:
    """The matrix of the lower triangle and its mirror image."""
    return ns.tril(a) + ns.tril(a, -1).t()


def _eigenvalues_vjp(ns: Any, g: Any, a: Any) -> Any:
    vectors = ns.linalg.eigh(a)[1]
    return (vectors * g) @ vectors.t()


def _cholesky_vjp(ns: Any, g: Any, a: Any) -> Any:
    factor = ns.linalg.cholesky(a)
    inverse, middle = ns.linalg.inv(factor), ns.tril(factor.t() @ g)
    middle = middle - ns.diag(ns.diagonal(middle)) / 2
    return _mean(inverse.t() @ middle @ inverse)


READERS = (
    Reader(
        name="square of the symmetric part",
        body=lambda ns, a: _mean(a) @ _mean(a),
        vjp=lambda ns, g, a: _mean(g @ a + a @ g),
        reads="both",
    ),
    Reader(
        name="exponential of the symmetric part",
        body=lambda ns, a: ns.exp(_mean(a)),
        vjp=lambda ns, g, a: _mean(g * ns.exp(a)),
        reads="both",
    ),
    Reader(
        name="eigenvalues of the symmetric part",
        body=lambda ns, a: ns.linalg.eigvalsh(_mean(a)),
        vjp=_eigenvalues_vjp,
        reads="both",
    ),
    Reader(
        name="Cholesky factor of the symmetric part, as a Function",
        body=lambda ns, a: ns.linalg.cholesky(_mean(a)),
        vjp=_cholesky_vjp,
        reads="both",
    ),
    Reader(
        name="trace of a product with itself",
        body=lambda ns, a: (a @ a.t()).trace(),
        vjp=lambda ns, g, a: 2 * g * a,
        reads="both",
    ),
    Reader(name="inverse", body=lambda ns, a: ns.linalg.inv(a), vjp=lambda ns, g, a: _inverted(ns, g, a), reads="both"),
    Reader(name="Cholesky factor", body=lambda ns, a: ns.linalg.cholesky(a), vjp=_cholesky_vjp, reads="lower"),
    Reader(name="eigenvalues", body=lambda ns, a: ns.linalg.eigvalsh(a), vjp=_eigenvalues_vjp, reads="lower"),
    Reader(
        name="log determinant by its factor",
        body=lambda ns, a: 2 * ns.log(ns.diagonal(ns.linalg.cholesky(a))).sum(),
        vjp=lambda ns, g, a: g * ns.linalg.inv(a),
        reads="lower",
    ),
    Reader(
        name="square of the mirrored lower triangle",
        body=lambda ns, a: _lower(ns, a) @ _lower(ns, a),
        vjp=lambda ns, g, a: _mean(g @ a + a @ g),
        reads="lower",
    ),
)


def _inverted(ns: Any, g: Any, a: Any) -> Any:
    inverse = ns.linalg.inv(a)
    return -inverse.t() @ g @ inverse.t()


def right(_ns: Any, gradient: Any) -> Any:
    """The gradient as it is."""
    return gradient


def folded(ns: Any, gradient: Any) -> Any:
    """All of it in the lower triangle."""
    return ns.tril(gradient) + ns.triu(gradient, 1).t()


def doubled(ns: Any, gradient: Any) -> Any:
    """Twice the lower triangle, the diagonal as well: wrong in any convention."""
    return 2 * ns.tril(gradient)


def function(ns: Any, reader: Reader, share: Callable[[Any, Any], Any] = right, *, hidden: bool = False) -> Any:
    """A Function of PyTorch or of the engine whose backward shares the gradient in a way."""

    class Triangle(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            with ns.set_grad_enabled(ns.is_grad_enabled() and not hidden):
                return reader.body(ns, a)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (a,) = ctx.saved_tensors
            return share(ns, reader.vjp(ns, g, a))

    return Triangle


for reader in READERS:
    TRIANGLES.add(
        function(torch, reader),
        spd(3, 0.5, 3),
        name=f"{reader.name} of a symmetric matrix",
        reference=lambda a, reader=reader: reader.body(torch, (a + a.mT) / 2 if reader.reads == "lower" else a),
        order=1,
        limit=1,
    )
    TRIANGLES.add(
        function(engine, reader),
        lambda rng: spd(3, 0.5, 3)(rng).detach().numpy(),
        name=f"{reader.name} on the engine",
        reference=lambda a, reader=reader: reader.body(torch, (a + a.mT) / 2 if reader.reads == "lower" else a),
        order=1,
        limit=1,
    )
