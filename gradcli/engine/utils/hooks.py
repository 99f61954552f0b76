"""Handles that take a registered hook away again."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Any

from gradcli.engine.module_name import PRINTED_MODULE

_identifiers = itertools.count()


class RemovableHandle:
    """What a registration returns: `remove()` undoes it, and so does leaving it as a context.

    Args:
        hooks_dict: the ordered dict the hook was put in; it is referred to weakly.
        extra_dict: further dicts that hold an entry under the same identifier.
    """

    def __init__(
        self, hooks_dict: OrderedDict[int, Any], *, extra_dict: OrderedDict[int, Any] | list[Any] | None = None
    ) -> None:
        self.id: int = next(_identifiers)
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extra = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(entry) for entry in extra)

    def remove(self) -> None:
        """Take the hook away; doing so twice is harmless."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<{PRINTED_MODULE}.utils.hooks.RemovableHandle object at {id(self):#x}>"


def add_hook(hooks: OrderedDict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Put a hook into an ordered dict and return the handle that removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
