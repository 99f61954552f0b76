"""A wrong `jvp` written anew from a backward that is right: its formula for the tangent, or forward differentiated."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gradcli.edits.draft import Draft, Part
from gradcli.edits.source import TextEdit, Written, edited, indent_of, key_of, span, written

_TWICE_BACKWARD = """# Computes the jvp by autograd, as the vjp of forward's vjp; written by gradcli fix.
output, pull_back = {torch}.func.vjp({owner}.forward, *{ctx}.saved_tensors)
_, push_forward = {torch}.func.vjp(pull_back, {torch}.zeros_like(output))
return push_forward({tangents})[0]"""
"""What is pulled back is linear in grad_output: to pull tangents back through that is to push them forward."""


def with_right_jvp(draft: Draft, jvp: Callable[..., Any] | None, namespace: str | None) -> Iterator[Draft]:
    """The draft with another jvp: backward's formula with the tangent for grad_output, then forward differentiated.

    The first is right where an output depends on the input of the same place alone. The second is written for
    PyTorch, where forward takes no ctx and all that it takes is saved.
    """
    own = written(jvp, draft.file)
    key = None if own is None or own.file is not draft.file else key_of(own.function, own.file)
    if own is None or key is None or not isinstance(own.node, ast.FunctionDef):
        return
    part = Part(role="jvp", function=own.function, key=key, node=own.node)
    whole = replace(draft, parts=(*draft.parts, part))
    for body in (_formula_of_backward(draft, own.node), _twice_backward(draft, own.node, namespace)):
        made = None if body is None else whole.at(_with_body(own, body))
        if made is not None:
            yield made


def _with_body(own: Written, body: str) -> str:
    """The file with another body of a function, whose docstring stays."""
    node: Any = own.node
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    start, stop = span(own.file, first)[0], span(own.file, node.body[-1])[1]
    return edited(own.file, [TextEdit(start=start, stop=stop, text=body)])


def _formula_of_backward(draft: Draft, jvp: ast.FunctionDef) -> str | None:
    """The body of backward with the names of jvp's parameters, which stands in the file with the same indent."""
    backward = draft.backward.node
    if not isinstance(backward, ast.FunctionDef) or backward.body[0].col_offset != jvp.body[0].col_offset:
        return None
    (*before,), (*names,) = ([a.arg for a in each.args.args] for each in (backward, jvp))
    if len(before) != len(names) or len(names) != 2:
        return None
    called = dict(zip(before, names, strict=True))
    first = backward.body[1] if ast.get_docstring(backward) and len(backward.body) > 1 else backward.body[0]
    start, stop = span(draft.file, first)[0], span(draft.file, backward.body[-1])[1]
    text = draft.file.text.encode()[start:stop]
    uses = [n for s in backward.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id in called]
    for node in sorted(uses, key=lambda n: -span(draft.file, n)[0]):
        low, high = (place - start for place in span(draft.file, node))
        text = text[: max(low, 0)] + called[node.id].encode() + text[high:] if low >= 0 else text
    return text.decode()


def _twice_backward(draft: Draft, jvp: ast.FunctionDef, namespace: str | None) -> str | None:
    """A body that pulls back twice, which pushes forward."""
    if namespace is None or not draft.has("forward") or not draft.has("setup_context"):
        return None
    forward, setup = draft.part("forward").node, draft.part("setup_context").node
    owner = draft.backward.function.__qualname__.rpartition(".")[0]
    ctx, *tangents = [a.arg for a in jvp.args.args] or [""]
    if not owner.isidentifier() or not tangents or len(tangents) != len(forward.args.args) or not _saves_all(setup):
        return None
    lines = _TWICE_BACKWARD.format(
        ctx=ctx,
        owner=owner,
        torch=namespace,
        tangents=f"({', '.join(tangents)},)" if len(tangents) < 2 else f"({', '.join(tangents)})",
    )
    return lines.replace("\n", "\n" + indent_of(draft.file, jvp.body[0]))


def _saves_all(setup: ast.AST) -> bool:
    """Whether all inputs are saved for forward mode, in their order."""
    calls = [n for n in ast.walk(setup) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return any(ast.unparse(c).endswith("save_for_forward(*inputs)") for c in calls)
