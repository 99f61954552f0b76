"""Exceptions that do not depend on the inputs: an undefined name, an attribute that a module lacks, a missing GPU."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import final

from gradcli.frozen import dataclass
from gradcli.inputs.search.candidates import Skeleton, Slot

_NO_GPU = re.compile(r"not compiled with CUDA|No CUDA GPUs are available|Found no NVIDIA driver")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_CONDITIONS = (ast.IfExp, ast.BoolOp, ast.Lambda)
_KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The line that raises: `is_certain` if every call of forward gets to it, or raises an exception before it."""

    file: str
    line: int
    is_certain: bool

    def __str__(self) -> str:
        return f"line {self.line} of {Path(self.file).name}"


@final
class LastingErrors:
    """Decides when to give up because a line raises whatever the inputs are.

    One such exception is enough at a line that no call of forward can avoid. A line inside a branch must have raised it
    for as many kinds of inputs as there are ways to change one argument, since one argument decides most branches, and
    forward must never have got further.
    """

    def __init__(self, code: CodeType | None, slots: Sequence[Slot]) -> None:
        self._code = code
        self._needed = 1 + sum(len(slot.choices) - 1 for slot in slots)
        self._kinds: set[Skeleton] = set()
        self._progress = -1.0
        self.final: Place | None = None

    def saw(self, error: BaseException | None, progress: float, skeleton: Skeleton) -> bool:
        """Whether a failure, which got as far into forward as `progress` says, does not depend on the inputs."""
        place = lasting_place(error, self._code)
        if progress > self._progress:
            self._kinds.clear()
            self._progress = progress if place is not None else self._progress
        if place is not None and progress == self._progress:
            self._kinds.add(skeleton)
            if place.is_certain or len(self._kinds) >= self._needed:
                self.final = self.final or place
        return place is not None


def lasting_place(error: BaseException | None, code: CodeType | None) -> Place | None:
    """Where an exception that no inputs change was raised; None for an exception that may depend on them.

    Args:
        error: the exception, with its traceback.
        code: forward's, in which the search for the line begins.
    """
    is_own = isinstance(error, NameError | AttributeError | ImportError)
    if error is None or not (is_own or _NO_GPU.search(str(error))):
        return None
    frames = _frames(error, code)
    if not frames:
        return None
    found = [_statement_at(frame.tb_frame.f_code, frame.tb_lineno) for frame in frames]
    last, is_certain = found[-1]
    if last is None or not _is_missing(error, last, frames[-1]):
        return None
    is_certain = is_certain and all(certain for _, certain in found)
    return Place(file=frames[-1].tb_frame.f_code.co_filename, line=frames[-1].tb_lineno, is_certain=is_certain)


def _frames(error: BaseException, code: CodeType | None) -> list[TracebackType]:
    """The calls from forward down to the line that asked for what is missing."""
    found: list[TracebackType] = []
    traceback = error.__traceback__
    while traceback is not None:
        if found or traceback.tb_frame.f_code is code:
            found.append(traceback)
        traceback = traceback.tb_next
    is_own = isinstance(error, NameError | AttributeError | ImportError)
    while len(found) > 1 and _only_reports(found[-1], is_own=is_own):
        found.pop()
    return found


def _only_reports(frame: TracebackType, *, is_own: bool) -> bool:
    """Whether a call belongs to the machinery that raised: of imports, of a module's `__getattr__`, or of PyTorch."""
    code, module = frame.tb_frame.f_code, str(frame.tb_frame.f_globals.get("__name__", ""))
    if is_own:
        return code.co_name == "__getattr__" or code.co_filename.startswith("<frozen importlib")
    return module.partition(".")[0] == "torch"


def _is_missing(error: BaseException, node: ast.AST, frame: TracebackType) -> bool:
    """Whether a statement itself asks for what is missing, rather than for a name that it got from elsewhere."""
    nodes = list(ast.walk(node))
    match error:
        case UnboundLocalError():
            name = "".join(re.findall(r"'(\w+)'", str(error))[:1])  # `error.name` is None
            is_read = any(isinstance(each, ast.Name) and each.id == name for each in nodes)
            return is_read and not _is_bound_before(frame, name)
        case NameError():
            is_global = "is not defined" in str(error)
            return is_global and any(isinstance(each, ast.Name) and each.id == error.name for each in nodes)
        case AttributeError():
            asked = any(isinstance(each, ast.Attribute) and each.attr == error.name for each in nodes)
            return asked and (isinstance(error.obj, ModuleType) or _is_never_kept(error, frame))
        case ImportError():
            return isinstance(node, ast.Import | ast.ImportFrom)
    return any(
        (isinstance(each, ast.Attribute) and each.attr == "cuda")
        or (isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.startswith("cuda"))
        for each in nodes
    )


