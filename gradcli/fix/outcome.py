"""The outcome of a search: the target examined, the files that may be edited, and why there is no patch."""

from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.backends.jax.rules import rule_of
from gradcli.edits.draft import Draft, drafts_for
from gradcli.fix.examine import Examination, examined, sentences
from gradcli.fix.near_miss import breaking, remaining
from gradcli.fix.search import Search
from gradcli.patches import FixResult
from gradcli.runner.arguments.prepare import Prepared
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog

_MOST = 3
"""Edits that are no patches, of which the first that corrects something is named."""


def fixed(
    ready: Prepared, target: object, name: str, *, ends: float, refused: frozenset[str] = frozenset()
) -> FixResult:
    """The outcome of a search for the target of a prepared case, until the processor time `ends`.

    Texts of the file that are `refused` are no patches.
    """
    watchdog = Watchdog(budget=ready.case.settings.budget)
    # Candidates may divide by zero or overflow, as gradcli's measurements do; no one can do anything about that.
    with watchdog.watching(), np.errstate(all="ignore"):
        seen = examined(ready)
        if seen.verdict is not Verdict.FAILED:
            return FixResult(target=name, verdict=seen.verdict)
        said = sentences(seen.findings)
        drafts = _drafts(ready, target, seen)
        if not drafts:
            why = "gradcli found no Python source of backward in your own files to edit"
            return FixResult(target=name, verdict=seen.verdict, sentences=said, reason=why)
        wrong_order = max(f.order for f in seen.findings)
        search = Search(ready, target, ready.case.seed, ends, refused, wrong_order)
        patch = search.patch(seen, drafts)
        reason = None if patch is not None else _reason(search, seen)
    return FixResult(target=name, verdict=seen.verdict, sentences=said, patch=patch, reason=reason)


def _reason(search: Search, seen: Examination) -> str:
    """Why there is no patch. If an edit made the gradient right, this includes what the check still finds wrong."""
    none = "none of the edits of backward that gradcli tried passes the whole check"
    if search.breaking:
        return f"{none} and leaves other Functions right; {breaking(search.ready, *search.breaking[0])}"
    if not search.missed:
        return none
    said = (remaining(search.ready, search.target, seen, *each) for each in search.missed[:_MOST])
    left = next((each for each in said if each is not None), None)
    return none if left is None else f"{none}; {left}"


def _drafts(ready: Prepared, target: object, seen: Examination) -> list[Draft]:
    """The files that may be edited, first that in which a finding is located; one for each Function called."""
    info = ready.info if seen.subject is None else seen.subject.info
    rule: Any = rule_of(target) if ready.backend.name == "jax" else None
    if rule is not None:
        info = replace(info, forward=getattr(rule, "fwd", None))
    elif info.backward is None and ready.backend.name == "numpy":
        info = replace(info, backward=info.forward, forward=None)
    places = [f.location for f in seen.findings if f.location is not None]
    found = drafts_for(info).values()
    return sorted(found, key=lambda draft: not any(draft.holds(place.file, place.line) for place in places))
