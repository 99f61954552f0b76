"""Gradients recorded as functions of what they do not change with, as those of PyTorch's operations are.

The second derivative of relu is 0. Still its gradient requires a gradient, so that a penalty on it is differentiable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import Node
from gradcli.engine.recording import attach, record, tracked
from gradcli.engine.tensor import Tensor, from_array


class ConstantBackward0(Node):
    """The cotangent for the gradient; for what it does not change with, zeros, or None without `zeros`."""

    zeros: bool

    def _vjp(self, g: Tensor) -> Any:
        nothing = [node if node is None else from_array(np.zeros(*node._outputs[n])) for node, n in self._edges[1:]]
        return g, *(nothing if self.zeros else [None] * len(nothing))


class PassedBackward0(Node):
    """The cotangent, recorded as a function of what was saved."""

    _on_arrays = True
    zeros: bool

    def _vjp(self, g: Any) -> Any:
        given = self._unpack()
        own = g.clone() if isinstance(g, Tensor) and STATE.enabled else g
        return constant_in(own, *given, zeros=self.zeros)


def constant_in(gradient: Any, *points: Any, zeros: bool = True) -> Any:
    """Return a gradient, in a recorded pass as a function of tensors that it does not change with.

    Args:
        gradient: a tensor that nothing else refers to; an array is returned as it is.
        points: the tensors; None counts for nothing.
        zeros: give them zeros in the second backward pass; otherwise they count as not used.
    """
    if not isinstance(gradient, Tensor) or not STATE.enabled:
        return gradient
    return record(ConstantBackward0, gradient._data, (gradient, *points), zeros=zeros)


def passed(input: Tensor, *points: Any, zeros: bool = True) -> Tensor:
    """Return a tensor whose gradient is recorded as a function of `points`; see `constant_in`."""
    if not tracked(input):
        return input
    result = from_array(input._data)
    result._counter = input._shared_counter()
    return attach(result, PassedBackward0, (input,), points, zeros=zeros)
