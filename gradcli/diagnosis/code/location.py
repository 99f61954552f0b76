"""The suspect line of backward: where the value that was returned for an input was last computed."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.attribution import is_users_file
from gradcli.backends.base import Subject
from gradcli.diagnosis.code.ancestry import Ancestry
from gradcli.diagnosis.code.helpers import line_in_helper
from gradcli.diagnosis.code.source import FunctionSource, function_tree
from gradcli.diagnosis.code.tangents import line_of_tangent
from gradcli.diagnosis.code.traced import first_rounded, first_rounding, last_written, traced
from gradcli.diagnosis.code.watch import watched_write
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.results import Finding, Location

_IN_FORWARD = frozenset({FindingKind.MUTATES_INPUT, FindingKind.NONDETERMINISTIC_FORWARD, FindingKind.JIT_MISMATCH})
_WRITES = frozenset({FindingKind.MUTATES_GRAD_OUTPUT, FindingKind.MUTATES_SAVED, FindingKind.MUTATES_INPUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectLine:
    """A line with the reason for suspecting it."""

    location: Location
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the checks saw of the gradients.

    Nothing else explains those of the inputs `wrong`, those of the inputs `right` are right and not zero, and
    `wrong_entries` tells which entries of the finding's own gradient are wrong, where that is known. It is wrong for
    these `outputs`.
    """

    wrong: Sequence[str] = ()
    right: Sequence[str] = ()
    wrong_entries: NDArray[np.bool_] | None = None
    outputs: Sequence[int] = ()


_NOTHING = Seen()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The search for the line of one finding: the lines of backward that ran, and what the checks saw."""

    finding: Finding
    subject: Subject
    source: FunctionSource
    executed: set[int]
    seen: Seen


def locate(finding: Finding, subject: Subject, seen: Seen = _NOTHING) -> SuspectLine | None:
    """The line to look at for a finding; None without source, and for a finding that has a line already.

    For a gradient: the last statement that calculated what is returned for that input, and for the other inputs whose
    gradients nothing else explains, but for no right one; else the return statement, or the last statement that ran if
    there is none. For a write in place: the first statement that writes into an existing object. For a gradient in a
    wrong place: where it was computed.
    """
    if finding.location is not None or finding.kind is FindingKind.LEAKS_MEMORY:
        return _kept_on_ctx(finding, subject) if finding.location is None else None
    function = _function_of(finding, subject)
    source = function_tree(function)
    if source is None:
        is_lambda = getattr(function, "__name__", "") == "<lambda>"
        shown = finding.input is not None and (subject.info.rules or is_lambda)
        return _defined(function) if shown else None
    if finding.kind in _WRITES or finding.kind is FindingKind.SECOND_BACKWARD_FAILS:
        written = watched_write(subject, finding.kind, function)
        line = _first_write(source) if written is None else written - source.first_line + 1
        if written is not None or finding.kind in _WRITES:
            return None if line is None else _place(source, line, "writes in place")
    if finding.kind in (FindingKind.JVP_MISMATCH, FindingKind.VMAP_MISMATCH, FindingKind.JIT_MISMATCH):
        line = _return_line(source, _all_lines(source))
        return None if line is None else _place(source, line, "computes what is returned")
    rounds = first_rounding(subject) if finding.kind is FindingKind.LOW_PRECISION else None
    if rounds is not None:
        return SuspectLine(location=rounds, why="computes in a lower precision")
    executed = _executed_lines(subject, source)
    slot = None if subject.info.inner else _slot(finding, subject)
    search = _Search(finding=finding, subject=subject, source=source, executed=executed, seen=seen)
    line = _whole_line(search) if slot is None else _filled_line(search, slot)
    line = _shared_line(search) or line if finding.input in seen.wrong else line
    line = _condition(finding, subject, source) or line
    if line is None and _last_return(source, executed) is None:
        line = _last_statement(source, executed)
    return None if line is None else _place(source, line, "computes what is returned")


def _condition(finding: Finding, subject: Subject, source: FunctionSource) -> int | None:
    """The line of the condition on another input's gradient under which this input's is computed."""
    names = [argument.name for argument in subject.arguments]
    if finding.kind is not FindingKind.NEEDS_INPUT_GRAD or finding.input not in names:
        return None
    from gradcli.diagnosis.code.conditions import condition_of_others  # for one finding alone

    return condition_of_others(source.tree, names.index(finding.input), len(names))


def _kept_on_ctx(finding: Finding, subject: Subject) -> SuspectLine | None:
    """The assignment to the attribute of ctx that a finding names; None if it names none, or none is found."""
    named = re.match(r"ctx\.(\w+) ", finding.message)
    for function in (subject.info.setup_context, subject.info.forward):
        source = function_tree(function)
        if named is None or source is None:
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == named[1]:
                return _place(source, node.lineno, "keeps an output on ctx")
    return None


def _function_of(finding: Finding, subject: Subject) -> Callable[..., Any] | None:
    """The user's function that causes a finding."""
    if finding.kind is FindingKind.JVP_MISMATCH:
        return subject.info.jvp
    if finding.kind is FindingKind.VMAP_MISMATCH:
        return subject.info.vmap
    names = [parameter.name for parameter in subject.info.parameters]
    if subject.info.rules and finding.input in names and names.index(finding.input) < len(subject.info.rules):
        return subject.info.rules[names.index(finding.input)]
    in_forward = finding.kind in _IN_FORWARD and not finding.message.startswith("backward")
    return subject.info.forward if in_forward else subject.info.backward


