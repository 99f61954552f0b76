"""Other values of arguments that select what is computed: booleans, and strings that the code compares with."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gradcli.cases import InputSpec
from gradcli.edits.source import written
from gradcli.runner.arguments.prepare import Prepared

_MOST = 6
"""Other values that are tried: each costs a check, and a reduction has two others."""
_UNLISTED = "another"
"""A word that code does not compare with, for its last branch; where forward refuses it, nothing is learnt."""


def other_modes(ready: Prepared) -> Iterator[tuple[str, tuple[InputSpec, ...]]]:
    """The inputs with one such argument at another value, and what that is; arguments left out have their defaults."""
    specs, info = ready.supply.specs, ready.info
    named = {spec.name for spec in specs}
    left = [p for p in info.parameters if p.has_default and p.name not in named and not p.keyword_only]
    given = (*specs, *(InputSpec(name=p.name, kind="value", value=p.default) for p in left))
    functions = [info.forward, info.setup_context, info.backward]
    found = [(spec, value) for spec in given if spec.kind == "value" for value in _others(spec, functions)]
    for spec, value in found[:_MOST]:
        changed = replace(spec, value=value)
        rest = given if spec not in specs else specs
        yield f"{spec.name}={value!r}", tuple(changed if each is spec else each for each in rest)


def _others(spec: InputSpec, functions: Sequence[Callable[..., Any] | None]) -> list[Any]:
    if isinstance(spec.value, bool):
        return [not spec.value]
    if not isinstance(spec.value, str):
        return []
    found = [own.node for function in functions if (own := written(function)) is not None]
    words = dict.fromkeys(word for node in found for word in _compared_with(spec.name, node))
    return [word for word in (*words, *([_UNLISTED] if words else ())) if word != spec.value]


def _compared_with(name: str, tree: ast.AST) -> Iterator[str]:
    """The strings with which the code compares an argument, or an attribute of ctx with its name."""
    for node in ast.walk(tree):
        sides: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        if any(name in (getattr(side, "id", None), getattr(side, "attr", None)) for side in sides):
            for part in (part for side in sides for part in ast.walk(side)):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value
