"""Arguments that are neither tensors nor literals: number formats, devices, members of an Enum, words of a Literal."""

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from gradcli.cases import FrameworkObject
from gradcli.inputs.hints.argument_names import types_named
from gradcli.targets import TargetInfo

_EXAMPLES: Mapping[str, tuple[FrameworkObject, ...]] = {
    "dtype": (FrameworkObject("torch.float64"), FrameworkObject("torch.float32")),
    "memory_format": (FrameworkObject("torch.contiguous_format"),),
    "layout": (FrameworkObject("torch.strided"),),
    "device": (FrameworkObject("torch.device('cpu')"),),
}
"""The values of each type in PyTorch, which the engine has as well, apart from layouts."""
_GIVEN = r"\b({}) ?= ?({}) ?[,)]"
_END = r"-?\d+(?:\.\d*)?"
_TUPLE = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z_]\w*)[`'\"]*\s*:\s*(?:an?\s+)?(?P<kind>tuple|list)s?\s+of\s+(?:two\s+)?"
    r"(?:(?P<real>floats?|(?:real\s+)?numbers)|ints?|integers?)\b"
    rf"(?:\s+in\s+[\[(]\s*(?P<low>{_END})\s*,\s*(?P<high>{_END})\s*[\])])?",
    re.IGNORECASE,
)


def plain_objects(info: TargetInfo, names: Sequence[str], code: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """The values to try for arguments that are such objects, likeliest first, by the arguments' names.

    Their annotations say so; without one, a call such as `zeros(n, dtype=dtype)`, and at last their names.

    Args:
        info: the target.
        names: forward's arguments.
        code: the source of forward and of its helpers.
        known: the names outside forward that it may use.
    """
    examples = _EXAMPLES if info.backend in ("torch", "engine") else {}
    used = dict(reversed(pair) for pair in re.findall(_GIVEN.format("|".join(_EXAMPLES), "|".join(names)), code))
    annotations = {each.name: each.annotation or "" for each in info.parameters}
    found: dict[str, Any] = {}
    for name in names:
        annotation = annotations.get(name, "")
        kind = next((each for each in types_named(annotation) if each in _EXAMPLES), None)
        if kind is None and not annotation:
            kind = used.get(name) or next((each for each in ("dtype", "device") if _is_called(name, each)), None)
        values = examples.get(kind, ()) if kind is not None else _words(annotation) or _members(annotation, known)
        if values:
            found[name] = values
    return found


def _is_called(name: str, kind: str) -> bool:
    return re.fullmatch(rf"(?:.*_)?{kind}", name.lower()) is not None


def _words(annotation: str) -> tuple[Any, ...]:
    """The values of `Literal["sum", "mean"]`."""
    try:
        tree = ast.parse(annotation, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return ()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inner):
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return tuple(each.value for each in parts if isinstance(each, ast.Constant))
    return ()


def _members(annotation: str, known: Mapping[str, Any]) -> tuple[Any, ...]:
    """The members of an Enum that an annotation names."""
    kind = known.get(annotation.strip("'\""))
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()


def documented_tuples(texts: Iterable[str], names: Collection[str]) -> dict[str, tuple[Any, ...]]:
    """The arguments that are described as tuples or lists of numbers, each with one of two numbers.

    Those of floats are within the interval that the description gives, as in `quantiles: tuple of floats in (0, 1)`.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for match in itertools.chain.from_iterable(map(_TUPLE.finditer, texts)):
        if match["name"] in names:
            low, high = float(match["low"] or 0), float(match["high"] or 1)
            parts = (low + 0.3 * (high - low), low + 0.8 * (high - low)) if match["real"] else (2, 3)
            found.setdefault(match["name"], (parts if match["kind"].lower() == "tuple" else list(parts),))
    return found