def _defined(function: Callable[..., Any] | None) -> SuspectLine | None:
    """Where a function without a syntax tree of its own, such as a lambda, is defined."""
    code = getattr(function, "__code__", None)
    if code is None or not is_users_file(code.co_filename):
        return None
    return SuspectLine(location=Location(file=code.co_filename, line=code.co_firstlineno), why="is the rule")


def _place(source: FunctionSource, line: int, why: str) -> SuspectLine:
    return SuspectLine(location=Location(file=source.file, line=source.first_line + line - 1), why=why)


def _slot(finding: Finding, subject: Subject) -> int | None:
    """The place in backward's return value to look at."""
    names = [argument.name for argument in subject.arguments]
    if finding.input not in names:
        return None
    if finding.stray in names:
        return names.index(finding.stray)
    return names.index(finding.input)


def _executed_lines(subject: Subject, source: FunctionSource) -> set[int]:
    """Lines of backward that run for this input, relative to the tree; every line where it cannot be traced.

    The lines count even if the framework then refuses what backward returned.
    """
    code = getattr(subject.info.backward, "__code__", None)
    lines: set[int] = set()

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not code:
            return None
        if event == "line":
            lines.add(frame.f_lineno - source.first_line + 1)
        return follow

    traced(subject, follow)
    return lines or _all_lines(source)


def _whole_line(search: _Search) -> int | None:
    """The line that calculated the tangents that a rule of forward mode returns; else that of the return statement."""
    subject, source, executed = search.subject, search.source, search.executed
    statement, name, line = _last_return(source, executed), search.finding.input, None
    if subject.info.is_pushed and statement is not None:
        line = line_of_tangent(subject, source.tree, statement.value, executed, name=name, outputs=search.seen.outputs)
    return line or _return_line(source, executed)


def _all_lines(source: FunctionSource) -> set[int]:
    return set(range(1, (source.tree.end_lineno or 1) + 1))


def _return_line(source: FunctionSource, executed: set[int]) -> int | None:
    statement = _last_return(source, executed)
    return None if statement is None else statement.lineno


def _last_return(source: FunctionSource, executed: set[int]) -> ast.Return | None:
    found = [n for n in ast.walk(source.tree) if isinstance(n, ast.Return) and _ran(n, executed)]
    return max(found, key=lambda n: n.lineno, default=None)


def _last_statement(source: FunctionSource, executed: set[int]) -> int | None:
    """The first line of the last statement that ran; None if no call of the function was followed."""
    nodes = (node for node in ast.walk(source.tree) if isinstance(node, ast.stmt) and node is not source.tree)
    simple = [node.lineno for node in nodes if not hasattr(node, "body") and _ran(node, executed)]
    return max(simple, default=None)


