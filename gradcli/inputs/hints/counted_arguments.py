"""Axes that are as long as there are arguments in `*layers`, as those of the weights of a sum of layers.

Documentation says so (`w: (K,)`, `layers: K tensors of one shape`), or forward reads an entry of w for each layer, as
in `for i, layer in enumerate(layers): total += w[i] * layer`. Where w is longer, forward does not read the rest of it.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from gradcli.inputs.hints.documented_shapes import Axis, texts_of
from gradcli.sources import bindings, nodes_of, tree_of
from gradcli.targets import TargetInfo

_REST = "..."


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
