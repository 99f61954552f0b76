"""Sizes of axes that a Function is made for, and which therefore say nothing at other values.

Points have three coordinates: `points: (N, 3)` in documentation says so, and so do `x, y, z = p.unbind(-1)` and
`assert p.shape[-1] == 3`. Forward often runs with more of them, and is then another function.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.prose.formulas import is_formula, names_in, size_of, solved
from gradcli.inputs.hints.prose.size_names import is_length, lengths_in
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.sources import nodes_of, tree_of

Shape = tuple[int, ...]
_REST = ("...", "*")
_FURTHER = 8
"""A size of a formula is looked for so far above the wanted one, or up to twice that."""


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
    hints: SourceHints, shapes: Mapping[str, Shape], sizes: Mapping[int, int], numbers: Mapping[str, int] | None = None
) -> Mapping[int, int] | None:
    """New sizes for old ones, in which the documented sums and products of others, such as `2 * H`, are what they say.

    Where the names in one are of no axis, the next larger size is taken that it can have. None if that is impossible: a
    size would need two new values, or one below 1.

    Args:
        hints: of the Function.
        shapes: of its arguments, by name.
        sizes: the new sizes.
        numbers: the whole numbers among its arguments, which formulas may have.
    """
    if hints.halves:
        if any(new == 1 for old, new in sizes.items() if not old % 2):
            return None
        sizes = {old: new + new % 2 if not old % 2 else new for old, new in sizes.items()}
    pairs = [pair for name, shape in shapes.items() for pair in _aligned(hints.documented.get(name, ()), shape)]
    plain = {axis: size for axis, size in pairs if isinstance(axis, str) and axis.isidentifier()}
    changed = {**(numbers or {}), **{name: sizes.get(size, size) for name, size in plain.items()}}
    unmet = _unmet(pairs, numbers or {})
    found: dict[int, int] = {}
    for axis, size in dict.fromkeys(pair for pair in pairs if is_formula(pair[0]) and pair[0] not in unmet):
        wanted = sizes.get(size, size)
        is_settled = changed.keys() >= {*names_in(str(axis))}
        new, changed = _nearest(str(axis), range(wanted, wanted + 1 + max(wanted, _FURTHER)), changed, is_settled)
        if new is None or found.setdefault(size, new) != new:
            return None
    if any(found[size] != sizes.get(size, size) for size in {*plain.values()} & found.keys()):
        return None
    return {**sizes, **found}


def _nearest(
    axis: str, sizes: Iterable[int], known: dict[str, int], is_settled: bool
) -> tuple[int | None, dict[str, int]]:
    """The first of some sizes that a formula can have, with the sizes of its names; its own size if that is settled."""
    if is_settled:
        return size_of(axis, known), known
    solutions = ((size, solved([(axis, size)], known)) for size in sizes)
    return next(((size, {**found}) for size, found in solutions if found is not None), (None, known))


def departures(
    hints: SourceHints, shapes: Mapping[str, Shape], numbers: Mapping[str, int] | None = None
) -> frozenset[Axis | tuple[str, str]]:
    """What documentation says of sizes and some shapes do not keep: equal names, numbers, formulas, and the order.

    As in `A: (n, n)`, `points: (N, 3)`, `w: (L // 2 + 1,)`, `m >= n` and `n >= 2`, where equal sizes are in order too.
    Where the source calls parts of an axis its halves, so are odd sizes.

    Args:
        hints: of the Function.
        shapes: of its arguments, by name.
        numbers: the whole numbers among its arguments, which formulas may have.
    """
    pairs = [pair for name, shape in shapes.items() for pair in _aligned(hints.documented.get(name, ()), shape)]
    sizes = _sizes_of(pairs)
    named = {axis for axis in sizes if _is_name(axis) and axis != "_" and len(sizes[axis]) > 1}
    known = {**(numbers or {}), **{str(axis): max(found) for axis, found in sizes.items() if _is_name(axis)}}
    disordered = {
        (large, small)
        for large, small in hints.order
        if large in sizes and min(sizes[large]) < (max(sizes[small]) if small in sizes else size_of(small, known) or 0)
    }
    odd = {(name, f"{n} is odd") for name, shape in shapes.items() if hints.halves for n in _odd(shape)}
    return frozenset({*named, *_unmet(pairs, numbers or {}), *disordered, *odd})


def _odd(shape: Shape) -> list[int]:
    """The axes of odd sizes, counted from the last; the leading one of several is a batch's, and is not halved."""
    return [axis - len(shape) for axis, size in enumerate(shape) if size % 2 and (axis or len(shape) == 1)]


def _unmet(pairs: Sequence[tuple[Axis, int]], numbers: Mapping[str, int]) -> frozenset[Axis]:
    """The numbers and formulas among documented axes that have other sizes; all whose sizes no others explain."""
    sizes = _sizes_of(pairs)
    known = {**numbers, **{str(axis): min(found) for axis, found in sizes.items() if _is_name(axis)}}
    meant = {axis: axis if isinstance(axis, int) else size_of(axis, known) for axis in sizes if str(axis) not in known}
    unmet = {axis for axis, size in meant.items() if size is not None and sizes[axis] != {size}}
    open_ones = [axis for axis, size in meant.items() if size is None and isinstance(axis, str) and is_formula(axis)]
    wanted = [(axis, size) for axis in open_ones for size in sizes[axis]]
    return frozenset(unmet.union(open_ones if wanted and solved(wanted, known) is None else ()))


def _sizes_of(pairs: Sequence[tuple[Axis, int]]) -> dict[Axis, set[int]]:
    sizes: dict[Axis, set[int]] = {}
    for axis, size in pairs:
        sizes.setdefault(axis, set()).add(size)
    return sizes


def _is_name(axis: Axis) -> bool:
    return isinstance(axis, str) and axis.isidentifier()


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
