"""Functions called with more than tensors: accuracies, pairs that are one number, buffers, few digits; and wrong ones.

Each is written once for PyTorch and for the engine, with a backward that is right and one that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.correct.specimen import Collection
from gradcli import engine

CALLS = Collection("calls")
Make = Callable[[np.random.Generator], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """`forward(ns, *given)`, and `right` and `wrong` of `(ns, g, *given)`, which give one gradient for each `given`.

    `given` makes the arguments: arrays that require a gradient, unless they are named among the `buffers`, and numbers.
    """

    name: str
    forward: Callable[..., Any]
    right: Callable[..., tuple[Any, ...]]
    wrong: Callable[..., tuple[Any, ...]]
    given: tuple[Make, ...]
    buffers: tuple[int, ...] = ()
    seeds: int = 2


def _normal(*shape: int) -> Make:
    return lambda rng: rng.standard_normal(shape)


def _number(value: float) -> Make:
    return lambda _: value


def _norm(ns: Any, x: Any, eps: float) -> Any:
    return ns.sqrt((x * x).sum() + eps)


def _root(ns: Any, x: Any, tol: float, max_iter: int) -> Any:
    """The root of y³ + y = x by Newton's method."""
    y = x * 0 + 1
    for _ in range(max_iter):
        step = (y * y * y + y - x) / (3 * y * y + 1)
        y = y - step
        if float(step.abs().max()) <= tol:
            break
    return y


def _root_slope(ns: Any, x: Any, tol: float, max_iter: int) -> Any:
    y = _root(ns, x, tol, max_iter)
    return 1 / (3 * y * y + 1)


def _product(ns: Any, a: Any, b: Any) -> Any:
    """Two complex numbers, each a vector of two."""
    return ns.stack([a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]])


def _conjugate(ns: Any, a: Any) -> Any:
    return ns.stack([a[0], -a[1]])


def _softmax(ns: Any, x: Any) -> Any:
    e = ns.exp(x - x.max())
    return e / e.sum()


def _centred(ns: Any, x: Any, running: Any) -> Any:
    with ns.no_grad():
        running.mul_(0.9).add_(0.1 * x.detach().mean(0))
    return x - x.mean(0)


def _short(ns: Any, x: Any) -> Any:
    """The same numbers in float32."""
    return x.detach().to(ns.float32)


def _softmax_gradient(ns: Any, g: Any, x: Any) -> tuple[Any, ...]:
    y = _softmax(ns, x)
    return (y * (g - (g * y).sum()),)


CALLED = (
    Called(
        name="norm with a small number",
        forward=_norm,
        right=lambda ns, g, x, eps: (g * x / _norm(ns, x, eps), None),
        wrong=lambda ns, g, x, eps: (1.001 * g * x / _norm(ns, x, eps), None),
        given=(_normal(4), _number(1e-6)),
    ),
    Called(
        name="root to a tolerance",
        forward=_root,
        right=lambda ns, g, x, *how: (g * _root_slope(ns, x, *how), None, None),
        wrong=lambda ns, g, x, *how: (1.01 * g * _root_slope(ns, x, *how), None, None),
        given=(_normal(3), _number(1e-14), _number(50)),
    ),
    Called(
        name="product of two complex numbers",
        forward=_product,
        right=lambda ns, g, a, b: (_product(ns, g, _conjugate(ns, b)), _product(ns, g, _conjugate(ns, a))),
        wrong=lambda ns, g, a, b: (_product(ns, g, b), _product(ns, g, a)),
        given=(_normal(2), _normal(2)),
    ),
    Called(
        name="softmax of one vector",
        forward=_softmax,
        right=_softmax_gradient,
        wrong=lambda ns, g, x: (_softmax(ns, x) * g,),
        given=(_normal(5),),
    ),
    Called(
        name="centred with a running mean",
        forward=_centred,
        right=lambda ns, g, x, running: (g - g.mean(0), None),
        wrong=lambda ns, g, x, running: (1 * g, None),
        given=(_normal(4, 3), _normal(3)),
        buffers=(1,),
    ),
    Called(
        name="mean of many squares in float32",
        forward=lambda ns, x: (_short(ns, x) ** 2).mean().to(ns.float64),
        right=lambda ns, g, x: (2 * g * x / x.numel(),),
        wrong=lambda ns, g, x: (g * x / x.numel(),),
        given=(_normal(10_000),),
        seeds=1,
    ),
    Called(
        name="exponential",
        forward=lambda ns, x: ns.exp(x),
        right=lambda ns, g, x: (g * ns.exp(x),),
        wrong=lambda ns, g, x: ((g * ns.exp(x)).to(ns.float32).to(ns.float64),),
        given=(_normal(6),),
    ),
)


def function(ns: Any, called: Called, *, spoilt: bool = False) -> Any:
    """The Function of PyTorch or of the engine."""
    pulled_back = called.wrong if spoilt else called.right

    class Call(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            ctx.save_for_backward(*(value for value in given if hasattr(value, "detach")))
            ctx.rest = [value for value in given if not hasattr(value, "detach")]
            return called.forward(ns, *given)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return pulled_back(ns, g, *ctx.saved_tensors, *ctx.rest)

    Call.__name__ = Call.__qualname__ = "".join(c for c in called.name.title() if c.isalnum())
    return Call


def arguments(ns: Any, called: Called, rng: np.random.Generator) -> tuple[Any, ...]:
    """What the Function is called with."""
    made = (make(rng) for make in called.given)
    return tuple(
        ns.tensor(value, requires_grad=k not in called.buffers) if isinstance(value, np.ndarray) else value
        for k, value in enumerate(made)
    )


def _draws(ns: Any, called: Called) -> tuple[Callable[[np.random.Generator], Any], ...]:
    return tuple(lambda rng, k=k: arguments(ns, called, rng)[k] for k in range(len(called.given)))


for called in CALLED:
    for ns in (torch, engine):
        CALLS.add(
            function(ns, called),
            *_draws(ns, called),
            name=f"{called.name}, {ns.__name__}",
            witnessed=False,
            seeds=called.seeds,
            unproved="its right backward is held against differences, and the wrong one beside it fails",
        )
