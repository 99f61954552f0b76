"""Levels of differentiation: the points at which functions are differentiated, and results that leave the graph.

A level's own point is a leaf, or a view of the tensor of the level outside of it, so that levels nest; and a result
that depends on nothing but the level's own point leaves the graph.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import AccumulateGrad
from gradcli.engine.ops.shape import alias
from gradcli.engine.tensor import Tensor
from gradcli.engine.utils.trees import leaves, mapped

# The leaves that levels have made for points, by identity, once their level has its result.
_DONE: WeakValueDictionary[int, Tensor] = WeakValueDictionary()


def tensors(value: Any) -> list[Tensor]:
    """Return the tensors in nested containers."""
    return [entry for entry in leaves(value) if isinstance(entry, Tensor)]


def point(value: Any) -> Tensor:
    """Return a tracked tensor with the values of this one, on which a level is built.

    Raises:
        ValueError: it is not a tensor.
        RuntimeError: it holds integers.
    """
    if not isinstance(value, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    return alias(value) if value.requires_grad else value.detach().requires_grad_()


def finish(points: list[Tensor]) -> None:
    """Note that nobody will differentiate by these leaves any more."""
    for own in points:
        if own.is_leaf:
            _DONE[id(own)] = own


def settled(value: Any, points: list[Tensor]) -> Any:
    """Detach the tensors that depend on no leaf but points of this level, and of levels within that are done.

    Where nothing is recorded, all are detached: a level is, whatever the mode, but its results are not.
    """
    finish(points)
    return mapped(_settle, value)


def _settle(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if not STATE.enabled:
        return value.detach()
    ahead, seen = [value._edge()[0]], set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad) and _DONE.get(id(node.variable)) is not node.variable:
            return value
        ahead += [following for following, _ in node._edges]
    return value.detach()
