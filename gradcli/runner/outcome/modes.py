"""Other values of arguments: of booleans, of words that the code compares with, and of numbers beyond its literals."""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from gradcli.cases import Argument, InputSpec
from gradcli.checks.other_points.numbers import is_ordered, keeps_order
from gradcli.checks.other_points.tuples import in_few_digits
from gradcli.edits.source import written
from gradcli.runner.arguments.prepare import Prepared

_MOST = 6
"""Other values that are tried: each costs a check, and a reduction has two others."""
_UNLISTED = "another"
"""A word that code does not compare with, for its last branch; where forward refuses it, nothing is learnt."""
_MOST_LITERALS = 4
"""Numbers in the code whose other side is tried, the nearest ones."""
_PAST, _SHORT_OF = 1.5625, 0.75
"""By which such a number is multiplied: far enough that entries lie between, near enough that some lie beyond."""
_ABOVE, _BELOW = 4, 0.25
"""By which an argument is multiplied wherever the numbers in the code lie."""


def other_modes(ready: Prepared) -> Iterator[tuple[str, tuple[InputSpec, ...]]]:
    """The inputs with one such argument at another value, and what that is; arguments left out have their defaults."""
    info, given = ready.info, _given(ready)
    functions = [info.forward, info.setup_context, info.backward]
    found = [(spec, value) for spec in given if spec.kind == "value" for value in _others(spec, functions)]
    for spec, value in found[:_MOST]:
        yield f"{spec.name}={value!r}", _with_value(spec, value, given, ready)


def other_numbers(
    ready: Prepared, codes: Mapping[FunctionType, CodeType]
) -> Iterator[tuple[str, tuple[InputSpec, ...]]]:
    """The inputs with one real number of a formula elsewhere, and what that is: beyond the numbers in new code.

    `x.clamp(-1, 1).clamp(-c, c)` is `x.clamp(-c, c)` as long as `c` is less than 1. Signs stay as they are, and so does
    the order of the numbers given.
    """
    given = _given(ready)
    arguments = [Argument(name=s.name, value=s.value, is_tensor=s.kind != "value") for s in given]
    sizes = {abs(n) for code in codes.values() for n in _numbers_in(code.co_consts)} - {0}
    for place, spec in enumerate(given):
        if not is_ordered(arguments[place]):
            continue
        for value in _elsewhere(spec.value, sizes) if spec.value else ():
            if keeps_order({place: value}, arguments):
                yield f"{spec.name}={value!r}", _with_value(spec, value, given, ready)


def _given(ready: Prepared) -> tuple[InputSpec, ...]:
    """All inputs; arguments left out have their defaults."""
    specs = ready.supply.specs
    named = {spec.name for spec in specs}
    left = [p for p in ready.info.parameters if p.has_default and p.name not in named and not p.keyword_only]
    return (*specs, *(InputSpec(name=p.name, kind="value", value=p.default) for p in left))


def _with_value(spec: InputSpec, value: Any, given: Sequence[InputSpec], ready: Prepared) -> tuple[InputSpec, ...]:
    rest = given if spec not in ready.supply.specs else ready.supply.specs
    return tuple(replace(spec, value=value) if each is spec else each for each in rest)


def _numbers_in(constants: Sequence[Any]) -> Iterator[float]:
    """The numbers among the constants of code, those of functions and tuples in it too."""
    for each in constants:
        if isinstance(each, CodeType):
            yield from _numbers_in(each.co_consts)
        elif isinstance(each, tuple):
            yield from _numbers_in(each)
        elif isinstance(each, int | float) and not isinstance(each, bool):
            yield each


def _elsewhere(value: float, sizes: Collection[float]) -> list[float]:
    """Values on the other side of the nearest of these sizes, and well above and below; of the same sign and type."""
    own = abs(value)
    nearest = sorted(sizes, key=lambda size: abs(size - own))[:_MOST_LITERALS]
    if isinstance(value, int):
        found = [size + 1 if size >= own else size - 1 for size in nearest if size == int(size)] + [own + 1, own - 1]
    else:
        found = [size * (_PAST if size >= own else _SHORT_OF) for size in nearest] + [own * _ABOVE, own * _BELOW]
    made = [type(value)(n) if isinstance(value, int) else in_few_digits(n) for n in found if n > 0]
    return [n if value > 0 else -n for n in dict.fromkeys(made) if n != own]


def _others(spec: InputSpec, functions: Sequence[Callable[..., Any] | None]) -> list[Any]:
    if isinstance(spec.value, bool):
        return [not spec.value]
    if not isinstance(spec.value, str):
        return []
    found = [own.node for function in functions if (own := written(function)) is not None]
    words = dict.fromkeys(word for node in found for word in _compared_with(spec.name, node))
    return [word for word in (*words, *([_UNLISTED] if words else ())) if word != spec.value]


def _compared_with(name: str, tree: ast.AST) -> Iterator[str]:
    """The strings with which the code compares an argument, or an attribute of ctx with its name."""
    for node in ast.walk(tree):
        sides: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        if any(name in (getattr(side, "id", None), getattr(side, "attr", None)) for side in sides):
            for part in (part for side in sides for part in ast.walk(side)):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value
