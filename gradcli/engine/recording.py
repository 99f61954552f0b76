"""How an operation's result enters the graph: nodes are made here, tensors saved, views and in-place writes tied in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import (
    NO_INPUT,
    AccumulateGrad,
    Edge,
    Node,
    Ordered,
    Saved,
    changed_message,
    note_stack,
    operation_name,
    sequence,
)
from gradcli.engine.refusals import FREED_BEFORE_HOOKS, ONE_OF_SEVERAL
from gradcli.engine.tensor import Counter, Tensor, from_array

_new = object.__new__
WRITTEN_BY_HOOK = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)


class SavedInput(Saved):
    """A tensor that existed before the node, and whose memory had been written to: it is kept itself."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor, version: int) -> None:
        self.tensor = tensor
        self.version = version

    def _unpacked(self, node: Node) -> Tensor:
        """Return the very tensor that was saved."""
        del node  # an input hangs where it did before
        self.tensor._require_version(self.version)
        return self.tensor


class SavedOutput(Saved):
    """A result of the node: its array is kept and wrapped anew, since keeping the tensor would close a cycle."""

    __slots__ = ("array", "counter", "number", "version")

    def __init__(self, tensor: Tensor, number: int = 0) -> None:
        self.array = tensor._data
        self.counter: Counter = tensor._shared_counter()
        self.version = self.counter.value
        self.number = number

    def _unpacked_array(self, node: Node) -> Array:
        """Return the saved values."""
        if self.counter.value != self.version:
            origin = f", which is output {self.number} of {operation_name(node)}"
            text = changed_message(self.array.shape, self.array.dtype, origin, self.counter.value, self.version)
            raise RuntimeError(text)
        return self.array

    def _unpacked(self, node: Node) -> Tensor:
        """Return a tensor with the saved values that hangs on the node itself."""
        result = from_array(self._unpacked_array(node))
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
        self,
        tensor: Tensor,
        number: int | None,
        hooks: tuple[Callable[..., Any], Callable[..., Any]],
        itself: bool = True,
    ) -> None:
        self.edge = NO_INPUT if number is not None else tensor._edge()
        self.number = number
        before = tensor._version
        shown = tensor if itself and number is None else tensor.detach()
        if itself and number is not None:
            shown._grad_fn, shown._output_nr = tensor._grad_fn, tensor._output_nr
        with_grad, STATE.enabled = STATE.enabled, False
        try:
            self.packed = hooks[0](shown)
        finally:
            STATE.enabled = with_grad
            if shown is not tensor:  # a result that the hook kept would close a cycle through its node
                shown._grad_fn, shown._output_nr = None, 0
        if tensor._version != before:
            raise RuntimeError(WRITTEN_BY_HOOK)
        self.unpack_hook = hooks[1]

    def _unpacked(self, node: Node) -> Tensor:
        """Return what the unpack hook gives, hung where the saved tensor was."""
        given = self.unpack_hook(self.packed)
        if not isinstance(given, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(given).__name__}"
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


