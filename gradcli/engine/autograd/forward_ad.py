"""Forward mode: tangents carried along the recorded graph, through `Function.jvp` where a Function is passed.

A dual tensor is a tracked one whose tangent is known. The tangent of a result is found when it is asked for, by a walk
over the nodes between: an operation's rule g -> J^T g is linear, so differentiating <J^T g, t> by g gives J t. A custom
Function's own `jvp` is called instead, and must exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.autograd.levels import finish, settled
from gradcli.engine.backward.api import grad
from gradcli.engine.backward.cotangents import fit
from gradcli.engine.function import BackwardCFunction
from gradcli.engine.grad_mode import STATE, enable_grad
from gradcli.engine.graph import AccumulateGrad, Edge, Node
from gradcli.engine.ops.shape import alias
from gradcli.engine.tensor import Tensor, from_array

NO_LEVEL = "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
Tangents = dict[tuple[Node, int], Tensor | None]


class _Levels(threading.local):
    tangents: Tangents | None = None


_LEVELS = _Levels()


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, which is None where nothing was carried to it."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin forward mode, and return the number of its level.

    Raises:
        RuntimeError: it has begun: levels do not nest.
    """
    if _LEVELS.tangents is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _LEVELS.tangents = {}
    STATE.forward = True
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End forward mode, and forget all tangents.

    Raises:
        RuntimeError: it has not begun.
    """
    if _LEVELS.tangents is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created.")
    _LEVELS.tangents = None
    STATE.forward = False


class dual_level:  # noqa: N801  (the name programs use)
    """Forward mode as a context."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tracked tensor on the same memory, with a tangent.

    Args:
        tensor: the primal.
        tangent: a tensor of its shape and type.
        level: has no effect: there is one level.

    Raises:
        RuntimeError: forward mode has not begun, or shape or type differ.
        ValueError: the elements are integers.
    """
    del level
    if _LEVELS.tangents is None:
        raise RuntimeError(NO_LEVEL)
    require_fitting(tensor, tangent)
    with enable_grad():
        dual = alias(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    node, number = dual._edge()
    assert node is not None  # noqa: S101  (it has just been tracked)
    _LEVELS.tangents[node, number] = tangent
    finish([dual])
    return dual


def require_numbers(tensor: Tensor, what: str) -> None:
    """Raise ValueError for a primal or tangent of integers."""
    if tensor._data.dtype.kind not in "fc":
        raise ValueError(f"Expected {what} to be floating point or complex, but got: {tensor.dtype}")


def require_fitting(tensor: Tensor, tangent: Tensor) -> None:
    """Raise where a tangent cannot be one of this tensor.

    Raises:
        RuntimeError: the shapes differ.
        ValueError: the elements are integers.
    """
    require_numbers(tensor, "primal")
    require_numbers(tangent, "tangent")
    if tensor._data.shape != tangent._data.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor._data.shape)} while the given forward gradient is of size "
            f"{list(tangent._data.shape)}."
        )


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor's value and its tangent.

    Args:
        tensor: a dual tensor, a result computed from some, or any other tensor.
        level: has no effect: there is one level.

    Raises:
        NotImplementedError: a custom Function between has no `jvp`.
    """
    del level
    tangents = _LEVELS.tangents
    if tangents is None:
        return UnpackedDualTensor(tensor, None)
    if not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(settled(tensor, []), settled(carried(tensor, tangents), []))


def carried(tensor: Tensor, tangents: Tangents) -> Tensor | None:
    """Return the tangent of a tensor, and put those of the nodes before it in the table.

    Args:
        tensor: a result.
        tangents: the known ones.
    """
    node, number = tensor._edge()
    if node is None:
        return None
    _carry(node, tangents)
    return tangents.get((node, number))


def _carry(last: Node, tangents: Tangents) -> None:
    """Find the tangents of all nodes down to one, the earliest made first."""
    ahead: dict[Node, None] = {}
    stack = [last]
    while stack:
        node = stack.pop()
        if node in ahead or any((node, number) in tangents for number in range(len(node._outputs))):
            continue
        ahead[node] = None
        stack.extend(following for following, _ in node._edges if following is not None)
    for node in sorted(ahead, key=lambda entry: entry._number):
        given = [_of(edge, tangents) for edge in node._edges]
        count = len(node._outputs)
        known = isinstance(node, AccumulateGrad) or all(entry is None for entry in given)
        for number, result in enumerate([None] * count if known else _through(node, given)):
            tangents[node, number] = result


def _of(edge: Edge, tangents: Tangents) -> Tensor | None:
    node, number = edge
    return None if node is None else tangents.get((node, number))


def _through(node: Node, given: list[Tensor | None]) -> list[Tensor | None]:
    if isinstance(node, BackwardCFunction):
        return _through_function(node, given)
    with enable_grad():
        seeds = [from_array(np.zeros(*meta)).requires_grad_() for meta in node._outputs]
        results = node._run(list(seeds))
        pairs = [
            (fit(result, following._outputs[number], node, place), tangent)
            for place, ((following, number), result, tangent) in enumerate(
                zip(node._edges, results, given, strict=True)
            )
            if following is not None and result is not None and tangent is not None and result.requires_grad
        ]
    if not pairs:
        return [None] * len(seeds)
    found = grad(
        [result for result, _ in pairs],
        seeds,
        [tangent.to(result.dtype) for result, tangent in pairs],
        create_graph=STATE.enabled,
        allow_unused=True,
    )
    finish(seeds)
    return list(found)


def _or_zeros(tangent: Tensor | None, meta: Any, node: BackwardCFunction) -> Tensor | None:
    """Return zeros for an input without a tangent, unless it holds integers or the Function asked for None."""
    if tangent is not None or not node._materialize or meta[1].kind not in "fc":
        return tangent
    return from_array(np.zeros(*meta))


def _through_function(node: BackwardCFunction, given: list[Tensor | None]) -> list[Tensor | None]:
    rule: Callable[..., Any] = type(node)._forward_cls.jvp
    arguments = [
        None if slot is None else _or_zeros(given[slot], meta, node)
        for slot, meta in zip(node._argument_edges, node._argument_metas, strict=True)
    ]
    node._in_jvp = True
    try:
        returned = rule(node, *arguments)
    finally:
        node._in_jvp = False
    results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(results) != len(node._outputs):
        raise RuntimeError(
            f"{type(node)._forward_cls.__name__}.jvp returned {len(results)} tangents for {len(node._outputs)} outputs"
        )
    for number, (meta, tangent) in enumerate(zip(node._outputs, results, strict=True)):
        if tangent is not None and meta is not None and tangent._data.shape != meta[0]:
            raise RuntimeError(
                f"{type(node)._forward_cls.__name__}.jvp returned a tangent of shape {list(tangent._data.shape)} for "
                f"output {number} of shape {list(meta[0])}"
            )
    return results
