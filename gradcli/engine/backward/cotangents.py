"""Cotangents brought to the shape and the element type of what they belong to, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine.dtypes import BY_NUMPY
from gradcli.engine.graph import Meta, Node
from gradcli.engine.ops.shape import sum_to
from gradcli.engine.tensor import Tensor


def fit(cotangent: Any, meta: Meta, node: Node | None, position: int) -> Any:
    """Return the cotangent summed to the shape, and cast to the type, of what it belongs to.

    Args:
        cotangent: a tensor, or an array in a pass that is not recorded.
        meta: shape and element type to fit.
        node: whose rule gave it; None for a cotangent given to backward.
        position: which of the rule's results it is.

    Raises:
        RuntimeError: no sum over broadcast axes gives that shape, or a user's rule gave a complex gradient of a real
            input.
    """
    shape, kind = meta
    array = cotangent._data if isinstance(cotangent, Tensor) else cotangent
    if array.shape != shape:
        if not _expandable(shape, array.shape):
            who = f"Function {node.name()} returned" if node is not None else "Backward was given"
            raise RuntimeError(
                f"{who} an invalid gradient at index {position} - got {list(array.shape)} but expected shape "
                f"compatible with {list(shape)}"
            )
        cotangent = sum_to(cotangent, shape)
    if array.dtype != kind:
        if array.dtype.kind == "c" and kind.kind != "c":
            if node is not None and not node._may_cast_to_real:
                raise RuntimeError(
                    f"Function {node.name()} returned an invalid gradient at index {position} - expected a real "
                    "gradient "
                    f"for a real input but got {BY_NUMPY[array.dtype]!r}; return its .real"
                )
            cotangent = cotangent.real
        cotangent = cotangent.to(BY_NUMPY[kind]) if isinstance(cotangent, Tensor) else cotangent.astype(kind)
    return cotangent


def fitted(node: Node, results: Sequence[Any]) -> tuple[Any, ...]:
    """Return what a rule gave, each in the shape and type of what it belongs to."""
    edges = node._edges
    if len(results) != len(edges):
        refuse_count(node, results)
    return tuple(
        [
            result if result is None or following is None else fit(result, following._outputs[output], node, position)
            for position, ((following, output), result) in enumerate(zip(edges, results, strict=True))
        ]
    )


def refuse_count(node: Node, results: Sequence[Any]) -> None:
    """Raise RuntimeError for a rule that gave another number of results than it has inputs."""
    raise RuntimeError(
        f"{node.name()} gave {len(results)} gradients for {len(node._edges)} inputs: a rule gives one, or None, for "
        "each"
    )


def _expandable(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    if len(shape) > len(larger):
        return False
    return all(size in (1, other) for size, other in zip(reversed(shape), reversed(larger), strict=False))
