"""What forward saves, fixed: other tensors or arguments of its own, and zeros for unused outputs."""

import ast
import itertools
from collections.abc import Iterator

from gradcli.edits.expressions import Candidate
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
    """Zeros in the place of None for the gradients of unused outputs."""
    for node in ast.walk(definition):
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node, ast.Call) and is_method and getattr(node.func, "attr", "") == "set_materialize_grads":
            changed = ast.Call(func=node.func, args=[ast.Constant(value=True)], keywords=[])
            yield Candidate(1, (Change(node, changed),))


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


def saving_calls(definition: Definition) -> list[ast.Call]:
    """The calls that save tensors."""
    return [
        n
        for n in ast.walk(definition)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "save_for_backward"
    ]


def _bound(definition: Definition) -> set[str]:
    return {n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
