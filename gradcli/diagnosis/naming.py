"""From evidence to named findings: the most specific name that the evidence proves."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.diagnosis.code.location import Seen, SuspectLine, locate
from gradcli.diagnosis.code.replaced import perhaps_replaced
from gradcli.diagnosis.code.unused import at_unused_value
from gradcli.diagnosis.entries import entries_of, shows, worst_entries, wrong_mask
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.first_order import name_gradient
from gradcli.diagnosis.higher_order import name_higher_order
from gradcli.diagnosis.slips.naming import with_correction
from gradcli.diagnosis.table import SIGNIFICANCE
from gradcli.errors import OverrunError
from gradcli.findings import FindingKind
from gradcli.numerics.wording import of_largest
from gradcli.results import Evidence, Finding, Mismatch
from gradcli.verdict import Verdict
from gradcli.watchdog.case import is_cut, watched

NAMING_SECONDS = 15.0
"""What the names of one case may take of the budget."""
_SHAPES = frozenset({FindingKind.WRONG_SHAPE})
_VAGUER = frozenset({FindingKind.WRONG_GRADIENT, FindingKind.MISSING_GRADIENT})
"""Kinds that say less than a wrong shape does: that something was returned that cannot be the gradient."""
_WRITES = frozenset({FindingKind.MUTATES_INPUT, FindingKind.MUTATES_SAVED, FindingKind.MUTATES_GRAD_OUTPUT})
_CONSEQUENCES = frozenset(
    {FindingKind.SECOND_BACKWARD_FAILS, FindingKind.NONDETERMINISTIC_BACKWARD, FindingKind.NONDETERMINISTIC_FORWARD}
)
"""Findings that a write in place causes: left out next to a finding of the write."""
_OF_OTHER_PASSES = frozenset({FindingKind.WRONG_ARITY, FindingKind.STATEFUL, FindingKind.SECOND_BACKWARD_FAILS})
"""Findings that do not say why the values of a first pass are wrong."""
_BESIDE = frozenset(
    {
        FindingKind.LEAKS_MEMORY,
        FindingKind.UNNEEDED_GRADIENT,
        FindingKind.NEEDS_INPUT_GRAD,
        FindingKind.UNDEFINED_GRAD,
        FindingKind.NOT_TWICE_DIFFERENTIABLE,
        FindingKind.JVP_MISMATCH,
        FindingKind.VMAP_MISMATCH,
        FindingKind.JIT_MISMATCH,
    }
)
"""Findings that do not concern the values of the gradient in an ordinary call: they come after those that do."""


def name_findings(
    evidence: Sequence[Evidence], subject: Subject, *, seed: int = 0, corrections: bool = False, budgeted: bool = True
) -> tuple[Finding, ...]:
    """The findings of a case, named and located, the most informative first.

    A check that named its own finding keeps it, except for a wrong shape, which the values may explain better. With
    `corrections`, an edit of backward that corrects a wrong gradient is searched for, whatever the finding's name.
    Naming ends early where the budget is spent, unless the verdict depends on the names and it is not `budgeted`.
    """
    failed = [e for e in evidence if e.verdict is Verdict.FAILED]

    def found() -> tuple[Finding, ...]:
        try:
            return _name_all(failed, subject, seed, corrections, _right(evidence))
        except OverrunError:
            return without_names(failed, subject)

    with (
        watched() as watchdog,
        watchdog.during("naming", optional=budgeted, share=NAMING_SECONDS),
        subject.session(lazy=True) as session,
    ):
        return session.run_alike(found)


def without_names(failed: Sequence[Evidence], subject: Subject, *, located: bool = True) -> tuple[Finding, ...]:
    """The findings as the checks reported them, if there is no time to run the user's code for more specific names.

    Without `located` none of the user's code runs, and the findings have no lines.
    """
    named = [e.finding if e.finding is not None else _as_measured(e, subject) for e in failed]
    found = _without_repeats(named)
    return tuple(_located(finding, subject) for finding in found) if located else tuple(found)


def _as_measured(e: Evidence, subject: Subject) -> Finding:
    """The finding that the check's own numbers prove."""
    first, table = e.order == 1, e.mismatch
    kind = FindingKind.WRONG_GRADIENT if first else FindingKind.WRONG_SECOND_ORDER
    what = "the returned gradient" if first else f"the derivative of order {e.order}"
    whole = "gradient" if first else "derivative"
    said = " is wrong" + ("" if e.max_rel_error is None else f" by up to {of_largest(e.max_rel_error, whole)}")
    if table is not None and (np.isfinite(table.numeric) & ~np.isfinite(table.claimed)).any():
        kind = FindingKind.NON_FINITE_GRADIENT if first else kind
        said = f" is not finite, although the {'' if first else 'right '}derivative is finite there"
    return Finding(
        kind=kind,
        message=f"{e.input}: {what}{said}",
        order=e.order,
        input=e.input,
        output=e.output,
        entries=() if table is None or not first else entries_of(table, subject.domain),
    )


