"""Intermediate results that forward saves, computed again in backward: then second derivatives flow through them."""

import ast
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from gradcli.edits.expressions import Candidate
from gradcli.edits.flow import names_in
from gradcli.edits.render import Change
from gradcli.edits.saving import saving_calls
from gradcli.frozen import dataclass

Definition = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedName:
    """A value that forward saves: the node that saves it, and the attribute of ctx, None for a saved tensor."""

    name: str
    node: ast.expr
    attribute: str | None

    @property
    def line(self) -> int:
        """The line of the file that saves it."""
        return self.node.lineno


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """An edit by which backward recomputes the values that forward `saved`."""

    saved: tuple[SavedName, ...]
    candidate: Candidate


def recomputations(forward: Definition, backward: Definition, numbers: Collection[str] = ()) -> Iterator[Recomputation]:
    """Intermediate values that forward saves, computed again by backward: one of them first, then all of them.

    `numbers` are parameters of forward that hold no tensors: an edit that needs one keeps it on ctx.
    """
    numbers = {*numbers, *_with_plain_defaults(forward)}
    yield from _one_computed_again(forward, backward, numbers)
    whole = computed_again(forward, backward, numbers)
    yield from () if whole is None else (whole,)


def _with_plain_defaults(forward: Definition) -> Iterator[str]:
    """The parameters whose default is a number, a string or a bool."""
    given = forward.args.args
    for parameter, default in zip(reversed(given), reversed(forward.args.defaults), strict=False):
        if isinstance(default, ast.Constant) and default.value is not None:
            yield parameter.arg


def _one_computed_again(forward: Definition, backward: Definition, numbers: Collection[str]) -> Iterator[Recomputation]:
    """One result that forward saves, computed by backward from the inputs, which are saved in its place."""
    given = _given(forward).difference(numbers)
    for call, unpacking in itertools.product(saving_calls(forward), _unpackings(backward)):
        target = unpacking.targets[0]
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        for argument, bound in zip(call.args, names, strict=False):
            made = _expression_of(forward, argument)
            used = set() if made is None else names_in(made) & given
            if made is not None and used and isinstance(bound, ast.Name):
                kept = SavedName(name=ast.unparse(argument), node=argument, attribute=None)
                stored, called = _kept_numbers(forward, backward, sorted(names_in(made) & set(numbers)))
                changes = _exchanged(call, unpacking, argument, bound, renamed(made, called), sorted(used))
                changes = _with_statements(forward, call, changes, stored)
                yield Recomputation(saved=(kept,), candidate=Candidate(3, changes))


def _given(forward: Definition) -> set[str]:
    """The names of the arguments; those that setup_context takes apart first."""
    given = {a.arg for a in forward.args.args[1:]}
    taken = [n for n in ast.walk(forward) if isinstance(n, ast.Assign) and ast.unparse(n.value) == "inputs"]
    return given.union(*(names_in(target) for each in taken for target in each.targets)) if "inputs" in given else given


def _exchanged(
    call: ast.Call, unpacking: ast.Assign, argument: ast.expr, bound: ast.Name, made: ast.expr, used: list[str]
) -> tuple[Change, ...]:
    """The saved `argument`, which backward calls `bound`, exchanged for the inputs `used` that it is `made` of."""
    target: ast.expr = unpacking.targets[0]
    kept = [n for n in call.args if n is not argument]
    more = [name for name in used if name not in {n.id for n in kept if isinstance(n, ast.Name)}]
    names = [n for n in getattr(target, "elts", ()) if n is not bound]
    stores: list[ast.expr] = [*names, *(ast.Name(id=name, ctx=ast.Store()) for name in more)]
    first = ast.Assign(targets=[ast.Tuple(elts=stores, ctx=ast.Store())], value=unpacking.value, lineno=1)
    second = ast.Assign(targets=[ast.Name(id=bound.id, ctx=ast.Store())], value=made, lineno=1)
    inputs: list[ast.expr] = [ast.Name(id=name, ctx=ast.Load()) for name in more]
    whole = ast.Call(func=call.func, args=[*kept, *inputs], keywords=[])
    return (Change(call, whole), Change(unpacking, (first, second)))


def _kept_numbers(
    forward: Definition, backward: Definition, names: Sequence[str]
) -> tuple[list[ast.stmt], dict[str, ast.expr]]:
    """Parameters that hold no tensors, kept on ctx: the statements that are missing, and how backward reads each."""
    kept, context, own = saved_parameters(forward), forward.args.args[0].arg, backward.args.args[0].arg
    stored = [ast.parse(f"{context}.{name} = {name}").body[0] for name in names if name not in kept]
    return stored, {name: ast.Attribute(value=_name(own), attr=kept.get(name, name), ctx=ast.Load()) for name in names}


