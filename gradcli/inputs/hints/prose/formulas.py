"""Formulas of sizes, such as `2 * H + 1`: their names and values, and the names that give them some values."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_MOST_TRIES = 2_000
_BEYOND = 8
"""A name may be larger than a formula of it by so much, as the H in `H - 1`."""


def size_of(axis: str, sizes: Mapping[str, int]) -> int | None:
    """The value of an axis such as `2 * H + 1` for sizes of its names; None if one is unknown or it is not positive."""
    try:
        value = _value(_parsed(axis), sizes)
    except (SyntaxError, KeyError, ZeroDivisionError):
        return None
    return value if value is not None and value > 0 else None


def names_in(axis: str) -> list[str]:
    """The names in an axis such as `T * k`, one for the axis itself where it is a name."""
    return re.findall(r"[A-Za-z]\w*", axis)


def is_formula(axis: int | str) -> bool:
    """Whether an axis is a sum, product or quotient of names, such as `2 * H`."""
    return isinstance(axis, str) and names_in(axis) not in ([axis], [])


def solved(wanted: Sequence[tuple[str, int]], known: Mapping[str, int]) -> Mapping[str, int] | None:
    """Sizes with which formulas have the wanted values: those that are known, and positive ones of the other names.

    None if there are no such sizes.

    Args:
        wanted: formulas, each with its value.
        known: sizes of names.
    """
    return next(_solutions(wanted, known, iter(range(_MOST_TRIES))), None)


def _solutions(
    wanted: Sequence[tuple[str, int]], known: Mapping[str, int], tries: Iterator[int]
) -> Iterator[Mapping[str, int]]:
    """The solutions; what is known so far after too many tries, when nothing is disproved."""
    unknown = [(sorted({*names_in(axis)}.difference(known)), value) for axis, value in wanted]
    if any(not rest and size_of(axis, known) != n for (axis, n), (rest, _) in zip(wanted, unknown, strict=True)):
        return
    if not any(rest for rest, _ in unknown):
        yield known
        return
    rest, value = min((each for each in unknown if each[0]), key=lambda each: len(each[0]))
    for size in range(1, value + _BEYOND):
        if next(tries, None) is None:
            yield known
            return
        yield from _solutions(wanted, {**known, rest[0]: size}, tries)


@lru_cache(maxsize=256)
def _parsed(axis: str) -> ast.expr:
    return ast.parse(axis, mode="eval").body


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            one, other = _value(left, sizes), _value(right, sizes)
            return None if one is None or other is None else _OPERATIONS[type(op)](one, other)
    return None
