"""The source of the user's functions, its syntax trees and the names in its code, each read once."""

import ast
import dis
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

_KEPT = 64
"""Sources whose trees are kept: those of one case and of what it calls."""
_CODES = 5_000
"""Pieces of code whose names are kept."""
_LISTED = (ast.Tuple, ast.List)
_READING = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_texts: WeakKeyDictionary[Callable[..., Any], str] = WeakKeyDictionary()


def literal(text: str) -> Any:
    """The value of a Python literal, in which `nan`, `inf`, `nanj` and `infj` are numbers, as their texts are.

    Raises:
        ValueError, SyntaxError, TypeError, MemoryError, RecursionError: it is none.
    """
    tree = ast.parse(text.strip(), mode="eval")
    return ast.literal_eval(_Numbers().visit(tree))


class _Numbers(ast.NodeTransformer):
    """Puts the numbers in the places of their names."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The number that the name stands for; other names are left."""
        if node.id not in ("nan", "inf", "nanj", "infj"):
            return node
        part = float(node.id.removesuffix("j"))
        return ast.Constant(complex(0.0, part) if node.id.endswith("j") else part)


def source_of(function: Callable[..., Any] | None) -> str:
    """The source of a function, dedented; empty where there is none (defined in a shell, compiled)."""
    if function is None:
        return ""
    try:
        found = _texts.get(function)
        if found is None:
            found = _texts[function] = _read(function)
    except TypeError:  # an object without weak references, or one that cannot be hashed
        return _read(function)
    return found


def _read(function: Callable[..., Any]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError, SyntaxError, IndexError):
        return ""


@lru_cache(maxsize=_KEPT)
def tree_of(source: str) -> ast.Module | None:
    """The syntax tree of a source, which is shared and must not be changed; None if it cannot be parsed."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=_KEPT)
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a shared tree, or of a function in one, in the order of `ast.walk`: a dozen hints read it."""
    return tuple(ast.walk(tree))


def returned_by(tree: ast.Module | None) -> list[ast.expr]:
    """What the function in a tree returns in its own body, not that of functions inside it."""
    own = next((node for node in (() if tree is None else tree.body) if isinstance(node, ast.FunctionDef)), None)
    found: list[ast.expr] = []
    level: list[ast.AST] = [] if own is None else list(own.body)
    while level:
        node = level.pop(0)
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            level += ast.iter_child_nodes(node)
    return found


def bindings(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with their values, one by one where both sides list as many."""
    value = node.value
    for target in node.targets:
        if isinstance(target, _LISTED) and isinstance(value, _LISTED):
            starred = any(isinstance(each, ast.Starred) for each in (*target.elts, *value.elts))
            if not starred and len(target.elts) == len(value.elts):
                yield from zip(target.elts, value.elts, strict=True)
                continue
        yield target, value


@lru_cache(maxsize=_CODES)
def names_in(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that code reads, and its other names: of attributes and of imports. `co_names` mixes them."""
    bound, read, others = set[str](), set[str](), set[str]()
    for step in dis.get_instructions(code):
        if step.opname in _READING:
            read |= {step.argval} - bound
        elif step.argval in code.co_names:
            others.add(step.argval)
            bound |= {step.argval} if step.opname == "STORE_NAME" else set()  # the body of a class has its own names
    return frozenset(read), frozenset(others)
