"""In-place operations: the value is written to shared memory, the history goes to the tensor or to its base."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array
from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import Node, number_node, operation_name
from gradcli.engine.recording import SavedOutput, record, tracked
from gradcli.engine.refusals import (
    BASE_WRITTEN,
    LEAF_VIEW_WRITTEN,
    LEAF_WRITTEN,
    UNTRACKED_VIEW_WRITTEN,
    VIEW_WRITTEN,
)
from gradcli.engine.tensor import Tensor, from_array

CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def in_place(target: Tensor, operation: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Give `target` the value `operation(target, *args)`, in its own memory, and return it.

    Raises:
        RuntimeError: the target is a leaf that requires a gradient, or cannot hold the result.
    """
    if not tracked(target, *args, *kwargs.values()):
        write(target, operation(target, *args, **kwargs)._data)
        return target
    check_may_change(target)
    before = _before(target)
    result = operation(before, *args, **kwargs)
    write(target, result._data)
    if result._grad_fn is None:
        result = record(FlatBackward, result._data, (before,))
    if result._grad_fn is not None:
        _save_in_place(result._grad_fn, result._data, target)
        rebase(target, result._grad_fn, result._output_nr)
    return target


class FlatBackward(Node):
    """Of a comparison written over its argument: 0."""

    def _vjp(self, g: Tensor) -> Any:
        return from_array(np.zeros_like(g._data))


def reshaped_in_place(target: Tensor, view: Callable[..., Tensor], *args: Any) -> Tensor:
    """Make the target its own view: another shape of the same memory, after which its values have not changed.

    Raises:
        RuntimeError: the target is a leaf that requires a gradient.
    """
    if tracked(target):
        check_may_change(target)
    before = from_array(target._data)
    before._grad_fn, before._output_nr = target.grad_fn, target._output_nr
    result = view(before, *args)
    base, outer = target._base, target._replay
    target._data = result._data
    bump(target)
    if result._grad_fn is not None:
        result._grad_fn.__class__ = type(result._grad_fn)._in_place or type(result._grad_fn)
        rebased = target._retains_grad and target._grad_fn is not None
        target._grad_fn, target._output_nr = result._grad_fn, result._output_nr
        if rebased:
            target._retains_grad = False
            target.retain_grad()
    if base is not None and outer is not None:
        target._replay = lambda root: view(outer(root), *args)
        target._replay_version = target._shared_counter().value
    else:
        _note_relaid(target, before._data.shape, view, args)
    return target


def _note_relaid(target: Tensor, shape: tuple[int, ...], view: Callable[..., Tensor], args: tuple[Any, ...]) -> None:
    """Keep how the target gets its first shape back, for views that were taken before, and its present one."""
    same = target._data.ndim == len(shape)  # two axes were exchanged, else axes of length 1 came or went
    old = target._relaid

    def back(root: Tensor) -> Tensor:
        before = view(root, *args) if same else root.reshape(shape)
        return before if old is None else old[0](before)

    def there(root: Tensor) -> Tensor:
        return view(root if old is None else old[1](root), *args)

    target._relaid = back, there


def _save_in_place(node: Node, values: Array, target: Tensor) -> None:
    """Let a rule that needs the result look at the target's memory, and so notice when that changes again."""
    for entry in node._entries or ():
        if isinstance(entry, SavedOutput) and entry.array is values and values.dtype == target._data.dtype:
            entry.array, entry.counter = target._data, target._shared_counter()
            entry.version = entry.counter.value


def overwritten(target: Tensor, other: Any, ufunc: np.ufunc) -> bool:
    """Apply a function of NumPy in the target's own memory, where `in_place` would do the same; tell whether it was."""
    memory = target._data
    if not isinstance(other, Tensor) or other._data.dtype != memory.dtype or memory.dtype.kind not in "fc":
        return False
    if other._data.shape != memory.shape or not memory.flags.writeable or tracked(target, other):
        return False
    with np.errstate(all="ignore"):
        ufunc(memory, other._data, out=memory)
    bump(target)
    return True


def _before(target: Tensor) -> Tensor:
    """Return the target as it is now: what the node may save, since its own memory is about to change."""
    old = from_array(target._data.copy())
    old._grad_fn, old._output_nr = target.grad_fn, target._output_nr
    return old


def check_may_change(target: Tensor) -> None:
    """Raise RuntimeError when a recorded in-place operation on this tensor has no meaning."""
    if not STATE.enabled:
        return
    if target._why_not_written is not None and target._grad_fn is not None:
        name = operation_name(target._grad_fn)
        raise RuntimeError(VIEW_WRITTEN.format(target._output_nr, name, target._why_not_written))
    if target._base is not None:
        if target._created_without_grad:
            raise RuntimeError(UNTRACKED_VIEW_WRITTEN)
        if target._requires_grad and target.grad_fn is None:
            raise RuntimeError(LEAF_VIEW_WRITTEN)
        if target._base.is_leaf and target._base.requires_grad:
            raise RuntimeError(LEAF_VIEW_WRITTEN)
    elif target._requires_grad and target._grad_fn is None:
        raise RuntimeError(LEAF_WRITTEN)


