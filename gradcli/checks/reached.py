"""The functions of the user's that a target is made of, and what their source says."""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from gradcli.backends.attribution import is_users_file
from gradcli.backends.frameworks_used import Names, is_pythons, references
from gradcli.backends.owners import owner_of
from gradcli.sources import nodes_of, source_of, tree_of
from gradcli.targets import TargetInfo

LARGEST = 128
"""The largest number in a source that an axis is made longer than: the inputs stay small."""
_MOST_VALUES = 300
_DTYPES = {
    "float32": "float32", "float": "float32", "single": "float32", "float64": "float32", "double": "float32",
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16",
}  # fmt: skip
"""The lower precision that a name stands for; one that is compared with 64 bits is for all that is not."""
_TRACKED = re.compile(r"\b(?:needs_input_grad|requires_grad)\b")


def largest_number(info: TargetInfo) -> int:
    """The largest whole number in the source of backward and of functions that it calls, up to `LARGEST`; else 0."""
    trees = (tree_of(source_of(function)) for function in reached(info.forward if info.inner else info.backward))
    constants = (node.value for tree in trees if tree for node in nodes_of(tree) if isinstance(node, ast.Constant))
    return max((n for n in constants if type(n) is int and n <= LARGEST), default=0)


def reads_what_is_tracked(info: TargetInfo) -> bool:
    """Whether forward, backward or a function that they call reads which inputs require a gradient."""
    return any(_TRACKED.search(source_of(each) or "") for each in reached(info.forward, info.backward))


def may_get_none(info: TargetInfo) -> bool:
    """Whether forward asks for None as the gradient of an output that is not used."""
    return any("set_materialize_grads" in (source_of(each) or "") for each in reached(info.forward))


def compared_dtypes(info: TargetInfo) -> tuple[str, ...]:
    """The lower precisions with which forward, backward or a function that they call compares a dtype.

    As in `x.dtype == torch.float32`, `x.dtype in (torch.half, torch.bfloat16)` or `match x.dtype`.
    """
    sources = (source_of(each) for each in reached(info.forward, info.backward))
    trees = (tree_of(source) for source in sources if any(name in source for name in _DTYPES))
    nodes = (node for tree in trees if tree is not None for node in nodes_of(tree))
    tests = [node for node in nodes if isinstance(node, ast.Compare | ast.MatchValue)]
    named = {getattr(part, "attr", None) for node in tests for part in ast.walk(node)}
    return tuple(dict.fromkeys(dtype for name, dtype in _DTYPES.items() if name in named))


def reached(*targets: Callable[..., Any] | None) -> Iterator[FunctionType]:
    """The user's functions that some functions are or may call."""
    level: list[tuple[object, Names]] = [(inspect.unwrap(each), frozenset()) for each in targets if each is not None]
    seen: set[tuple[int, Names]] = set()
    while level and len(seen) < _MOST_VALUES:
        fresh = [each for each in level if (id(each[0]), each[1]) not in seen]
        seen |= {(id(value), names) for value, names in fresh}
        known = {id(target) for target in targets}
        users = [(v, names) for v, names in fresh if not is_pythons(v) and (id(v) in known or _is_users(v))]
        yield from (value for value, _ in users if isinstance(value, FunctionType))
        level = [each for value, names in users for each in references(value, names)]


def _is_users(value: object) -> bool:
    """Whether a value is the user's. A class counts by its module: a Function's metaclass is the framework's."""
    if isinstance(value, type):
        return is_users_file(getattr(sys.modules.get(value.__module__), "__file__", None) or "")
    return owner_of(value) is None
