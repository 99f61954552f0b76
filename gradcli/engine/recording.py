"""How an operation's result enters the graph: nodes are made here, tensors saved, views and in-place writes tied in."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array
from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import NO_INPUT, AccumulateGrad, Node, OutputMeta, Saved, number_node
from gradcli.engine.printed import PRINTED_MODULE
from gradcli.engine.tensor import Counter, Tensor, from_array

_new = object.__new__
_meta = functools.partial(tuple.__new__, OutputMeta)


def changed_message(shape: tuple[int, ...], kind: np.dtype[Any], origin: str, now: int, then: int) -> str:
    """Return the text for a saved tensor that was changed in place."""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{PRINTED_MODULE}.{BY_NUMPY[kind].letter}Tensor {list(shape)}]{origin}, is at version {now}; "
        f"expected version {then} instead. Hint: enable anomaly detection to find the operation that failed to "
        f"compute its gradient, with {PRINTED_MODULE}.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def _operation(node: Node) -> str:
    """Return the name of a node without what says that it is a backward."""
    return re.sub(r"Backward\d*$", "", type(node).__name__)


class SavedInput(Saved):
    """A tensor that existed before the node: it is kept itself."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        counter = tensor._counter
        self.version = 0 if counter is None else counter.value

    def unpack(self, node: Node) -> Tensor:
        """Return the very tensor that was saved."""
        del node  # an input hangs where it did before
        tensor = self.tensor
        counter = tensor._counter
        if counter is not None and counter.value != self.version:
            owner = tensor._grad_fn
            origin = "" if owner is None else f", which is output {tensor._output_nr} of {_operation(owner)}"
            text = changed_message(tensor._data.shape, tensor._data.dtype, origin, counter.value, self.version)
            raise RuntimeError(text)
        return tensor


class SavedOutput(Saved):
    """A result of the node: its array is kept and wrapped anew, since keeping the tensor would close a cycle."""

    __slots__ = ("array", "counter", "number", "version")

    def __init__(self, tensor: Tensor, number: int = 0) -> None:
        self.array = tensor._data
        self.counter: Counter = tensor._shared_counter()
        self.version = self.counter.value
        self.number = number

    def unpack(self, node: Node) -> Tensor:
        """Return a tensor with the saved values that hangs on the node itself."""
        if self.counter.value != self.version:
            origin = f", which is output {self.number} of {_operation(node)}"
            text = changed_message(self.array.shape, self.array.dtype, origin, self.counter.value, self.version)
            raise RuntimeError(text)
        result = from_array(self.array)
        result._counter = self.counter
        result._grad_fn, result._output_nr = node, self.number
        if node._outer is not None and STATE.enabled:
            _hang_on_outer(result, node)
        return result


def _hang_on_outer(result: Tensor, node: Node) -> None:
    """Hang the saved result of a write to a view where it is in the graph: the view of what the whole has become."""
    outer = None if node._outer is None else node._outer()
    if outer is None or node._outer_view is None:
        return
    whole = from_array(np.empty(*outer._outputs[0]))
    whole._grad_fn = outer
    part = node._outer_view(whole)
    result._grad_fn, result._output_nr = part._grad_fn, part._output_nr


class SavedPacked(Saved):
    """What a pack hook made of a tensor, with the edge to put back when its unpack hook has made a tensor of it."""

    __slots__ = ("edge", "number", "packed", "unpack_hook")

    def __init__(
        self, tensor: Tensor, number: int | None, hooks: tuple[Callable[..., Any], Callable[..., Any]]
    ) -> None:
        self.edge = NO_INPUT if number is not None else tensor._edge()
        self.number = number
        with_grad, STATE.enabled = STATE.enabled, False
        try:
            self.packed = hooks[0](tensor.detach())
        finally:
            STATE.enabled = with_grad
        self.unpack_hook = hooks[1]

    def unpack(self, node: Node) -> Tensor:
        """Return what the unpack hook gives, hung where the saved tensor was."""
        given = self.unpack_hook(self.packed)
        if not isinstance(given, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(given)}"
            )
        result = given.detach()
        if self.number is not None:
            result._grad_fn, result._output_nr = node, self.number
            return result
        owner, number = self.edge
        if isinstance(owner, AccumulateGrad):
            result._requires_grad, result._accumulator = True, owner.variable._accumulator
        elif owner is not None:
            result._grad_fn, result._output_nr = owner, number
        return result


