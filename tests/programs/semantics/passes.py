"""Programs on backward passes: what they free, fill and add up, the modes of recording, anomaly mode."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np

from tests.programs.semantics.table import case, caught, chain, leaf, plain


@case
def backward_twice(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = (x * x).sum()
    y.backward()
    again = caught(y.backward)
    z = (x + x).sum()
    z.backward()
    z.backward()
    w = (x * x).sum()
    w.backward(retain_graph=True)
    w.backward()
    return [again, plain(x.grad), caught(w.backward)]


@case
def saved_tensors_freed(t: Any) -> Any:
    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (_,) = ctx.saved_tensors
            return g * 2

    x = leaf(t, 1)
    y = Twice.apply(x)
    y.backward()
    return [caught(y.backward), caught(lambda: y.grad_fn.saved_tensors)]


@case
def grad_arguments(t: Any) -> Any:
    x, y, z = leaf(t, 1, 2), leaf(t, 3, 4), leaf(t, 5)
    out = x * y
    g = t.autograd.grad
    return [
        plain(g(out.sum(), [x, y], retain_graph=True)),
        caught(lambda: g(out.sum(), z)),
        plain(g(out.sum(), [x, z], allow_unused=True, retain_graph=True)),
        plain(g(out.sum(), [x, z], materialize_grads=True, retain_graph=True)),
        caught(lambda: g(out, x)),
        plain(g(out, x, t.ones(2, dtype=t.float64), retain_graph=True)),
        plain(g([out.sum(), (out * 2).sum()], x, retain_graph=True)),
        plain(g([out, out], x, [t.ones(2, dtype=t.float64)] * 2, retain_graph=True)),
        caught(lambda: g(out.sum(), t.ones(2))),
        caught(lambda: g(t.ones(()), x)),
        plain(g(out, x, t.eye(2, dtype=t.float64), is_grads_batched=True)),
        caught(lambda: g(out.sum(), [], retain_graph=True), words=False),
        x.grad is None,
    ]


@case
def grad_by_intermediate(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 3
    z = y * y
    seen = []
    y.register_hook(lambda g: seen.append(plain(g)))
    first = t.autograd.grad(z.sum(), y, retain_graph=True)
    second = t.autograd.grad(z.sum(), [y, x], retain_graph=True)
    x.register_hook(lambda g: g * 10)
    third = t.autograd.grad(z.sum(), x)
    return [plain(first), plain(second), plain(third), seen, x.grad is None]


@case
def backward_with_inputs(t: Any) -> Any:
    x, w = leaf(t, 1, 2), leaf(t, 3, 4)
    y = x * w
    y.sum().backward(inputs=[x], retain_graph=True)
    first = [plain(x.grad), w.grad is None]
    y.sum().backward(inputs=w)
    return [first, plain(w.grad), caught(lambda: (x * 1).sum().backward(inputs=[]))]


@case
def create_graph_in_backward(t: Any) -> Any:
    x = leaf(t, 2)
    (x**3).backward(create_graph=True)
    g = x.grad
    g.backward()
    return [plain(g), plain(x.grad), g.requires_grad]


@case
def accumulation(t: Any) -> Any:
    x = leaf(t, 1, 2)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    seed = t.ones(2, dtype=t.float64)
    y = leaf(t, 1, 2)
    (y + 0).backward(seed)
    seed.zero_()
    return [x.grad is first, plain(first), plain(y.grad)]


@case
def setting_grad(t: Any) -> Any:
    x = leaf(t, 1, 2)
    x.grad = t.ones(2, dtype=t.float64)
    (x * 2).sum().backward()
    first = plain(x.grad)
    x.grad = None
    return [
        first,
        caught(lambda: setattr(x, "grad", t.ones(3, dtype=t.float64)), words=False),
        caught(lambda: setattr(x, "grad", 3), words=False),
    ]


@case
def node_attributes(t: Any) -> Any:
    x = leaf(t, 4, 9)
    y = x**3
    z = x.exp()
    return [
        plain(y.grad_fn._saved_self),
        y.grad_fn._saved_exponent,
        plain(z.grad_fn._saved_result),
        y.grad_fn.requires_grad,
        isinstance(y.grad_fn, t.autograd.graph.Node),
        plain(y.grad_fn(t.ones(2, dtype=t.float64))),
        caught(lambda: y.grad_fn.nothing),
        list(y.grad_fn.metadata),
        isinstance(y.grad_fn._sequence_nr(), int),
        y.grad_fn._sequence_nr() < z.grad_fn._sequence_nr(),
    ]


@case
def anomaly_mode(t: Any) -> Any:
    x = leaf(t, -1.0, 4.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with t.autograd.detect_anomaly(check_nan=True):
            y = x.sqrt()
            frames = y.grad_fn.metadata["traceback_"]
            result = caught(lambda: (y * 0).sum().backward())
    last = frames[-1].strip().split("\n")[-1].strip()
    outside = x.sqrt().grad_fn.metadata
    return [
        result,
        last,
        [w.category.__name__ for w in seen if "traceback of forward" in str(w.message).lower()],
        dict(outside),
    ]


@case
def grad_modes(t: Any) -> Any:
    x = leaf(t, 1)
    out = []
    with t.no_grad():
        out.append((x * 2).requires_grad)
        with t.enable_grad():
            out.append((x * 2).requires_grad)
        out.append(t.is_grad_enabled())
    with t.set_grad_enabled(False):
        out.append((x * 2).requires_grad)
    t.set_grad_enabled(False)
    out.append(t.is_grad_enabled())
    t.set_grad_enabled(True)

    @t.no_grad()
    def quiet(v: Any) -> Any:
        return (v * 2).requires_grad

    @t.enable_grad()
    def loud(v: Any) -> Any:
        return (v * 2).requires_grad

    with t.no_grad():
        out.append(loud(x))
    out += [quiet(x), t.is_grad_enabled()]
    with t.inference_mode():
        out.append((x * 2).requires_grad)
    return out


@case
def flags(t: Any) -> Any:
    x = t.ones(2)
    x.requires_grad = True
    y = x * 2
    d = y.detach()
    return [
        x.is_leaf,
        y.is_leaf,
        d.is_leaf,
        d.requires_grad,
        caught(lambda: setattr(y, "requires_grad", False)),
        caught(lambda: y.requires_grad_(True).is_leaf),
        caught(lambda: t.ones(2).long().requires_grad_(), words=False),
        caught(lambda: y.detach_().requires_grad),
        y.is_leaf,
        caught(lambda: len(t.tensor(1.0))),
        caught(lambda: list(t.tensor(1.0))),
        caught(lambda: bool(t.ones(2))),
        caught(lambda: int(t.tensor(2.7))),
        caught(lambda: float(t.tensor(2.5))),
        caught(lambda: [1, 2, 3][t.tensor(1)]),
        caught(lambda: x.numpy()),
        caught(lambda: np.asarray(t.ones(2)).tolist()),
        caught(lambda: x.nothing),
        caught(lambda: 2.0 in t.tensor([1.0, 2.0])),
        caught(lambda: bool(t.tensor([]))),
    ]


@case
def memory_is_freed(t: Any) -> Any:
    x = leaf(t, 1, 2)
    gc.collect()
    gc.disable()
    try:
        y = (x * x).exp()
        z = y.sum()
        node = weakref.ref(y)
        z.backward()
        del y, z
        return node() is None
    finally:
        gc.enable()


@case
def functional_derivatives(t: Any) -> Any:
    f = t.autograd.functional
    x = t.tensor([0.5, 1.5], dtype=t.float64)
    y = t.tensor([2.0], dtype=t.float64)
    v = t.tensor([1.0, -2.0], dtype=t.float64)

    def vector(a: Any) -> Any:
        return t.stack([a.prod(), a.sin().sum(), a[0]])

    def scalar(a: Any) -> Any:
        return (a**3).prod() + a[0].exp()

    return plain(
        [
            f.jacobian(vector, x),
            f.jacobian(lambda a, b: a * b, (x, y)),
            f.hessian(scalar, x),
            f.hessian(lambda a, b: (a * b).sum() ** 2, (x, y)),
            f.vjp(vector, x, t.ones(3, dtype=t.float64)),
            f.jvp(vector, x, v),
            f.hvp(scalar, x, v),
            f.vhp(scalar, x, v),
            f.jacobian(lambda a: (a.sum(), a * 2), x),
            f.vjp(scalar, x),
        ]
    )


@case
def graph_chains(t: Any) -> Any:
    x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    w = t.ones(3, 3, dtype=t.float64, requires_grad=True)
    return [
        chain((x @ w).relu().sum().grad_fn),
        chain((x.t() @ x).mean().grad_fn),
        chain((1 / x).grad_fn),
        chain((2 - x).grad_fn),
        chain((x - 1).grad_fn),
        chain(x[0, 1:].grad_fn),
        chain(x[:, 0].exp().grad_fn),
        chain(t.stack([x, x]).sum(0).grad_fn),
        chain((x * x.detach()).grad_fn),
        chain(x.reshape(6).view(2, 3).unsqueeze(0).squeeze(0).grad_fn),
        chain(t.nn.functional.softmax(x, 1).log().grad_fn),
        chain((-x).abs().sqrt().grad_fn),
        chain(t.nn.functional.linear(x, w).grad_fn),
        chain(t.nn.functional.mse_loss(x, x.detach()).grad_fn),
        chain(x.max(1)[0].grad_fn),
        chain(x.flatten().dot(x.flatten()).grad_fn),
        chain(t.nn.functional.cross_entropy(x, t.tensor([0, 1])).grad_fn),
        chain(x.var().grad_fn),
        chain(x.norm().grad_fn),
        chain(x.clamp(0, 1).grad_fn),
        chain((x ** w[:1]).grad_fn),
    ]
