"""Sizes that documentation gives by equations, as in `x: (B, n), w: (k, p) with n = k * p`, or calls even."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from gradcli.inputs.hints.documented_order import is_of_a_case
from gradcli.inputs.hints.documented_shapes import Axis, texts_of
from gradcli.inputs.hints.prose.divisors import divisors_named
from gradcli.inputs.hints.prose.formulas import names_in

_TERM = r"(?:[A-Za-z]\w*|\d+)"
_SIDE = rf"{_TERM}(?:[ \t]*(?://|[-+*/])[ \t]*{_TERM})*"
_EQUATION = re.compile(rf"(?<![\w.)\]])({_SIDE})[ \t]*==?[ \t]*({_SIDE})(?![(\[\w]|\.\w|[ \t]*[-+*/^@=<>])")
_OPEN = re.compile(r"(?:\S[ \t]*[-+*/^@]|[=<>!])\s*$")
"""What stands before a part of a longer formula."""
_PRODUCT = re.compile(rf"{_TERM}(?:[ \t]*\*[ \t]*{_TERM})+")
_LARGEST = 9
"""An equation with a larger number, such as `D = 64`, is an example."""


def with_equations(
    shapes: Mapping[str, tuple[Axis, ...]], names: Collection[str], source: str, documentation: str = ""
) -> dict[str, tuple[Axis, ...]]:
    """The shapes with those sizes computed from others that an equation of sizes gives.

    Of `l * r = k * q` the last name of a product is computed, as `k * q // l`. An even `n` is twice a new name.

    Args:
        shapes: the documented shapes of arguments.
        names: all arguments, which may be numbers in an equation.
        source: of forward, of which docstring and comments are read.
        documentation: a further text, such as the class's docstring.
    """
    named = {name for shape in shapes.values() for axis in shape if isinstance(axis, str) for name in names_in(axis)}
    sizes, numbers = named.difference(names), {*names}.difference(shapes)
    last = next((str(shape[-1]) for shape in shapes.values() if len(shape) > 1), None)
    replaced: dict[str, str] = {}
    for text in texts_of(source, documentation):
        for sides in (*_equations(text, sizes | numbers), *divisors_named(text, sizes, sizes | numbers, last)):
            one, other = (_substituted(side, replaced) for side in sides)
            found = _named(one, other, sizes) or _named(other, one, sizes) or _factor(one, other, sizes)
            if found is not None:
                name, value = found
                replaced = {each: _substituted(old, {name: value}) for each, old in replaced.items()}
                replaced[name] = value
    return {name: tuple(_axis(axis, replaced) for axis in shape) for name, shape in shapes.items()}


def _equations(text: str, known: Collection[str]) -> Iterator[Sequence[str]]:
    """Both sides of the equations of known names, but not those of a case, as in `if n = m`."""
    for match in _EQUATION.finditer(text):
        before = text[: match.start()].rsplit("\n", maxsplit=1)[-1].lstrip("-* \t")
        if {*names_in(match[0])} <= {*known} and _OPEN.search(before) is None and not is_of_a_case(text, match.start()):
            yield match.groups()


def _named(side: str, value: str, sizes: Collection[str]) -> tuple[str, str] | None:
    """The size that one side of an equation is the name of, and what it equals."""
    is_example = value.isdigit() and not 0 < int(value) <= _LARGEST
    return (side, value) if side in sizes and side not in names_in(value) and not is_example else None


def _factor(product: str, value: str, sizes: Collection[str]) -> tuple[str, str] | None:
    """The last size in a product of different names, and the quotient that it equals."""
    factors = [each.strip() for each in product.split("*")]
    if _PRODUCT.fullmatch(product) is None or len({*factors}) < len(factors) or {*factors} & {*names_in(value)}:
        return None
    name = next((each for each in reversed(factors) if each in sizes), None)
    divisor = " * ".join(each for each in factors if each != name)
    return None if name is None else (name, f"({value}) // ({divisor})")


def _substituted(text: str, values: Mapping[str, str]) -> str:
    """A formula with values in the place of names."""
    return re.sub(r"[A-Za-z]\w*", lambda match: f"({values[match[0]]})" if match[0] in values else match[0], text)


def _axis(axis: Axis, replaced: Mapping[str, str]) -> Axis:
    if isinstance(axis, int) or not {*names_in(axis)} & replaced.keys():
        return axis
    value = replaced[axis] if axis in replaced else _substituted(axis, replaced)
    return int(value) if value.isdigit() else value
