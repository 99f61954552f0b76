"""How forward takes an argument apart: `params["W"]`, also in functions that it passes the argument on to."""

import ast
import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

from gradcli.sources import source_of, tree_of

_COPIES = frozenset(("dict", "copy", "deepcopy", "replace", "_replace", "stop_gradient"))
"""Functions that return a container like the one they get."""
_MAPS = frozenset(("map", "tree_map"))
"""Functions that return a container like their second argument."""


class Node:
    """What is known of a value: keys that it is read by, elements that it is unpacked into, attributes."""

    def __init__(self) -> None:
        self.keys: dict[str, Node] = {}
        self.optional = self.is_sliced = False
        self.elements: dict[int, Node] = {}
        self.each: Node | None = None
        self.count = 0
        self.fields: dict[str, Node] = {}
        self.name = ""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a tensor: nothing is read from it, or entries, as `c[3]` beside `c[:3]`."""
        entries = self.is_sliced and all(part.is_leaf for part in self.elements.values())
        return not (self.keys or (self.elements and not entries) or self.each or self.optional)

    @property
    def parts(self) -> list["Node"]:
        """What it is taken apart into, other than by keys and attributes."""
        return [*self.elements.values(), *([self.each] if self.each is not None else [])]

    @property
    def length(self) -> int:
        """How many elements are read at least: it is unpacked into them, as `a, b = x`, or they are read by place."""
        return max(self.count, max(self.elements, default=-1) + 1)

    @property
    def may_be_a_tensor(self) -> bool:
        """Whether it is read by places alone, as a tensor may be too: `a, b = x` or `x[0][1]`."""
        return not (self.keys or self.optional) and all(part.may_be_a_tensor for part in self.parts)

    def at(self, key: str) -> "Node":
        """The value of a key."""
        return self.keys.setdefault(key, Node())


class _Changed(Node):
    """A dict with the values of another, except those that it replaces: `{**params, 'W': w}`."""

    def __init__(self, whole: Node, own: dict[str, Node]) -> None:
        super().__init__()
        self._whole, self._own = whole, own

    def at(self, key: str) -> Node:
        return self._own[key] if key in self._own else self._whole.at(key)


def read(
    function: Callable[..., Any], name: str, node: Node, deepest: int, given: Mapping[str, Any] | None = None
) -> None:
    """Add to `node` how a function takes its argument `name` apart, also in functions that it passes it on to.

    `given` are functions that it gets as arguments, as a solver does: `solve(step, params, z)`.
    """
    tree = tree_of(source_of(inspect.unwrap(function)))
    own = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None) if tree is not None else None
    if own is not None:
        reader = _Reader(ChainMap({**(given or {})}, getattr(inspect.unwrap(function), "__globals__", {})), deepest)
        reader.known[name] = node
        for statement in own.body:
            reader.visit(statement)


class _Reader(ast.NodeVisitor):
    """Follows names that stand for a container or a part of one."""

    def __init__(self, names: Mapping[str, Any], deepest: int) -> None:
        self.known: dict[str, Node] = {}
        self._globals = names
        self._deepest = deepest

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._part(node)
        if isinstance(node.slice, ast.Slice) and (held := self._part(node.value)) is not None:
            held.is_sliced = True
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._part(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in ("get", "setdefault", "pop"):
            held = self._part(function.value)
            if held is not None:
                held.optional = True
                return
        arguments = node.args
        if last_name(function) == "partial" and arguments:
            function, arguments = arguments[0], arguments[1:]
        called = self._function(function)
        if called is not None and self._deepest:
            names = list(inspect.signature(called).parameters)
            passed = dict(zip(names, arguments, strict=False))
            passed |= {each.arg: each.value for each in node.keywords if each.arg in names}
            given = {name: own for name, value in passed.items() if (own := self._function(value)) is not None}
            for name, argument in passed.items():
                held = self._part(argument)
                if held is not None:
                    read(called, name, held, self._deepest - 1, given)
        self.generic_visit(node)

    def _function(self, node: ast.expr) -> Callable[..., Any] | None:
        """The function that a name stands for, without decorators; None for anything else."""
        named = self._globals.get(node.id) if isinstance(node, ast.Name) else None
        called = inspect.unwrap(getattr(named, "fun", named)) if callable(named) else None
        return called if inspect.isfunction(called) else None

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            if len(target.elts) == len(value.elts):
                for one, other in zip(target.elts, value.elts, strict=True):
                    self._bind(one, other)
            return
        held = self._part(value)
        if held is not None:
            self._take(target, held)
        elif isinstance(target, ast.Name):
            self.known.pop(target.id, None)

    def _take(self, target: ast.expr, held: Node) -> None:
        if isinstance(target, ast.Name):
            held.name = held.name or target.id
            self.known[target.id] = held
        elif isinstance(target, ast.Tuple | ast.List) and not any(isinstance(t, ast.Starred) for t in target.elts):
            held.count = max(held.count, len(target.elts))
            for place, each in enumerate(target.elts):
                self._take(each, held.elements.setdefault(place, Node()))

    def _loop(self, target: ast.expr, iterated: ast.expr) -> None:
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
            if iterated.func.id == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                self._loop(target.elts[1], iterated.args[0])
            elif iterated.func.id in ("reversed", "list", "tuple"):
                self._loop(target, iterated.args[0])
            elif iterated.func.id == "zip" and isinstance(target, ast.Tuple):
                for one, other in zip(target.elts, iterated.args, strict=False):
                    self._loop(one, other)
            return
        if isinstance(iterated, ast.Subscript) and isinstance(iterated.slice, ast.Slice):
            iterated = iterated.value
        held = self._part(iterated)
        if held is not None and isinstance(target, ast.Tuple | ast.Name):
            held.each = held.each or Node()
            self._take(target, held.each)

    def _part(self, node: ast.expr) -> Node | None:
        """The node of an expression that is a container or a part of one; the part is added where it is new."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Dict | ast.Call | ast.BinOp):
            return self._changed(node)
        held = self._part(node.value) if isinstance(node, ast.Subscript | ast.Attribute) else None
        if held is None:
            return None
        if isinstance(node, ast.Attribute):
            return held.fields.setdefault(node.attr, Node())
        key = _constant(node.slice) if isinstance(node, ast.Subscript) else None
        if isinstance(key, str):
            return held.at(key)
        return held.each or held.elements.setdefault(key, Node()) if isinstance(key, int) else None

    def _changed(self, node: ast.expr) -> Node | None:
        """The node of a container made of another one, by copying, by replacing values, or by a map of its leaves."""
        wholes: list[ast.expr] = []
        own: list[tuple[object, ast.expr]] = []
        match node:
            case ast.Dict(keys=keys, values=values):
                wholes = [value for key, value in zip(keys, values, strict=True) if key is None]
                own = [(_constant(key), value) for key, value in zip(keys, values, strict=True) if key is not None]
            case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Dict(keys=keys, values=values)):
                wholes = [left]
                own = [(_constant(key), value) for key, value in zip(keys, values, strict=True) if key is not None]
            case ast.Call(func=func, args=args, keywords=keywords) if last_name(func) in _COPIES:
                wholes = args[:1] or ([func.value] if isinstance(func, ast.Attribute) else [])
                own = [(each.arg, each.value) for each in keywords]
            case ast.Call(func=func, args=[_, mapped, *_]) if last_name(func) in _MAPS:
                wholes = [mapped]
        held = self._part(wholes[0]) if len(wholes) == 1 else None
        replaced = {key: self._part(value) or Node() for key, value in own if isinstance(key, str)}
        return _Changed(held, replaced) if held is not None and replaced else held


def last_name(node: ast.expr) -> str:
    """The name that an expression ends with: `c` of `a.b.c`."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _constant(node: ast.expr) -> object:
    """The value of a constant, also of a negative number; None for anything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