def _filled_line(search: _Search, slot: int) -> int | None:
    """The line that wrote the wrong entries, if the result is a name and filled in pieces; else the one returned.

    For a gradient of too few digits the line that made the array it is written into, which has these few digits.
    """
    finding, subject, source, executed = search.finding, search.subject, search.source, search.executed
    value = _returned_value(source, slot, executed)
    helped = line_in_helper(subject, source, value)
    if helped is not None:
        return helped - source.first_line + 1
    if isinstance(value, ast.Name) and finding.kind is FindingKind.LOW_PRECISION:
        made_at = first_rounded(subject, value.id)
        if made_at is not None:
            return made_at - source.first_line + 1
    position = next((i for i, a in enumerate(subject.arguments) if a.name == finding.input), None)
    name = None if value is None else _filled_name(value)
    if name is not None and position is not None and not subject.info.inner:
        shape = tuple(np.shape(subject.arguments[position].value))
        found = last_written(subject, name, shape, finding.entries, search.seen.wrong_entries)
        if found is not None:
            line = found.line - source.first_line + 1
            of_right = [n - source.first_line + 1 for n in found.of_right]
            made = [n for n in _assignments(source.tree, name) if isinstance(n, ast.Assign | ast.AugAssign)]
            whole = [n for n in made if n.lineno == line and isinstance(n, ast.Assign) and not _reads(n, name)]
            right = [n.value for n in made if n.lineno in of_right]
            made_by = _source_of(whole[0].value, search, right) if whole else None
            return line if made_by is None else made_by.lineno
    return _returned_line(search, slot)


def _filled_name(value: ast.expr) -> str | None:
    """The name of an array that is returned, also in another shape, or of a list that is stacked; None for others."""
    call = value.func if isinstance(value, ast.Call) else None
    if isinstance(value, ast.Call) and isinstance(call, ast.Attribute):
        if call.attr in ("reshape", "view", "view_as", "reshape_as", "unflatten"):
            value = call.value
        elif call.attr == "stack" and len(value.args) == 1 and not value.keywords:
            value = value.args[0]
    return value.id if isinstance(value, ast.Name) else None


def _source_of(value: ast.expr, search: _Search, right: Sequence[ast.expr] = ()) -> ast.stmt | None:
    """The statement that a wrong value comes from, and neither a right gradient nor the values `right` do."""
    ancestry = Ancestry(search.source.tree, search.executed)
    names = [argument.name for argument in search.subject.arguments]
    places = [names.index(name) for name in search.seen.right if name in names]
    returned = [_returned_value(search.source, place, search.executed) for place in places]
    all_right = [*(each for each in returned if each is not None and each is not value), *right]
    if search.finding.kind is FindingKind.TRANSPOSED and _transposes(value):
        return None
    is_exchanged = search.finding.kind is FindingKind.SWAPPED_GRADIENTS
    return ancestry.source_of(value, ancestry.behind_whole(all_right), is_exchanged=is_exchanged)


def _source_of_part(value: ast.expr, search: _Search) -> ast.stmt | None:
    """The statement that one of several stacked values comes from, where no other of them is wrong."""
    wrong = search.seen.wrong_entries
    stacked = value.func if isinstance(value, ast.Call) else None
    if wrong is None or not isinstance(value, ast.Call) or not isinstance(stacked, ast.Attribute) or not value.args:
        return None
    parts = value.args[0].elts if isinstance(value.args[0], ast.List | ast.Tuple) else []
    axes = [*value.args[1:], *(each.value for each in value.keywords)]
    axis = _whole_number(axes[0]) if axes else 0
    if stacked.attr != "stack" or len(axes) > 1 or axis is None or not -wrong.ndim <= axis < wrong.ndim:
        return None
    at = np.unique(np.nonzero(wrong)[axis])
    if len(at) != 1 or wrong.shape[axis] != len(parts):
        return None
    return _source_of(parts[at[0]], search, [each for n, each in enumerate(parts) if n != at[0]])


def _whole_number(node: ast.expr) -> int | None:
    """The whole number that an expression is written as; None for others."""
    sign, inner = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    value = inner.value if isinstance(inner, ast.Constant) else None
    return sign * value if isinstance(value, int) else None


