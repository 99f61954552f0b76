"""Vectors whose entries forward names one by one, as in `a, b = x` or `x[0] * x[1]`: their number is fixed.

Others have an entry for each of `*layers`. Documentation says so (`w: (K,)`, `layers: K tensors of one shape`), or
forward reads one of w for each layer, as in `for i, layer in enumerate(layers): total += w[i] * layer`. Where w is
longer, forward does not read the rest of it.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from gradcli.inputs.hints.documented_shapes import Axis, texts_of
from gradcli.sources import bindings, nodes_of, tree_of
from gradcli.targets import TargetInfo

_PASSED_ON = frozenset(("asarray", "array", "save_for_backward", "asanyarray"))
_FEWEST, _MOST = 2, 16
_REST = "..."
_INDEXED_BY = ("index_", "gather", "scatter", "take", "bincount", "segment_")
"""How functions begin that take indices."""
_WITH_AXES = frozenset(
    ("shape", "size", "dim", "ndim", "T", "mT", "sum", "mean", "reshape", "view", "flatten", "unsqueeze")
)
"""Attributes of what has axes of its own: then the argument has rows, not entries."""


def entries_read(forward: ast.Module | None, names: Sequence[str]) -> dict[str, tuple[int]]:
    """The shapes of the arguments that forward reads by entries alone, all of them from the first one on.

    Args:
        forward: its syntax tree, or None without source.
        names: of its arguments.
    """
    found: dict[str, tuple[int]] = {}
    if forward is None:
        return found
    above = {id(child): node for node in nodes_of(forward) for child in ast.iter_child_nodes(node)}
    read = [node for node in nodes_of(forward) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for name in names:
        places = [above[id(node)] for node in read if node.id == name]
        counts = [_entries(node, above[id(node)]) for node in read if node.id == name]
        entries = {entry for each in counts for entry in each or ()}
        one_by_one = any(count and not _is_slice(place) for place, count in zip(places, counts, strict=True))
        whole = one_by_one and None not in counts and entries == set(range(len(entries)))
        if whole and _FEWEST <= len(entries) <= _MOST and not _are_arrays(name, forward):
            found[name] = (len(entries),)
    return found


def without_components(
    shapes: Mapping[str, tuple[Axis, ...]], read: Mapping[str, tuple[int]]
) -> dict[str, tuple[Axis, ...]]:
    """The documented shapes without those that are names of entries, as in `pose = (x, y, angle)`.

    There are as many names as entries that forward reads one by one, at least three: two may be those of axes.
    """
    return {name: axes for name, axes in shapes.items() if not 3 <= len(axes) == read.get(name, (0,))[0]}


def _are_arrays(name: str, forward: ast.Module) -> bool:
    """Whether an entry of an argument is used as an index, or as an array with axes of its own."""
    own = {name}
    for node in nodes_of(forward):
        for target, value in bindings(node) if isinstance(node, ast.Assign) else ():
            if _is_entry(value, name):
                targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                own.update(each.id for each in targets if isinstance(each, ast.Name))
    for node in nodes_of(forward):
        if isinstance(node, ast.Subscript) and any(_is_entry(part, *own) for part in ast.walk(node.slice)):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _WITH_AXES and _is_entry(node.value, *(own - {name})):
            return True
        indexed = isinstance(node, ast.Call) and _called(node).startswith(_INDEXED_BY)
        if isinstance(node, ast.Call) and indexed and any(_is_entry(argument, *own) for argument in node.args):
            return True
    return False


def _is_entry(node: ast.AST, *names: str) -> bool:
    """Whether a node is one of the names, or an element of one."""
    held = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(held, ast.Name) and held.id in names


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _entries(node: ast.Name, parent: ast.AST) -> list[int] | None:
    """The entries that one use of an argument reads, none where it is only passed on; None for any other use."""
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return _selected(parent.slice)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        target = parent.targets[0]
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        if elements and not any(isinstance(each, ast.Starred) for each in elements):
            return list(range(len(elements)))
    if isinstance(parent, ast.Call) and node in parent.args:
        return [] if _called(parent) in _PASSED_ON else None
    return None


def _is_slice(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _selected(index: ast.expr) -> list[int] | None:
    """The entries that a number or a slice between two numbers selects; None for any other index."""
    if isinstance(index, ast.Constant):
        return [index.value] if type(index.value) is int else None
    if isinstance(index, ast.Slice) and index.step is None and isinstance(index.upper, ast.Constant):
        first = 0 if index.lower is None else getattr(index.lower, "value", None)
        if type(first) is int and type(index.upper.value) is int:
            return list(range(first, index.upper.value))
    return None


def with_counts(
    info: TargetInfo, names: Sequence[str], source: str, shapes: Mapping[str, tuple[Axis, ...]]
) -> tuple[dict[str, tuple[Axis, ...]], dict[str, tuple[Axis, ...]]]:
    """The documented shapes with these axes as numbers, and this axis alone of other arguments, as in `(2, "...")`.

    Args:
        info: the target.
        names: of its arguments, each of `*layers` with its own: `layers[0]`, `layers[1]`.
        source: of forward.
        shapes: that documentation gives, by name.
    """
    several = next((each.name for each in info.parameters if each.variadic), None)
    own = [name for name in names if several is not None and name.startswith(f"{several}[")]
    single = [each.name for each in info.parameters if not each.variadic]
    if several is None or not own or not single:
        return dict(shapes), {}
    read = dict(_read_for_each(tree_of(source), single, several))
    said = {axis for name in single for axis in shapes.get(name, ()) if isinstance(axis, str)}
    counts = {
        axis for text in texts_of(source, info.documentation) for axis in _counts_in(text, several) if axis in said
    }
    lengths = {name: len(shapes.get(name, ())) for name in read}
    of_read = {shapes[name][axis] for name, axis in read.items() if -lengths[name] <= axis < lengths[name]}
    counts |= said & of_read
    numbered = {name: tuple(len(own) if axis in counts else axis for axis in axes) for name, axes in shapes.items()}
    return numbered, {name: _axes(name, axis, len(own)) for name, axis in read.items() if name not in shapes}


def _axes(name: str, axis: int, count: int) -> tuple[Axis, ...]:
    """The axes of an argument of which one, counted from the first or the last one, has a size."""
    return (_REST, count) if axis < 0 else (*(f"{name}_{number}" for number in range(axis)), count, _REST)


def _counts_in(text: str, several: str) -> Iterator[str]:
    """The names of sizes that a text gives for the number of some arguments: K in `layers: K tensors`."""
    noun = rf"(?:tensors|arrays|matrices|vectors|maps|images|inputs|outputs|{re.escape(several)})"
    yield from re.findall(rf"(?<![\w(,*])([A-Za-z]\w?)\s+(?:[a-z]+\s+){{0,2}}{noun}\b", text)
    yield from re.findall(rf"\b(?:number of|len\()\s*\*?{re.escape(several)}\)?\s*(?:is|=|:)\s*(\w+)", text)
    yield from re.findall(rf"\b(\w+)\s*(?:is|=|:)\s*(?:the\s+)?(?:number of\s+|len\(){re.escape(several)}\b", text)


def _read_for_each(forward: ast.Module | None, names: Sequence[str], several: str) -> Iterator[tuple[str, int]]:
    """The arguments of which forward reads an entry for each of `*several`, `w[i]` or by `zip`, each with the axis."""
    if forward is None:
        return
    made_of: dict[str, set[str]] = {name: {name} for name in names}
    lists = {several}
    for node in nodes_of(forward):
        for target, value in bindings(node) if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                made_of.setdefault(target.id, _named(value, made_of))
                lists |= {target.id} if isinstance(value, ast.Call) and _is_list_of(value, lists) else set()
    loops = [(each.target, each.iter) for each in nodes_of(forward) if isinstance(each, ast.For | ast.comprehension)]
    numbers = {name for target, over in loops for name in _number_in(target, over, lists)}
    paired = [part for _, over in loops for part in _beside(over, lists)]
    indexed = [
        (node.value, axis)
        for node in nodes_of(forward)
        if isinstance(node, ast.Subscript) and (axis := _axis_read(node.slice, numbers)) is not None
    ]
    for part, axis in chain(((part, 0) for part in paired), indexed):
        found = _named(part, made_of)
        if len(found) == 1:
            yield found.pop(), axis


def _axis_read(index: ast.expr, numbers: set[str]) -> int | None:
    """The axis that a variable picks an entry of, as in `w[i]`, `w[:, i]`, `w[:, i : i + 1]` and `w[..., i]`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    picks = [number for number, part in enumerate(parts) if _picks(part, numbers)]
    before = parts[: picks[0]] if picks else []
    if len(picks) != 1 or any(not isinstance(part, ast.Slice | ast.Constant) for part in before):
        return None
    if any(isinstance(part, ast.Constant) and part.value is not Ellipsis for part in before):
        return None
    is_last = any(isinstance(part, ast.Constant) for part in before)
    return picks[0] if not is_last else -1 if picks[0] == len(parts) - 1 else None


