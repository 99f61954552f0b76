"""Names for a gradient that is wrong in some entries and right in the others."""

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.entries import indices_of, pulled_back, tells_of_the_right, wrong_mask
from gradcli.diagnosis.factor import factor_on, fit_factor
from gradcli.diagnosis.regions.predicate import Rule, fitting_rule
from gradcli.diagnosis.regions.samples import looked_at, probe_of, samples_of
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.diagnosis.table import ROUNDED, SIGNIFICANCE, Table
from gradcli.findings import FindingKind
from gradcli.numerics.wording import of_largest
from gradcli.results import Mismatch
from gradcli.verdict import CLEARLY, tells_apart


def by_rule(suspect: Suspect) -> Named | None:
    """Wrong in some entries by a rule, and right in the others."""
    mask = _wrong_entries(suspect)
    if mask is None:
        return None
    rule = fitting_rule(samples_of(suspect, mask), suspect.name, probe_of(suspect, mask))
    return None if rule is None else _named(suspect, mask, rule)


def some_entries(suspect: Suspect) -> Named | None:
    """Wrong in no more than half of the entries, by no rule, and right in the others."""
    mask = _wrong_entries(suspect)
    if mask is None or 2 * int(mask.sum()) > mask.size or not _others_stay_right(suspect, mask):
        return None
    return _named(suspect, mask, None)


def most_entries(suspect: Suspect) -> Named | None:
    """Wrong in most entries, by no rule, and right in the others."""
    mask = _wrong_entries(suspect)
    return None if mask is None or not _others_stay_right(suspect, mask) else _named(suspect, mask, None)


def _wrong_entries(suspect: Suspect) -> NDArray[np.bool_] | None:
    """Which entries are wrong, for any output; None where that is not known, or all or none are."""
    parts = 2 if suspect.facts.subject.domain.blocks[suspect.block].complex else 1
    seen = [suspect.mismatch, *(e.mismatch for e in suspect.evidence if e.mismatch is not suspect.mismatch)]
    masks = [wrong_mask(m, suspect.shape, parts, SIGNIFICANCE) for m in seen if m is not None]
    known = [mask for mask in masks if mask is not None]
    if not known or len(known) < len(masks):
        return None
    wrong: NDArray[np.bool_] = np.logical_or.reduce(known)
    if wrong.all() or not wrong.any() or not any(m is not None and tells_of_the_right(m, wrong, parts) for m in seen):
        return None
    apart = all(m is None or (_stand_out(m, wrong, parts) and _are_right(m, wrong, parts)) for m in seen)
    return wrong if apart else None