def _is_never_kept(error: AttributeError, frame: TracebackType) -> bool:
    """Whether forward reads from its context, which is empty when it is called, what it does not write there."""
    code, is_context = frame.tb_frame.f_code, hasattr(error.obj, "save_for_backward")
    if not is_context or frame.tb_frame.f_locals.get(code.co_varnames[0]) is not error.obj:
        return False
    nodes = [] if (tree := _tree(code)) is None else list(ast.walk(tree))
    written = {each.attr for each in nodes if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)}
    passed_on = any(isinstance(each, ast.Call) and _is_passed(code.co_varnames[0], each) for each in nodes)
    return bool(nodes) and error.name not in written and not passed_on


def _is_passed(name: str, call: ast.Call) -> bool:
    """Whether a call is given a variable, and may write attributes of it."""
    return any(
        isinstance(each, ast.Name) and each.id == name for each in (*call.args, *(k.value for k in call.keywords))
    )


def _is_bound_before(frame: TracebackType, name: str) -> bool:
    """Whether a function gives a variable a value on a line before."""
    tree = _tree(code := frame.tb_frame.f_code)
    line = frame.tb_lineno - code.co_firstlineno + 1
    for each in () if tree is None else ast.walk(tree):
        match each:
            case ast.Name(id=bound, ctx=ast.Store() | ast.Del()):
                names = [bound]
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names = [alias.asname or alias.name.partition(".")[0] for alias in imported]
            case _:
                continue
        if name in names and each.lineno < line:
            return True
    return False


@lru_cache(maxsize=_KEPT)
def _statement_at(code: CodeType, line: int) -> tuple[ast.AST | None, bool]:
    """The statement at a line of a function, without what is inside it, and whether every call gets to it.

    None where there is no source, and where the line belongs to a branch that ends in `raise`: such a branch refuses
    inputs, and other inputs do not reach it.
    """
    tree = _tree(code)
    own = next(iter(tree.body), None) if tree is not None else None
    if not isinstance(own, ast.FunctionDef) or own.name != code.co_name:
        return None, False
    return _within(own.body, line - code.co_firstlineno + 1)


def _tree(code: CodeType) -> ast.Module | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _within(body: Sequence[ast.stmt], line: int) -> tuple[ast.AST | None, bool]:
    is_certain = True
    for statement in body:
        if not _covers(statement, line):
            is_certain = is_certain and not _may_leave(statement)
            continue
        inner = [part for part in _bodies(statement) if any(_covers(each, line) for each in part)]
        if not inner:
            header = _header(statement)
            certain = not any(isinstance(each, (*_CONDITIONS, ast.Assert)) for each in ast.walk(header))
            return header, is_certain and certain
        if isinstance(statement, ast.If | ast.Match) and isinstance(inner[0][-1], ast.Raise):
            return None, False
        found, certain = _within(inner[0], line)
        is_first = inner[0] is getattr(statement, "body", None)
        runs = is_first and isinstance(statement, ast.With | ast.For | ast.Try)
        return found, is_certain and certain and runs
    return None, False


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _bodies(statement: ast.stmt) -> Iterable[list[ast.stmt]]:
    """The lists of statements inside a statement."""
    for part in ("body", "orelse", "finalbody"):
        if isinstance(inner := getattr(statement, part, None), list):
            yield inner
    for each in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield each.body


def _header(statement: ast.stmt) -> ast.AST:
    """What a statement evaluates before those inside it."""
    match statement:
        case ast.If(test=node) | ast.While(test=node) | ast.For(iter=node) | ast.Match(subject=node):
            return node
        case ast.With(items=items):
            return ast.Tuple(elts=[each.context_expr for each in items])
    return statement


def _may_leave(node: ast.AST, *, in_loop: bool = False) -> bool:
    """Whether a statement may end the function, or a turn of the loop around it, without an exception."""
    if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
        return True
    if isinstance(node, _FUNCTIONS):
        return False
    in_loop = in_loop or isinstance(node, _LOOPS)
    return any(_may_leave(each, in_loop=in_loop) for each in ast.iter_child_nodes(node))
