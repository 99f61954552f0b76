"""Custom operations: `Function`, its `ctx`, and how a call of `apply` becomes a node."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import FREED, Edge, Node, Saved, number_node
from gradcli.engine.in_place import bump, check_may_change, rebase, watch_base
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.recording import edge_of, save, tracked
from gradcli.engine.refusals import FROM_A_FUNCTION, ONE_OF_SEVERAL
from gradcli.engine.tensor import Tensor, from_array

LEGACY = (
    "Legacy autograd function with non-static forward method is deprecated. Please use "
    "new-style autograd function with "
    "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
)
NO_FORWARD = "You must implement the forward function for custom autograd.Function."
NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
    "mode AD."
)
NO_JVP = "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
NO_SETUP = "setup_context is not implemented."
NOT_RETURNED = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
    "inplace must all be outputs of the Function."
)
NO_TRANSFORM = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
)
DIRTY_LEAF = "a leaf Variable that requires grad has been used in an in-place operation."


class FunctionCtx:
    """What `forward` and `setup_context` tell the engine, and what `backward` reads. Free attributes are kept."""

    _to_save: tuple[Any, ...] | None = None
    _dirty: tuple[Tensor, ...] = ()
    _not_differentiable: tuple[Tensor, ...] = ()
    _materialize: bool = True
    _in_jvp: bool = False
    saved_for_forward: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward; the last call counts. Anything else is kept as an attribute of ctx instead."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs forward has changed in place; each must be returned."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._not_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """With False, backward gets None instead of zeros for outputs that were not used."""
        self._materialize = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom Function, and at the same time its ctx."""

    _forward_cls: ClassVar[type[Function]]
    _may_cast_to_real = False
    _is_users = True
    _argument_edges: tuple[int | None, ...] = ()
    _argument_metas: tuple[Any, ...] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`, always as a tuple.

        Raises:
            RuntimeError: the graph has been freed, or one of them was changed in place.
        """
        entries = self.saved_for_forward if self._in_jvp and self.saved_for_forward else self._entries
        if entries is None:
            raise RuntimeError(FREED)
        return tuple([entry._unpacked(self) if isinstance(entry, Saved) else entry for entry in entries])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The same as `saved_tensors`, under its older name."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def to_save(self) -> tuple[Any, ...] | None:
        """What forward has handed to `save_for_backward` while it is running."""
        return self._to_save

    def apply(self, *cotangents: Any) -> Any:
        """Call the user's `backward` (or `vjp`) with these cotangents, and return just what it returns.

        Raises:
            NotImplementedError: the Function has neither.
        """
        owner = type(self)._forward_cls
        backward, vjp = owner.backward, owner.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        rule = vjp if vjp is not Function.vjp else backward
        return rule(self, *cotangents)

    def _run(self, cotangents: list[Any]) -> tuple[Any, ...]:
        if self._materialize:
            cotangents = [
                from_array(np.zeros(*meta)) if cotangent is None and meta is not None else cotangent
                for cotangent, meta in zip(cotangents, self._outputs, strict=True)
            ]
        returned = self.apply(*cotangents)
        results = returned if isinstance(returned, tuple) else (returned,)
        slots = self._argument_edges
        if len(results) > len(slots) and all(extra is None for extra in results[len(slots) :]):
            results = results[: len(slots)]
        name = type(self).__name__
        if len(results) != len(slots):
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {len(slots)}, got {len(results)})"
            )
        by_edge: list[Any] = [None] * len(self._edges)
        for position, (slot, result) in enumerate(zip(slots, results, strict=True)):
            if result is None:
                continue
            if slot is None:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {position + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
            if not isinstance(result, Tensor):
                raise RuntimeError(f"expected Variable or None (got {_kind(result)})")
            by_edge[slot] = result
        return tuple(by_edge)

    def __repr__(self) -> str:
        return f"<{PRINTED_MODULE}.autograd.function.{type(self).__name__} object at {id(self):#x}>"


def _kind(value: Any) -> str:
    """Return a class's name as PyTorch's messages write it: with its module, unless it is built in."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


class FunctionMeta(type):
    """Makes, with every Function, the class of its nodes: `Scale` gets `ScaleBackward`."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})


class Function(metaclass=FunctionMeta):
    """A custom operation: subclass it, give `forward` and `backward`, and call it through `apply`."""

    _backward_cls: ClassVar[type[BackwardCFunction]]
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so "
            "you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse the call of an instance, which is how Functions were written before `apply`."""
        del args, kwargs
        raise RuntimeError(LEGACY)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: `forward(ctx, *args)`, or `forward(*args)` beside a `setup_context`."""
        raise NotImplementedError(NO_FORWARD)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep on `ctx` what backward needs, when `forward` does not take a ctx."""
        raise NotImplementedError(NO_SETUP)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return a gradient, or None, for every argument of `forward`."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """The same as `backward`, under its other name."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent of every output from the tangents of the inputs."""
        raise NotImplementedError(NO_JVP)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` with recording off, and record the call as one node.

        Args:
            args: what forward takes; tensors among them are tracked, those inside lists or dicts are not.
            kwargs: further arguments by name, tracked in the same way, after the positional ones.

        Returns:
            What forward returns; its tensors are results of the new node.
        """
        ctx = cls._backward_cls()
        with_context = cls.setup_context is Function.setup_context
        if with_context and STATE.transforms:
            raise RuntimeError(NO_TRANSFORM)
        inputs = _positional(cls.forward, args, kwargs, with_context)
        ctx.needs_input_grad = tuple([isinstance(value, Tensor) and value.requires_grad for value in inputs])
        recorded = tracked(*inputs)
        if recorded:
            _link(ctx, inputs)
        enabled, STATE.enabled = STATE.enabled, False
        try:
            if with_context:
                output = cls.forward(ctx, *inputs)
            else:
                output = cls.forward(*inputs)
                cls.setup_context(ctx, inputs, output)
        finally:
            STATE.enabled = enabled
        return _wrap(ctx, inputs, output, recorded)


class InplaceFunction(Function):
    """A Function that may write to its inputs, from the time before `ctx.mark_dirty`; `inplace` is for old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _positional(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], with_context: bool
) -> tuple[Any, ...]:
    """Return all arguments by position: named ones in their places, and beside a `setup_context` the defaults too.

    Raises:
        TypeError: a name is unknown, or an argument before a named one is missing.
    """
    if not kwargs and with_context:
        return args
    signature = inspect.signature(forward)
    if not with_context:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args
    places = [name for name, entry in signature.parameters.items() if entry.kind <= entry.POSITIONAL_OR_KEYWORD][1:]
    values = list(args)
    named = dict(kwargs)
    unknown = [name for name in named if name not in places]
    if unknown:
        raise TypeError(f"forward() got an unexpected keyword argument '{unknown[0]}'")
    for place, name in enumerate(places):
        if not named:
            break
        if place < len(args):
            if name in named:
                raise TypeError(f"forward() got multiple values for argument '{name}'")
        elif name in named:
            values.append(named.pop(name))
        else:
            raise TypeError(f"forward() missing required argument: '{name}' (position {place})")
    return tuple(values)


