"""The diagnosis rule that names a mistake by the one wrong expression of backward."""

from gradcli.diagnosis.entries import tells_of_the_right, wrong_mask
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.search import SlipSearch
from gradcli.diagnosis.slips.slip import Role, Slip
from gradcli.diagnosis.slips.wording import kind_of, location_of, sentence_of
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.diagnosis.table import SIGNIFICANCE
from gradcli.edits.draft import Draft
from gradcli.errors import OverrunError, UserCodeError
from gradcli.findings import FindingKind

_KEY = "slips"


def explained_by_slip(suspect: Suspect) -> Named | None:
    """Right if one expression of backward is replaced, or a factor or a term is added to it."""
    if suspect.is_unseen or not suspect.facts.is_felt(suspect.place):
        return None
    if suspect.mismatch is None and any(g is not None and g.shape != suspect.shape for g in suspect.gradients):
        return None  # the shape is what is wrong
    search = _search(suspect.facts)
    slip = _slip_for(search, suspect.place)
    if slip is None or search.draft is None:
        return None
    in_part = _is_right_in_part(suspect)
    kind = kind_of(slip, search.draft, search.cotangents, in_part=in_part)
    if in_part and kind is FindingKind.WRONG_FACTOR:
        if slip.role is not Role.FACTOR:
            return None  # which entries are wrong says more
        kind = FindingKind.WRONG_ENTRIES
    extra = {"location": location_of(slip, search.draft), "corrected": _corrected(slip, search.draft)}
    return kind, sentence_of(slip, search.draft, suspect.name), extra


def correction_for(facts: Facts, place: int) -> str | None:
    """The file's text with the slip corrected, which makes the gradient of an active input right; None without one."""
    search = _search(facts)
    slip = _slip_for(search, place)
    return None if slip is None or search.draft is None else _corrected(slip, search.draft)


def _slip_for(search: SlipSearch, place: int) -> Slip | None:
    """The slip found by the search; None if values of backward cannot be read, as on the meta device."""
    try:
        return search.slip_for(place)
    except OverrunError:
        raise
    except UserCodeError:
        return None


def _search(facts: Facts) -> SlipSearch:
    """The search at these facts, made once and shared by all inputs."""
    if _KEY not in facts.searches:
        facts.searches[_KEY] = SlipSearch(facts)
    search: SlipSearch = facts.searches[_KEY]
    return search


def _corrected(slip: Slip, draft: Draft) -> str | None:
    made = None if slip.borrowed else draft.with_changes(slip.changes)
    return None if made is None else made.file.text


def _is_right_in_part(suspect: Suspect) -> bool:
    """Whether some entries of the gradient are seen to be right."""
    mismatch = suspect.mismatch
    if mismatch is None:
        return False
    parts = 2 if suspect.facts.subject.domain.blocks[suspect.place].complex else 1
    mask = wrong_mask(mismatch, suspect.shape, parts, SIGNIFICANCE)
    return mask is not None and not bool(mask.all()) and tells_of_the_right(mismatch, mask, parts)