def _with_statements(
    forward: Definition, saving: ast.Call, changes: Sequence[Change], stored: Sequence[ast.stmt]
) -> tuple[Change, ...]:
    """The changes, with statements after the one that saves tensors."""
    places = [n for n in ast.walk(forward) if isinstance(n, ast.Expr) and n.value is saving]
    if not stored or not places:
        return tuple(changes)
    calls = [change.new for change in changes if change.old is saving]
    whole = ast.Expr(value=calls[0]) if calls else places[0]  # type: ignore[arg-type]  # a call for a call
    return (Change(places[0], (whole, *stored)), *(change for change in changes if change.old is not saving))


def _expression_of(forward: Definition, argument: ast.expr) -> ast.expr | None:
    """The expression that forward computes a saved name by, where it does so once, or that is saved without a name."""
    if not isinstance(argument, ast.Name):
        return None if isinstance(argument, ast.Starred | ast.Constant) else argument
    found = [
        n.value
        for n in ast.walk(forward)
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and n.targets[0].id == argument.id
    ]
    return found[0] if len(found) == 1 else None


def _unpackings(backward: Definition) -> list[ast.Assign]:
    return [
        n
        for n in ast.walk(backward)
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Attribute) and n.value.attr == "saved_tensors"
    ]


def intermediates(forward: Definition) -> list[SavedName]:
    """The values that forward saves and that are neither parameters nor returned, in the order of the text."""
    parameters = [a.arg for a in forward.args.args]
    returned = {
        name for n in ast.walk(forward) if isinstance(n, ast.Return) and n.value is not None for name in _own(n.value)
    }
    found: list[SavedName] = []
    for node in ast.walk(forward):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "save_for_backward"
        ):
            found += [SavedName(name=ast.unparse(a), node=a, attribute=None) for a in node.args]
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            target, value = node.targets[0], node.value
            if isinstance(target.value, ast.Name) and target.value.id in parameters[:1] and isinstance(value, ast.Name):
                found.append(SavedName(name=value.id, node=value, attribute=target.attr))
    own = [each for each in found if each.name not in parameters and each.name not in returned]
    return sorted(own, key=lambda each: (each.line, each.node.col_offset))


def _own(value: ast.expr) -> list[str]:
    """The names that a return statement hands out as they are."""
    elements = value.elts if isinstance(value, ast.Tuple) else [value]
    return [e.id for e in elements if isinstance(e, ast.Name)]


def computed_again(
    forward: Definition, backward: Definition, plain: Collection[str] = (), left: Collection[str] = ()
) -> Recomputation | None:
    """The intermediate values that forward saves, computed by its statements where backward unpacks the saved tensors.

    Parameters that these use and that are not saved are saved as well; those that are `plain` are kept on ctx. Values
    that are `left` stay saved.
    """
    every, unpacking, saving = intermediates(forward), one_unpacking(backward), _saving_of_values(forward)
    kept = [each for each in every if each.name not in left]
    plain, own = {*plain, *_with_plain_defaults(forward)}, backward.args.args[0].arg
    expressions = [each for each in kept if not isinstance(each.node, ast.Name)]
    steps = _steps(forward, {each.name for each in kept if each not in expressions}, expressions, left)
    if not kept or steps is None or unpacking is None or saving is None:
        return None
    if not set(left).isdisjoint(set().union(*map(_stored, steps))):
        return None  # what is left would be computed again all the same
    saved = {ast.unparse(a): a for a in saving.args}
    bound = dict(zip(saved, (ast.unparse(t) for t in unpacked(unpacking)), strict=False))
    if len(bound) != len(unpacked(unpacking)) or len(bound) != len(saving.args):
        return None
    used = set().union(*map(_read, [*steps, *(each.node for each in expressions)]))
    on_ctx = sorted(used & {*plain, *saved_parameters(forward)} - set(bound))
    stored, numbers = _kept_numbers(forward, backward, on_ctx)
    for each in every:
        if each.name in left and each.attribute is not None:
            numbers[each.name] = ast.Attribute(value=_name(own), attr=each.attribute, ctx=ast.Load())
    more = [a.arg for a in forward.args.args[1:] if a.arg in used and a.arg not in bound and a.arg not in numbers]
    lost = {each.name for each in kept if each.attribute is None}
    remain = [name for name in (*bound, *more) if name not in lost]
    called: dict[str, ast.expr] = {name: _name(bound.get(name, name)) for name in (*bound, *more)}
    called |= numbers
    whole = ast.Call(func=saving.func, args=[saved.get(name, _name(name)) for name in remain], keywords=[])
    stores: list[ast.expr] = [ast.Name(id=bound.get(name, name), ctx=ast.Store()) for name in remain]
    anew = ast.Assign(targets=[ast.Tuple(elts=stores, ctx=ast.Store())], value=unpacking.value, lineno=1)
    made = [renamed(step, called) for step in steps]
    made += [_assigned(bound[each.name], renamed(each.node, called)) for each in expressions]
    reads = _reads(backward, own, {k.attribute: bound.get(k.name, k.name) for k in kept if k.attribute is not None})
    whole_reads = [change for change in reads if change.new == ()]
    if not lost and not more and whole_reads:  # what is saved stays as it is
        changes = [Change(whole_reads[0].old, tuple(made)), *(c for c in reads if c is not whole_reads[0])]
    else:
        changes = [Change(saving, whole), Change(unpacking, (anew, *made)), *reads]
    every_change = _with_statements(forward, saving, changes, stored)
    return Recomputation(saved=tuple(kept), candidate=Candidate(3 + len(made), every_change))


