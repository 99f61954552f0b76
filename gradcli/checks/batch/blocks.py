"""The sizes of blocks that a Function cuts an axis into: inferred axes are shorter, and never reach the second block.

A block is seen in `range(0, n, BLOCK)`, `x[:, j : j + BLOCK]`, `x.split(BLOCK)`, `t % BLOCK`, a default such as
`block_size=16` and a number given for such an argument, in forward, in backward and in functions of the user's that
these call.
"""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, final

from gradcli.checks.reached import LARGEST, reached
from gradcli.inputs.hints.conjugates import surroundings
from gradcli.sources import nodes_of, source_of, tree_of
from gradcli.targets import TargetInfo

_NAMED = re.compile(r"(?:.*_)?(?:block|tile|chunk)(?:_?(?:size|len|length|[mnk]))?", re.IGNORECASE)


def block_sizes(info: TargetInfo) -> tuple[int, ...]:
    """The sizes of blocks above 1 in the source of a target, the largest first, up to `LARGEST`."""
    functions = list(reached(info.forward, None if info.inner else info.backward))
    kept: dict[str, int] = {}
    found = {size for function in functions for size in _given_to(functions, tree_of(source_of(function)))}
    for _ in range(2):  # what forward keeps on ctx is known in the second round
        for function in functions:
            tree = tree_of(source_of(function))
            if tree is not None:
                found.update(_Blocks(function, tree, kept).found())
    return tuple(sorted((size for size in found if 1 < size <= LARGEST), reverse=True))


def _given_to(functions: Sequence[FunctionType], tree: ast.Module | None) -> Iterator[int]:
    """The numbers that calls of some functions give for arguments named as blocks are."""
    places = {f.__name__: [*inspect.signature(f).parameters] for f in functions}
    for call in nodes_of(tree) if tree is not None else ():
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        given, parameters = list(call.args), places.get(name, [])
        if any(isinstance(each, ast.Starred) for each in given):  # `f(*saved, g, 8)` ends where the parameters end
            given, parameters = given[::-1], parameters[::-1]
        named = ((k.arg, k.value) for k in call.keywords)
        for argument, value in (*zip(parameters, given, strict=False), *named):
            if isinstance(value, ast.Constant) and type(value.value) is int and _NAMED.fullmatch(argument or ""):
                yield value.value


@final
class _Blocks:
    """The blocks in one function; `kept` are whole numbers that forward keeps on ctx, by name, and is added to."""

    def __init__(self, function: FunctionType, tree: ast.Module, kept: dict[str, int]) -> None:
        self._tree = tree
        self._kept = kept
        self._outside = _outside(function)
        self._own = _defaults(function)
        for node in nodes_of(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._own |= self._named(name, value)
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=name)], value=value):
                    self._kept |= self._named(name, value)

    def _named(self, name: str, value: ast.expr) -> dict[str, int]:
        number = self._number(value)
        return {} if number is None else {name: number}

    def found(self) -> Iterator[int]:
        """The sizes, some of them more than once."""
        yield from (value for name, value in self._own.items() if _NAMED.fullmatch(name))
        for node in nodes_of(self._tree):
            for size in map(self._number, _sizes_in(node)):
                if size is not None:
                    yield size

    def _number(self, node: ast.expr) -> int | None:
        """The value of an expression that is a whole number, a name of one, or the smaller of one and something."""
        value: object = None
        match node:
            case ast.Constant(value=constant):
                value = constant
            case ast.Name(id=name):
                value = self._own.get(name, self._outside.get(name))
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                value = self._kept.get(
                    name, getattr(self._outside.get(owner, self._outside.get("__class__")), name, None)
                )
            case ast.Call(func=ast.Name(id="min"), args=args):
                value = next((n for n in map(self._number, args) if n is not None), None)
        return value if type(value) is int else None


def _sizes_in(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions in a node that are the size of a block."""
    match node:
        case ast.Call(func=ast.Name(id="range" | "arange"), args=[_, _, step]):
            yield step
        case ast.BinOp(op=ast.Mod(), right=right):
            yield right
        case ast.Slice(lower=ast.expr() as lower, upper=ast.expr() as upper):
            yield from _between(lower, upper)
        case ast.Call(func=ast.Name(id="slice"), args=[lower, upper, *_]):
            yield from _between(lower, upper)
        case ast.Call(func=ast.Attribute(attr="split" | "chunk" | "narrow"), args=args):
            yield from args
        case ast.While(body=body):
            parts = [each for statement in body for each in ast.walk(statement)]
            yield from (
                each.value for each in parts if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add)
            )


def _between(lower: ast.expr, upper: ast.expr) -> Iterator[ast.expr]:
    """The size of a slice such as `j : j + size`, `j : min(j + size, n)` or `i * size : (i + 1) * size`."""
    ends = upper.args if isinstance(upper, ast.Call) and getattr(upper.func, "id", "") == "min" else [upper]
    for end in ends:
        match end:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                if ast.dump(left) == ast.dump(lower):
                    yield right
                elif ast.dump(right) == ast.dump(lower):
                    yield left
            case ast.BinOp(left=_, op=ast.Mult(), right=right):
                if isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Mult):
                    yield right


def _outside(function: FunctionType) -> Mapping[str, Any]:
    """The names around a function; `__class__` is the class that it is written in, if its module has that."""
    owner = function.__globals__.get(function.__qualname__.rpartition(".")[0])
    return {"__class__": owner, **surroundings(function)}


def _defaults(function: FunctionType) -> dict[str, int]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    return {name: each.default for name, each in parameters.items() if type(each.default) is int}
