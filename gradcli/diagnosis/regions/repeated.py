"""Sums into entries that an index selects, `out[i] += f`, which keep the last value alone where an index repeats."""

import ast
from collections.abc import Sequence
from typing import Any

from gradcli.diagnosis.slips.bench import is_right_with
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.edits.draft import draft_for
from gradcli.edits.idiom import idiom_of
from gradcli.edits.render import Change
from gradcli.edits.statements import accumulated
from gradcli.findings import FindingKind
from gradcli.results import Location


def lost_at_repeated_indices(suspect: Suspect) -> Named | None:
    """Right, here and at other indices, if every value is added to the entry that its index selects."""
    subject = suspect.facts.subject
    framework: Any = getattr(subject, "framework", None)
    draft = None if framework is None or suspect.is_beyond_slopes else draft_for(subject.info)
    if draft is None:
        return None
    idiom = idiom_of(draft, framework.name)
    for candidate in accumulated(draft.backward.node, idiom):
        changes = candidate.changes
        if all(_adds_at_an_index(change.old) for change in changes) and is_right_with(
            suspect, draft, changes, suspect.facts.rearranged(0)
        ):
            made = draft.with_changes(changes)
            line = min(getattr(change.old, "lineno", 0) for change in changes)
            extra = {
                "location": Location(file=draft.file.path, line=line),
                "corrected": None if made is None else made.file.text,
            }
            return FindingKind.WRONG_ENTRIES, _sentence(suspect.name, changes), extra
    return None


def _adds_at_an_index(node: ast.AST) -> bool:
    """Whether a statement adds to entries that a variable selects, and not only to a slice."""
    if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Subscript):
        return False
    key = node.target.slice
    parts = key.elts if isinstance(key, ast.Tuple) else [key]
    return any(not isinstance(part, ast.Slice | ast.Constant) for part in parts)


def _sentence(name: str, changes: Sequence[Change]) -> str:
    told = [f"`{ast.unparse(change.old)}` in line {getattr(change.old, 'lineno', 0)}" for change in changes]
    keeps = "keeps" if len(told) == 1 else "keep"
    new = changes[0].new
    made = "" if isinstance(new, tuple) else f", as by `{ast.unparse(new)}`"
    return (
        f"{name}: wrong where an index occurs more than once, of whose values {' and '.join(told)} {keeps} the last "
        f"alone; with all of them added{made}, the returned gradient is right"
    )
