"""The graph of a computation: nodes, the edges between them, and the hooks that a node carries.

A node knows how to turn the cotangents of its outputs into cotangents of its inputs, where those go (its edges), and
nothing else: no tensor is part of the graph except those that a rule has saved.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import traceback
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array, dtype
from gradcli.engine.grad_mode import STATE
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.utils.hooks import RemovableHandle, add_hook

if TYPE_CHECKING:
    from gradcli.engine.tensor import Tensor

Hooks = OrderedDict[int, Callable[..., Any]]
sequence = itertools.count()
_ENGINE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_FIRST = 2**64 - 1
Edge = tuple["Node | None", int]
Meta = tuple[tuple[int, ...], np.dtype[Any]]  # the shape and element type of an output: what its cotangent must fit
NO_INPUT: tuple[None, int] = (None, 0)
FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class OutputMeta(NamedTuple):
    """Shape and element type of one output of a node, as code that reads the graph sees them."""

    shape: tuple[int, ...]
    dtype: dtype


class Saved:
    """A tensor kept by a node for its rule (abstract, but no ABC: it is asked for by isinstance in every rule).

    A tensor that nobody has written to stands for itself, which spares an object for each operation.
    """

    __slots__ = ()

    def _unpacked(self, node: Node) -> Tensor:
        """Return the tensor, with the graph it had when it was saved.

        Raises:
            RuntimeError: it has been changed in place since.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it is unpacked for {node!r}")

    def _unpacked_array(self, node: Node) -> Array:
        """Return the values alone; raises as `_unpacked` does."""
        return self._unpacked(node)._data


def changed_message(shape: tuple[int, ...], kind: np.dtype[Any], origin: str, now: int, then: int) -> str:
    """Return the text for a saved tensor that was changed in place."""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{PRINTED_MODULE}.{BY_NUMPY[kind].letter}Tensor {list(shape)}]{origin + ',' if origin else ''} is at version "
        f"{now}; "
        f"expected version {then} instead. Hint: enable anomaly detection to find the operation that failed to "
        f"compute its gradient, with {PRINTED_MODULE}.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def operation_name(node: Node) -> str:
    """Return the name of a node without what says that it is a backward."""
    return type(node)._operation or re.sub(r"Backward\d*$", "", type(node).__name__)


class Ordered(list[Any]):
    """What a node keeps where hooks see the tensors: they are packed and unpacked in `order`, as in PyTorch."""

    def __init__(self, values: Iterable[Any], order: Sequence[int], pack: Callable[[Any], Any]) -> None:
        super().__init__(values)
        self._order = order
        for place in order:
            self[place] = pack(self[place])

    def unpacked(self, node: Node) -> list[Any]:
        """Return the tensors and constants, each tensor unpacked in its turn."""
        found = list(self)
        for place in self._order:
            if isinstance(found[place], Saved):
                found[place] = found[place]._unpacked(node)
        return found

    def unpacked_like(self, node: Node, g: Any) -> list[Any]:
        """The same for a tensor `g`, as arrays of its type (masks as they are) for an array."""
        found = self.unpacked(node)
        if isinstance(g, Saved):
            return found
        arrays = [value._data if isinstance(self[n], Saved) else value for n, value in enumerate(found)]
        floats = [isinstance(self[n], Saved) and array.dtype.kind != "b" for n, array in enumerate(arrays)]
        return [a.astype(g.dtype, copy=False) if cast else a for a, cast in zip(arrays, floats, strict=True)]


