"""Looking at the node of a Function's call: what it saved, what it keeps on ctx, what its backward returned."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

from gradcli.backends.base import RawGradient
from gradcli.backends.call import Call
from gradcli.backends.framework import Framework
from gradcli.targets import TargetInfo

_MOST_NODES = 20_000


@final
class Inspector:
    """Reads the nodes of one Function class; of a plain callable there is none."""

    def __init__(self, framework: Framework, function_class: type | None) -> None:
        self._framework = framework
        self._class = function_class

    def node(self, call: Call) -> Any | None:
        """The node of the Function's own backward, None for a plain callable."""
        if self._class is None:
            return None
        for output in call.outputs:
            if self._framework.is_tensor(output):
                node: Any = output.grad_fn
                if node is not None and getattr(type(node), "_forward_cls", None) is self._class:
                    return node
        return None

    def inner(self, call: Call) -> tuple[type, ...]:
        """The Functions that a plain callable went through on its way to the outputs, each once."""
        if self._class is not None:
            return ()
        waiting = [o.grad_fn for o in call.outputs if self._framework.is_tensor(o)]
        seen: set[Any] = set()
        found: dict[type, None] = {}
        while waiting and len(seen) < _MOST_NODES:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            owner = getattr(type(node), "_forward_cls", None)
            if owner is not None:
                found[owner] = None
            waiting += [following for following, _ in node.next_functions]
        return tuple(found)

    def saved(self, node: Any) -> tuple[Any, ...]:
        """The saved tensors. Raises RuntimeError where one of them was changed in place since."""
        return tuple(t for t in node.saved_tensors if self._framework.is_tensor(t))

    def strangers(self, call: Call, node: Any | None) -> tuple[int, ...]:
        """Numbers of saved floating tensors that are neither inputs nor outputs: they pass no gradient on."""
        if node is None:
            return ()
        try:
            saved = tuple(node.saved_tensors)
        except RuntimeError:
            # Changed in place since it was saved: backward itself will say so.
            return ()
        return tuple(number for number, tensor in enumerate(saved) if self._is_stranger(call, tensor))

    def context_tensors(self, call: Call, node: Any | None) -> tuple[str, ...]:
        """Attributes of ctx that hold a floating tensor computed inside forward."""
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
        """Whether a tensor carries numbers of forward's input but no graph back to it."""
        if not self._framework.is_tensor(tensor) or not self._framework.is_differentiable(tensor):
            return False
        return not tensor.requires_grad and not any(tensor is passed for passed in call.passed)


def with_inner(info: TargetInfo, functions: Sequence[type]) -> TargetInfo:
    """What is known of a callable that went through these Functions: a single one's backward is the place to look at.

    Where one of them is marked once_differentiable, so is the whole.
    """
    rules = [rule for each in functions if (rule := _rule_of(each)) is not None]
    if info.backward is not None or not rules:
        return info
    once = any("once_differentiable" in rule.__code__.co_qualname for rule in rules)
    info = replace(info, once_differentiable=info.once_differentiable or once)
    return replace(info, backward=inspect.unwrap(rules[0]), inner=True) if len(functions) == 1 else info


def _rule_of(owner: type) -> Any | None:
    """The Python function that is a Function's backward."""
    found = inspect.getattr_static(owner, "backward", None)
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    return function if inspect.isfunction(function) else None
