"""A tensor that forward keeps for backward and then writes into: the gradient is right if a copy is kept."""

import ast
from collections.abc import Iterator
from typing import Any

from gradcli.diagnosis.contrast import is_clear
from gradcli.diagnosis.slips.bench import is_right_with
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.edits.draft import draft_for
from gradcli.edits.idiom import idiom_of
from gradcli.edits.render import Change
from gradcli.edits.saving import saving_calls
from gradcli.findings import FindingKind
from gradcli.results import Location

_MOST = 8
"""Saved values that are tried."""


def stale_save(suspect: Suspect) -> Named | None:
    """Right, here and close by, if forward keeps a copy of a value that a later line writes into."""
    framework: Any = getattr(suspect.facts.subject, "framework", None)
    draft = None if framework is None else draft_for(suspect.facts.subject.info)
    if draft is None or not draft.has("forward"):
        return None
    forward = draft.part("forward").node
    writes = [] if isinstance(forward, ast.Lambda) else list(_writes(forward))
    saved = [s for s in _saved(forward) if any(line >= s.lineno for line, _ in writes)]
    if not saved or not is_clear(suspect):
        return None
    idiom = idiom_of(draft, framework.name)
    for value in saved[:_MOST]:
        change = Change(value, idiom.copied(value))
        if not is_right_with(suspect, draft, [change], suspect.facts.elsewhere):
            continue
        later = [(line, text) for line, text in writes if line >= value.lineno]
        line, text = next((each for each in later if each[1].startswith(value.id)), later[0])
        made = draft.with_changes([change])
        return (
            FindingKind.MUTATES_SAVED,
            f"{suspect.name}: forward keeps `{value.id}` for backward in line {value.lineno} and then writes into it, "
            f"as by `{text}` in line {line}; with a copy kept, the returned gradient is right",
            {
                "location": Location(file=draft.file.path, line=line),
                "corrected": None if made is None else made.file.text,
            },
        )
    return None


def _saved(forward: ast.AST) -> Iterator[ast.Name]:
    """The names whose values forward keeps: as attributes of ctx, or as saved tensors."""
    context = forward.args.args[0].arg if isinstance(forward, ast.FunctionDef) and forward.args.args else None
    for node in ast.walk(forward):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Name)
            and _is_attribute(node.targets[0], context)
        ):
            yield node.value
        elif isinstance(node, ast.Call) and isinstance(forward, ast.FunctionDef) and node in saving_calls(forward):
            yield from (argument for argument in node.args if isinstance(argument, ast.Name))


def _is_attribute(target: ast.expr, context: str | None) -> bool:
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == context


def _writes(forward: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines of forward that may write into a tensor, and what they say."""
    for node in ast.walk(forward):
        by_item = isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets)
        called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        by_method = (called.endswith("_") and not called.endswith("__")) or called in ("copyto", "at", "fill", "sort")
        to_out = isinstance(node, ast.Call) and any(keyword.arg == "out" for keyword in node.keywords)
        if isinstance(node, ast.AugAssign) or by_item or by_method or to_out:
            yield getattr(node, "lineno", 0), ast.unparse(node)
