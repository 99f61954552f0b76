"""How a framework spells the operations that a patch may need."""

import ast
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

from gradcli.frozen import dataclass

_MODULES = {"torch": ("torch",), "engine": ("gradcli.engine",), "jax": ("jax.numpy",), "numpy": ("numpy",)}


def build(pattern: str, **parts: ast.expr) -> ast.expr:
    """The expression that `pattern` spells, with nodes in the place of the names given."""
    made: ast.expr = _Filled(parts).visit(ast.parse(pattern, mode="eval").body)
    return made


class _Filled(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._parts.get(node.id, node)


def name(text: str) -> ast.expr:
    """A name, or a dotted one, or any other expression, from its text."""
    return ast.parse(text, mode="eval").body


@dataclass(frozen=True, slots=True, kw_only=True)
class Idiom:
    """The spelling of one framework in one function; `namespace` is what its module is called there, if it is."""

    by_methods: bool
    namespace: str | None

    def function(self, called: str, of: ast.expr) -> ast.expr | None:
        """An elementwise function; None where it cannot be spelt."""
        if self.by_methods:
            return build(f"E.{called}()", E=of)
        return None if self.namespace is None else build(f"{self.namespace}.{called}(E)", E=of)

    def summed(self, of: ast.expr, axes: tuple[int, ...] | None, *, keep: bool, mean: bool = False) -> ast.expr:
        """A sum over axes, all of them for None."""
        called = "mean" if mean else "sum"
        if axes is None and not keep:
            return build(f"E.{called}()", E=of)
        where = "" if axes is None else str(axes[0] if len(axes) == 1 else axes)
        if self.by_methods:
            given = [where] if where else []
            return build(f"E.{called}({', '.join([*given, *(['keepdim=True'] if keep else [])])})", E=of)
        given = [f"axis={where}"] if where else []
        return build(f"E.{called}({', '.join([*given, *(['keepdims=True'] if keep else [])])})", E=of)

    def transposes(self, of: ast.expr, rank: int) -> list[ast.expr]:
        """The expression with its last two axes, or other two, exchanged."""
        if rank < 2:
            return []
        if rank == 2:
            return [build("E.t()" if self.by_methods else "E.T", E=of)]
        pairs = [(-1, -2), *((i, j) for i in range(rank) for j in range(i) if (i, j) != (rank - 1, rank - 2))]
        called = "transpose" if self.by_methods else "swapaxes"
        return [build(f"E.{called}({i}, {j})", E=of) for i, j in pairs]

    def permuted(self, of: ast.expr, order: tuple[int, ...]) -> ast.expr:
        """The expression with its axes in another order."""
        listed = ", ".join(map(str, order))
        return build(f"E.permute({listed})" if self.by_methods else f"E.transpose({listed})", E=of)

    def shaped_like(self, of: ast.expr, like: ast.expr) -> ast.expr:
        """The expression in the shape of another."""
        return build("E.reshape(L.shape)", E=of, L=like)

    def like_input(self, of: ast.expr, like: ast.expr) -> ast.expr | None:
        """A scalar spread over the shape of another expression."""
        return build("E.expand_as(L)", E=of, L=like) if self.by_methods else None

    def flipped(self, of: ast.expr, axis: int) -> ast.expr | None:
        """The expression with one axis reversed."""
        if self.by_methods:
            return build(f"E.flip({axis})", E=of)
        return None if self.namespace is None else build(f"{self.namespace}.flip(E, {axis})", E=of)

    def rolled(self, of: ast.expr, by: int, axis: int) -> ast.expr | None:
        """The expression rolled along an axis."""
        if self.by_methods:
            return build(f"E.roll({by}, {axis})", E=of)
        return None if self.namespace is None else build(f"{self.namespace}.roll(E, {by}, {axis})", E=of)

    def conjugate(self, of: ast.expr) -> ast.expr:
        """The complex conjugate."""
        return build("E.conj()", E=of)

    def copied(self, of: ast.expr) -> ast.expr:
        """A copy."""
        return build("E.clone()" if self.by_methods else "E.copy()", E=of)


def idiom_of(function: FunctionType, framework: str) -> Idiom:
    """The idiom of a framework in a function, by the names of its module."""
    known: Mapping[str, Any] = function.__globals__
    modules = _MODULES.get(framework, ())
    names = [key for key, value in known.items() if isinstance(value, ModuleType) and value.__name__ in modules]
    return Idiom(by_methods=framework in ("torch", "engine"), namespace=names[0] if names else None)