def _right(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The inputs whose gradients are right for all outputs, and not zero for all."""
    first = [e for e in evidence if e.order == 1 and e.input is not None]
    faulty = {e.input for e in first if e.verdict is not Verdict.PASSED}
    felt = [str(e.input) for e in first if not e.zero_everywhere and e.max_rel_error is not None]
    return tuple(name for name in dict.fromkeys(felt) if name not in faulty)


def _name_all(
    failed: Sequence[Evidence], subject: Subject, seed: int, corrections: bool, right: Sequence[str]
) -> tuple[Finding, ...]:
    named = list(_named_by_checks(failed, subject, seed, corrections))
    spoken_for = {finding.input for finding in named if finding.kind not in _OF_OTHER_PASSES}
    values = [e for e in failed if e.finding is None]
    first = [e for e in values if e.order == 1 and e.input not in spoken_for]
    named += _gradients(first, subject, seed, corrections, right)
    higher = [e for e in values if e.order > 1]
    if higher:
        named.append(name_higher_order(higher, _place_of(higher[0], subject), first_is_wrong=bool(first)))
    return tuple(_located(finding, subject) for finding in _without_repeats(named))


def _named_by_checks(failed: Sequence[Evidence], subject: Subject, seed: int, corrections: bool) -> Iterator[Finding]:
    found = [_located(e.finding, _place_of(e, subject)) for e in failed if e.finding is not None]
    shapes = [finding for finding in found if finding.kind in _SHAPES and finding.input is not None]
    yield from (_with_entries(finding, subject, seed) for finding in found if finding not in shapes)
    if shapes:
        facts = Facts(subject, seed)
        for finding in shapes:
            better = name_gradient(facts, str(finding.input), None)
            best = finding if better is None or better.kind in _VAGUER else better
            yield _with_correction(best, facts) if corrections else best
        yield from _lost_to(facts, [f.input for f in shapes])


def _with_entries(finding: Finding, subject: Subject, seed: int) -> Finding:
    """The finding of an accuracy that was lost, with entries that are seen to be off at the case's own inputs."""
    blocks = [b.name for b in subject.domain.blocks]
    if finding.kind is not FindingKind.LOW_PRECISION or finding.entries or finding.input not in blocks:
        return finding
    place = blocks.index(finding.input)
    shape = subject.domain.blocks[place].shape
    entries, _ = worst_entries(Facts(subject, seed), place, None, shape=shape)
    off = tuple(entry for entry in entries if shows(entry))
    return replace(finding, entries=off, entries_total=subject.domain.blocks[place].entries) if off else finding


def _lost_to(facts: Facts, wrong: Sequence[str | None]) -> Iterator[Finding]:
    """Findings for inputs that get None, such as one whose gradient was returned in the place of another."""
    for place, position in enumerate(facts.subject.active):
        name = facts.subject.arguments[position].name
        if name not in wrong and all(g is None for g in facts.of(position)) and facts.is_felt(place):
            finding = name_gradient(facts, name, None)
            if finding is not None and finding.kind in (FindingKind.SWAPPED_GRADIENTS, FindingKind.MISSING_GRADIENT):
                yield finding


def _with_correction(finding: Finding, facts: Facts, mismatch: Mismatch | None = None) -> Finding:
    """The finding with an edit of backward that corrects the gradient, if one is proven."""
    places = {facts.subject.arguments[p].name: place for place, p in enumerate(facts.subject.active)}
    if finding.corrected is not None or finding.input not in places or is_cut():
        return finding
    try:
        found = with_correction(finding, facts, places[finding.input], mismatch)
    except OverrunError:
        return finding
    return finding if is_cut() else found


def _gradients(
    failed: Sequence[Evidence], subject: Subject, seed: int, corrections: bool, right: Sequence[str]
) -> Iterator[Finding]:
    """One finding for each input whose first-order gradient is wrong, for each subject at which it was measured."""
    witnesses: dict[int, tuple[Subject, list[Evidence]]] = {}
    for e in failed:
        witness = _place_of(e, subject)
        witnesses.setdefault(id(witness), (witness, []))[1].append(e)
    found: list[tuple[Finding, Subject, list[Evidence]]] = []
    for witness, group in witnesses.values():
        facts = Facts(witness, seed)
        for name in dict.fromkeys(str(e.input) for e in group):
            own = [e for e in group if e.input == name]
            mismatch = own[0].mismatch
            here = _facts_at(facts, mismatch, seed)
            if witness is not subject and witness.active == subject.active:
                here.origin = Facts(subject, seed)
            finding = name_gradient(here, name, mismatch, own)
            if finding is None:
                continue
            finding = _with_correction(finding, here, mismatch) if corrections else finding
            found.append((perhaps_replaced(at_unused_value(finding, subject.info), subject), witness, own))
    unexplained = [str(finding.input) for finding, _, _ in found if finding.location is None]
    for finding, witness, own in found:
        outputs = sorted({e.output for e in own if e.output is not None})
        entries = _wrong_entries(finding, witness, own)
        seen = Seen(wrong=unexplained, right=right, wrong_entries=entries, outputs=outputs)
        placed, label = _located(finding, witness, seen), own[0].note if witness is not subject else None
        yield replace(placed, message=f"{placed.message}; the error appears {label}") if label else placed


def _place_of(evidence: Evidence, subject: Subject) -> Subject:
    """The subject at which evidence was measured."""
    return evidence.measured_at if isinstance(evidence.measured_at, Subject) else subject


def _wrong_entries(finding: Finding, subject: Subject, own: Sequence[Evidence]) -> NDArray[np.bool_] | None:
    """Which entries of a gradient are wrong for any output; None where that is not known."""
    block = next((b for b in subject.domain.blocks if b.name == finding.input), None)
    if block is None:
        return None
    parts = 2 if block.complex else 1
    masks = [None if e.mismatch is None else wrong_mask(e.mismatch, block.shape, parts, SIGNIFICANCE) for e in own]
    known = [mask for mask in masks if mask is not None]
    return None if not known or len(known) < len(masks) else np.logical_or.reduce(known)


def _facts_at(facts: Facts, mismatch: Mismatch | None, seed: int) -> Facts:
    """The facts where the mismatch was measured: possibly at a point moved off a kink, or for some outputs only."""
    subject = facts.subject
    if mismatch is None:
        return facts
    outputs = subject.codomain.slices[mismatch.output].start + mismatch.rows if mismatch.small_rows else None
    if np.allclose(mismatch.point, subject.point, rtol=1e-12, atol=0.0):
        return facts if outputs is None else Facts(subject, seed, outputs)
    arguments = list(subject.arguments)
    for position, value in zip(subject.active, subject.domain.unflatten(mismatch.point), strict=True):
        arguments[position] = replace(arguments[position], value=value)
    return Facts(subject.rebind(arguments), seed, outputs)


def _located(finding: Finding, subject: Subject, seen: Seen | None = None) -> Finding:
    place: SuspectLine | None = locate(finding, subject, seen or Seen()) if finding.location is None else None
    return finding if place is None else replace(finding, location=place.location)


def _without_repeats(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for each kind, input and order that no other explains: first of wrong values, generic names later."""
    kinds = {finding.kind for finding in findings}
    explained = _CONSEQUENCES if kinds & _WRITES else frozenset()
    seen: dict[tuple[FindingKind, str | None, int], Finding] = {}
    for finding in findings:
        if finding.kind in explained:
            continue
        seen.setdefault((finding.kind, finding.input, finding.order), finding)
    return sorted(seen.values(), key=lambda f: (f.kind in _BESIDE, f.order > 1, f.kind is FindingKind.WRONG_GRADIENT))


__all__ = ["name_findings", "worst_entries"]
