"""A backward pass through the graph of one call, by the framework's own machinery."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Counters, Gradients, Layout
from gradcli.backends.call import Call, laid_out
from gradcli.backends.framework import Framework


def carries_gradient(framework: Framework, output: object) -> bool:
    """Whether an output of forward is a tensor that a gradient can be passed back from."""
    if not framework.is_tensor(output):
        return False
    tensor: Any = output
    return bool(tensor.requires_grad) and framework.is_differentiable(tensor)


def pulled_back(
    framework: Framework,
    counters: Counters,
    call: Call,
    cotangents: Sequence[tuple[int, NDArray[Any] | None]],
    *,
    retain: bool = False,
    layout: Layout = Layout.CONTIGUOUS,
) -> Gradients:
    """Gradients of the leaves of a call, in the order of their positions; to run as the user's code.

    Args:
        framework: whose tensors they are.
        counters: where the pass is booked, if there is anything to pass back.
        call: the call, whose graph is there still.
        cotangents: for the outputs of these numbers; None, and those for outputs without a gradient, are left out.
        retain: keep the graph for another pass.
        layout: how the cotangents lie in memory.
    """
    pairs = [
        (call.outputs[n], laid_out(framework, framework.like(call.outputs[n], np.asarray(c)), layout))
        for n, c in cotangents
        if c is not None and n < len(call.outputs) and carries_gradient(framework, call.outputs[n])
    ]
    leaves = list(call.leaves.values())
    if not pairs:
        return tuple(None for _ in leaves)
    counters.backward += 1
    gradients = framework.namespace.autograd.grad(
        [o for o, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True, retain_graph=retain
    )
    return tuple(None if g is None else framework.to_array(g) for g in gradients)
