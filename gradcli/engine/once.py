"""Rules that are differentiated once: what asks for a second derivative of them raises."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import Node, number_node
from gradcli.engine.recording import tracked
from gradcli.engine.tensor import Tensor

TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class _DelayedError(Node):
    """The node at which a second derivative would go on: it raises."""

    message: str

    def _run(self, cotangents: list[Any]) -> tuple[Any, ...]:
        del cotangents
        raise RuntimeError(self.message)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that is not itself differentiable: a second derivative raises instead of being wrong."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *cotangents: Any) -> Any:
        enabled, STATE.enabled = STATE.enabled, False
        try:
            returned = backward(ctx, *cotangents)
        finally:
            STATE.enabled = enabled
        if not tracked(*cotangents):
            return returned
        several = isinstance(returned, tuple)
        results = [
            entry.detach() if isinstance(entry, Tensor) else entry for entry in (returned if several else (returned,))
        ]
        node = _DelayedError()
        node.message = TWICE
        # Leaves of its own: who asks for nothing but inputs and cotangents gets None, as from PyTorch.
        node._edges = tuple([e.detach().requires_grad_()._edge() for e in results if isinstance(e, Tensor)])
        node._outputs = tuple((entry._data.shape, entry._data.dtype) for entry in results if isinstance(entry, Tensor))
        number_node(node)
        number = 0
        for entry in results:
            if isinstance(entry, Tensor):
                entry._grad_fn, entry._output_nr = node, number
                number += 1
        return tuple(results) if several else results[0]

    return wrapper
