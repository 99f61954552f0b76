"""Programs as users of custom Functions write them, beside those in `semantics.py`; importing this adds them there."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.semantics import case, caught, leaf, plain


@case
def numpy_where_recording_is_off(t: Any) -> Any:
    class Exp(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.result = np.exp(x.numpy()) * np.asarray(x) ** 0
            return t.from_numpy(ctx.result)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return t.from_numpy(g.numpy() * ctx.result)

    x = leaf(t, 0.5, -1.0)
    with t.no_grad():
        outside = x.numpy().tolist()
    return [outside, t.autograd.grad(Exp.apply(x).sum(), x), caught(x.numpy), caught(lambda: np.asarray(x).tolist())]


@case
def multi_grad_hooks_of_partial_passes(t: Any) -> Any:
    a, b, c = leaf(t, 1.0), leaf(t, 2.0), leaf(t, 3.0)
    log: list[Any] = []
    watch = t.autograd.graph.register_multi_grad_hook
    watch((a, b, c), lambda gradients: log.append(plain(gradients)))
    (a * b).sum().backward()
    (a * b * c).sum().backward(inputs=[a])
    (a * b * c).sum().backward()
    y = a * b
    z = y + c
    watch((y, z, a), lambda gradients: log.append(["y, z, a", plain(gradients)]))
    watch((y, z, a), lambda gradient: log.append(["any", plain(gradient)]), mode="any")
    z.sum().backward(retain_graph=True)
    y.sum().backward()
    return log
