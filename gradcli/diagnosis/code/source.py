"""The user's source: the syntax tree of a function with its file and first line."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from gradcli.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A function's syntax tree; line 1 of the tree is line `first_line` of the file."""

    tree: ast.FunctionDef
    file: str
    first_line: int


def function_tree(function: Callable[..., Any] | None) -> FunctionSource | None:
    """The syntax tree of a function; None without source (defined in a shell, compiled, a lambda)."""
    if function is None:
        return None
    plain = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(plain)
        file = inspect.getsourcefile(plain)
        module = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = next((n for n in module.body if isinstance(n, ast.FunctionDef)), None)
    if definition is None or file is None:
        return None
    return FunctionSource(tree=definition, file=file, first_line=first)
