"""The letters that einsums give the axes of forward's arguments, and the arguments that are equations of einsums."""

import ast
import inspect
import itertools
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradcli.inputs.hints.conjugates import FRAMEWORKS, surroundings
from gradcli.sources import nodes_of, source_of, tree_of

_DEEPEST = 3
"""Calls of further functions that an argument is followed into."""
_MOST_OPERANDS = 8
_ADDED = re.compile(r"(?:: |None )*(?::|None)")
"""Subscripts that only put axes in."""
_OPERANDS = re.compile(r"[a-zA-Z]+(?:,[a-zA-Z]+)*")

Letters = dict[str, tuple[str, ...]]


def einsum_letters(forward: Callable[..., Any] | None) -> Letters:
    """The letters of each name that goes into an einsum of forward as it is, and those of helpers that it is passed to.

    A letter of a helper is numbered by the call: two calls of one helper say nothing of each other's sizes.
    """
    return {} if forward is None else _letters_in(forward, itertools.count(1), _DEEPEST)


def _letters_in(function: Callable[..., Any], numbers: Iterator[int], deepest: int) -> Letters:
    found: Letters = {}
    tree = tree_of(source_of(function))
    calls = [node for node in nodes_of(tree) if isinstance(node, ast.Call)] if tree is not None else []
    operands = [each for call in calls for each in _of_einsum(call)]
    results = _results(tree) if operands else {}
    for operand, letters in sorted(operands, key=lambda each: not isinstance(each[0], ast.Name)):
        for name, axes in _of_operand(operand, letters, results, _DEEPEST):
            found.setdefault(name, axes)
    outside = surroundings(function) if deepest else {}
    for call in calls:
        helper = _function_called(call.func, outside)
        if helper is None:
            continue
        own = _letters_in(helper, numbers, deepest - 1)
        number = next(numbers) if own else 0
        for parameter, name in _passed(call, helper):
            if parameter in own:
                found.setdefault(name, tuple(f"{letter}_{number}" for letter in own[parameter]))
    return found


def _of_einsum(call: ast.Call) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    """The operands of an einsum, with their letters."""
    match call:
        case ast.Call(
            func=ast.Name(id="einsum") | ast.Attribute(attr="einsum"), args=[ast.Constant(value=str(text)), *operands]
        ):
            letters = text.replace(" ", "").partition("->")[0]
            if _OPERANDS.fullmatch(letters) is not None:
                yield from ((operand, tuple(each)) for each, operand in zip(letters.split(","), operands, strict=False))


def _results(tree: ast.Module | None) -> dict[str, ast.expr]:
    """The names that are assigned once, each with what it is."""
    found: dict[str, ast.expr] = {}
    nodes = nodes_of(tree) if tree is not None else ()
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stored = Counter(name.id for name in names if isinstance(name.ctx, ast.Store))
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if stored[name] == 1:
                found[name] = value
    return found


def _of_operand(
    operand: ast.expr, letters: tuple[str, ...], results: Mapping[str, ast.expr], deepest: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names that an operand is computed from of which it tells the letters, with these.

    `x[:, None] - y[None]` has the axis of x first; of a product of matrices, each factor has an axis of its own.
    """
    match operand:
        case ast.Name(id=name) if name in results and deepest:
            yield from _of_operand(results[name], letters, results, deepest - 1)
            yield name, letters
        case ast.Name(id=name):
            yield name, letters
        case ast.Subscript(value=inner, slice=ast.Tuple(elts=parts)) if _ADDED.fullmatch(" ".join(map(_kind, parts))):
            kept = tuple(each for each, part in zip(letters, parts, strict=False) if _kind(part) == ":")
            yield from _of_operand(inner, kept, results, deepest) if len(parts) == len(letters) else ()
        case ast.BinOp(left=left, op=ast.MatMult(), right=right) if len(letters) == 2:
            inside = f"{letters[0]}_{operand.lineno}_{operand.col_offset}"
            yield from _of_operand(left, (letters[0], inside), results, deepest)
            yield from _of_operand(right, (inside, letters[1]), results, deepest)
        case ast.BinOp(left=left, right=right):  # a name alone may be broadcast
            for side in (each for each in (left, right) if isinstance(each, ast.BinOp | ast.Subscript)):
                yield from _of_operand(side, letters, results, deepest)
        case ast.UnaryOp(operand=inner):
            yield from _of_operand(inner, letters, results, deepest)


def _kind(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=None):
            return "None"
        case ast.Slice(lower=None, upper=None, step=None):
            return ":"
    return "?"


def equations(trees: Iterable[ast.Module | None], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each argument that is the equation of an einsum: one that multiplies as many matrices as are passed there.

    In `einsum(x, [0, 1])` the first argument is an operand.

    Args:
        trees: of forward and of its helpers.
        names: forward's arguments, those of `*args` by number.
    """
    found: dict[str, tuple[str, ...]] = {}
    for node in (node for tree in filter(None, trees) for node in nodes_of(tree)):
        match node:
            case ast.Call(
                func=ast.Name(id="einsum") | ast.Attribute(attr="einsum"), args=[ast.Name(id=name), *operands]
            ) if name in names and not any(isinstance(each, ast.List) for each in operands):
                count = sum(_count(each, names) for each in operands)
                pairs = [string.ascii_lowercase[8 + place :][:2] for place in range(min(count, _MOST_OPERANDS))]
                if pairs:
                    found.setdefault(
                        name, (f"{','.join(pairs)}->{pairs[0][0] if len(pairs) > 1 else ''}{pairs[-1][1]}",)
                    )
    return found


def _count(operand: ast.expr, names: Sequence[str]) -> int:
    """How many operands an argument of a call stands for: `*xs` for all that there are."""
    if isinstance(operand, ast.Starred) and isinstance(operand.value, ast.Name):
        return sum(name.startswith(f"{operand.value.id}[") for name in names)
    return 1


def _function_called(node: ast.expr, outside: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The user's own function that is called by a name, as in `attend(q)` or `layers.attend(q)`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        held = outside.get(node.value.id)
        named = inspect.getattr_static(held, node.attr, None) if held is not None else None
        named = named.__func__ if isinstance(named, staticmethod) else named
    else:
        named = outside.get(node.id) if isinstance(node, ast.Name) else None
    called = inspect.unwrap(getattr(named, "fun", named)) if callable(named) else None
    if not inspect.isfunction(called) or called.__module__.partition(".")[0] in FRAMEWORKS:
        return None
    return called


def _passed(call: ast.Call, helper: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """The helper's parameters that are given names, with these."""
    positional = itertools.takewhile(lambda each: not isinstance(each, ast.Starred), call.args)
    given = [*zip(inspect.signature(helper).parameters, positional, strict=False)]
    given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
    return ((parameter, value.id) for parameter, value in given if isinstance(value, ast.Name))
