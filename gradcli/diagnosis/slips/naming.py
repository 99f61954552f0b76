"""The diagnosis rule that names a mistake by the one wrong expression of backward."""

import ast
from dataclasses import replace
from typing import Any

from gradcli.diagnosis.contrast import is_right_in
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.agreed_names import is_agreed, uses_of
from gradcli.diagnosis.slips.search import SlipSearch
from gradcli.diagnosis.slips.shortened import shortened
from gradcli.diagnosis.slips.slip import Role, Slip
from gradcli.diagnosis.slips.wording import kind_of, location_of, sentence_of
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.diagnosis.table import Table
from gradcli.edits.constants import merged, undoubled
from gradcli.edits.draft import Draft
from gradcli.errors import OverrunError, UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Finding, Mismatch
from gradcli.watchdog.case import is_cut

_KEY, _PART = "expressions of {}", "expressions of {}, at smaller inputs"
_SAVING = ("setup_context", "forward")
"""The functions that save values for backward: forward has no ctx if there is a setup_context."""
_BRIEFLY = 1.0
"""Seconds for a search at long inputs whose mistake a part of them does not show: it depends on the size, or on where
an entry lies, which an edit of one expression seldom corrects."""


def explained_by_slip(suspect: Suspect) -> Named | None:
    """Right if one expression of backward is replaced, or a factor or a term is added to it."""
    if suspect.is_beyond_slopes or not suspect.facts.is_felt(suspect.block):
        return None
    if suspect.mismatch is None and any(g is not None and g.shape != suspect.shape for g in suspect.gradients):
        return None  # the shape is what is wrong
    search, slip = _found(suspect.facts, suspect.block, suspect.mismatch)
    if slip is None or search.draft is None:
        return None
    in_part = is_right_in(suspect, 0.0)
    kind = kind_of(slip, search.draft, search.cotangents, in_part=in_part)
    if in_part and kind is FindingKind.WRONG_FACTOR:
        kind = FindingKind.WRONG_ENTRIES
    if slip.role is Role.OTHER and kind is FindingKind.WRONG_FACTOR and suspect.shows(_takes_others):
        kind = FindingKind.WRONG_GRADIENT
    slip = with_merged_numbers(slip, search.draft)
    extra = {"location": location_of(slip, search.draft), "corrected": _corrected(slip, search.draft)}
    return kind, sentence_of(slip, search.draft, suspect.name), extra


def _takes_others(_: Suspect, table: Table) -> bool:
    """Whether an entry takes the grad_output of outputs that do not depend on it beside or for that of others.

    No factor makes the right gradient of that, however it changes with the inputs.
    """
    return bool((table.strays.any(axis=0) & table.moves.any(axis=0)).any())


def with_correction(finding: Finding, facts: Facts, place: int, mismatch: Mismatch | None = None) -> Finding:
    """The finding with the line of the slip and the file's text in which it is corrected; of wrong entries, with it."""
    search, slip = _found(facts, place, mismatch)
    if slip is None or search.draft is None:
        return finding
    said, sentence = finding.message, sentence_of(slip, search.draft, str(finding.input))
    if finding.kind is FindingKind.WRONG_ENTRIES and sentence not in said:  # which are wrong does not say what is
        said += "; " + sentence.removeprefix(f"{finding.input}: ")
    line = finding.location
    if line is None and (finding.kind is not FindingKind.MISSING_GRADIENT or search.draft.role != "backward"):
        line = location_of(slip, search.draft)
    return replace(finding, message=said, corrected=_corrected(slip, search.draft), location=line)


def _found(facts: Facts, place: int, mismatch: Mismatch | None) -> tuple[SlipSearch, Slip | None]:
    """The search, and the slip that it found in backward, or in what forward saves for it: a short one, if any is.

    Where forward and backward have one name for what is saved, they agree on what it is, and backward uses it wrongly:
    another value in its place is found last, and at the one use of it in backward that this corrects, if there is one.
    It is preferred to an edit of backward that corrects fewer gradients.
    """
    search, slip = _found_in("backward", facts, place, mismatch, short=True)
    saving = [role for role in _SAVING if search.saves_in(role)]
    unlikely: tuple[SlipSearch, Slip] | None = None
    for role, short in [*((role, True) for role in saving), ("backward", False), *((role, False) for role in saving)]:
        if slip is not None or is_cut():
            break
        search, slip = _found_in(role, facts, place, mismatch, short=short)
        if slip is not None and search.draft is not None and role != "backward" and is_agreed(slip, search.draft):
            unlikely, slip = unlikely or (search, slip), None
    if unlikely is None or (slip is not None and len(slip.fixes) >= len(unlikely[1].fixes)):
        return search, slip
    own, _ = _found_in("backward", facts, place, mismatch, short=False)
    uses = () if own.draft is None or is_cut() else uses_of(unlikely[1], own.draft, place)
    return next(((own, use) for use in uses if own.proves(use)), unlikely)


def _found_in(
    role: str, facts: Facts, place: int, mismatch: Mismatch | None, *, short: bool
) -> tuple[SlipSearch, Slip | None]:
    """The search, and the slip that it found; None if values cannot be read, as on the meta device.

    Long inputs are searched in the part around the mistake, if it shows there, and a slip is proven at the whole.
    """
    part = _in_part(role, facts, place, mismatch)
    if part is not None:
        slip = _slip_for(part, place, short=short)
        if slip is not None or part.shows(place):
            return part, slip
    key = _KEY.format(role)
    if key not in facts.searches:
        facts.searches[key] = SlipSearch(facts, None if part is None else _BRIEFLY, role=role)
    whole: SlipSearch = facts.searches[key]
    return whole, _slip_for(whole, place, short=short)


def _in_part(role: str, facts: Facts, place: int, mismatch: Mismatch | None) -> SlipSearch | None:
    key = _PART.format(role)
    if key not in facts.searches:
        short = shortened(facts, place, mismatch)
        facts.searches[key] = None if short is None else SlipSearch(short, whole=facts, role=role)
    part: SlipSearch | None = facts.searches[key]
    return part


def _slip_for(search: SlipSearch, place: int, *, short: bool) -> Slip | None:
    try:
        return _undoubled(search.slip_for(place, short=short), search.draft)
    except OverrunError:
        raise
    except UserCodeError:
        return None


def _undoubled(slip: Slip | None, draft: Draft | None) -> Slip | None:
    """The slip without a sum of a thing with itself."""
    if slip is None or draft is None:
        return slip
    (change, *more) = undoubled(slip.changes, draft.tree)
    if change.old is slip.old or not isinstance(change.new, ast.AST):
        return slip
    return replace(slip, old=change.old, new=change.new, more=tuple(more), role=Role.OTHER, part="")


def with_merged_numbers(slip: Slip, draft: Draft) -> Slip:
    """The slip as one of a number of backward, where such a number with the factor that is lacking gives another."""
    if slip.borrowed or slip.more:
        return slip
    changes = merged(slip.changes[0], draft.tree)
    if changes == slip.changes or not all(isinstance(change.new, ast.AST) for change in changes):
        return slip
    first: Any = changes[0]
    return replace(slip, old=first.old, new=first.new, more=changes[1:], role=Role.OTHER, part="")


def _corrected(slip: Slip, draft: Draft) -> str | None:
    made = None if slip.borrowed else draft.with_changes(with_merged_numbers(slip, draft).changes)
    return None if made is None else made.file.text
