"""The line in a helper function that computes a gradient, where backward only calls it."""

import ast
import inspect
from collections.abc import Callable
from typing import Any

from gradcli.backends.base import Subject
from gradcli.diagnosis.code.ancestry import Ancestry
from gradcli.diagnosis.code.source import FunctionSource, function_tree


def line_in_helper(subject: Subject, own: FunctionSource, value: ast.expr | None) -> int | None:
    """The line of the file where the helper that is called for a gradient computes it; None where that is not all.

    Each argument has the name of its parameter, so the call is right as far as can be seen, and forward, which is
    right, does not call the helper as well. It is in the same file, and returns in one place.
    """
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or value.keywords:
        return None
    name = value.func.id
    helper = function_tree(plain_function(getattr(subject.info.backward, "__globals__", {}).get(name)))
    forward = function_tree(subject.info.forward)
    if helper is None or forward is None or helper.file != own.file:
        return None
    parameters = [each.arg for each in (*helper.tree.args.posonlyargs, *helper.tree.args.args)]
    given = [each.id if isinstance(each, ast.Name) else "" for each in value.args]
    returned = [node for node in ast.walk(helper.tree) if isinstance(node, ast.Return) and node.value is not None]
    also_forward = any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(forward.tree))
    if given != parameters[: len(given)] or len(returned) != 1 or also_forward:
        return None
    result: Any = returned[0].value
    made = Ancestry(helper.tree, range(1, (helper.tree.end_lineno or 1) + 1)).source_of(result)
    return helper.first_line + (result if made is None else made).lineno - 1


def plain_function(function: Any) -> Callable[..., Any] | None:
    """The Python function behind a name: what `torch.jit.script` compiled, or a decorator wraps."""
    plain = inspect.unwrap(getattr(function, "_torchdynamo_inline", None) or function) if callable(function) else None
    return plain if inspect.isfunction(plain) else None
