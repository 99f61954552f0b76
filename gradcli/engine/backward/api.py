"""`backward` and `grad`: what is asked of a backward pass, checked, and handed to the walk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine.backward.walk import NOT_USED, Walk, first_cotangents
from gradcli.engine.grad_mode import STATE, set_grad_enabled
from gradcli.engine.graph import GradientEdge
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor, from_array


def _tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to `.grad` of every leaf it was computed from.

    Args:
        gradient: the cotangent to start with, in the shape of this tensor; 1 for a tensor of one element.
        retain_graph: keep what nodes have saved, for another pass; as `create_graph` unless given.
        create_graph: record the pass, so that gradients can be differentiated again.
        inputs: the only tensors to give gradients to.

    Raises:
        RuntimeError: nothing was recorded, the graph has been freed, or shapes do not fit.
    """
    run_backward((self,), gradient, retain_graph, create_graph, inputs=inputs)


def run_backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of the sum of several tensors to `.grad` of every leaf; see `Tensor.backward`."""
    outputs = _tuple(tensors)
    given = _given(grad_tensors if grad_variables is None else grad_variables, len(outputs))
    wanted = None if inputs is None else _tuple(inputs)
    if wanted is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    starts = first_cotangents(outputs, given)
    for tensor in wanted or ():
        if isinstance(tensor, Tensor):
            tensor.retain_grad()
    keep = create_graph if retain_graph is None else retain_graph
    walk = Walk(retain_graph=keep, create_graph=create_graph, inputs=wanted, accumulate=True)
    roots = [(output._edge(), start) for output, start in zip(outputs, starts, strict=True)]
    captured = walk.run(roots)
    for tensor, cotangent in zip(wanted or (), captured, strict=bool(wanted)):
        if cotangent is not None and isinstance(tensor, Tensor) and tensor.is_leaf:
            with set_grad_enabled(create_graph):
                tensor._accumulate(cotangent)


def _given(gradients: Any, count: int) -> tuple[Tensor | None, ...]:
    if gradients is None:
        return (None,) * count
    return _tuple(gradients)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,  # noqa: ARG001  (kept for old programs; it was always true)
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of the outputs' sum with respect to the inputs, leaving `.grad` alone.

    Args:
        outputs: a tensor, or several.
        inputs: the tensor, or tensors, to differentiate by.
        grad_outputs: the cotangents to start with; 1 for outputs of one element.
        retain_graph: keep what nodes have saved, for another pass; as `create_graph` unless given.
        create_graph: record the pass, so that the result can be differentiated again.
        only_inputs: has no effect.
        allow_unused: give None for inputs that the outputs do not depend on, instead of raising.
        is_grads_batched: the cotangents have a leading axis of separate passes.
        materialize_grads: give zeros for inputs that the outputs do not depend on.

    Raises:
        RuntimeError: an input was not used, nothing was recorded, or shapes do not fit.
    """
    results, wanted = _tuple(outputs), _tuple(inputs)
    given = _given(grad_outputs, len(results))
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    create_graph = create_graph or STATE.forward
    if is_grads_batched:
        return _batched(results, wanted, given, keep, create_graph, bool(allow_unused), materialize_grads)
    starts = first_cotangents(results, given)
    walk = Walk(retain_graph=keep, create_graph=create_graph, inputs=wanted)
    captured = walk.run([(output._edge(), start) for output, start in zip(results, starts, strict=True)])
    return _handed_out(captured, wanted, bool(allow_unused), materialize_grads)


def _handed_out(
    captured: Sequence[Tensor | None], wanted: Sequence[Tensor], allow_unused: bool, materialize: bool
) -> tuple[Any, ...]:
    if materialize:
        if any(isinstance(entry, GradientEdge) for entry in wanted):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        return tuple(
            from_array(tensor._data * 0) if cotangent is None else cotangent
            for cotangent, tensor in zip(captured, wanted, strict=True)
        )
    if not allow_unused:
        for place, cotangent in enumerate(captured):
            if cotangent is None:
                raise RuntimeError(NOT_USED.format(place))
    return tuple(captured)


def _batched(
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    given: Sequence[Tensor | None],
    retain: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize: bool,
) -> tuple[Any, ...]:
    """Return the gradients of one pass for each index of the cotangents' leading axis, stacked."""
    present = [entry for entry in given if entry is not None]
    if not present or any(not entry._data.ndim for entry in present):
        raise ValueError(
            "is_grads_batched: Got in_dim=0 for some input, but that input is a Tensor of dimensionality 0: give "
            "grad_outputs with a leading axis"
        )
    count = len(present[0])
    rows = [
        grad(
            outputs,
            inputs,
            [None if entry is None else entry[number] for entry in given],
            retain or number + 1 < count,
            create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        for number in range(count)
    ]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))
