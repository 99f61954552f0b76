"""Names for a wrong first-order gradient, the most specific first; each is tested against slopes of forward."""

from collections.abc import Callable, Sequence

from gradcli.diagnosis import cotangents, reductions, whole
from gradcli.diagnosis.code.traced import first_rounding
from gradcli.diagnosis.constrained import right_changes, times_the_right_one
from gradcli.diagnosis.entries import outputs_of, worst_entries
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.regions import naming as regions
from gradcli.diagnosis.regions.repeated import lost_at_repeated_indices
from gradcli.diagnosis.remembered import remembered
from gradcli.diagnosis.residual import lacking_form
from gradcli.diagnosis.slips.naming import explained_by_slip
from gradcli.diagnosis.slips.stale import stale_save
from gradcli.diagnosis.suspect import Named, Suspect, error_size
from gradcli.diagnosis.terms import missing_term
from gradcli.errors import OverrunError
from gradcli.findings import FindingKind
from gradcli.results import Evidence, Finding, Mismatch
from gradcli.watchdog.case import is_cut

FLOAT32_ERRORS = 1e-6
"""Relative errors of a few roundings to float32, whose unit roundoff is 6e-8."""


def name_gradient(
    facts: Facts, name: str, mismatch: Mismatch | None, evidence: Sequence[Evidence] = ()
) -> Finding | None:
    """The finding for the input called `name`; None if no mistake can be shown for it."""
    places = {facts.subject.arguments[p].name: i for i, p in enumerate(facts.subject.active)}
    if name not in places:
        return None
    place = places[name]
    position = facts.subject.active[place]
    gradients = facts.of(position)
    shape = facts.subject.domain.blocks[place].shape
    suspect = Suspect(facts=facts, block=place, gradients=gradients, mismatch=mismatch, evidence=tuple(evidence))
    kind, message, extra = _first_name(suspect) or _wrong(suspect)
    entries, clause = worst_entries(facts, place, mismatch, shape=shape)
    return Finding(
        kind=kind,
        message=message + _only_for(suspect) + clause + right_changes(suspect),
        input=name,
        output=None if mismatch is None else facts.subject.output_numbers[mismatch.output],
        entries=entries,
        entries_total=facts.subject.domain.blocks[place].entries,
        **extra,
    )


def _only_for(suspect: Suspect) -> str:
    """Which outputs the finding concerns, if only some."""
    mismatch = suspect.mismatch
    if mismatch is None or not mismatch.small_rows:
        return ""
    shape = suspect.facts.subject.codomain.blocks[mismatch.output].shape
    listed = ", ".join(str(list(index)) for index in outputs_of(mismatch, shape))
    return (
        f"; the error is in the part of the gradient that comes from output{listed}, whose values or derivatives "
        "are far smaller than those of the other output entries"
    )


def _first_name(suspect: Suspect) -> Named | None:
    """The name given by the first rule that holds; None if none does, or time runs out before one is proven.

    A rule that only gives wrong-gradient is overridden by a slip found in backward; that the gradient is right for ones
    by a term that is missing, too.
    """
    for rule in _OF_SLOW_CALLS if suspect.facts.is_costly else _RULES:
        named = _named_by(rule, suspect)
        if named is not None and named[0] is FindingKind.WRONG_GRADIENT:
            terms = (missing_term, lacking_form) if rule is cotangents.right_for_ones else ()
            better = (_named_by(each, suspect) for each in (explained_by_slip, *terms))
            return next((each for each in better if each is not None), named)
        if named is not None or is_cut():
            return named
    return None


def _named_by(rule: Callable[[Suspect], Named | None], suspect: Suspect) -> Named | None:
    """The result of a rule; None if time ran out, since the rule may then rest on calls that were not made."""
    try:
        named = rule(suspect)
    except OverrunError:
        return None
    return None if is_cut() else named


def _wrong(suspect: Suspect) -> Named:
    """What is said where no rule holds. A rounded factor shows in no entry: errors of its size and a line do."""
    errors = [e.max_rel_error for e in suspect.evidence if e.max_rel_error is not None]
    if errors and max(errors) <= FLOAT32_ERRORS and (place := first_rounding(suspect.facts.subject)) is not None:
        return (
            FindingKind.LOW_PRECISION,
            f"{suspect.name}: the returned gradient is wrong{error_size(suspect)}, as after a calculation in float32, "
            f"and line {place.line} rounds to a lower precision",
            {"location": place},
        )
    return FindingKind.WRONG_GRADIENT, f"{suspect.name}: the returned gradient is wrong{error_size(suspect)}", {}


_RULES: tuple[Callable[[Suspect], Named | None], ...] = (
    remembered,
    stale_save,
    whole.missing,
    whole.non_finite,
    whole.swapped,
    whole.conjugate,
    whole.factor,
    whole.transposed,
    reductions.unreduced,
    whole.shifted,
    whole.low_precision,
    whole.surrogate,
    reductions.wrong_axis,
    cotangents.ignored_output,
    cotangents.ignored_part,
    cotangents.mixed_up,
    times_the_right_one,
    cotangents.right_for_ones,
    regions.by_rule,
    lost_at_repeated_indices,
    explained_by_slip,
    whole.factor_here,
    whole.approximate_factor,
    regions.some_entries,
    missing_term,
    lacking_form,
    cotangents.averaged,
    regions.most_entries,
)
_SEARCH = _RULES.index(explained_by_slip)
_OF_SLOW_CALLS = (*_RULES[:_SEARCH], lacking_form, *(rule for rule in _RULES[_SEARCH:] if rule is not lacking_form))
"""The rules for a slow forward: measured entries are looked at before the search, which calls backward often."""
