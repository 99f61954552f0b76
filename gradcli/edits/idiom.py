"""How the operations that a patch may need are written with a framework."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from gradcli.edits.draft import Draft
from gradcli.edits.helpers import helpers_of
from gradcli.edits.source import written
from gradcli.frozen import dataclass

_MODULES = {"torch": ("torch",), "engine": ("gradcli.engine",), "jax": ("jax.numpy",), "numpy": ("numpy",)}

_OF_AXES = {
    *("sum", "mean", "max", "min", "amax", "amin", "prod", "argmax", "argmin", "norm", "std", "var", "logsumexp"),
    *("cumsum", "cumprod", "softmax", "log_softmax", "squeeze", "unsqueeze", "expand_dims", "flip", "roll"),
    *("transpose", "swapaxes", "permute", "moveaxis", "size", "cat", "stack", "concatenate"),
}
"""Functions that take axes by number."""


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
    """The spelling of one framework in one file.

    Attributes:
        by_methods: Whether functions are methods of the tensor, as in PyTorch.
        namespace: What the framework's module is called in the file; None if it has no name there.
        calls_t: Whether a matrix is transposed by `t()` instead of `T`.
        from_last: Whether axes are counted from the last one, by negative numbers.
        names_axis: Whether the axis of a sum is given by its keyword.
        calls_len: Whether the size of the first axis is read by `len`.
        only_methods: Whether the framework's module is not used at all where functions are methods.
    """

    by_methods: bool
    namespace: str | None
    calls_t: bool = False
    from_last: bool = False
    names_axis: bool = False
    calls_len: bool = False
    only_methods: bool = False

    def axis(self, axis: int, rank: int) -> int:
        """An axis of a tensor of so many axes, counted as in this file."""
        return axis % rank - (rank if self.from_last else 0)

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
        given = [] if axes is None else [str(axes[0] if len(axes) == 1 else axes)]
        if given and self.names_axis:
            given = [f"{'dim' if self.by_methods else 'axis'}={given[0]}"]
        kept = [f"{'keepdim' if self.by_methods else 'keepdims'}=True"] if keep else []
        return build(f"E.{called}({', '.join([*given, *kept])})", E=of)

    def transposes(self, of: ast.expr, rank: int) -> list[ast.expr]:
        """The expression with its last two axes, or other two, exchanged."""
        if rank < 2:
            return []
        if rank == 2:
            return [build("E.t()" if self.calls_t else "E.T", E=of)]
        pairs = [
            (self.axis(-2, rank), self.axis(-1, rank)),
            *((i, j) for i in range(rank) for j in range(i) if (i, j) != (rank - 1, rank - 2)),
        ]
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

    def flipped(self, of: ast.expr, *axes: int) -> ast.expr | None:
        """The expression with axes reversed."""
        if self.by_methods:
            return build(f"E.flip({', '.join(map(str, axes))})", E=of)
        listed = axes[0] if len(axes) == 1 else axes
        return None if self.namespace is None else build(f"{self.namespace}.flip(E, {listed})", E=of)

    def rolled(self, of: ast.expr, by: int, axis: int) -> ast.expr | None:
        """The expression rolled along an axis."""
        if self.by_methods:
            return build(f"E.roll({by}, {axis})", E=of)
        return None if self.namespace is None else build(f"{self.namespace}.roll(E, {by}, {axis})", E=of)

    def inverse(self, of: ast.expr) -> ast.expr | None:
        """The inverse of a matrix."""
        if self.by_methods:
            return build("E.inverse()", E=of)
        return None if self.namespace is None else build(f"{self.namespace}.linalg.inv(E)", E=of)

    def solved(self, matrix: ast.expr, right: ast.expr) -> ast.expr | None:
        """What the matrix has to be multiplied by to give `right`."""
        return None if self.namespace is None else build(f"{self.namespace}.linalg.solve(A, B)", A=matrix, B=right)

    def conjugate(self, of: ast.expr) -> ast.expr:
        """The complex conjugate."""
        return build("E.conj()", E=of)

    def copied(self, of: ast.expr) -> ast.expr:
        """A copy."""
        return build("E.clone()" if self.by_methods else "E.copy()", E=of)


def idiom_of(draft: Draft, framework: str) -> Idiom:
    """The idiom of a framework in a draft's functions, by what they call and by the names of their module.

    Axes are counted as in these functions, or, where these have none, as in those that they run.
    """
    functions = tuple(part.function for part in draft.parts)
    known: Mapping[str, Any] = functions[0].__globals__
    modules = _MODULES.get(framework, ())
    names = [key for key, value in known.items() if isinstance(value, ModuleType) and value.__name__ in modules]
    by_methods = framework in ("torch", "engine")
    called = {name for function in functions for name in function.__code__.co_names}
    constants = [each for function in functions for each in _flat(function.__code__.co_consts)]
    return Idiom(
        by_methods=by_methods,
        namespace=names[0] if names else None,
        calls_t=by_methods and "t" in called and "T" not in called,
        from_last=_counts_from_last(draft, functions),
        names_axis=("dim" if by_methods else "axis") in constants,
        calls_len="len" in called,
        only_methods=by_methods and not called & set(names),
    )


def _counts_from_last(draft: Draft, functions: tuple[FunctionType, ...]) -> bool:
    """Whether more of the axes in a draft's functions are negative than not; in their helpers if these have none."""
    axes = list(_axes_in(part.node for part in draft.parts))
    if not axes:
        helpers = (written(each, draft.file) for each in helpers_of(functions))
        axes = list(_axes_in(each.node for each in helpers if each is not None))
    return 2 * sum(axis < 0 for axis in axes) > len(axes)


def _axes_in(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """The axes that are given as numbers: to functions that take them, and of shapes."""
    for each in (n for node in nodes for n in ast.walk(node)):
        given: list[ast.expr] = []
        if isinstance(each, ast.Call) and _takes_an_axis(each):
            given = [*each.args, *(keyword.value for keyword in each.keywords)]
        elif isinstance(each, ast.Subscript) and isinstance(each.value, ast.Attribute) and each.value.attr == "shape":
            given = [each.slice]
        for part in (p for g in given for p in (g.elts if isinstance(g, ast.Tuple) else [g])):
            number = part.operand if isinstance(part, ast.UnaryOp) else part
            if isinstance(number, ast.Constant) and type(number.value) is int:
                yield -1 if number is not part else number.value


def _takes_an_axis(call: ast.Call) -> bool:
    return (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) in _OF_AXES


def _flat(constants: tuple[Any, ...]) -> Iterator[Any]:
    """Constants of compiled code, those in tuples too: numbers, and the keywords of calls."""
    for each in constants:
        if isinstance(each, tuple):
            yield from _flat(each)
        else:
            yield each


def over_more_axes(node: ast.Call) -> Iterator[ast.Call]:
    """A reduction over one axis, by a number, over the axis before or after it as well: `x.mean((1, 2))` for 2."""
    given = next((k.value for k in node.keywords if k.arg in ("axis", "dim")), node.args[0] if node.args else None)
    try:
        axis = ast.literal_eval(given) if given is not None else None
    except ValueError:
        return
    for pair in ((axis - 1, axis), (axis, axis + 1)) if type(axis) is int else ():
        if pair[0] >= 0 or pair[1] < 0:
            both = build(str(pair))
            yield ast.Call(
                func=node.func,
                args=[both if each is given else each for each in node.args],
                keywords=[ast.keyword(arg=k.arg, value=both if k.value is given else k.value) for k in node.keywords],
            )