def _picks(part: ast.expr, numbers: set[str]) -> bool:
    inner = part.lower if isinstance(part, ast.Slice) and part.upper is not None else part
    return isinstance(inner, ast.Name) and inner.id in numbers


def _named(value: ast.AST, made_of: Mapping[str, set[str]]) -> set[str]:
    """The arguments that an expression is made of."""
    called = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
    return {name for each in called for name in made_of.get(each, ())}


def _is_list_of(value: ast.expr, lists: set[str]) -> bool:
    match value:
        case ast.Name(id=name):
            return name in lists
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
            return _is_list_of(inner, lists)
    return False


def _number_in(target: ast.expr, over: ast.expr, lists: set[str]) -> Iterator[str]:
    """The variable that counts the arguments in a loop over them."""
    match target, over:
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(func=ast.Name(id="enumerate"), args=[inner]):
            if _is_list_of(inner, lists):
                yield name
        case ast.Name(id=name), ast.Call(
            func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"), args=[inner])]
        ):
            if _is_list_of(inner, lists):
                yield name


def _beside(over: ast.expr, lists: set[str]) -> Iterator[ast.expr]:
    """What a loop by `zip` takes an entry of for each of the arguments."""
    match over:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner]):
            yield from _beside(inner, lists)
        case ast.Call(func=ast.Name(id="zip"), args=parts) if any(_is_list_of(part, lists) for part in parts):
            yield from (part for part in parts if not _is_list_of(part, lists))
