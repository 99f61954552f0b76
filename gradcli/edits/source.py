"""A user's function in the text of its file: its syntax tree, edits of it, and the code objects of the edited file."""

import ast
import copy
import inspect
import io
import itertools
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from gradcli.backends.attribution import is_users_file
from gradcli.frozen import dataclass
from gradcli.sources import nodes_of

Definition = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The text of a file, its lines as bytes, and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def starts(self) -> list[int]:
        """Where each line begins, in bytes."""
        found, place = [], 0
        for line in self.text.encode().splitlines(keepends=True):
            found.append(place)
            place += len(line)
        return [*found, place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A function of the user's with the file and the node in which it is defined."""

    function: FunctionType
    file: SourceFile
    node: Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEdit:
    """The bytes from `start` to `stop` of a file, replaced by `text`."""

    start: int
    stop: int
    text: str


def written(function: Callable[..., Any] | None, file: SourceFile | None = None) -> Written | None:
    """The definition of a function in its file; None where it has no source there, or the file is not the user's.

    `file` is used where the function is defined in it, so that functions of one file share a tree.
    """
    plain = None if function is None else inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        return None
    code = plain.__code__
    if not is_users_file(code.co_filename):
        return None
    if file is None or file.path != code.co_filename:
        file = read(code.co_filename)
    node = None if file is None else definition_of(file.tree, code)
    return None if file is None or node is None else Written(function=plain, file=file, node=node)


def read(path: str) -> SourceFile | None:
    """The file, None where it cannot be read or parsed as it is."""
    try:
        return parsed(path, decoded(Path(path).read_bytes()))
    except (OSError, ValueError, SyntaxError):
        return None


def decoded(raw: bytes) -> str:
    """The text of a Python file in the encoding that it declares. Raises ValueError or SyntaxError where it is not."""
    return raw.decode(encoding_of(raw))


def encoding_of(raw: bytes) -> str:
    """The encoding that a Python file declares, UTF-8 unless it does. Raises SyntaxError where there is none such."""
    return tokenize.detect_encoding(io.BytesIO(raw).readline)[0]


@lru_cache(maxsize=4)
def parsed(path: str, text: str) -> SourceFile:
    """A file with its tree, of which there is one for each text. Raises SyntaxError or ValueError."""
    return SourceFile(path=path, text=text, tree=ast.parse(text))


@lru_cache(maxsize=16)
def definition_of(tree: ast.Module, code: CodeType) -> Definition | None:
    """The one definition from which the code object was compiled."""
    found: list[Definition] = []
    for node in nodes_of(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                found.append(node)
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            found.append(node)
    return found[0] if len(found) == 1 else None


def are_alike(one: object, other: object) -> bool:
    """Whether two nodes say the same, wherever they stand; also lists of nodes and values in their fields."""
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, ast.AST):
            waiting += [(getattr(one, name, None), getattr(other, name, None)) for name in one._fields]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif repr(one) != repr(other):
            return False
    return True


def edited(file: SourceFile, edits: Sequence[TextEdit]) -> str:
    """The text with the edits made, in the line ends of the file. Raises ValueError where two of them overlap."""
    whole = file.text.encode()
    ends = "\r\n" if "\r\n" in file.text else "\n"
    ordered = sorted(edits, key=lambda e: (e.start, e.stop))
    if any(one.stop > other.start for one, other in itertools.pairwise(ordered)):
        raise ValueError("two edits change the same place")
    for edit in reversed(ordered):
        text = edit.text.replace("\r\n", "\n").replace("\n", ends)
        whole = whole[: edit.start] + text.encode() + whole[edit.stop :]
    return whole.decode()


def span(file: SourceFile, node: ast.AST) -> tuple[int, int]:
    """Where a node begins and ends, in bytes."""
    starts = file.starts
    placed: Any = node
    return starts[placed.lineno - 1] + placed.col_offset, starts[placed.end_lineno - 1] + placed.end_col_offset


def indent_of(file: SourceFile, node: ast.AST) -> str:
    """The blanks or tabs that the line of a node begins with."""
    start, _ = span(file, node)
    line = file.text.encode()[:start].rpartition(b"\n")[2].decode()
    return line[: len(line) - len(line.lstrip())]


def segment(file: SourceFile, node: ast.AST) -> str:
    """The text of a node."""
    start, stop = span(file, node)
    return file.text.encode()[start:stop].decode()


@lru_cache(maxsize=4)
def codes_in(text: str, path: str) -> Mapping[tuple[str, int], CodeType]:
    """The code objects of a file's functions, by qualified name and how many of that name come before it."""
    found: dict[tuple[str, int], CodeType] = {}
    for code in nested(compile(text, path, "exec", dont_inherit=True)):
        number = 0
        while (code.co_qualname, number) in found:
            number += 1
        found[code.co_qualname, number] = code
    return found


def key_of(function: FunctionType, file: SourceFile) -> tuple[str, int] | None:
    """The key under which `codes_in` holds the code of a function compiled from the unedited file."""
    for key, code in codes_in(file.text, file.path).items():
        if (
            code.co_qualname == function.__code__.co_qualname
            and code.co_firstlineno == function.__code__.co_firstlineno
        ):
            return key
    return None


def nested(code: CodeType) -> Iterator[CodeType]:
    """The code objects inside another one."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from nested(constant)


def compiled(node: Definition, function: FunctionType) -> CodeType | None:
    """The code object of a definition in the tree, for `function`; None if it cannot replace the function's code."""
    free = function.__code__.co_freevars
    inner: ast.stmt
    if isinstance(node, ast.Lambda):
        inner = ast.Expr(value=node)
    else:
        inner = copy.copy(node)
        inner.decorator_list, inner.returns = [], None
    bindings: list[ast.stmt] = [
        ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=ast.Constant(value=None)) for name in free
    ]
    outer = ast.parse("def enclosing():\n    pass").body[0]
    outer.body = [*bindings, inner]  # type: ignore[attr-defined]  # a function, as just written
    _locate(outer)
    module = ast.Module(body=[outer], type_ignores=[])
    try:
        made = compile(module, function.__code__.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, TypeError):
        return None
    code = next((c for c in nested(made) if c.co_name == function.__code__.co_name), None)
    return code if code is not None and code.co_freevars == free else None


def _locate(node: ast.AST) -> None:
    """Give new syntax line numbers, which compiling needs: all the same one, since no report shows them."""
    for each in ast.walk(node):
        if isinstance(each, ast.expr | ast.stmt | ast.keyword | ast.arg) and not hasattr(each, "col_offset"):
            each.lineno = each.end_lineno = 1
            each.col_offset = each.end_col_offset = 0
