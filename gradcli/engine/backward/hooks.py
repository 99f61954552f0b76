"""Hooks on cotangents: what they may return, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine.graph import Node
from gradcli.engine.tensor import Tensor


def _hook_name(hook: Callable[..., Any]) -> str:
    return str(getattr(hook, "__name__", type(hook).__name__))


def _checked(hook: Callable[..., Any], before: Tensor | None, after: Any) -> Tensor | None:
    if after is None:
        return before if before is None else None
    if not isinstance(after, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    if before is not None and after._data.shape != before._data.shape:
        raise RuntimeError(f"hook '{_hook_name(hook)}' has changed the size of value")
    if before is not None and after._data.dtype != before._data.dtype:
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the type of value (was {before.type()} got {after.type()})"
        )
    return after


def through_hooks(hooks: Any, cotangent: Tensor | None) -> Tensor | None:
    """Pass a cotangent through a tensor's hooks, each seeing the reply of the one before."""
    if cotangent is None:
        return None
    for hook in list(hooks.values()):
        reply = hook(cotangent)
        if reply is not None:
            cotangent = _checked(hook, cotangent, reply)
    return cotangent


def _replies(hook: Callable[..., Any], reply: Any, before: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    if not isinstance(reply, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(reply).__name__}'")
    if len(reply) != len(before):
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has returned an incorrect number of values (got {len(reply)}, but expected "
            f"{len(before)})"
        )
    return tuple(_checked(hook, old, new) for old, new in zip(before, reply, strict=True))


def through_pre_hooks(node: Node, cotangents: list[Tensor | None]) -> list[Tensor | None]:
    """Pass a node's cotangents through its pre-hooks."""
    for hook in list((node._pre_hooks or {}).values()):
        reply = hook(tuple(cotangents))
        if reply is not None:
            cotangents = list(_replies(hook, reply, cotangents))
    return cotangents


def through_post_hooks(
    node: Node, results: tuple[Tensor | None, ...], cotangents: list[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """Pass a node's results through its hooks."""
    for hook in list((node._post_hooks or {}).values()):
        reply = hook(results, tuple(cotangents))
        if reply is not None:
            results = _replies(hook, reply, results)
    return results
