"""Inputs of gradcheck that are containers of tensors."""

from __future__ import annotations

from typing import Any

from gradcli.backends.tensor.containers import container_leaves, rebuilt_container
from gradcli.tolerance.problem import Function, holds_tracked


def taken_apart(func: Function, inputs: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
    """A function of the leaves in place of the containers that hold a tracked tensor; the same where none does."""
    if not any(map(holds_tracked, inputs)):
        return func, inputs
    leaves = [container_leaves(value) for value in inputs]

    def of_leaves(*values: Any) -> Any:
        return func(*rebuilt_container(inputs, values))

    of_leaves.__qualname__ = str(getattr(func, "__qualname__", type(func).__name__))
    of_leaves.__module__ = getattr(func, "__module__", None) or type(func).__module__
    return of_leaves, tuple(leaf for value in leaves for _, leaf in value)
