"""Edits of what forward saves: other tensors or arguments of forward, and zeros for unused outputs."""

import ast
import itertools
from collections.abc import Collection, Iterator

from gradcli.edits.expressions import Candidate
from gradcli.edits.idiom import build
from gradcli.edits.render import Change

Definition = ast.FunctionDef | ast.Lambda


def saved_inputs(definition: Definition) -> Iterator[Candidate]:
    """What forward saves, in another name of its own; a detached or cloned tensor as it was."""
    names = [a.arg for a in definition.args.args] + sorted(_bound(definition))
    for call in saving_calls(definition):
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
    """Zeros instead of None as grad_output of unused outputs."""
    for node in ast.walk(definition):
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node, ast.Call) and is_method and getattr(node.func, "attr", "") == "set_materialize_grads":
            changed = ast.Call(func=node.func, args=[ast.Constant(value=True)], keywords=[])
            yield Candidate(1, (Change(node, changed),))


def saved_arguments(
    forward: Definition, backward: Definition, places: list[ast.expr], captured: Collection[str] = ()
) -> Iterator[Candidate]:
    """An argument of forward, or a number that it takes from a closure, kept on ctx, and a factor of the gradient."""
    if isinstance(forward, ast.Lambda) or isinstance(backward, ast.Lambda) or not backward.args.args:
        return
    context, *given = [a.arg for a in forward.args.args]
    own = backward.args.args[0].arg
    first = forward.body[1] if ast.get_docstring(forward) and len(forward.body) > 1 else forward.body[0]
    for name in (*given, *captured):
        stored = ast.parse(f"{context}.{name} = {name}").body[0]
        for place, operation in itertools.product(places, (ast.Mult, ast.Div)):
            kept = ast.Attribute(value=ast.Name(id=own, ctx=ast.Load()), attr=name, ctx=ast.Load())
            scaled = ast.BinOp(left=place, op=operation(), right=kept)
            yield Candidate(4, (Change(first, (stored, first)), Change(place, scaled)))


def saving_calls(definition: Definition) -> list[ast.Call]:
    """The calls that save tensors."""
    return [
        n
        for n in ast.walk(definition)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "save_for_backward"
    ]


def _bound(definition: Definition) -> set[str]:
    return {n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def saved_attributes(forward: Definition, backward: Definition) -> Iterator[Candidate]:
    """Attributes of ctx saved as tensors instead: an output stored as an attribute keeps its own graph alive."""
    calls = saving_calls(forward)
    if len(calls) > 1 or isinstance(forward, ast.Lambda) or isinstance(backward, ast.Lambda):
        return
    context, own = forward.args.args[0].arg, backward.args.args[0].arg
    for node in ast.walk(forward):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            not isinstance(node, ast.Assign)
            or not isinstance(target, ast.Attribute)
            or not isinstance(node.value, ast.Name)
            or ast.unparse(target.value) != context
        ):
            continue
        read = f"{own}.{target.attr}"
        if calls:
            yield from _saved_too(calls[0], node, node.value, backward, read)
            continue
        reads = [n for n in ast.walk(backward) if isinstance(n, ast.Assign) and ast.unparse(n.value) == read]
        if len(reads) == 1 and isinstance(reads[0].targets[0], ast.Name):
            saving = ast.parse(f"{context}.save_for_backward({node.value.id})").body[0]
            taking = ast.parse(f"({reads[0].targets[0].id},) = {own}.saved_tensors").body[0]
            yield Candidate(3, (Change(node, saving), Change(reads[0], taking)))


def _saved_too(
    call: ast.Call, node: ast.Assign, value: ast.Name, backward: ast.FunctionDef, read: str
) -> Iterator[Candidate]:
    """The attribute as the last of the saved tensors, so that those before it are unpacked as they were."""
    saved = f"{read.partition('.')[0]}.saved_tensors"
    nodes = [n for n in ast.walk(backward) if isinstance(n, ast.Attribute)]
    before = [Change(n, build(f"{saved}[:-1]")) for n in nodes if ast.unparse(n) == saved]
    last = [Change(n, build(f"{saved}[-1]")) for n in nodes if ast.unparse(n) == read]
    whole = ast.Call(func=call.func, args=[*call.args, value], keywords=call.keywords)
    yield Candidate(4, (Change(call, whole), Change(node, ()), *before, *last))