def save(value: Any, output_number: int | None = None) -> Any:
    """Return the entry that keeps a tensor for a node; anything else is kept as it is."""
    if not isinstance(value, Tensor):
        return value
    if STATE.saved_hooks:
        return SavedPacked(value, output_number, STATE.saved_hooks[-1])
    return SavedInput(value) if output_number is None else SavedOutput(value, output_number)


def edge_of(value: object) -> Any:
    """Return where a cotangent of this input goes; nowhere for anything but a tracked tensor."""
    return value._edge() if isinstance(value, Tensor) else NO_INPUT


def tracked(*values: object) -> bool:
    """Tell whether an operation on these values is to be recorded."""
    if not STATE.enabled:
        return False
    return any(isinstance(value, Tensor) and value.requires_grad for value in values)


def attach(
    result: Tensor,
    kind: type[Node],
    inputs: Sequence[object],
    saved: Sequence[Any] = (),
    keep: bool = False,
    **constants: Any,
) -> Tensor:
    """Hang a fresh tensor on a new node, whether or not an input is tracked.

    Args:
        result: the tensor that becomes output 0 of the node.
        kind: the node's class.
        inputs: one entry for each edge; numbers and None have none to follow.
        saved: tensors and constants for the rule; with `keep` the result follows them as the last one.
        keep: save the result too.
        constants: attributes for the rule.
    """
    return _attach(result, kind, inputs, saved, keep, constants)


def _attach(
    result: Tensor,
    kind: type[Node],
    inputs: Sequence[object],
    saved: Sequence[Any],
    keep: bool,
    constants: dict[str, Any],
) -> Tensor:
    node = kind()
    edges: list[Any] = []
    for value in inputs:
        if not isinstance(value, Tensor):
            edges.append(NO_INPUT)
        elif value._grad_fn is not None and value._base is None:
            edges.append((value._grad_fn, value._output_nr))
        else:
            edges.append(value._edge())
    node._edges = tuple(edges)
    node._outputs = (_meta((result._data.shape, result._data.dtype)),)
    for name, constant in constants.items():
        setattr(node, name, constant)
    number_node(node)
    if saved or keep:
        if STATE.saved_hooks:
            entries = [save(value) for value in saved]
        else:
            entries = [SavedInput(value) if isinstance(value, Tensor) else value for value in saved]
        if keep:
            entries.append(save(result, 0))
        node._entries = tuple(entries)
    result._grad_fn = node
    return result


def record(
    kind: type[Node],
    array: Any,
    inputs: Sequence[object],
    saved: Sequence[Any] = (),
    keep: bool = False,
    **constants: Any,
) -> Tensor:
    """Wrap the array an operation computed, recording the operation when an input is tracked; see `attach`."""
    result = _new(Tensor)
    result._data = array if type(array) is np.ndarray else np.asarray(array)
    if STATE.enabled:
        for value in inputs:
            if isinstance(value, Tensor) and (
                value._grad_fn is not None or value._requires_grad or (value._base is not None and value.requires_grad)
            ):
                return _attach(result, kind, inputs, saved, keep, constants)
    return result


def record_many(
    kind: type[Node], arrays: Sequence[Array], inputs: Sequence[object], saved: Sequence[Any] = (), **constants: Any
) -> tuple[Tensor, ...]:
    """As `record`, for an operation with several differentiable results (which are also saved, last, with `keep`)."""
    keep = bool(constants.pop("keep", False))
    results = tuple(from_array(array) for array in arrays)
    if not tracked(*inputs):
        return results
    attach(results[0], kind, inputs, saved, **constants)
    node = results[0]._grad_fn
    assert node is not None  # noqa: S101  (attach has just set it)
    node._outputs = tuple(OutputMeta(result._data.shape, result._data.dtype) for result in results)
    for number, result in enumerate(results):
        result._grad_fn, result._output_nr = node, number
    if keep:
        node._entries = (*(node._entries or ()), *(save(result, number) for number, result in enumerate(results)))
    return results


def record_view(
    kind: type[Node], array: Array, source: Tensor, replay: Callable[[Tensor], Tensor], **constants: Any
) -> Tensor:
    """As `record`, for a result that shares the memory of `source`.

    Args:
        replay: the same view as a function of a tensor, used again when the source is changed in place.
    """
    result = record(kind, array, (source,), **constants)
    base, outer = source._base, source._replay
    counter = source._counter
    if counter is None:
        counter = source._shared_counter()
    result._counter = counter
    result._replay_version = counter.value
    if not STATE.enabled:
        result._made_without_grad = True
    if base is None or outer is None:
        result._base, result._replay = source, replay
    else:
        result._base, result._replay = base, lambda root: replay(outer(root))
    return result
