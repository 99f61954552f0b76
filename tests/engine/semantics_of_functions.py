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