def _link(ctx: BackwardCFunction, inputs: tuple[Any, ...]) -> None:
    number_node(ctx)
    slots: list[int | None] = []
    edges: list[Edge] = []
    for value in inputs:
        if isinstance(value, Tensor):
            slots.append(len(edges))
            edges.append(edge_of(value))
        else:
            slots.append(None)
    ctx._edges = tuple(edges)
    ctx._argument_edges = tuple(slots)
    ctx._argument_metas = tuple([_meta(value) for value in inputs])


def _wrap(ctx: BackwardCFunction, inputs: tuple[Any, ...], output: Any, recorded: bool) -> Any:
    """Make the node the grad_fn of the tensors that forward returned, and save what it asked to have saved."""
    several = isinstance(output, tuple)
    raw = list(output) if several else [output]
    list(map(bump, ctx._dirty))
    for dirty in ctx._dirty:
        if not any(value is dirty for value in raw):
            raise RuntimeError(NOT_RETURNED)
        if recorded and dirty._requires_grad and dirty._grad_fn is None:
            raise RuntimeError(DIRTY_LEAF)
        check_may_change(dirty)
    wrapped = [_output(ctx, value, number, inputs, recorded) for number, value in enumerate(raw)]
    for before, after in zip(raw, wrapped, strict=True):
        if after is not before and isinstance(after, Tensor) and after._grad_fn is ctx:
            watch_base(after, before, ONE_OF_SEVERAL if several and len(raw) > 1 else FROM_A_FUNCTION)
    ctx._outputs = tuple([_meta(value) for value in wrapped])
    if recorded:
        ctx._entries = tuple(
            [_saved_entry(position, value, raw, wrapped) for position, value in enumerate(ctx._to_save or ())]
        )
        kept = [_returned(value, raw, wrapped) for value in ctx.saved_for_forward]
        ctx.saved_for_forward = tuple([save(v, number, hooked=False) for v, number in kept])
    ctx._to_save = None
    ctx._dirty = ctx._not_differentiable = ()
    return tuple(wrapped) if several else wrapped[0]


def _meta(value: Any) -> Any:
    """Return what a cotangent of an output must fit; None for what is not a tensor."""
    return (value._data.shape, value._data.dtype) if isinstance(value, Tensor) else None


def _output(ctx: BackwardCFunction, value: Any, number: int, inputs: tuple[Any, ...], recorded: bool) -> Any:
    if not isinstance(value, Tensor):
        return value
    if any(value is dirty for dirty in ctx._dirty):
        if recorded:
            rebase(value, ctx, number)
        return value
    is_input = any(value is given for given in inputs)
    differentiable = value._data.dtype.kind in "fc" and not any(value is entry for entry in ctx._not_differentiable)
    if is_input or value._base is not None:
        value = value.detach()
    if recorded and differentiable:
        value._grad_fn, value._output_nr, value._requires_grad = ctx, number, False
    elif value.requires_grad:
        value = value.detach()
    return value


def _saved_entry(position: int, value: Any, raw: list[Any], wrapped: list[Any]) -> Any:
    if value is None:
        return None
    if not isinstance(value, Tensor):
        raise TypeError(
            f"save_for_backward can only save variables, but argument {position} is of type {type(value).__name__}"
        )
    return save(*_returned(value, raw, wrapped))


def _returned(value: Any, raw: list[Any], wrapped: list[Any]) -> tuple[Any, int | None]:
    """The tensor returned in place of this one, with its number if it hangs on the node."""
    for number, (before, after) in enumerate(zip(raw, wrapped, strict=True)):
        if value is before and value is not None:
            return after, number if after._grad_fn is not None and after._output_nr == number else None
    return value, None
