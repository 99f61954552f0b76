"""A range of an input for which the gradient is right, where forward clamps the values that were drawn."""

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import InputSpec
from gradcli.errors import GradcliError
from gradcli.findings import SURROGATE_ADVICE
from gradcli.results import CheckResult, Evidence, Finding
from gradcli.runner.outcome.domains import drawn_from, is_right_for
from gradcli.runner.outcome.recheck import FailureProof, Recheck
from gradcli.runner.planning.plan import CheckCase
from gradcli.sources import nodes_of, source_of, tree_of

_BOTH = frozenset(("clamp", "clip", "clamp_", "clip_"))
_LOWEST, _HIGHEST = ("clamp_min", "clamp_min_"), ("clamp_max", "clamp_max_")
_MINIMA, _MAXIMA = ("min", "a_min"), ("max", "a_max")
_CASTS = frozenset(("double", "float", "to", "type", "astype", "clone", "detach"))
_WIDTH = 2.0
"""The length of a range with one end, in sizes of that end."""
CLAMPS = "that forward clamps"
"""The words of a note on such a range."""
Range = tuple[float, float]


def clamped_note(
    result: CheckResult, case: CheckCase, subject: Subject, finding: Finding, evidence: Sequence[Evidence]
) -> str | None:
    """The flag to add if an input always lies where forward does not clamp it, as an argument of arcosh does.

    The arguments and the result are those of `positive_note`. Where the gradient is the same for all values, forward
    may be a mere clamp, and its gradient a straight-through one.
    """
    proof = FailureProof.of(finding, evidence)
    if not (proof.is_of_values and proof.is_finite):
        return None
    recheck = Recheck(subject, proof, case.settings, case.seed)
    ranges = _ranges(subject)
    for spec in result.inputs:
        if spec.domain != "normal" or spec.name not in ranges:
            continue
        low, high = ranges[spec.name]
        inside = replace(spec, domain="open-interval", parameters=(("lo", low), ("hi", high)))
        if not is_right_for(recheck, (inside,), subject.arguments, result, case):
            continue
        if _varies(subject, inside, result, case):
            return (
                f"gradcli chose values of {spec.name} {CLAMPS}; the gradient is right for values between "
                f"{low:g} and {high:g}: if forward does not clamp them in your program, rerun with {inside.as_flag()}"
            )
    return None


def without_advice(finding: Finding) -> Finding:
    """The finding without the advice to declare a surrogate gradient."""
    return replace(finding, message=finding.message.replace(f"; {SURROGATE_ADVICE}", ""))


def _varies(subject: Subject, inside: InputSpec, result: CheckResult, case: CheckCase) -> bool:
    """Whether the gradient of the input changes within a range."""
    place = next((n for n, p in enumerate(subject.active) if subject.arguments[p].name == inside.name), None)
    ones = [np.ones(block.shape, block.dtype) for block in subject.codomain.blocks]
    found = []
    for arguments in drawn_from((inside,), subject.arguments, result, case):
        try:
            gradient = None if place is None else subject.rebind(arguments).backward(ones)[place]
        except GradcliError:
            return False
        if gradient is not None:
            found.append(gradient)
    return any(not np.allclose(found[0], other) for other in found[1:])


def _ranges(subject: Subject) -> dict[str, Range]:
    """The arguments that forward clamps, and between which numbers: where one end is open, near the other."""
    function = subject.info.forward
    tree = tree_of(source_of(function))
    numbers = {
        **getattr(function, "__globals__", {}),
        **{a.name: a.value for a in subject.arguments if not a.is_tensor},
    }
    found: dict[str, Range] = {}
    for node in () if tree is None else nodes_of(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for name, operands in _operands(node, node.func, {a.name for a in subject.arguments}):
                ends = _ends(node.func.attr, operands, node.keywords, numbers)
                if ends is not None:
                    found.setdefault(name, ends)
    return found


def _operands(node: ast.Call, called: ast.Attribute, names: set[str]) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    """The argument that a call may clamp with its further operands: that of a method, or the first of a function."""
    for value, rest in ((called.value, node.args), *((v, node.args[1:]) for v in node.args[:1])):
        own = _without_casts(value)
        if isinstance(own, ast.Name) and own.id in names:
            yield own.id, rest


def _without_casts(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS:
        node = node.func.value
    return node


def _ends(
    called: str, operands: Sequence[ast.expr], keywords: Sequence[ast.keyword], numbers: Mapping[str, object]
) -> Range | None:
    if called not in (*_BOTH, *_LOWEST, *_HIGHEST):
        return None
    given = {k.arg: k.value for k in keywords}
    first = next((given[name] for name in _MINIMA if name in given), operands[0] if operands else None)
    last = next((given[name] for name in _MAXIMA if name in given), operands[-1] if len(operands) > 1 else None)
    if called in _HIGHEST:
        first, last = None, next((given[name] for name in _MAXIMA if name in given), operands[0] if operands else None)
    low, high = (None if end is None else _number(end, numbers) for end in (first, last))
    if low is None and high is None:
        return None
    low = float(high) - _WIDTH * max(1.0, abs(high)) if low is None and high is not None else low
    high = float(low) + _WIDTH * max(1.0, abs(low)) if high is None and low is not None else high
    assert low is not None and high is not None  # noqa: S101, PT018 - one of them gave the other; for the type checker
    return (float(f"{low:.9g}"), float(f"{high:.9g}")) if low < high else None


def _number(node: ast.expr, numbers: Mapping[str, object]) -> float | None:
    """The value of an expression of numbers and names of numbers, also those of a class or a module."""
    node = _Read(numbers).visit(copy.deepcopy(node))
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    known = {name: numbers[name] for name in names if isinstance(numbers.get(name), int | float)}
    allowed = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.operator, ast.unaryop, ast.expr_context)
    if len(known) < len(names) or not all(isinstance(n, allowed) for n in ast.walk(node)):
        return None
    try:
        value = eval(compile(ast.Expression(node), "<number>", "eval"), {"__builtins__": {}}, known)  # noqa: S307
    except (ArithmeticError, TypeError, ValueError):
        return None
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None


class _Read(ast.NodeTransformer):
    """Puts numbers in the place of attributes of classes and modules that hold them."""

    def __init__(self, known: Mapping[str, object]) -> None:
        self._known = known

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A number for an attribute that is one."""
        owner = self._owner(node.value)
        value = getattr(owner, node.attr, None) if isinstance(owner, type | ModuleType) else None
        return ast.copy_location(ast.Constant(value), node) if isinstance(value, int | float) else node

    def _owner(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return self._known.get(node.id)
        owner = self._owner(node.value) if isinstance(node, ast.Attribute) else None
        is_read = isinstance(owner, type | ModuleType) and isinstance(node, ast.Attribute)
        return getattr(owner, node.attr, None) if is_read and isinstance(node, ast.Attribute) else None
