"""Arguments that forward turns into class numbers by an argmax, where documentation says that they are one-hot.

`if t is one-hot` alone is about a case. With `t.argmax(axis=1)` in that case, one-hot rows are what it is meant for:
class numbers do as well, but the search for inputs tries floating arrays first, and any would be taken for one-hot.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradcli.inputs.hints.documented_shapes import texts_of
from gradcli.sources import nodes_of, source_of, tree_of

_DEEPEST = 3
_NO_ONE_HOT = re.compile(r"\b(?:not|never|no)\s+(?:an?\s+)?one[- ]?hot", re.IGNORECASE)


def one_hot_labels(function: Callable[..., Any] | None, names: Sequence[str]) -> frozenset[str]:
    """The arguments behind the first one that are one-hot rows, also by what functions say that they are passed on to.

    Args:
        function: forward.
        names: its arguments. The first is what the labels are compared with.
    """
    if function is None:
        return frozenset()
    found = _labels(inspect.unwrap(function), {name: name for name in names[1:]}, _DEEPEST)
    return frozenset(found)


def _labels(function: Callable[..., Any], known: Mapping[str, str], deepest: int) -> Iterator[str]:
    """The arguments that are one-hot; `known` has their names by the expressions that stand for them here."""
    source = source_of(function)
    tree = tree_of(source)
    if tree is None or ("argmax" not in source and not deepest):
        return
    meant = dict(known)
    for node in nodes_of(tree):
        if isinstance(node, ast.Assign) and (name := meant.get(ast.unparse(node.value))) is not None:
            meant |= {ast.unparse(target): name for target in node.targets if isinstance(target, ast.Attribute)}
    text = "\n".join(texts_of(source, ""))
    names = getattr(function, "__globals__", {})
    for call in (node for node in nodes_of(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "argmax":
            operands = [call.func.value, *call.args[:1]]
            written = next((each for each in map(ast.unparse, operands) if each in meant), None)
            if written is not None and _is_said(written.rpartition(".")[2], text):
                yield meant[written]
        called = names.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if inspect.isfunction(called) and deepest:
            given = zip(inspect.signature(called).parameters, map(ast.unparse, call.args), strict=False)
            passed = {parameter: meant[written] for parameter, written in given if written in meant}
            if passed:
                yield from _labels(called, passed, deepest - 1)


def _is_said(name: str, text: str) -> bool:
    """Whether a text says that what has this name is one-hot."""
    said = re.search(rf"\b{re.escape(name)}\b[^.\n]*?\bone[- ]?hot\b", text, re.IGNORECASE)
    return said is not None and _NO_ONE_HOT.search(said[0]) is None
