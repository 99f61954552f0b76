"""Slips in the source that no exception reports."""

import ast
import difflib
import inspect
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from gradcli.edits.source import decoded
from gradcli.targets import TargetInfo

_SILENT = ("requires_grad", "retains_grad")
"""Attributes of a tensor whose misspelling Python accepts: it makes a new attribute and changes nothing."""
_SET = re.compile(r"\.\s*(\w+)\s*(?::[^=\n]*)?=(?!=)")
"""Text that may assign to an attribute; a match is confirmed in the syntax tree."""


def source_lints(info: TargetInfo) -> tuple[str, ...]:
    """Sentences about the file that holds the target; none where it has no source."""
    function = info.forward or info.backward
    if function is None:
        return ()
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        return _of_file(file, os.stat(file).st_mtime_ns) if file else ()
    except (OSError, TypeError, SyntaxError, ValueError):
        return ()


@lru_cache(maxsize=64)
def _of_file(file: str, changed: int) -> tuple[str, ...]:  # noqa: ARG001 - a file that has changed is read again
    return _lints(decoded(Path(file).read_bytes()), file)


def _lints(text: str, file: str) -> tuple[str, ...]:
    """The sentences about a source; most sources are ruled out by their names, without a syntax tree."""
    if not any(_meant(name) for name in set(_SET.findall(text))):
        return ()
    return tuple(_misspelt(ast.parse(text), file))


def _meant(name: str) -> str | None:
    """The attribute that a misspelt one stands for; None if it is spelt correctly or is a different word."""
    if name in _SILENT:
        return None
    return next(iter(difflib.get_close_matches(name, _SILENT, n=1, cutoff=0.88)), None)


def _misspelt(tree: ast.AST, file: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            close = _meant(target.attr) if isinstance(target, ast.Attribute) else None
            if isinstance(target, ast.Attribute) and close is not None:
                yield (
                    f"{file}:{node.lineno} sets the attribute {target.attr!r}, which has no effect on a tensor: did "
                    f"you mean {close!r}?"
                )
