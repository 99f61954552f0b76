"""The source of the user's own functions that forward passes its arguments on to, in forward's names."""

import ast
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any

from gradcli.inputs.hints.conjugates import own_function, surroundings
from gradcli.sources import nodes_of, source_of, tree_of

_DEEPEST = 3
"""Calls of further functions that an argument is followed into."""
_MOST_CHARACTERS = 20_000
_SAME_VALUES = frozenset(("contiguous", "detach", "cpu", "clone"))
"""Methods of which the result has the shape, the kind and the values of the tensor itself."""


def helpers_source(forward: Callable[..., Any] | None, names: Collection[str]) -> str:
    """The source of functions that forward gives its arguments to, without docstrings and comments.

    What a function calls an argument of forward's has forward's name for it there. Other variables that would have the
    name of an argument have an underscore before it.

    Args:
        forward: the function whose calls are followed.
        names: its arguments.
    """
    found: list[str] = []
    left = _MOST_CHARACTERS
    for text in _followed(forward, {name: name for name in names}, _DEEPEST, set()):
        left -= len(text)
        if left < 0:
            break
        found.append(text)
    return "\n".join(dict.fromkeys(found))


def _followed(
    function: Callable[..., Any] | None, arguments: Mapping[str, str], deepest: int, seen: set[object]
) -> Iterator[str]:
    """The sources of what a function calls with `arguments`, which are forward's by the names that it has for them."""
    tree = tree_of(source_of(function))
    known = surroundings(function) if tree is not None else {}
    changed = frozenset() if tree is None else _changed(tree)
    unchanged = {inner: name for inner, name in arguments.items() if inner not in changed}
    for call in () if tree is None else nodes_of(tree):
        helper = own_function(call.func, known) if isinstance(call, ast.Call) else None
        if helper is None or not isinstance(call, ast.Call):
            continue
        followed = arguments if _asks_for_none(helper) else unchanged
        passed = {inner: followed[name] for inner, name in _passed(helper, call) if name in followed}
        key = (helper, tuple(sorted(passed.items())))
        if passed and key not in seen:
            seen.add(key)
            yield _renamed(helper, passed, frozenset(arguments.values()))
            if deepest > 1:
                yield from _followed(helper, passed, deepest - 1, seen)


def _asks_for_none(helper: Callable[..., Any]) -> bool:
    """Whether a function only tells whether something is None, which the argument may be before it is changed."""
    tree = tree_of(source_of(helper))
    body = tree.body[0].body if tree is not None and isinstance(tree.body[0], ast.FunctionDef) else []
    match body[-1:]:
        case [ast.Return(value=ast.Compare(ops=[op], comparators=[other]))]:
            return isinstance(op, ast.Is | ast.IsNot) and isinstance(other, ast.Constant) and other.value is None
    return False


def _changed(tree: ast.Module) -> frozenset[str]:
    """The variables that a function gives another value, which may have another shape."""
    kept = set[ast.AST]()
    for node in nodes_of(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value) if _itself(value) == name:
                kept.add(target)
    stored = (node for node in nodes_of(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return frozenset(node.id for node in stored if node not in kept)


def _itself(node: ast.expr) -> str | None:
    """The variable that an expression stands for, as `x` and `x.contiguous()` do; None for others."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_VALUES:
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else None


def _passed(helper: Callable[..., Any], call: ast.Call) -> Iterator[tuple[str, str]]:
    """The parameters of a function that a call gives variables to, each with the variable's name."""
    given: list[tuple[str, ast.expr]] = list(zip(inspect.signature(helper).parameters, call.args, strict=False))
    given += [(each.arg, each.value) for each in call.keywords if each.arg is not None]
    for inner, node in given:
        if (name := _itself(node)) is not None:
            yield inner, name


def _renamed(helper: Callable[..., Any], passed: Mapping[str, str], taken: Collection[str]) -> str:
    tree = tree_of(source_of(helper))
    if tree is None:
        return ""
    tree = deepcopy(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
        name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        new = passed.get(name, f"_{name}" if name in taken else name)
        if isinstance(node, ast.Name):
            node.id = new
        elif isinstance(node, ast.arg):
            node.arg = new
    return ast.unparse(tree)
