"""What forward saves, mended: other tensors of its own, or an intermediate result computed again by backward."""

import ast
import itertools
from collections.abc import Iterator

from gradcli.edits.expressions import Candidate
from gradcli.edits.render import Change

Definition = ast.FunctionDef | ast.Lambda


def saved_inputs(definition: Definition) -> Iterator[Candidate]:
    """What forward saves, in another name of its own; a detached or cloned tensor as it was."""
    names = [a.arg for a in definition.args.args] + sorted(_bound(definition))
    for call in _saving(definition):
        for argument in call.args:
            if isinstance(argument, ast.Name):
                for other in names:
                    if other != argument.id:
                        yield Candidate(1.5, (Change(argument, ast.Name(id=other, ctx=ast.Load())),))
            elif isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute):
                yield Candidate(1, (Change(argument, argument.func.value),))
        for i, j in itertools.combinations(range(len(call.args)), 2):
            yield Candidate(2, (Change(call.args[i], call.args[j]), Change(call.args[j], call.args[i])))


def materialised(definition: Definition) -> Iterator[Candidate]:
    """Zeros in the place of None for the gradients of unused outputs."""
    for node in ast.walk(definition):
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node, ast.Call) and is_method and getattr(node.func, "attr", "") == "set_materialize_grads":
            changed = ast.Call(func=node.func, args=[ast.Constant(value=True)], keywords=[])
            yield Candidate(1, (Change(node, changed),))


def computed_again(forward: Definition, backward: Definition) -> Iterator[Candidate]:
    """An intermediate result that forward saves, computed by backward from the inputs, which are saved in its place."""
    given = {a.arg for a in forward.args.args[1:]}
    for call, unpacking in itertools.product(_saving(forward), _unpackings(backward)):
        target = unpacking.targets[0]
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        for argument, bound in zip(call.args, names, strict=False):
            made = _made(forward, argument)
            used = set() if made is None else {n.id for n in ast.walk(made) if isinstance(n, ast.Name)} & given
            if made is not None and used and isinstance(bound, ast.Name):
                yield _exchanged(call, unpacking, argument, bound, made, sorted(used))


def _exchanged(
    call: ast.Call, unpacking: ast.Assign, argument: ast.expr, bound: ast.Name, made: ast.expr, used: list[str]
) -> Candidate:
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
    return Candidate(3, (Change(call, whole), Change(unpacking, (first, second))))


def _made(forward: Definition, argument: ast.expr) -> ast.expr | None:
    """The expression that forward computes a saved name by, where it does so once."""
    if not isinstance(argument, ast.Name):
        return None
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


def _saving(definition: Definition) -> list[ast.Call]:
    return [
        n
        for n in ast.walk(definition)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "save_for_backward"
    ]


def _bound(definition: Definition) -> set[str]:
    return {n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def kept_arguments(forward: Definition, backward: Definition, places: list[ast.expr]) -> Iterator[Candidate]:
    """An argument of forward kept on ctx, and a factor of what backward returns."""
    if isinstance(forward, ast.Lambda) or isinstance(backward, ast.Lambda) or not backward.args.args:
        return
    context, *given = [a.arg for a in forward.args.args]
    own = backward.args.args[0].arg
    first = forward.body[1] if ast.get_docstring(forward) and len(forward.body) > 1 else forward.body[0]
    for name in given:
        stored = ast.parse(f"{context}.{name} = {name}").body[0]
        for place, operation in itertools.product(places, (ast.Mult, ast.Div)):
            kept = ast.Attribute(value=ast.Name(id=own, ctx=ast.Load()), attr=name, ctx=ast.Load())
            scaled = ast.BinOp(left=place, op=operation(), right=kept)
            yield Candidate(4, (Change(first, (stored, first)), Change(place, scaled)))
