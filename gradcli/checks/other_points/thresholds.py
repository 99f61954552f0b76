"""Numbers between and around the constants in a function's source: between two of them another branch may be taken."""

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from types import CellType, CodeType, FunctionType
from typing import Any

from gradcli.cases import Argument
from gradcli.sources import nodes_of, source_of, tree_of
from gradcli.targets import TargetInfo

_SMALLEST, _LARGEST = 0.01, 100.0
"""Constants outside these are tolerances, sizes or limits that few inputs come near."""
_MOST = 12
"""A source with more constants is a table of coefficients, not one of branches."""
_LEAST_PLACE, _LARGEST_PLACE, _MOST_PLACES = 2.0, 1e5, 3
"""The size of constants around which numbers are tried, and how many at most; small inputs are tried anyway."""
_AROUND = (2.0**-5, -(2.0**-5), 2.0**-8, -(2.0**-8), 2.0**-3, -(2.0**-3))
"""Relative distances: at 265 from 1 to 33. Where `tanh((x - 265) / 10)` varies, some of these lie."""
_LIMITING = frozenset(("clamp", "clip", "minimum", "maximum", "clamp_min", "clamp_max"))


def between_thresholds(info: TargetInfo) -> tuple[float, ...]:
    """A number in every interval between two constants of forward or backward, of either sign, and one beyond them.

    Random inputs may leave such an interval out: in 99 % of the draws, none of nine normal numbers lies between 3 and
    4. The constants are those of both functions and of the functions of the same module that they call. Empty if there
    are none, or more than `_MOST`.
    """
    functions = [function for function in (info.forward, info.backward) if function is not None]
    constants = {abs(value) for value in map(_as_threshold, _values(functions)) if value}
    if not 0 < len(constants) <= _MOST:
        return ()
    ends = sorted({0.0, *constants, *(-value for value in constants)})
    middles = [(low + high) / 2 for low, high in pairwise(ends)]
    return (*middles, 1.5 * ends[-1], 1.5 * ends[0])


def around_places(info: TargetInfo, arguments: Sequence[Argument]) -> tuple[float, ...]:
    """Numbers around the constants that forward subtracts from something, adds to it or compares with it.

    A function such as `tanh((x - 265) / 10)` is flat everywhere else. Of a sum the negative constant is a place, as of
    an absolute value, so that both signs are tried.

    Args:
        info: the target.
        arguments: all of them; numbers among them are constants as well.
    """
    numbers = {a.name: a.value for a in arguments if not a.is_tensor}
    functions = [] if info.forward is None else [function for function, _ in _read_by([info.forward])]
    found = chain.from_iterable(_compared(function, numbers) for function in functions)
    signed = [sign * place for place in islice(dict.fromkeys(map(abs, found)), _MOST_PLACES) for sign in (1, -1)]
    return tuple(place * (1 + distance) for distance in _AROUND for place in signed)


def compared_with_indices(info: TargetInfo, arguments: Sequence[Argument]) -> frozenset[str]:
    """The arguments that forward compares for equality with an input of whole numbers, or with what it makes of one."""
    own = {a.name for a in arguments if a.is_tensor and a.value is not None and a.value.dtype.kind in "iu"}
    tree = tree_of(source_of(info.forward)) if own and info.forward is not None else None
    found = set[str]()
    for node in () if tree is None else nodes_of(tree):
        sides: list[ast.expr] = []
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if own & _names_in(value):
                own.add(name)
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                sides = [left, right]
            case ast.Call(func=ast.Attribute(value=left, attr="eq" | "ne"), args=args):
                sides = [left, *args]
        for one, other in itertools.permutations(sides, 2):
            if isinstance(one, ast.Name) and own & _names_in(other):
                found.add(one.id)
    return frozenset(found & {a.name for a in arguments if not a.is_tensor})


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in nodes_of(node) if isinstance(each, ast.Name)}


def _compared(function: FunctionType, numbers: Mapping[str, object]) -> Iterator[float]:
    """The numbers that a function adds, subtracts, compares or limits with."""
    names, tree = {**function.__globals__, **numbers}, tree_of(source_of(function))
    for node in () if tree is None else nodes_of(tree):
        operands: list[ast.expr] = []
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                operands = [left, right]
            case ast.Compare(left=left, comparators=others):
                operands = [left, *others]
            case ast.Call(func=ast.Attribute(attr=name), args=args, keywords=keywords) if name in _LIMITING:
                operands = [*args, *(keyword.value for keyword in keywords)]
        for operand in operands:
            bare = operand.operand if isinstance(operand, ast.UnaryOp) else operand
            value: object = names.get(bare.id) if isinstance(bare, ast.Name) else None
            value = bare.value if isinstance(bare, ast.Constant) else value
            if isinstance(value, int | float) and _LEAST_PLACE <= abs(value) <= _LARGEST_PLACE:
                yield float(value)


def _values(functions: list[Callable[..., Any]]) -> Iterator[object]:
    """What functions, those inside them, and functions of the same module that they call read as constants."""
    for function, read in _read_by(functions):
        for code in _nested(function.__code__):
            yield from code.co_consts
        yield from read


def _read_by(functions: Sequence[Callable[..., Any]]) -> Iterator[tuple[FunctionType, list[object]]]:
    """Each function, and each of the same module that it calls, with the values around it that it reads."""
    open_, seen = [f for f in functions if isinstance(f, FunctionType)], set[CodeType]()
    while open_:
        function = open_.pop()
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        read = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
        for code in _nested(function.__code__):
            read += [function.__globals__.get(name) for name in code.co_names]
        yield function, read
        open_ += [f for f in read if isinstance(f, FunctionType) and f.__module__ == function.__module__]


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _as_threshold(value: object) -> float | None:
    """The value if it is a number that inputs may come near."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _SMALLEST <= abs(value) <= _LARGEST:
        return None
    return float(value)
