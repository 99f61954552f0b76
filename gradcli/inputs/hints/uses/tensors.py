"""The arguments of which forward reads what only a tensor has, as in `s.view(1, -1)`."""

import ast
import re
from collections.abc import Collection, Iterable

import numpy as np

from gradcli.sources import nodes_of

_OF_TENSORS_ALONE = frozenset((
    "contiguous", "detach", "dim", "expand", "expand_as", "is_cuda", "mm", "bmm", "new", "new_empty", "new_zeros",
    "new_ones", "new_full", "numel", "permute", "requires_grad", "size", "t", "type_as", "unsqueeze", "view_as",
))  # fmt: skip
"""Attributes that NumPy's arrays lack."""
_LIKE = re.compile(r"(?:zeros|ones|empty|full|rand|randn|randint)_like")
"""Functions that take a tensor alone, except those of NumPy and JAX, which take a number as well."""
_CONVOLUTION = re.compile(r"conv(?:_transpose)?[123]d")
_TAKE_NUMBERS = frozenset(("np", "numpy", "jnp"))
_PLAIN = (str, int, float, complex, tuple, list, dict)
_ASKS = frozenset(("isinstance", "is_tensor", "hasattr", "callable", "type", "getattr"))


def used_as_tensors(trees: Iterable[ast.Module | None], names: Collection[str]) -> frozenset[str]:
    """The arguments of which forward reads an attribute that a tensor has, and no number, text or container.

    Or of which it makes another one of the same shape, as by `torch.zeros_like`. It has to be read before the name
    gets another value, as `alpha` does in `alpha = torch.tensor(alpha)`. Nothing is said of arguments whose type is
    asked for, which may be numbers as well.

    Args:
        trees: the syntax trees of forward and of its helpers, in forward's names.
        names: forward's arguments.
    """
    found, asked = set[str](), set[str]()
    for tree in filter(None, trees):
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            nodes = nodes_of(function)
            asked.update(_asked_for(nodes))
            for read in (each for node in nodes for each in _read_of_tensors(node)):
                if isinstance(read, ast.Name) and read.id in names and read.lineno <= _first_store(nodes, read.id):
                    found.add(read.id)
    return frozenset(found - asked)


def _read_of_tensors(node: ast.AST) -> Iterable[ast.expr]:
    """What has to be a tensor in this node: `s` in `s.view(1, -1)` and `torch.zeros_like(s)`, both of a convolution."""
    match node:
        case ast.Attribute(attr=attribute, value=value) if _is_of_tensors(attribute):
            return (value,)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=given) if _CONVOLUTION.fullmatch(name):
            return (*given[:2], *(each.value for each in node.keywords if each.arg == "weight"))
        case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id=module)), args=[value, *_]):
            return (value,) if _LIKE.fullmatch(name) and module not in _TAKE_NUMBERS else ()
    return ()


def _is_of_tensors(attribute: str) -> bool:
    known = attribute in _OF_TENSORS_ALONE or hasattr(np.ndarray, attribute)
    return known and not attribute.startswith("_") and not any(hasattr(kind, attribute) for kind in _PLAIN)


def _first_store(nodes: Iterable[ast.AST], name: str) -> float:
    stores = [each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return min((each.lineno for each in stores if each.id == name), default=float("inf"))


def _asked_for(nodes: Iterable[ast.AST]) -> Iterable[str]:
    """The variables that `isinstance` and the like are called with."""
    for node in nodes:
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield from (each.id for each in node.args if called in _ASKS and isinstance(each, ast.Name))
