"""Whether the graph of a call is freed with its result, and what keeps it alive if not."""

import gc
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from gradcli.backends.tensor.call_records import Call, LeakedGraph
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.inspection import Inspector
from gradcli.garbage import not_collecting

_MOST_OBJECTS = 1_000


def leaked_graph(
    framework: Framework, inspector: Inspector, call_of: Callable[[], Call], *, is_own: bool
) -> LeakedGraph | None:
    """What is left of a call's graph after its result was deleted; None if nothing is, or backward is not the cause.

    Reference counting frees a graph at once, unless it is part of a cycle or something else refers to it. A cycle that
    does not go through ctx (such as a recursive function inside forward) lasts until the next garbage collection, and
    is not reported.

    Args:
        framework: whose tensors they are.
        inspector: finds the nodes of the user's Functions in the graph.
        call_of: makes the call, and keeps nothing of it.
        is_own: whether the target is the Function itself. A module or another callable may keep what it computed.
    """
    with not_collecting():
        call = call_of()
        nodes = inspector.users_nodes(call)
        attribute = next((name for node in nodes if (name := _holding(framework, node)) is not None), None)
        watched = [weakref.ref(node) for node in nodes]
        del call, nodes
        if not any(_is_there(watched)):
            return None
        gc.collect()
        collected = not any(_is_there(watched))
    if attribute is None and (collected or not is_own):
        return None
    return LeakedGraph(attribute=attribute, collected=collected)


def _is_there(watched: list[weakref.ref[Any]]) -> list[bool]:
    return [reference() is not None for reference in watched]


def _holding(framework: Framework, node: Any) -> str | None:
    """The attribute of ctx from which an output of the same call can be reached; None if there is none."""
    own: dict[str, Any] = vars(node)
    for name, value in list(own.items()):
        seen: set[int] = set()
        waiting = [value]
        while waiting and len(seen) < _MOST_OBJECTS:
            item = waiting.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            if framework.is_tensor(item):
                if item.grad_fn is node:
                    return name
            else:
                waiting += _held_by(item)
    return None


def _held_by(item: Any) -> list[Any]:
    """What a container, a function or a record holds; nothing for any other object."""
    found: list[Any] = []
    if isinstance(item, dict):
        found = [*item.keys(), *item.values()]
    elif isinstance(item, list | tuple | set | frozenset):
        found = list(item)
    elif isinstance(item, types.FunctionType):
        found = [*_contents(item), *(item.__defaults__ or ()), *(item.__kwdefaults__ or {}).values()]
    elif isinstance(item, types.MethodType):
        found = [item.__func__, item.__self__]
    elif isinstance(item, partial):
        found = [item.func, *item.args, *item.keywords.values()]
    elif isinstance(item, types.SimpleNamespace):
        found = list(vars(item).values())
    elif is_dataclass(item) and not isinstance(item, type):
        found = [getattr(item, each.name, None) for each in fields(item)]
    return found


def _contents(function: types.FunctionType) -> Iterator[Any]:
    """The values in a function's closure; empty cells are skipped."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
