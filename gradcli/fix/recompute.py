"""The last resort: a backward that runs forward again and lets autograd differentiate it."""

import ast
from collections.abc import Collection

from gradcli.edits.draft import Draft
from gradcli.edits.recomputing import saved_parameters
from gradcli.edits.source import TextEdit, edited, indent_of, span

_BODY = """# Runs forward again and differentiates it by autograd; written by gradcli fix.
with {torch}.enable_grad():
    inputs = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in {ctx}.saved_tensors]
    output = {owner}.forward({ctx}, *inputs)
return tuple({torch}.autograd.grad(output, inputs, {g}, create_graph={torch}.is_grad_enabled()))"""
_BODY_WITH_OTHERS = """# Runs forward again and differentiates it by autograd; written by gradcli fix.
{unpacked} = {ctx}.saved_tensors
needed = {ctx}.needs_input_grad
with {torch}.enable_grad():
    values = [x.view_as(x) if n else x for x, n in zip([{values}], needed)]
    output = {owner}.forward({ctx}, *values)
inputs = [x for x, n in zip(values, needed) if n]
grads = iter({torch}.autograd.grad(output, inputs, {g}, create_graph={torch}.is_grad_enabled()))
return tuple(next(grads) if n else None for n in needed)"""
"""For a forward that takes other values besides tensors, or returns several outputs. Views keep arguments apart for
which the same tensor was passed."""


def recomputing(
    draft: Draft, namespace: str | None, numbers: Collection[str], *, all_differentiable: bool
) -> Draft | None:
    """The draft with such a backward; None where forward does not have the form that it needs.

    Forward takes ctx, tensors, which it saves or can save, and `numbers`, other values, which it keeps on ctx or can
    keep there. Of indices, labels and other tensors without a gradient none is asked for.
    """
    backward = draft.backward.node
    if namespace is None or not draft.has("forward"):
        return None
    owner = draft.part("forward").function.__qualname__.rpartition(".")[0]
    if not owner.isidentifier():
        return None
    forward = draft.part("forward").node
    if not isinstance(backward, ast.FunctionDef) or not isinstance(forward, ast.FunctionDef):
        return None
    (ctx, *cotangents), (_, *given) = (
        [a.arg for a in backward.args.args] or [""],
        [a.arg for a in forward.args.args] or [""],
    )
    saving = _saving(forward)
    special = (*backward.args.kwonlyargs, *forward.args.kwonlyargs, backward.args.vararg, forward.args.vararg)
    if not cotangents or not given or saving is None or any(special):
        return None
    saved, kept = [ast.unparse(a) for a in saving.args], saved_parameters(forward)
    more = [name for name in given if name in numbers and name not in kept and name not in saved]
    kept |= {name: name for name in more}
    tensors = [name for name in given if name in saved or name not in kept]
    first = backward.body[1] if ast.get_docstring(backward) and len(backward.body) > 1 else backward.body[0]
    indent = indent_of(draft.file, first)
    is_plain = all_differentiable and tensors == given and len(cotangents) == 1
    lines = (_BODY if is_plain else _BODY_WITH_OTHERS).format(
        ctx=ctx,
        g=cotangents[0] if len(cotangents) == 1 else f"({', '.join(cotangents)})",
        torch=namespace,
        owner=owner,
        unpacked=", ".join(tensors) if len(tensors) > 1 else f"({tensors[0]},)" if tensors else "()",
        values=", ".join(name if name in tensors else f"{ctx}.{kept[name]}" for name in given),
    )
    text = lines.replace("\n", "\n" + indent)
    edits = [TextEdit(start=span(draft.file, first)[0], stop=span(draft.file, backward.body[-1])[1], text=text)]
    if saved != tensors or more:
        context, there = forward.args.args[0].arg, indent_of(draft.file, saving)
        new = f"{ast.unparse(saving.func)}({', '.join(tensors)})"
        new += "".join(f"\n{there}{context}.{name} = {name}" for name in more)
        start, stop = span(draft.file, saving)
        edits.append(TextEdit(start=start, stop=stop, text=new))
    return draft.at(edited(draft.file, edits))


def _saving(forward: ast.FunctionDef) -> ast.Call | None:
    """The one call that saves tensors, where there is one."""
    calls = [n for n in ast.walk(forward) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    found = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "save_for_backward"]
    return found[0] if len(found) == 1 else None
