"""Sizes of axes that a Function is made for, and which therefore say nothing at other values.

Points have three coordinates: `points: (N, 3)` in documentation says so, and so do `x, y, z = p.unbind(-1)` and
`assert p.shape[-1] == 3`. Forward often runs with more of them, and is then another function.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence

from gradcli.inputs.hints.documented_shapes import Axis, names_in, size_of
from gradcli.inputs.hints.prose.size_names import is_length, lengths_in
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.sources import nodes_of, tree_of

Shape = tuple[int, ...]
_REST = ("...", "*")


def fixed_sizes(hints: SourceHints, shapes: Mapping[str, Shape]) -> frozenset[int]:
    """The sizes among some shapes that are numbers in documentation, or that the source unpacks or demands.

    Args:
        hints: of the Function.
        shapes: of its arguments, by name.
    """
    found = {
        axis
        for name, shape in shapes.items()
        for axis, size in _aligned(hints.axes.get(name, ()), shape)
        if axis == size and isinstance(axis, int)
    }
    for text in (hints.forward, hints.backward):
        tree = tree_of(text)
        if tree is not None:
            found.update(_in_source(tree, frozenset(shapes)))
    return frozenset(found & {size for shape in shapes.values() for size in shape})


def with_composed(
    hints: SourceHints, shapes: Mapping[str, Shape], sizes: Mapping[int, int]
) -> Mapping[int, int] | None:
    """New sizes for old ones, in which the documented sums and products of others, such as `2 * H`, are what they say.

    None if that is impossible: a size would need two new values, or one below 1.
    """
    pairs = [pair for name, shape in shapes.items() for pair in _aligned(hints.documented.get(name, ()), shape)]
    known = {axis: size for axis, size in pairs if isinstance(axis, str) and axis.isidentifier()}
    changed = {name: sizes.get(size, size) for name, size in known.items()}
    found: dict[int, int] = {}
    for axis, size in pairs:
        if isinstance(axis, str) and names_in(axis) not in ([axis], []) and size_of(axis, known) == size:
            new = size_of(axis, changed)
            if new is None or found.setdefault(size, new) != new:
                return None
    plain = {size for axis, size in pairs if isinstance(axis, str) and axis.isidentifier()}
    if any(found[size] != sizes.get(size, size) for size in plain & found.keys()):
        return None
    return {**sizes, **found}


def departures(hints: SourceHints, shapes: Mapping[str, Shape]) -> frozenset[Axis | tuple[str, str]]:
    """What documentation says of sizes and some shapes do not keep: equal names, numbers, formulas, and the order.

    As in `A: (n, n)`, `points: (N, 3)`, `w: (L // 2 + 1,)` and `m >= n`, where equal sizes are in order too.
    """
    pairs = [pair for name, shape in shapes.items() for pair in _aligned(hints.documented.get(name, ()), shape)]
    sizes: dict[Axis, set[int]] = {}
    for axis, size in pairs:
        sizes.setdefault(axis, set()).add(size)
    known = {axis: min(found) for axis, found in sizes.items() if isinstance(axis, str) and axis.isidentifier()}
    named = {axis for axis in known if axis != "_" and len(sizes[axis]) > 1}
    meant = {axis: axis if isinstance(axis, int) else size_of(axis, known) for axis in sizes if axis not in known}
    composed = {axis for axis, size in meant.items() if size is not None and sizes[axis] != {size}}
    ordered = [pair for pair in hints.order if sizes.keys() >= set(pair)]
    disordered = {(large, small) for large, small in ordered if min(sizes[large]) < max(sizes[small])}
    return frozenset({*named, *composed, *disordered})


def _aligned(axes: Sequence[Axis], shape: Shape) -> list[tuple[Axis, int]]:
    """The documented axes with their sizes; those behind `...` are the last ones."""
    rest = next((n for n, axis in enumerate(axes) if isinstance(axis, str) and axis.startswith(_REST)), None)
    if rest is None:
        return list(zip(axes, shape, strict=True)) if len(axes) == len(shape) else []
    last = axes[rest + 1 :]
    if rest + len(last) > len(shape) or any(isinstance(axis, str) and axis.startswith(_REST) for axis in last):
        return []
    return [*zip(axes[:rest], shape, strict=False), *zip(last, shape[len(shape) - len(last) :], strict=True)]


def _in_source(tree: ast.Module, arguments: frozenset[str]) -> Iterator[int]:
    """The numbers of variables that a tensor is unpacked into, and those that a size is demanded to be."""
    lengths = set(lengths_in(tree))
    for node in nodes_of(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts) | ast.List(elts=parts)], value=value):
                if _is_row(value, arguments) and not any(isinstance(part, ast.Starred) for part in parts):
                    yield len(parts)
            case ast.Assert(test=test):
                for each in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
                    yield from _compared(each, ast.Eq, lengths)
            case ast.If(test=test, body=[ast.Raise(), *_]):
                for each in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]:
                    yield from _compared(each, ast.NotEq, lengths)


def _compared(test: ast.expr, operator: type[ast.cmpop], lengths: set[str]) -> Iterator[int]:
    """The numbers that sizes are compared with by one operator, as in `x.shape[-1] == 3`, `x.shape[-2:] == (3, 3)`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], operator):
        return
    one, other = test.left, test.comparators[0]
    for left, right in ((one, other), (other, one)):
        numbers = right.elts if isinstance(right, ast.Tuple) else [right]
        if is_length(left, lengths):
            yield from (n.value for n in numbers if isinstance(n, ast.Constant) and type(n.value) is int)


def _is_row(value: ast.expr, arguments: frozenset[str]) -> bool:
    """Whether an expression is the parts of a tensor along an axis: `p.unbind(-1)`, `p.T`, or an argument itself."""
    match value:
        case ast.Call(func=ast.Attribute(attr="unbind") | ast.Name(id="unbind")):
            return True
        case ast.Attribute(value=ast.Name(id=name), attr="T" | "mT"):
            return name not in ("ctx", "self")
        case ast.Name(id=name):
            return name in arguments
    return False
