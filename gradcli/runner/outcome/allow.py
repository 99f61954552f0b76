"""Findings that a spec or a caller allows: they become notes, with the reason, instead of failures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from gradcli.backends.base import Subject
from gradcli.errors import UsageError
from gradcli.findings import FindingKind
from gradcli.results import Evidence, Finding
from gradcli.verdict import Verdict

_BY_THE_CALLER = "as the caller asked"
Told = tuple[FindingKind, int, str | None]
"""A finding's kind, order and input."""


def allowed_by(given: Mapping[str, str] | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of a finding's name and the reason for which it is allowed, from a dict of them, or names alone.

    Raises:
        UsageError: a name that no finding has, or a reason that is no text.
    """
    names = (given,) if isinstance(given, str) else given
    pairs = list(given.items()) if isinstance(given, Mapping) else [(name, _BY_THE_CALLER) for name in names]
    known = [kind.value for kind in FindingKind]
    for name, reason in pairs:
        if name not in known:
            close = get_close_matches(str(name), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else "gradcli explain lists them"
            raise UsageError(f"allow: there is no finding {name!r}; {hint}")
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError(f"allow: expected the reason for which {name!r} is allowed, a string, got {reason!r}")
    return tuple(pairs)


def excused(
    found: Sequence[Evidence], subject: Subject, *, allow: Mapping[str, str], told: set[Told]
) -> Sequence[Evidence]:
    """The evidence of a check, with a note instead of each failure all of whose findings are allowed.

    `told` holds the findings that an earlier check has noted, which get no second note; those of this check are added
    to it. Findings are named even if the budget is spent: what is allowed must not depend on time.
    """
    if not allow:
        return found
    from gradcli.diagnosis.naming import name_findings

    made = list(found)
    about: dict[tuple[int, str | None], list[int]] = {}
    for number, evidence in enumerate(found):
        if evidence.verdict is Verdict.FAILED:
            about.setdefault((evidence.order, evidence.input), []).append(number)
    for numbers in about.values():
        findings = name_findings([found[number] for number in numbers], subject, budgeted=False)
        if findings and all(finding.kind.value in allow for finding in findings):
            new = [f for f in findings if (f.kind, f.order, f.input) not in told]
            for number in numbers:
                made[number] = _noted(found[number], new, allow)
            told.update((f.kind, f.order, f.input) for f in new)
    return made


def _noted(evidence: Evidence, findings: Sequence[Finding], allow: Mapping[str, str]) -> Evidence:
    """The evidence as a note; what it measured is kept, except for the resolution."""
    texts = [f"{f.message} [{f.kind.value}, allowed: {allow[f.kind.value]}]" for f in findings]
    return replace(
        evidence,
        verdict=Verdict.PASSED,
        allowed=True,
        input=evidence.input if evidence.order == 1 else None,
        note="; ".join(texts) or None,
        resolution=None,
        mismatch=None,
        finding=None,
        measured_at=None,
    )
