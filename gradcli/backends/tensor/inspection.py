"""Reading the graph node of a Function's call: what it saved, what it keeps on ctx, what its backward returned."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from types import CodeType
from typing import Any, final

from numpy.typing import NDArray

from gradcli.backends.base import ForwardCall, RawGradient
from gradcli.backends.origin import Origin
from gradcli.backends.tensor.call_records import Call
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.framework import Framework, same_values, unit_roundoff
from gradcli.backends.tensor.maps import carries_gradient
from gradcli.targets import Called, TargetInfo

_MOST_NODES = 20_000


@final
class Inspector:
    """Reads the graph nodes of one Function class or operator; a plain callable has no node of its own."""

    def __init__(self, framework: Framework, origin: Origin | None) -> None:
        self._framework = framework
        self._origin = origin

    def node(self, call: Call) -> Any | None:
        """The node of the Function's own backward, None for a plain callable."""
        if self._origin is None:
            return None
        for output in call.returned:
            if self._framework.is_tensor(output):
                node: Any = output.grad_fn
                owner = getattr(type(node), "_forward_cls", None)
                if owner is not None and self._origin.owns(owner):
                    return node
        return None

    def owners(self, call: Call) -> tuple[type, ...]:
        """The target's own Function; of a plain callable those that it went through to its outputs, each once."""
        return tuple(dict.fromkeys(type(node)._forward_cls for node in self.users_nodes(call)))

    def users_nodes(self, call: Call) -> list[Any]:
        """The target's own node; of a plain callable those of every Function between its inputs and its outputs."""
        if self._origin is not None:
            own = self.node(call)
            return [] if own is None else [own]
        waiting = [o.grad_fn for o in call.outputs if self._framework.is_tensor(o)]
        seen: set[Any] = set()
        found: list[Any] = []
        while waiting and len(seen) < _MOST_NODES:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if getattr(type(node), "_forward_cls", None) is not None:
                found.append(node)
            waiting += [following for following, _ in node.next_functions]
        return found

    def described(
        self, caller: Caller, call: Call, outputs: tuple[NDArray[Any], ...], numbers: Sequence[int]
    ) -> ForwardCall:
        """A call as the checks need it.

        Args:
            caller: made the call.
            call: the call.
            outputs: its outputs as arrays.
            numbers: the outputs that are differentiated.
        """
        node, framework = self.node(call), self._framework
        return ForwardCall(
            outputs=outputs,
            differentiable=tuple(carries_gradient(framework, o) for o in call.outputs),
            changed_inputs=self._changed(caller, call, node),
            saved_strangers=self.strangers(call, node),
            context_tensors=self.context_tensors(call, node),
            unit_roundoff=max(
                (unit_roundoff(framework.dtype_name(call.outputs[n])) for n in numbers), default=2.0**-53
            ),
        )

    def _changed(self, caller: Caller, call: Call, node: Any | None) -> tuple[int, ...]:
        """Positions of tensors that forward changed in place although it did not mark them dirty.

        A tensor marked dirty has the Function's own node as its grad_fn afterwards, or is itself an output.
        """
        positions = []
        for position, tensor in enumerate(call.passed):
            if not self._framework.is_tensor(tensor):
                continue
            before = self._framework.as_array(caller.given(position, call.leaves))
            marked = any(tensor is output for output in call.returned)
            marked = marked or (node is not None and tensor.grad_fn is node)
            if not marked and not same_values(self._framework.as_array(tensor), before):
                positions.append(position)
        return tuple(positions)

    def saved(self, node: Any) -> tuple[Any, ...]:
        """The saved tensors. Raises RuntimeError where one of them was changed in place since."""
        return tuple(t for t in node.saved_tensors if self._framework.is_tensor(t))

    def strangers(self, call: Call, node: Any | None) -> tuple[int, ...]:
        """Positions of saved floating tensors that are neither inputs nor outputs: no gradient flows through them."""
        if node is None:
            return ()
        try:
            saved = tuple(node.saved_tensors)
        except RuntimeError:
            # Changed in place since it was saved: backward itself will say so.
            return ()
        return tuple(number for number, tensor in enumerate(saved) if self._is_stranger(call, tensor))

    def context_tensors(self, call: Call, node: Any | None) -> tuple[str, ...]:
        """Names of attributes of ctx that hold a floating tensor computed inside forward."""
        if node is None:
            return ()
        return tuple(name for name, value in vars(node).items() if self._is_stranger(call, value))

    def raw(self, value: Any) -> RawGradient:
        """One value that backward returned, described."""
        if value is None or not self._framework.is_tensor(value):
            return RawGradient(
                is_none=value is None,
                is_tensor=False,
                shape=None,
                dtype=None,
                value=None,
                type_name=type(value).__name__,
            )
        if str(getattr(value, "device", "")) == "meta":
            return RawGradient(
                is_none=False, is_tensor=False, shape=None, dtype=None, value=None, type_name="meta tensor without data"
            )
        array = self._framework.to_array(value)
        return RawGradient(
            is_none=False,
            is_tensor=True,
            shape=array.shape,
            dtype=self._framework.dtype_name(value),
            value=array,
            type_name=type(value).__name__,
        )

    def _is_stranger(self, call: Call, tensor: Any) -> bool:
        """Whether a tensor was computed from forward's inputs but has no graph back to them."""
        if not self._framework.is_tensor(tensor) or not self._framework.is_differentiable(tensor):
            return False
        return not tensor.requires_grad and not any(tensor is passed for passed in call.passed)


def with_called(info: TargetInfo, called: Sequence[Called], *, inner: bool) -> TargetInfo:
    """What is known of a target that went through these Functions: a single one is the place to look at.

    Where one of them is marked once_differentiable, so is the whole. `inner` says that they are not the target's own.
    """
    known = [each for each in called if inspect.isfunction(each.backward)]
    if info.backward is not None or not known:
        return info
    once = any("once_differentiable" in _code_of(each).co_qualname for each in known)
    info = replace(
        info, once_differentiable=info.once_differentiable or once, called=tuple(called) if inner else (), inner=inner
    )
    single = known[0].backward
    return replace(info, backward=inspect.unwrap(single)) if len(called) == 1 and single is not None else info


def _code_of(called: Called) -> CodeType:
    backward: Any = called.backward
    code: CodeType = backward.__code__
    return code
