"""The last resort: a backward that runs forward again and lets autograd differentiate it."""

import ast

from gradcli.edits.draft import Draft
from gradcli.edits.source import TextEdit, edited, span

_BODY = """# Runs forward again and differentiates it by autograd; written by gradcli fix.
inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in {ctx}.saved_tensors]
with {torch}.enable_grad():
    output = {owner}.forward({ctx}, *inputs)
return tuple({torch}.autograd.grad(output, inputs, {g}, create_graph={torch}.is_grad_enabled()))"""


def recomputing(draft: Draft, namespace: str | None) -> Draft | None:
    """The draft with such a backward; None where forward does not have the form that it needs.

    Forward takes ctx and tensors, all of which it saves, and returns one tensor.
    """
    backward = draft.backward.node
    owner = draft.backward.function.__qualname__.rpartition(".")[0]
    if namespace is None or not draft.has("forward") or not owner.isidentifier():
        return None
    forward = draft.part("forward").node
    if not isinstance(backward, ast.FunctionDef) or not isinstance(forward, ast.FunctionDef):
        return None
    taken, given = [a.arg for a in backward.args.args], [a.arg for a in forward.args.args]
    saving = _saving(forward)
    special = (*backward.args.kwonlyargs, *forward.args.kwonlyargs, backward.args.vararg, forward.args.vararg)
    if len(taken) != 2 or len(given) < 2 or saving is None or any(special):
        return None
    first = backward.body[1] if ast.get_docstring(backward) and len(backward.body) > 1 else backward.body[0]
    lines = _BODY.format(ctx=taken[0], g=taken[1], torch=namespace, owner=owner)
    text = lines.replace("\n", "\n" + " " * first.col_offset)
    edits = [TextEdit(start=span(draft.file, first)[0], stop=span(draft.file, backward.body[-1])[1], text=text)]
    if [ast.unparse(a) for a in saving.args] != given[1:]:
        new = f"{ast.unparse(saving.func)}({', '.join(given[1:])})"
        start, stop = span(draft.file, saving)
        edits.append(TextEdit(start=start, stop=stop, text=new))
    return draft.at(edited(draft.file, edits))


def _saving(forward: ast.FunctionDef) -> ast.Call | None:
    """The one call that saves tensors, where there is one."""
    calls = [n for n in ast.walk(forward) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    found = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "save_for_backward"]
    return found[0] if len(found) == 1 else None