def _are_right(mismatch: Mismatch, wrong: NDArray[np.bool_], parts: int) -> bool:
    """Whether no error of the others is one as those of the wrong entries, only too small to count.

    Errors that are seen there may come from rounding or a tolerance, but are then far smaller than those that count.
    """
    at = wrong.reshape(-1)[np.asarray(mismatch.columns) // parts]
    with np.errstate(all="ignore"):
        error = np.abs(mismatch.claimed - mismatch.numeric)
        seen = error > 3 * mismatch.bound + ROUNDED * float(np.max(np.abs(mismatch.numeric), initial=0.0))
    left = error[seen & ~at].max(initial=0.0)
    least = error.max(axis=0, initial=0.0)[at].min(initial=np.inf)
    return not left > 0 or not np.isfinite(left) or tells_apart(float(least), CLEARLY * float(left))


def _stand_out(mismatch: Mismatch, wrong: NDArray[np.bool_], parts: int) -> bool:
    """Whether the largest error of the wrong entries would clearly show in the others, had they one of its size."""
    at = wrong.reshape(-1)[np.asarray(mismatch.columns) // parts]
    with np.errstate(all="ignore"):
        error = np.abs(mismatch.claimed - mismatch.numeric)
    if not error[:, at].any():  # the table is a part of a large one, and other parts show the error
        return True
    scale = float(np.max(np.abs(mismatch.numeric), initial=0.0))
    known = ~at & np.isfinite(mismatch.bound)
    missed = np.maximum(error, 3 * mismatch.bound)[known].max(initial=ROUNDED * scale)
    largest = error[:, at].max(initial=0.0)
    return not np.isfinite(largest) or tells_apart(float(largest), float(missed))


def _others_stay_right(suspect: Suspect, mask: NDArray[np.bool_]) -> bool:
    """Whether all other entries are right at nearby inputs too: one may be right only at these values."""
    table = _close_by(suspect, mask)
    return table is None or not (np.any(table.wrong, axis=0).reshape(mask.shape) & ~mask).any()


def _close_by(suspect: Suspect, mask: NDArray[np.bool_]) -> Table | None:
    """The Jacobian at nearby inputs, for some of the wrong entries and some of the others."""
    other = suspect.elsewhere
    return None if other is None else other.facts.part_of_table(other.block, looked_at(mask))


def _named(suspect: Suspect, mask: NDArray[np.bool_], rule: Rule | None) -> Named | None:
    if suspect.mismatch is None:
        return None
    parts = 2 if suspect.facts.subject.domain.blocks[suspect.block].complex else 1
    alone = sum(e.mismatch is not None for e in suspect.evidence) <= 1
    c = _factor_there(suspect, suspect.mismatch, mask, parts) if alone else None
    count, size = int(mask.sum()), _relative_size(suspect.mismatch)
    there = _there(c) or f", by up to {of_largest(size)}"
    extra = {
        "predicate": None if rule is None else rule.text,
        "wrong_total": count,
        "factor": None if c is None or c == 0 else f"{c:.9g}",
    }
    return (
        FindingKind.WRONG_SIGN if c is not None and abs(c + 1) < SIGNIFICANCE else FindingKind.WRONG_ENTRIES,
        f"{suspect.name}: {_where(rule, mask)} ({count} of {mask.size} entries){there}; the others are right"
        f"{_advice(rule)}",
        extra,
    )


def _advice(rule: Rule | None) -> str:
    """What adds values at repeated indices, or that an assignment does not, as a clause."""
    if rule is not None and rule.text.endswith("occurs again later"):
        return "; where forward assigns by such numbers, the last value alone remains, and the others get no gradient"
    if rule is None or not rule.text.endswith("selects more than once"):
        return ""
    return (
        "; an assignment to repeated indices, also with +=, keeps the last value alone: use np.add.at, index_add_ or "
        "index_put_ with accumulate=True"
    )


def _where(rule: Rule | None, mask: NDArray[np.bool_]) -> str:
    """Which entries are wrong, in words: by the rule, else the first few of them."""
    if rule is not None:
        direct = rule.text.startswith(("off", "above", "below", "on and", "from", "up to"))
        return f"wrong only {'' if direct else 'where ' if rule.by_value else 'in '}{rule.text}"
    count = int(mask.sum())
    listed = ", ".join(str(list(i)) for i in indices_of(mask, 4)) + (", ..." if count > 4 else "")
    return f"wrong only in entr{'y' if count == 1 else 'ies'} {listed}"


def _relative_size(mismatch: Mismatch) -> float:
    scale = float(np.max(np.abs(mismatch.numeric), initial=0.0))
    return float(np.max(np.abs(mismatch.claimed - mismatch.numeric))) / scale if scale else float("inf")


def _there(c: float | None) -> str:
    if c is None:
        return ""
    if c == 0:
        return "; there the returned gradient is 0"
    return f"; there the returned gradient is {c:.7g} times the right one"


def _factor_there(suspect: Suspect, mismatch: Mismatch, mask: NDArray[np.bool_], parts: int) -> float | None:
    """The constant factor on the wrong entries: 0 where zeros are returned, None where there is none."""
    if not mismatch.complete:
        return factor_on(suspect.facts, suspect.block, suspect.gradients, mask) if parts == 1 else None
    facts = suspect.facts
    chosen = mask.reshape(-1)[np.asarray(mismatch.columns) // parts]
    rows = facts.subject.codomain.slices[mismatch.output]
    if not np.any(mismatch.claimed[:, chosen]):
        return 0.0
    seen = [pulled_back(mismatch, row[rows]) for row in facts.cotangents[1:]]  # the second has imaginary parts
    claimed, numeric, bound = (np.concatenate([each[part][chosen] for each in seen]) for part in range(3))
    if chosen.sum() == 1:
        value = numeric[0]
        return _confirmed(suspect, mask, float(claimed[0] / value) if value else None, several=False)
    return _confirmed(suspect, mask, fit_factor(claimed, numeric, bound), several=True)


def _confirmed(suspect: Suspect, mask: NDArray[np.bool_], c: float | None, *, several: bool) -> float | None:
    """The factor, if it holds at nearby inputs too; a single entry always has some factor, so this must be checked."""
    table = None if c is None else _close_by(suspect, mask)
    if table is None or c is None:
        return c if several else None
    wrong = np.any(table.wrong, axis=0)
    error = np.abs(table.claimed - c * table.numeric)[:, wrong]
    return c if wrong.any() and (error <= (1 + abs(c)) * table.floor[:, wrong]).all() else None
