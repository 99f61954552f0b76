"""A factor that is the value of an expression of sizes in the source, such as math.sqrt(q.shape[-1]).

At inputs of one size it is a plain number. Whether it follows the expression shows at inputs of which an axis is cut.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np

from gradcli.diagnosis.code.source import FunctionSource, function_tree
from gradcli.diagnosis.code.traced import traced
from gradcli.diagnosis.factor import constant_factor
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.suspect import Suspect
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass

_PURE = frozenset({"size", "numel", "len", "sqrt", "float", "int"})
"""Functions that an expression may call: they change nothing, so that it can be evaluated once more."""
_PARTS = (
    ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript, ast.Name, ast.Constant, ast.operator, ast.unaryop,
    ast.expr_context,
)  # fmt: skip
_NEAR = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """An expression of forward or backward, by the number of the function, and its line in the file."""

    function: int
    text: str
    line: int


def of_sizes(suspect: Suspect, c: float) -> str:
    """The expression of sizes in the source that a factor is the value of, as a clause; empty for a plain number."""
    facts = suspect.facts
    if facts.is_costly or facts.subject.compiles_shapes:
        return ""
    own = [function_tree(f) for f in (facts.subject.info.forward, facts.subject.info.backward)]
    here = _values(facts, own)
    fitting = {place: value for place, value in here.items() if _power(c, value) is not None}
    if not fitting:
        return ""
    for there in _cut(facts):
        factor = constant_factor(there, suspect.block, there.of(there.subject.active[suspect.block]))
        values = _values(there, own)
        changed = [place for place in fitting if place in values and values[place] != fitting[place]]
        if factor is None or not changed:
            continue
        for place in changed:
            power = _power(c, fitting[place])
            if power is not None and _near(factor, np.sign(c) * values[place] ** power):
                return f"; {_named(place, fitting[place])}, and at other sizes the factor changes with it"
        return ""
    sized = [place for place in fitting if _reads_size(place.text)]
    return f"; {_named(sized[0], fitting[sized[0]])}, so at other sizes the factor may be another" if sized else ""


def _named(place: _Place, value: float) -> str:
    return f"{value:.10g} is the value of {place.text} in line {place.line}"


def _power(c: float, value: float) -> int | None:
    """1 if a factor is this value, -1 if it is one divided by it, of either sign."""
    return next((power for power in (1, -1) if _near(abs(c), value**power)), None)


def _near(one: float, other: float) -> bool:
    return bool(abs(one - other) <= _NEAR * abs(other))


def _values(facts: Facts, sources: list[FunctionSource | None]) -> dict[_Place, float]:
    """The values, greater than 0 and not 1, of the expressions of pure functions in forward and backward."""
    info = facts.subject.info
    codes = [getattr(None if f is None else inspect.unwrap(f), "__code__", None) for f in (info.forward, info.backward)]
    names: list[Mapping[str, Any]] = [{}, {}]

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code not in codes:
            return None
        if event == "return":
            names[codes.index(frame.f_code)] = {**frame.f_globals, **frame.f_locals}
        return follow

    traced(facts.subject, follow)
    found: dict[_Place, float] = {}
    for number, source in enumerate(sources):
        for node in () if source is None or not names[number] else _expressions(source.tree):
            value = _value(ast.unparse(node), names[number])
            if value is not None and source is not None:
                line = source.first_line + node.lineno - 1
                found.setdefault(_Place(function=number, text=ast.unparse(node), line=line), value)
    return found


def _expressions(tree: ast.FunctionDef) -> Iterator[ast.expr]:
    """The expressions that may be evaluated, those of one size first, then from the shortest on."""
    found = [
        n for n in ast.walk(tree) if isinstance(n, ast.BinOp | ast.Call | ast.Attribute | ast.Subscript | ast.Name)
    ]
    pure = [n for n in found if isinstance(getattr(n, "ctx", ast.Load()), ast.Load) and _is_pure(n)]
    yield from sorted(pure, key=lambda n: (not _reads_size(ast.unparse(n)), len(ast.unparse(n))))


def _is_pure(node: ast.expr) -> bool:
    calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    names = [f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls]
    return all(isinstance(each, _PARTS) for each in ast.walk(node)) and all(name in _PURE for name in names)


def _reads_size(text: str) -> bool:
    return any(part in text for part in (".shape", ".size(", ".numel(", ".size", "len("))


def _value(text: str, names: Mapping[str, Any]) -> float | None:
    try:
        value = eval(text, {}, dict(names))  # noqa: S307 - an expression of the user's that changes nothing
    except Exception:
        return None
    plain = type(value) in (int, float) or isinstance(value, np.integer | np.floating)
    return float(value) if plain and 0 < value < np.inf and value != 1 else None


def _cut(facts: Facts) -> Iterator[Facts]:
    """The facts at inputs whose axes of one size are all shorter by one entry, for each size."""
    subject = facts.subject
    tensors = [a for a in subject.arguments if a.is_tensor]
    if any(a.sparsity is not None for a in tensors):
        return
    for size in sorted({n for a in tensors for n in a.value.shape if n > 1}):
        arguments = [_shorter(a, size) if a.is_tensor else a for a in subject.arguments]
        try:
            there = subject.rebind(tuple(arguments))
            other = facts.over(there) if there.active == subject.active else None
            if other is not None and all(g is not None for p in subject.active for g in other.of(p)):
                yield other
        except UserCodeError:  # inputs that gradcli chose, which forward need not accept
            continue


def _shorter(argument: Any, size: int) -> Any:
    value = argument.value
    return replace(argument, value=np.array(value[tuple(slice(n - (n == size)) for n in value.shape)]))
