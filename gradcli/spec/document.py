"""YAML text to a tree of marked nodes: bounded, safe, and every problem with file, line and column."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import yaml

from gradcli.errors import SpecError

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 20_000
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}$")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]{1,20}$|0x[0-9a-fA-F]{1,20}$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_SPECIAL = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan"),
}  # fmt: skip
# What the resolver itself gives: these scalars are read anew by `scalar`, whatever YAML 1.1 takes them for.
_SCALAR_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_COLLECTION_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("seq", "map"))


@final
@dataclass(slots=True)
class Problems:
    """The problems found in one file so far."""

    file: str
    found: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, node: yaml.Node, problem: str) -> None:
        """Note `problem` at the place where `node` begins."""
        self.found.append((node.start_mark.line + 1, node.start_mark.column + 1, problem))

    def texts(self) -> tuple[str, ...]:
        """Every problem as `file:line:column: what`, in the order of the file, each once."""
        ordered = sorted(dict.fromkeys(self.found), key=lambda each: each[:2])
        return tuple(f"{self.file}:{line}:{column}: {problem}" for line, column, problem in ordered)


def compose(path: Path, shown: str) -> list[yaml.Node]:
    """The documents of a YAML file as nodes.

    Args:
        path: the file.
        shown: how the file is called in errors.

    Raises:
        SpecError: where the file cannot be read, is no YAML, or goes over the bounds on size, depth and aliases.
    """
    text = _text(path, shown)
    try:
        _bounded(text, shown)
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        for document in documents:
            _bound_expansion(document, shown)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{shown}:{mark.line + 1}:{mark.column + 1}" if mark else f"{shown}:1:1"
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise SpecError((f"{where}: not valid YAML: {what}",)) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        where = f"{shown}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        raise SpecError((f"{where}: the character {chr(error.character)!r} is not allowed in YAML",)) from error
    return documents


def _text(path: Path, shown: str) -> str:
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise SpecError((f"{shown}:1:1: is a directory, expected a YAML file",))
        if not path.is_file():
            raise SpecError((f"{shown}:1:1: is not a regular file",))
        if size > MAX_BYTES:
            raise SpecError((f"{shown}:1:1: the file has {size:,} bytes; a spec has at most {MAX_BYTES:,}",))
        content = path.read_bytes()
    except FileNotFoundError:
        raise SpecError((f"{shown}:1:1: no such file",)) from None
    except OSError as error:
        raise SpecError((f"{shown}:1:1: cannot be read: {error.strerror}",)) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise SpecError((f"{shown}:{line}:{column}: not UTF-8: byte 0x{content[error.start]:02x}",)) from error


def _bounded(text: str, shown: str) -> None:
    # PyYAML composes by recursion, so that the depth must be bounded on the events, which come iteratively.
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            _refuse(event.start_mark, shown, f"more than {MAX_DEPTH} levels of nesting")
        if nodes > MAX_NODES:
            _refuse(event.start_mark, shown, f"more than {MAX_NODES:,} values")


def _bound_expansion(document: yaml.Node, shown: str) -> None:
    """Count what aliases expand to, without expanding more than the bound."""
    count, waiting = 0, [(document, 1)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            _refuse(node.start_mark, shown, f"more than {MAX_DEPTH} levels of nesting (does an alias contain itself?)")
        if count > MAX_NODES:
            _refuse(document.start_mark, shown, f"aliases expand to more than {MAX_NODES:,} values")
        if isinstance(node, yaml.SequenceNode):
            waiting.extend((child, depth + 1) for child in node.value)
        elif isinstance(node, yaml.MappingNode):
            waiting.extend((child, depth + 1) for pair in node.value for child in pair)


def _refuse(mark: Any, shown: str, problem: str) -> None:
    raise SpecError((f"{shown}:{mark.line + 1}:{mark.column + 1}: {problem}",))


def scalar(node: yaml.ScalarNode) -> Any:
    """The value of a scalar as YAML 1.2 reads it: 1e-6 is a float, no and on are strings, 012 is twelve."""
    text = str(node.value)
    if node.style in ("'", '"', "|", ">"):
        return text
    if text in _SPECIAL:
        return _SPECIAL[text]
    if _INTEGER.match(text):
        return int(text)
    if _OCTAL_OR_HEX.match(text):
        return int(text, 0)
    return float(text) if _FLOAT.match(text) else text


def plain(node: yaml.Node, problems: Problems) -> Any:
    """The Python value of a node: numbers, strings, None, booleans, lists, and mappings as dicts."""
    refuse_tag(node, problems)
    if isinstance(node, yaml.ScalarNode):
        return scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [plain(child, problems) for child in node.value]
    return {key: plain(value, problems) for key, (_, value) in entries(node, problems).items()}


def entries(node: yaml.Node, problems: Problems) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """The keys of a mapping, each with its own node and its value's; a duplicate or unfit key is a problem."""
    found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key_node, value_node in _pairs(node, problems):
        if not isinstance(key_node, yaml.ScalarNode):
            problems.add(key_node, f"a key must be a string, got {described(key_node)}")
            continue
        key = str(key_node.value)
        if key in found:
            first = found[key][0].start_mark.line + 1
            problems.add(key_node, f"duplicate key {key!r} (first given in line {first})")
        elif key == "<<" and key_node.style is None:
            problems.add(
                key_node,
                "merge keys (<<) are not part of YAML 1.2; put the shared keys under 'defaults', or repeat them",
            )
        else:
            found[key] = (key_node, value_node)
    return found


def _pairs(node: yaml.Node, problems: Problems) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    refuse_tag(node, problems)
    if isinstance(node, yaml.MappingNode):
        yield from node.value


def refuse_tag(node: yaml.Node, problems: Problems) -> None:
    """Note a tag such as `!!python/object`, `!mine` or `!!binary`: a spec holds plain values only."""
    if node.tag not in (_SCALAR_TAGS if isinstance(node, yaml.ScalarNode) else _COLLECTION_TAGS):
        problems.add(node, f"YAML tags are not allowed, got {node.tag!r}")


def described(node: yaml.Node) -> str:
    """The value as an error names it: a list, a mapping, the string 'abc', 3, null."""
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    value = scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if value is None:
        return "null"
    shown = repr(value) if len(str(value)) <= 40 else repr(str(value)[:37] + "...")
    return f"the string {shown}" if isinstance(value, str) else str(value).lower() if value in (True, False) else shown