def _reads(statement: ast.Assign, name: str) -> bool:
    """Whether the value of an assignment depends on what a name stood for before."""
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement.value))


def _transposes(value: ast.expr) -> bool:
    """Whether an expression turns the axes of a value that it passes on."""
    return any(isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H", "mH") for node in ast.walk(value))


def _shared_line(search: _Search) -> int | None:
    """The line from which all of several wrong gradients are computed, and no right one; None where there is none."""
    subject, source, executed, wrong = search.subject, search.source, search.executed, search.seen.wrong
    names = [argument.name for argument in subject.arguments]
    if subject.info.inner or len(wrong) < 2 or not set(wrong) <= set(names):
        return None
    values = {names[place]: _returned_value(source, place, executed) for place in subject.active}
    of_wrong = [value for name, value in values.items() if name in wrong and value is not None]
    of_right = [value for name, value in values.items() if name not in wrong and value is not None]
    if len(of_wrong) != len(wrong) or len({ast.dump(value) for value in of_wrong}) < len(wrong):
        return None
    are_exchanged = search.finding.kind is FindingKind.SWAPPED_GRADIENTS
    found = Ancestry(source.tree, executed).shared(of_wrong, of_right, are_exchanged=are_exchanged)
    return None if found is None else found.lineno


def _returned_value(source: FunctionSource, slot: int, executed: set[int]) -> ast.expr | None:
    """The expression returned in place `slot`, as far as the return statement shows it."""
    statement = _last_return(source, executed)
    value = None if statement is None else statement.value
    if isinstance(value, ast.Tuple):
        starred = next((place for place, e in enumerate(value.elts) if isinstance(e, ast.Starred)), len(value.elts))
        return value.elts[slot] if slot < starred else None
    return value


def _starred_line(source: FunctionSource, slot: int, executed: set[int]) -> int | None:
    """The line of the last assignment that ran to the entry of a list that is returned last, as *gradients."""
    statement = _last_return(source, executed)
    value = None if statement is None else statement.value
    if not isinstance(value, ast.Tuple) or slot < len(value.elts) - 1 or not isinstance(value.elts[-1], ast.Starred):
        return None
    if any(isinstance(e, ast.Starred) for e in value.elts[:-1]) or not isinstance(value.elts[-1].value, ast.Name):
        return None
    number, name = slot - len(value.elts) + 1, value.elts[-1].value.id
    made = [n for n in _assignments(source.tree, name) if _ran(n, executed) and _may_write(n, name, number)]
    return max((n.lineno for n in made), default=None)


def _may_write(node: ast.stmt, name: str, number: int) -> bool:
    """Whether an assignment to a list, or to an entry of it, may write the entry of this number."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            return target.slice.value == number or _root_name(target) != name
    return True


def _returned_line(search: _Search, slot: int) -> int | None:
    """The line of the last assignment that ran to what is returned in place `slot`."""
    source, executed = search.source, search.executed
    statement = _last_return(source, executed)
    if statement is None or statement.value is None:
        return None
    value = _returned_value(source, slot, executed)
    if value is None:
        return _starred_line(source, slot, executed) or statement.lineno
    made = _source_of_part(value, search) or _source_of(value, search)
    if made is not None or not isinstance(value, ast.Name):
        return value.lineno if made is None else made.lineno
    lines = [n.lineno for n in _assignments(source.tree, value.id) if _ran(n, executed)]
    return max(lines, default=value.lineno)


def _ran(node: ast.stmt, executed: set[int]) -> bool:
    return any(line in executed for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _assignments(tree: ast.FunctionDef, name: str) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            roots = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            if any(_root_name(t) == name for t in roots) and isinstance(node, ast.stmt):
                yield node


def _root_name(target: ast.expr) -> str | None:
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _first_write(source: FunctionSource) -> int | None:
    """The first statement that writes into an object: x[...] = ..., x += ..., x.method_(...)."""
    found = [node.lineno for node in ast.walk(source.tree) if _writes(node)]
    return min(found, default=None)


def _writes(node: ast.AST) -> TypeGuard[ast.stmt | ast.expr]:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return name.endswith("_") and not name.endswith("__")
    return isinstance(node, ast.AugAssign)
