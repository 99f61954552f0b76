"""The arguments that forward writes into, such as running statistics, codebooks and queues."""

import ast
from collections.abc import Collection, Iterator, Sequence

from gradcli.sources import nodes_of

_WRITING = frozenset(("copyto", "put", "put_along_axis", "place", "putmask", "fill_diagonal", "at"))
"""NumPy's functions that write into their first argument: `np.copyto(old, new)`, `np.add.at(counts, i, 1)`."""
_NAMESPACES = frozenset(("np", "numpy", "torch", "F", "nn", "init"))
"""What a function that writes into its first argument is called by: `nn.init.zeros_(old)`, but not `new.add_(old)`."""
_NO_WRITES = frozenset(("requires_grad_", "share_memory_", "pin_memory_"))
"""Methods with an underscore at the end that leave the values as they are."""


_VIEWS = frozenset((
    "view", "view_as", "reshape", "ravel", "flatten", "unflatten", "t", "transpose", "swapaxes", "permute", "movedim",
    "squeeze", "unsqueeze", "narrow", "select", "unbind", "chunk", "split", "diagonal", "expand", "expand_as",
    "detach", "contiguous", "numpy",
))  # fmt: skip


def written_into(forward: ast.Module | None, names: Collection[str]) -> frozenset[str]:
    """The arguments whose values forward changes in place, before it gives their names to something else.

    Args:
        forward: its syntax tree, or None without source.
        names: of its arguments.
    """
    return frozenset() if forward is None else frozenset(_changed(forward, names, sure=False))


def arrays_written_into(forward: ast.Module | None, names: Collection[str]) -> frozenset[str]:
    """As `written_into`, without those that may be numbers, because only `n += 1` and the like change them."""
    return frozenset() if forward is None else frozenset(_changed(forward, names, sure=True))


def single_entries(forward: ast.Module | None, names: Collection[str]) -> frozenset[str]:
    """The arguments in expressions of names and operators of which forward takes the only entry: `(hi - lo).item()`."""
    found: set[str] = set()
    for node in nodes_of(forward) if forward is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[]):
                parts = [each for each in ast.walk(value) if isinstance(each, ast.expr)]
                if all(isinstance(each, ast.Name | ast.BinOp | ast.UnaryOp | ast.Constant) for each in parts):
                    found.update(each.id for each in parts if isinstance(each, ast.Name))
    return frozenset(found & set(names))


def _changed(forward: ast.Module, names: Collection[str], *, sure: bool) -> Iterator[str]:
    bound = [node for node in nodes_of(forward) if isinstance(node, ast.Assign | ast.For | ast.With | ast.NamedExpr)]
    rebound: dict[str, int] = {}
    for binding in bound:
        for each in ast.walk(binding):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                rebound[each.id] = min(binding.lineno, rebound.get(each.id, binding.lineno))
    for node in nodes_of(forward):
        if sure and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            continue
        for place in filter(None, map(_root, _written_by(node))):
            if place.id in names and place.lineno <= rebound.get(place.id, place.lineno):
                yield place.id


def _written_by(node: ast.AST) -> list[ast.expr]:
    """What one statement or call writes into."""
    match node:
        case ast.AugAssign(target=target):
            return [target]
        case ast.Assign(targets=targets):
            return [each for each in targets if isinstance(each, ast.Subscript) or _is_data(each)]
        case ast.Call(func=ast.Attribute(value=owner, attr=called), args=args, keywords=keywords):
            writes = called.endswith("_") and not called.endswith("__") and called not in _NO_WRITES
            outer = _root(owner)
            is_function = outer is not None and outer.id in _NAMESPACES
            places = (args[:1] if is_function else [owner]) if writes or (is_function and called in _WRITING) else []
            return places + _out(keywords)
        case ast.Call(keywords=keywords):
            return _out(keywords)
    return []


def _out(keywords: Sequence[ast.keyword]) -> list[ast.expr]:
    return [keyword.value for keyword in keywords if keyword.arg == "out"]


def _is_data(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == "data"


def _is_view(method: str) -> bool:
    """Whether a method returns the array itself or a view of it, unlike `clone` and `float`."""
    return method in _VIEWS or (method.endswith("_") and method not in _NO_WRITES)


def _root(place: ast.expr) -> ast.Name | None:
    """The name of the array that a view such as `mean.data`, `queue[:n]` or `m.view(-1)` is of."""
    while not isinstance(place, ast.Name):
        if isinstance(place, ast.Attribute | ast.Subscript):
            place = place.value
        elif isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute) and _is_view(place.func.attr):
            place = place.func.value
        else:
            return None
    return place