class Node:
    """One recorded operation. Subclasses give the rule `_vjp`, and are named as the operation is.

    A rule of one output that is written with operators and the functions of `ops.generic` says `_on_arrays`: a pass
    that is not recorded then runs it on bare arrays. A rule of the user's says `_is_users`: it sees only tensors.

    Instances of custom Functions are the `ctx` of their user, so every name of this class is private or public API.
    """

    _operation: ClassVar[str] = ""
    _saved_names: ClassVar[tuple[str, ...]] = ()
    _constant_names: ClassVar[tuple[str, ...]] = ()
    _may_cast_to_real: ClassVar[bool] = True
    _is_users: ClassVar[bool] = False
    _in_place: ClassVar[type[Node] | None] = None  # the class of a node by which a tensor became its own view
    _on_arrays: ClassVar[bool] = False
    _edges: tuple[Edge, ...] = ()
    _entries: Sequence[Saved | Any] | None = ()
    _outputs: tuple[Meta, ...] = ()
    _number: int = -1
    _metadata: dict[str, Any] | None = None
    _post_hooks: Hooks | None = None
    _pre_hooks: Hooks | None = None
    _tensor_hooks: dict[int, Hooks] | None = None
    _watched: bool = False
    _retained: dict[int, weakref.ref[Tensor]] | None = None
    _outer: weakref.ref[Node] | None = None
    _outer_view: Callable[[Tensor], Tensor] | None = None
    _kept: ClassVar[type[Any]]  # given by `recording`, which knows how tensors are kept

    requires_grad = True

    # --- what a rule uses
    def _vjp(self, *cotangents: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no backward rule")

    def _needs(self, position: int) -> bool:
        return self._edges[position][0] is not None

    def _unpack(self) -> tuple[Any, ...]:
        entries = self._entries
        if entries is None:
            raise RuntimeError(FREED)
        if type(entries) is Ordered:
            return tuple(entries.unpacked(self))
        return tuple([entry._unpacked(self) if isinstance(entry, Saved) else entry for entry in entries])

    def _unpack_like(self, g: Any) -> list[Any]:
        """Return what was saved as tensors for a tensor `g`, as arrays of its type (masks as they are) for an array."""
        entries = self._entries
        if entries is None:
            raise RuntimeError(FREED)
        if type(entries) is Ordered:
            return entries.unpacked_like(self, g)
        if isinstance(g, Saved):
            return [entry._unpacked(self) if isinstance(entry, Saved) else entry for entry in entries]
        kind, found = g.dtype, []
        for entry in entries:
            value = entry
            if isinstance(entry, Saved):
                value = entry._unpacked_array(self)
                if value.dtype is not kind and value.dtype.kind != "b":
                    value = value.astype(kind)
            found.append(value)
        return found

    # --- what the backward pass uses
    def _run(self, cotangents: list[Any]) -> tuple[Any, ...]:
        if len(cotangents) == 1:
            if cotangents[0] is None:
                return (None,) * len(self._edges)
            result = self._vjp(cotangents[0])
        else:
            if all(entry is None for entry in cotangents):
                return (None,) * len(self._edges)
            result = self._vjp(*cotangents)
        return result if type(result) is tuple else (result,)

    def _release(self) -> None:
        if self._entries:
            self._entries = None

    # --- public API
    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The nodes that this node's results go to, each with the number of the output it belongs to."""
        return self._edges

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for whoever watches the graph; anomaly mode puts `traceback_` there."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    @property
    def _input_metadata(self) -> tuple[OutputMeta, ...]:
        return tuple(OutputMeta(shape, BY_NUMPY[kind]) for shape, kind in self._outputs)

    def name(self) -> str:
        """Return the name of the operation's backward."""
        return type(self).__name__

    def _sequence_nr(self) -> int:
        return self._number

    def _set_sequence_nr(self, number: int) -> None:
        self._number = number

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the node has run; a tuple it returns replaces grad_inputs."""
        if self._post_hooks is None:
            self._post_hooks, self._watched = OrderedDict(), True
        return add_hook(self._post_hooks, hook)

    _register_hook = register_hook

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the node runs; a tuple it returns replaces grad_outputs."""
        if self._pre_hooks is None:
            self._pre_hooks, self._watched = OrderedDict(), True
        return add_hook(self._pre_hooks, hook)

    def _register_hook_dict(self, tensor: Tensor) -> None:
        if tensor._backward_hooks is not None:
            self._hooks_of_output(tensor._output_nr, tensor._backward_hooks)

    def _hooks_of_output(self, number: int, hooks: Hooks) -> None:
        if self._tensor_hooks is None:
            self._tensor_hooks, self._watched = {}, True
        self._tensor_hooks[number] = hooks

    def _retain(self, number: int, tensor: Tensor) -> None:
        """Leave the cotangent of an output in the `grad` of its tensor, as long as that lives."""
        self._retained = {**(self._retained or {}), number: weakref.ref(tensor)}
        self._watched = True

    def __call__(self, *cotangents: Any) -> Any:
        """Run the rule on these cotangents: one result for one input, else a tuple."""
        result = self._run(list(cotangents))
        return result[0] if len(result) == 1 else result

    def __getattr__(self, name: str) -> Any:
        raw = name.startswith("_raw_saved_")
        if raw or name.startswith("_saved_"):
            key = name[len("_raw_saved_" if raw else "_saved_") :]
            if key in type(self)._saved_names:
                if raw:
                    return self._kept(self, type(self)._saved_names.index(key))
                return self._unpack()[type(self)._saved_names.index(key)]
            if key in type(self)._constant_names:
                return self.__dict__[key]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __dir__(self) -> list[str]:
        kept = [f"{start}{name}" for start in ("_saved_", "_raw_saved_") for name in type(self)._saved_names]
        constant = [f"_saved_{name}" for name in type(self)._constant_names]
        return sorted({*super().__dir__(), *kept, *constant} - {"_saved_names"})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class GradientEdge(tuple[Any, ...]):
    """Where a cotangent goes: a node, and which of its outputs.

    Args:
        node: the node.
        output_nr: the number of the output.
    """

    __slots__ = ()

    def __new__(cls, node: Node, output_nr: int) -> GradientEdge:
        """Return the edge."""
        return super().__new__(cls, (node, output_nr))

    @property
    def node(self) -> Any:
        """The node."""
        return self[0]

    @property
    def output_nr(self) -> Any:
        """The number of the output."""
        return self[1]

    def _edge(self) -> Edge:
        return self[0], self[1]


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to the `grad` of its leaf."""

    variable: Tensor

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self._number = _FIRST
        self._outputs = ((variable._data.shape, variable._data.dtype),)

    def name(self) -> str:
        """Return the name under which the graph's printers know leaves."""
        return "torch::autograd::AccumulateGrad"

    def _run(self, cotangents: list[Any]) -> tuple[Any, ...]:
        if cotangents[0] is not None:
            self.variable._accumulate(cotangents[0])
        return ()


class Undifferentiable(Node):
    """An operation without a derivative: a backward pass that reaches it raises."""

    _operation = "NotImplemented"
    what: str

    def name(self) -> str:
        """Return the name under which the graph's printers know it."""
        return "torch::autograd::NotImplemented"

    def _vjp(self, *_: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{self.what} is not implemented")


Undifferentiable.__name__ = "NotImplemented"


def number_node(node: Node) -> None:
    """Give a new node its place in the order of creation, and its stack in anomaly mode."""
    node._number = next(sequence)
    if STATE.anomaly:
        note_stack(node)


def note_stack(node: Node) -> None:
    """Keep the stack of the call that made a node, for anomaly mode."""
    node.metadata["traceback_"] = user_stack()


def user_stack() -> list[str]:
    """Return the formatted stack down to the line outside the engine that is being run."""
    frames = traceback.extract_stack()
    while frames and _is_of_engine(frames[-1].filename):
        frames.pop()
    return traceback.format_list(frames)


@functools.cache
def _is_of_engine(filename: str) -> bool:
    return os.path.abspath(filename).startswith(_ENGINE_FOLDER)