def _assigned(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value, lineno=1)


def _name(text: str) -> ast.expr:
    return ast.Name(id=text, ctx=ast.Load())


def renamed(node: Any, called: Mapping[str, ast.expr]) -> Any:
    """Syntax with forward's names replaced by backward's for the same values; other parts stay as they are."""
    if isinstance(node, ast.Name):
        new = called.get(node.id)
        if isinstance(new, ast.Name):
            return node if new.id == node.id else ast.Name(id=new.id, ctx=node.ctx)
        return node if new is None or isinstance(node.ctx, ast.Store) else new
    if isinstance(node, list):
        return [renamed(each, called) for each in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: renamed(value, called) for name, value in ast.iter_fields(node)}
    before = dict(ast.iter_fields(node))
    if all(_is_same(before[name], value) for name, value in fields.items()):
        return node
    return ast.copy_location(type(node)(**fields), node)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return all(a is b for a, b in zip(one, other, strict=True))
    return one is other


def _steps(
    forward: Definition, wanted: set[str], expressions: Sequence[SavedName], known: Collection[str]
) -> list[ast.Assign | ast.If] | None:
    """The statements that names, and the names in `expressions`, are computed by, from parameters and `known` values.

    None if others than plain assignments and branches compute them, or none do.
    """
    if isinstance(forward, ast.Lambda):
        return None
    given = {*known, *(a.arg for a in forward.args.args)}
    found: list[ast.Assign | ast.If] = []
    inner = set().union(*(names_in(each.node) for each in expressions)) - given
    needed = wanted | inner
    for statement in reversed(forward.body):
        if not isinstance(statement, ast.Assign | ast.If) or not _stored(statement) & needed:
            continue
        if isinstance(statement, ast.If) and not all(isinstance(s, ast.Assign) for s in _branches(statement)):
            return None
        found.insert(0, statement)
        left = needed if isinstance(statement, ast.If) else needed - _stored(statement)
        needed = left | (_read(statement) - given)
    return found if (found or expressions) and wanted <= set().union(*map(_stored, found)) else None


def _branches(statement: ast.If) -> list[ast.stmt]:
    return [*statement.body, *statement.orelse]


def _stored(statement: ast.stmt) -> set[str]:
    """The names that a statement assigns to."""
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _read(statement: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def saved_parameters(forward: Definition) -> dict[str, str]:
    """The parameters of forward that it stores on ctx unchanged, each with the attribute; also several at once."""
    parameters = [a.arg for a in forward.args.args]
    assignments = (n for n in ast.walk(forward) if isinstance(n, ast.Assign))
    pairs = (pair for n in assignments for pair in zip(_parts(n.targets[0]), _parts(n.value), strict=False))
    return {
        value.id: target.attr
        for target, value in pairs
        if isinstance(target, ast.Attribute) and isinstance(value, ast.Name) and value.id in parameters[1:]
    }


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _reads(backward: Definition, own: str, kept: Mapping[str, str]) -> list[Change]:
    """Reads of ctx replaced by the name that backward computes; a statement `s = ctx.s` is removed."""
    changes: list[Change] = []
    left_out: set[ast.AST] = set()
    for node in ast.walk(backward):
        if isinstance(node, ast.Assign) and _attribute(node.value, own) in kept:
            target, name = node.targets[0], kept[str(_attribute(node.value, own))]
            if isinstance(target, ast.Name) and target.id == name:
                changes.append(Change(node, ()))
                left_out.add(node.value)
        if isinstance(node, ast.expr) and node not in left_out and _attribute(node, own) in kept:
            changes.append(Change(node, _name(kept[str(_attribute(node, own))])))
    return changes


def _attribute(node: ast.expr, own: str) -> str | None:
    """Which attribute of ctx an expression is."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
        return node.attr
    return None


def one_unpacking(backward: Definition) -> ast.Assign | None:
    """The one statement that unpacks the saved tensors."""
    found = [n for n in ast.walk(backward) if isinstance(n, ast.Assign) and _ends(n.value, "saved_tensors")]
    return found[0] if len(found) == 1 and unpacked(found[0]) else None


def unpacked(unpacking: ast.Assign) -> list[ast.expr]:
    """What the saved tensors are unpacked to."""
    target = unpacking.targets[0]
    return list(target.elts) if isinstance(target, ast.Tuple | ast.List) else []


def one_saving(forward: Definition) -> ast.Call | None:
    """The one call that saves tensors, by their names."""
    found = _saving_of_values(forward)
    return found if found is not None and all(isinstance(a, ast.Name) for a in found.args) else None


def _saving_of_values(forward: Definition) -> ast.Call | None:
    """The one call that saves tensors, each an argument of its own."""
    found = saving_calls(forward)
    return found[0] if len(found) == 1 and not any(isinstance(a, ast.Starred) for a in found[0].args) else None


def _ends(node: ast.expr, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute
