"""A number by which an edit multiplies, merged with a number of the product that it becomes part of.

Where `4` stands for `n`, what the product lacks is the factor `n / 4`; the edit to make is `n` in the place of `4`.
"""

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from gradcli.edits.expressions import number
from gradcli.edits.render import Change, Tree

Factors = list[tuple[ast.expr, int]]
"""Expressions, each with 1 where a product has it as a factor, and -1 where it is a divisor."""
_MOST = 64
"""The largest denominator of a number that is merged: that of any float is some power of two."""


def merged(change: Change, tree: Tree) -> tuple[Change, ...]:
    """The changes that do the same as one change and leave fewer numbers in the product; else that change itself."""
    old, new = change.old, change.new
    if not isinstance(old, ast.expr) or not isinstance(new, ast.expr):
        return (change,)
    sign = 1
    while isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.USub) and tree.parent(new) is None:
        new, sign = new.operand, -sign
    added = list(_factors(new, stop=old))
    values = [(_value(n), power) for n, power in added if n is not old and tree.parent(n) is None]
    by = sign * math.prod((v**power for v, power in values if v is not None), start=Fraction(1))
    rest = [(n, power) for n, power in added if n is old or tree.parent(n) is not None or _value(n) is None]
    stays = (old, 1) in rest
    product = [*(_factors(old) if stays else ()), *_beside(old, tree)]
    for part, power in rest if stays else ():
        for other, opposite in product:
            if part is not old and opposite == -power and _is_same(part, other):
                more = [each for each in rest if each[0] is not old and each[0] is not part]
                if changes := _for_constant(other, opposite, by, more, tree):
                    return changes
    found = [(c, power, v) for c, power in product if (v := _value(c)) is not None and _is_simpler(v**power, by)]
    for constant, power, value in found:
        if stays:
            more = [each for each in rest if each[0] is not old]
            changes = _for_constant(constant, power, value**power * by, more, tree)
        else:
            changes = _for_constant(constant, power, value**power * by, [], tree)
            whole = _product(rest)
            is_apart = all(not tree.is_inside(old, c.old) for c in changes)
            changes = (*changes, Change(old, whole)) if changes and whole is not None and is_apart else ()
        if changes:
            return changes
    return (change,)


def undoubled(changes: Sequence[Change], tree: Tree) -> tuple[Change, ...]:
    """The changes, where a sum of a thing with itself would result: as a product with 2, or with what 2 cancels.

    `(a + b) / 2` with `b` for `a` is `b`. Calls are left as they are, since they may give another value each time.
    """
    change = changes[0]
    above = tree.parent(change.old)
    if len(changes) > 1 or not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Add):
        return tuple(changes)
    new = change.new
    other = above.right if above.left is change.old else above.left
    if not isinstance(new, ast.expr) or _value(new) is not None or not _is_same(new, other):
        return tuple(changes)
    top: ast.expr = above
    while isinstance(over := tree.parent(top), ast.BinOp) and isinstance(over.op, ast.Mult | ast.Div):
        if isinstance(over.op, ast.Div) and over.right is top:
            break
        top = over
    product = [(new if n is above else n, power) for n, power in _factors(top, above)]
    for place, (node, power) in enumerate(product):
        value = _value(node)
        if value is not None and value**power == Fraction(1, 2):
            made = _product([*product[:place], *product[place + 1 :]])
            return (Change(top, new if made is None else made),)
    return (Change(above, ast.BinOp(left=number(2), op=ast.Mult(), right=new)),)


def _is_same(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions have one value: calls may not, but for those that count entries."""
    calls = [n.func for n in ast.walk(one) if isinstance(n, ast.Call)]
    counts = all(isinstance(each, ast.Attribute) and each.attr in ("numel", "size") for each in calls)
    return counts and ast.dump(one) == ast.dump(other)


def _factors(node: ast.expr, stop: ast.expr | None = None, power: int = 1) -> Iterator[tuple[ast.expr, int]]:
    if node is not stop and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        yield from _factors(node.left, stop, power)
        yield from _factors(node.right, stop, -power if isinstance(node.op, ast.Div) else power)
    else:
        yield node, power


def _beside(node: ast.expr, tree: Tree) -> Iterator[tuple[ast.expr, int]]:
    """The other factors of the product that an expression is a factor of."""
    above = tree.parent(node)
    while isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult | ast.Div):
        is_divided = isinstance(above.op, ast.Div)
        if is_divided and above.right is node:
            return
        yield from _factors(above.right if above.left is node else above.left, power=-1 if is_divided else 1)
        node, above = above, tree.parent(above)


def _value(node: ast.expr) -> Fraction | None:
    """The value of a number, or of one with a sign, that is not zero and has a small denominator."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand)
        return None if inner is None else -inner
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return None
    value = float(node.value)  # type: ignore[arg-type]  # an int or a float
    if not math.isfinite(value) or value == 0:
        return None
    exact = Fraction(value)
    return exact if exact.denominator <= _MOST else None


def _is_simpler(value: Fraction, by: Fraction) -> bool:
    """Whether one of two numbers is a fraction that their product is not, or is less of."""
    if value.denominator == by.denominator == 1:
        return False
    size, old = (each.denominator + abs(each.numerator) for each in (value * by, by))
    return size < old or (value * by).denominator == 1


def _for_constant(constant: ast.expr, power: int, value: Fraction, more: Factors, tree: Tree) -> tuple[Change, ...]:
    """A number of a product replaced by another value and further factors; left out where nothing remains."""
    if power < 0:
        value = 1 / value
    if value == 1 and not more:
        above = tree.parent(constant)
        if not isinstance(above, ast.BinOp) or (power < 0 and above.right is not constant):
            return ()
        return () if isinstance(above.op, ast.Div) and power > 0 else (Change(above, _other(above, constant)),)
    is_float = isinstance(constant, ast.Constant) and isinstance(constant.value, float)
    if value.denominator != 1 and not is_float:
        return ()
    kept = number(float(value) if is_float else int(value))
    made = _product([*([] if value == 1 else [(kept, 1)]), *((n, each * power) for n, each in more)])
    return () if made is None else (Change(constant, made),)


def _other(node: ast.BinOp, operand: ast.expr) -> ast.expr:
    return node.right if node.left is operand else node.left


def _product(factors: Sequence[tuple[ast.expr, int]]) -> ast.expr | None:
    """The product of factors over divisors; None where there is no factor."""
    above = [node for node, power in factors if power > 0]
    if not above:
        return None
    made = above[0]
    for node in above[1:]:
        made = ast.BinOp(left=made, op=ast.Mult(), right=node)
    for node in (n for n, power in factors if power < 0):
        made = ast.BinOp(left=made, op=ast.Div(), right=node)
    return made


def numbers_in(nodes: Iterable[ast.AST]) -> list[float]:
    """The numbers that nodes hold, each once: without 0, and 1 as the last."""
    constants = [n.value for node in nodes for n in ast.walk(node) if isinstance(n, ast.Constant)]
    numbers = [float(value) for value in constants if isinstance(value, int | float) and not isinstance(value, bool)]
    return sorted(filter(None, dict.fromkeys(numbers)), key=lambda value: value == 1.0)
