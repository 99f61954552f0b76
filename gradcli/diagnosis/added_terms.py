"""Whether the source of backward adds a term or divides by an argument: what is wrong is then that it does."""

import ast
from collections.abc import Iterator, Mapping

from gradcli.backends.base import Subject
from gradcli.sources import source_of, tree_of

_NEAR = 1e-6


def is_added(coefficient: float, form: str, subject: Subject) -> bool:
    """Whether backward adds minus a term, such as `alpha * H` where -0.1·grad_output·H is lacking.

    The number has to be that of the source, with the values of arguments and defaults: where the sign of a term is
    wrong, twice the term is lacking.
    """
    wanted = sorted(part for part in form.split("·") if not part.startswith("grad_output"))
    if not wanted or not all(part.isidentifier() for part in wanted):
        return False
    numbers = _numbers(subject)
    for sign, term in _terms(subject):
        found = _product(term, numbers)
        if found is None:
            continue
        factor, names = found
        cotangents = {name for name in names if name not in wanted and not _is_input(name, subject)}
        own = sorted(name for name in names if name not in cotangents)
        if own == wanted and len(cotangents) <= 1 and abs(sign * factor + coefficient) <= _NEAR * abs(coefficient):
            return True
    return False


def divisors(subject: Subject) -> set[str]:
    """The names and attributes of ctx that backward divides by."""
    found: set[str] = set()
    for tree in _trees(subject):
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
                below = node.right if isinstance(node, ast.BinOp) else node.value
                found |= {name for factor in _factors(below) if (name := _name_of(factor)) is not None}
    return found


def _trees(subject: Subject) -> list[ast.Module]:
    functions = [None if subject.info.inner else subject.info.backward, *subject.info.rules]
    if not any(functions):  # a NumPy function that returns its value with the gradients
        functions = [subject.info.forward]
    return [tree for function in functions if (tree := tree_of(source_of(function))) is not None]


def _terms(subject: Subject) -> Iterator[tuple[int, ast.expr]]:
    """The terms that are added or taken off, with their signs."""
    for tree in _trees(subject):
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
                sign = 1 if isinstance(node.op, ast.Add) else -1
                yield sign, node.right if isinstance(node, ast.BinOp) else node.value
                if isinstance(node, ast.BinOp):
                    yield 1, node.left


def _product(term: ast.expr, numbers: Mapping[str, float]) -> tuple[float, list[str]] | None:
    """The number in a product and its other factors by name; None for anything else than a product."""
    number, names = 1.0, list[str]()
    for factor in _factors(term):
        if isinstance(factor, ast.UnaryOp) and isinstance(factor.op, ast.USub):
            return None
        name = _name_of(factor)
        if isinstance(factor, ast.Constant) and isinstance(factor.value, int | float):
            number *= factor.value
        elif name is not None and name in numbers:
            number *= numbers[name]
        elif name is not None:
            names.append(name)
        else:
            return None
    return number, names


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _name_of(node: ast.expr) -> str | None:
    """The name of a variable, or of an attribute of one as in `ctx.beta`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _is_input(name: str, subject: Subject) -> bool:
    return name == "output" or any(a.name == name for a in subject.arguments if a.is_tensor)


def _numbers(subject: Subject) -> dict[str, float]:
    """The numbers among the arguments and the defaults of parameters, by name."""
    values = {p.name: p.default for p in subject.info.parameters if p.has_default}
    values |= {a.name: a.value for a in subject.arguments if not a.is_tensor}
    return {name: float(value) for name, value in values.items() if type(value) in (int, float)}