def write(target: Tensor, values: Array) -> None:
    """Copy values into the target's memory and count the write.

    Raises:
        RuntimeError: the values have another shape, a higher category of type, or the memory is shared by elements.
    """
    memory = target._data
    if values.shape != memory.shape and np.broadcast_shapes(values.shape, memory.shape) != memory.shape:
        raise RuntimeError(
            f"output with shape {list(memory.shape)} doesn't match the broadcast shape {list(values.shape)}"
        )
    require_castable(values, memory)
    memory = writeable(target)
    memory[...] = values
    bump(target)


def require_castable(values: Array, memory: Array) -> None:
    """Raise RuntimeError for values of a higher category of type than the memory that they are to be written to."""
    if CATEGORY[values.dtype.kind] > CATEGORY[memory.dtype.kind]:
        raise RuntimeError(
            f"result type {BY_NUMPY[values.dtype].letter} can't be cast to the desired output type "
            f"{BY_NUMPY[memory.dtype].letter}"
        )


def writeable(target: Tensor, *, once: bool = True) -> Array:
    """Return the target's memory for writing.

    A part of an expanded tensor that shows every element once can be written to, although NumPy keeps all parts of a
    broadcast array read-only: it is then laid over its owner's memory anew.

    Args:
        target: the tensor to write to.
        once: refuse a tensor that shows an element more than once; filling with one number may write to it.

    Raises:
        RuntimeError: the tensor shows an element more than once, or its memory is read-only.
    """
    memory = target._data
    if memory.flags.writeable:
        return memory
    if once and any(step == 0 and size > 1 for step, size in zip(memory.strides, memory.shape, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    owner = memory
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not owner.flags.writeable or not owner.flags.c_contiguous:
        raise RuntimeError("the memory of this tensor is read-only. Please clone() the tensor before writing to it.")
    here, start = (int(array.__array_interface__["data"][0]) for array in (memory, owner))
    flat = owner.reshape(-1)
    target._data = np.ndarray(memory.shape, memory.dtype, flat, here - start, memory.strides)
    return target._data


def bump(target: Tensor) -> None:
    """Count one write to the target's memory."""
    target._shared_counter().value += 1


def rebase(target: Tensor, node: Node, number: int) -> None:
    """Make the changed tensor a result of `node`: through its base when it is a view."""
    if target._base is not None:
        _copy_slices(target, node)
        return
    kept = target._retains_grad and target._grad_fn is not None and target._grad_fn._retained is not None
    if kept:
        target._grad_fn._retained.pop(target._output_nr, None)  # type: ignore[union-attr]  # kept says it is there
        node._retain(number, target)
    target._backward_hooks = None
    target._grad_fn, target._output_nr = node, number


def watch_base(output: Tensor, returned: Tensor, why: str) -> None:
    """Make the output of a custom Function a view of the memory that it returned.

    Such a view cannot be taken again: using it after its base was changed in place raises RuntimeError.
    """
    node, number = output._grad_fn, output._output_nr
    assert node is not None  # noqa: S101  (the output is recorded)
    message = BASE_WRITTEN.format(number, operation_name(node), why)

    def refuse(_: Tensor) -> Tensor:
        raise RuntimeError(message)

    output._why_not_written = why
    output._base, output._replay = returned if returned._base is None else returned._base, refuse
    output._replay_version = output._shared_counter().value


class CopySlices(Node):
    """A view of a tensor was changed by another operation: that operation's rule applies to the viewed part only."""

    _is_users = True
    _operation = "torch::autograd::CopySlices"
    inner: Node
    replay: Callable[[Tensor], Tensor]

    def name(self) -> str:
        """Return the name under which the graph's printers know it."""
        return self._operation

    def _vjp(self, g: Tensor) -> Any:
        whole = g.contiguous()
        inner = self.inner._run([self.replay(whole)])
        return (slice_scatter(whole, self.replay, inner[0]), *inner[1:])

    def _release(self) -> None:
        self.inner._release()


class SliceScatterBackward0(Node):
    """The part goes back to where it came from, the rest to the whole."""

    replay: Callable[[Tensor], Tensor]

    def _vjp(self, g: Tensor) -> Any:
        whole = g.contiguous()
        return slice_scatter(whole, self.replay, None), self.replay(whole)


def slice_scatter(whole: Tensor, replay: Callable[[Tensor], Tensor], part: Tensor | None) -> Tensor:
    """Return a copy of `whole` in which the viewed region holds `part` (zeros for None)."""
    values = np.array(whole._data, order="C")
    enabled, STATE.enabled = STATE.enabled, False
    try:
        writeable(replay(from_array(values)))[...] = 0 if part is None else part._data
    finally:
        STATE.enabled = enabled
    return record(SliceScatterBackward0, values, (whole, part), replay=replay)


def _copy_slices(view: Tensor, inner: Node) -> None:
    base, replay = view._base, view._as_part()
    assert base is not None  # noqa: S101  (rebase has just looked)
    node = CopySlices()
    node._edges = (base._edge(), *inner._edges[1:])
    node._outputs = ((base._data.shape, base._data.dtype),)
    node.inner, node.replay = inner, replay
    inner._outer, inner._outer_view = weakref.ref(node), replay
    number_node(node)
    view._backward_hooks = None
    rebase(base, node, 0)
    view._replay_version = -1