class SavedTensor:
    """What a node keeps of one tensor, as those see it who name it `_raw_saved_...`.

    Args:
        node: the node.
        position: which of the things it keeps.
    """

    __slots__ = ("_node", "_position")

    def __init__(self, node: Node, position: int) -> None:
        self._node = node
        self._position = position

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Keep what `pack_hook` makes of the tensor instead, and give the rule what `unpack_hook` makes of that.

        Raises:
            RuntimeError: the graph has been freed, nothing or no tensor is kept, hooks were set before, or the hook
                changes the tensor in place.
        """
        entries = self._node._entries
        entry = None if entries is None else entries[self._position]
        if entries is None:
            raise RuntimeError(FREED_BEFORE_HOOKS)
        if isinstance(entry, SavedPacked):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        if not isinstance(entry, Saved):
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        tensor = entry._unpacked(self._node)
        own = tensor._output_nr if tensor._grad_fn is self._node else None
        packed = SavedPacked(tensor, own, (pack_hook, unpack_hook), itself=False)
        self._node._entries = [packed if place == self._position else kept for place, kept in enumerate(entries)]


Node._kept = SavedTensor


def save(value: Any, output_number: int | None = None, *, hooked: bool = True) -> Any:
    """Return the entry that keeps a tensor for a node; anything else is kept as it is."""
    if not isinstance(value, Tensor):
        return value
    if STATE.saved_hooks and hooked:
        return SavedPacked(value, output_number, STATE.saved_hooks[-1])
    if output_number is not None:
        return SavedOutput(value, output_number)
    counter = value._counter
    return value if counter is None or counter.value == 0 else SavedInput(value, counter.value)


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
    return _attach(result, kind, [edge_of(value) for value in inputs], saved, keep, constants)


def _attach(
    result: Tensor,
    kind: type[Node],
    edges: list[Any],
    saved: Sequence[Any],
    keep: bool,
    constants: dict[str, Any],
) -> Tensor:
    """Hang a fresh tensor on a new node: the one place where the nodes of operations are made."""
    node = kind()
    node._edges = tuple(edges)
    array = result._data
    node._outputs = ((array.shape, array.dtype),)
    if constants:
        vars(node).update(constants)
    node._number = next(sequence)
    if STATE.anomaly:
        note_stack(node)
    if saved or keep:
        if STATE.saved_hooks:
            result._grad_fn = node
            node._entries = _passed_to_hooks(kind, saved, result if keep else None)
            return result
        entries = [save(value) if isinstance(value, Tensor) else value for value in saved]
        if keep:
            entries.append(save(result, 0))
        node._entries = entries
    result._grad_fn = node
    return result


def _passed_to_hooks(kind: type[Node], saved: Sequence[Any], result: Tensor | None) -> Ordered:
    """What a node keeps, packed as PyTorch does it: inputs in the order of their names, the result after them."""
    names = kind._saved_names
    order = sorted(range(len(saved)), key=lambda place: (names[place : place + 1], place))
    if result is None:
        return Ordered(saved, order, save)
    pack = [*saved, result]
    return Ordered(pack, [*order, len(saved)], lambda value: save(value, 0 if value is result else None))


def record(
    kind: type[Node],
    array: Any,
    inputs: Sequence[object],
    saved: Sequence[Any] = (),
    keep: bool = False,
    crossed: bool = False,
    **constants: Any,
) -> Tensor:
    """Wrap the array an operation computed, recording the operation when an input is tracked; see `attach`.

    Args:
        kind: the node's class.
        array: the result.
        inputs: one entry for each edge; numbers and None have none to follow.
        saved: tensors and constants for the rule; with `keep` the result follows them as the last one.
        keep: save the result too.
        crossed: of the last two inputs, which are factors, save each where the other needs it for its gradient.
        constants: attributes for the rule.
    """
    result = _new(Tensor)
    result._data = array if type(array) is np.ndarray else np.asarray(array)
    if not STATE.enabled:
        return result
    edges: list[Any] = []
    followed = False
    for value in inputs:
        edge: Edge = NO_INPUT
        if isinstance(value, Tensor):
            node = value._grad_fn
            if value._requires_grad or value._base is not None:
                edge = value._edge()
            elif node is not None:
                edge = (node, value._output_nr)
        edges.append(edge)
        followed = followed or edge is not NO_INPUT
    if not followed:
        return result
    if crossed:
        first, second = inputs[-2:]
        saved = (None if edges[-1] is NO_INPUT else first, None if edges[-2] is NO_INPUT else second)
    return _attach(result, kind, edges, saved, keep, constants)


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
    node._outputs = tuple((result._data.shape, result._data.dtype) for result in results)
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
    return _seen(record(kind, array, (source,), **constants), source, replay)


def record_views(
    kind: type[Node],
    arrays: Sequence[Array],
    source: Tensor,
    replays: Sequence[Callable[[Tensor], Tensor]],
    **constants: Any,
) -> tuple[Tensor, ...]:
    """As `record_view`, for views that one call returns: one node with several outputs, and no recorded writes."""
    results = record_many(kind, arrays, (source,), **constants) if arrays else ()
    for result, replay in zip(results, replays, strict=True):
        _seen(result, source, replay)
        if result._grad_fn is not None:
            result._why_not_written = ONE_OF_SEVERAL
    return results


def _seen(result: Tensor, source: Tensor, replay: Callable[[Tensor], Tensor]) -> Tensor:
    """Make a result that shares the memory of `source` its view."""
    # A view that is itself a leaf stands at the beginning of its recorded views: what it is a view of is not tracked.
    base, outer = (None, None) if source._requires_grad and STATE.enabled else (source._base, source._replay)
    counter = source._counter
    if counter is None:
        counter = source._shared_counter()
    result._counter = counter
    result._replay_version = counter.value
    if not STATE.enabled:
        result._created_without_grad = True
    if source._why_not_written is not None:
        result._why_not_written = source._why_not_written
    if base is None or outer is None:
        result._base, result._replay = source, replay
        if source._relaid is not None:
            there = source._relaid[1]
            result._replay = lambda root: replay(there(root))
    else:
        result._base, result._replay = base, lambda root: replay(outer(root))
    return result
