"""Calls of a module with its hooks, and the global hooks, which run for every module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from gradcli.engine.nn.base.hooks import FullHooks, Hooks, attach_legacy
from gradcli.engine.utils.hooks import RemovableHandle, add_hook

MIXED = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)
MIXED_EVERYWHERE = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of "
    "them."
)


class Everywhere:
    """The global hooks; they run before a module's own of the same kind."""

    __slots__ = ("backward", "backward_is_full", "backward_pre", "forward", "forward_pre")

    def __init__(self) -> None:
        self.forward: Hooks = OrderedDict()
        self.forward_pre: Hooks = OrderedDict()
        self.backward: Hooks = OrderedDict()
        self.backward_pre: Hooks = OrderedDict()
        self.backward_is_full: bool | None = None

    @property
    def any(self) -> bool:
        """Whether there is any global hook."""
        return bool(self.forward or self.forward_pre or self.backward or self.backward_pre)


EVERYWHERE = Everywhere()


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; what it returns replaces the arguments."""
    return add_hook(EVERYWHERE.forward_pre, hook)


def register_module_forward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; what it returns replaces the output."""
    return add_hook(EVERYWHERE.forward, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` when the gradient of every module's output is known; see `Module`."""
    return add_hook(EVERYWHERE.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when both are known, for every module; see `Module`.

    Raises:
        RuntimeError: a hook of `register_module_backward_hook` is there.
    """
    return _register_backward(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Attach a non-full (deprecated) backward hook to the last operation of every module.

    Raises:
        RuntimeError: a global full backward hook is there.
    """
    return _register_backward(hook, False)


def _register_backward(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    if EVERYWHERE.backward and EVERYWHERE.backward_is_full is not full:
        raise RuntimeError(MIXED_EVERYWHERE)
    EVERYWHERE.backward_is_full = full
    return add_hook(EVERYWHERE.backward, hook)


class AlwaysCalled:
    """A forward hook that is also called when forward raises.

    Args:
        hook: the hook.
    """

    __slots__ = ("hook",)

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, *args: Any) -> Any:
        """Call the hook."""
        return self.hook(*args)


def _backward_hooks(module: Any, full: bool) -> list[Callable[..., Any]]:
    """Return the full, or the non-full, backward hooks: the global ones, then the module's own."""
    found = list(EVERYWHERE.backward.values()) if EVERYWHERE.backward_is_full is full else []
    own_are_full = module._is_full_backward_hook is not False
    return found + (list(module._backward_hooks.values()) if own_are_full is full else [])


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a module's forward with the global hooks and its own."""
    ahead = {key: hook for key, hook in module._forward_hooks.items() if isinstance(hook, AlwaysCalled)}
    try:
        return _called(module, args, kwargs, ahead)
    except Exception:
        for key, hook in ahead.items():
            hook(module, *((args, kwargs) if key in module._forward_hooks_with_kwargs else (args,)), None)
        raise


def _called(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ahead: dict[int, Any]) -> Any:
    for key, hook in (*EVERYWHERE.forward_pre.items(), *module._forward_pre_hooks.items()):
        if key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        else:
            reply = hook(module, args)
            if reply is not None:
                args = reply if isinstance(reply, tuple) else (reply,)
    hooks, legacy = _backward_hooks(module, True), _backward_hooks(module, False)
    pre_hooks = [*EVERYWHERE.backward_pre.values(), *module._backward_pre_hooks.values()]
    full: FullHooks | None = None
    if hooks or pre_hooks:
        full = FullHooks(module, hooks, pre_hooks)
        args = full.watch_inputs(args)
    output = module.forward(*args, **kwargs)
    for key, hook in (*EVERYWHERE.forward.items(), *module._forward_hooks.items()):
        given = (args, kwargs) if key in module._forward_hooks_with_kwargs else (args,)
        ahead.pop(key, None)
        reply = hook(module, *given, output)
        if reply is not None:
            output = reply
    if full is not None:
        output = full.watch_output(output)
    if legacy:
        attach_legacy(module, legacy, args, output)
    return output
