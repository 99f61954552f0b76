"""Arguments that are JAX's random keys, recognised by their use in `jax.random` and by their names."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import isfunction, signature, unwrap
from typing import Any

from gradcli.sources import nodes_of, source_of, tree_of
from gradcli.targets import TargetInfo

_NAMES = re.compile(r"(?:prng|rng|random|dropout|noise|sample|init|sub)_?keys?\d?|prng|rngs?\d?|keys?\d?|subkeys?")
_ATTENTION = frozenset(("q", "query", "queries", "v", "value", "values"))
_TYPED = re.compile(r"prng_key|jax\.random\.key\(|key_data|PRNGKeyArray|typed key|Key\[Array")
_DEEPEST = 3


def random_keys(info: TargetInfo, names: Sequence[str], source: str) -> Mapping[str, bool]:
    """The arguments that are random keys of JAX's; True for those that are rather typed keys, of `jax.random.key`.

    Args:
        info: the target.
        names: of its arguments.
        source: of its forward.
    """
    if info.forward is None:
        return {}
    typed = _TYPED.search(source) is not None
    used = _used(unwrap(info.forward), tuple(names), _DEEPEST)
    attends = not _ATTENTION.isdisjoint(name.lower() for name in names)
    draws = bool(used) or re.search(r"\b(?:random|jr|jrandom)\b", source) is not None
    found = [name for name in names if name in used or (_NAMES.fullmatch(name.lower()) and draws and not attends)]
    return dict.fromkeys(found, typed)


def _used(function: Any, names: Sequence[str], deepest: int) -> set[str]:
    """Those of a function's arguments that are passed to functions of jax.random first, also by functions it calls."""
    tree, known = tree_of(source_of(function)), getattr(function, "__globals__", {})
    found: set[str] = set()
    for node in nodes_of(tree) if tree is not None else ():
        if not isinstance(node, ast.Call):
            continue
        called = _value(node.func, known)
        given = dict(_given(node))
        if str(getattr(called, "__module__", "")).startswith(("jax.random", "jax._src.random")):
            found |= {given[place] for place in (0, "key") if given.get(place) in names}
        elif isfunction(inner := unwrap(getattr(called, "fun", called)) if callable(called) else None) and deepest:
            taken = [*signature(inner).parameters]
            passed = {
                taken[p] if isinstance(p, int) else p: n for p, n in given.items() if n in names and _in(p, taken)
            }
            found |= {passed[name] for name in _used(inner, tuple(passed), deepest - 1) if name in passed}
    return found


def _in(place: int | str, taken: Sequence[str]) -> bool:
    return place < len(taken) if isinstance(place, int) else place in taken


def _given(call: ast.Call) -> Iterator[tuple[int | str, str]]:
    """The arguments of a call that are names, by position or keyword."""
    for place, argument in enumerate(call.args):
        if isinstance(argument, ast.Name):
            yield place, argument.id
    for keyword in call.keywords:
        if keyword.arg and isinstance(keyword.value, ast.Name):
            yield keyword.arg, keyword.value.id


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """What a name, or an attribute of modules, stands for."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    held = _value(node.value, known) if isinstance(node, ast.Attribute) else None
    return getattr(held, node.attr, None) if held is not None and isinstance(node, ast.Attribute) else None
