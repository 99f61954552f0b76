"""Numbers between the constants in a function's source: between two of them another branch may be taken."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from types import CellType, CodeType, FunctionType
from typing import Any

from gradcli.targets import TargetInfo

_SMALLEST, _LARGEST = 0.01, 100.0
"""Constants outside these are tolerances, sizes or limits that few inputs come near."""
_MOST = 12
"""A source with more constants is a table of coefficients, not one of branches."""


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


def _values(functions: list[Callable[..., Any]]) -> Iterator[object]:
    """What functions, those inside them, and functions of the same module that they call read as constants."""
    open_, seen = [f for f in functions if isinstance(f, FunctionType)], set[CodeType]()
    while open_:
        function = open_.pop()
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        read = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
        for code in _nested(function.__code__):
            read += [function.__globals__.get(name) for name in code.co_names]
            yield from code.co_consts
        yield from read
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
