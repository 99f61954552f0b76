"""Slips in the source that no exception reports."""

import ast
import difflib
import inspect
from collections.abc import Iterator
from pathlib import Path

from gradcli.targets import TargetInfo

_SILENT = ("requires_grad", "retains_grad")
"""Attributes of a tensor whose misspelling Python accepts: it makes a new attribute and changes nothing."""


def source_lints(info: TargetInfo) -> tuple[str, ...]:
    """Sentences about the file that holds the target; none where it has no source."""
    function = info.forward or info.backward
    if function is None:
        return ()
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        tree = ast.parse(Path(file).read_text(encoding="utf-8")) if file else None
    except (OSError, TypeError, SyntaxError, ValueError):
        return ()
    return () if tree is None else tuple(_misspelt(tree, str(file)))


def _misspelt(tree: ast.AST, file: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if not isinstance(target, ast.Attribute) or target.attr in _SILENT:
                continue
            close = difflib.get_close_matches(target.attr, _SILENT, n=1, cutoff=0.88)
            if close:
                yield (
                    f"{file}:{node.lineno} sets the attribute {target.attr!r}, which means nothing to a tensor: "
                    f"did you mean {close[0]!r}?"
                )
