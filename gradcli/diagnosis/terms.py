"""A term that a returned gradient lacks: found among simple forms, and proven by slopes of forward.

A form has one free number, its coefficient, which is fitted to a few slopes, for several cotangents each. That the
other slopes then agree within their error bounds happens by chance with probability zero.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.added_terms import is_added
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.forms import MOST_ENTRIES, Form, forms
from gradcli.diagnosis.slips.elsewhere import at_other_sizes, far_away
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.diagnosis.table import Gradient
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass

_NICE = 1e-6
_ROUNDED = 1e-3
"""Relative errors up to this may be rounding, where terms of large inputs cancel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term with its coefficient, in words: `text` as in "2·grad_output·x", of which `form` is all but the number."""

    text: str
    coefficient: float
    form: str


def missing_term(suspect: Suspect) -> Named | None:
    """Right with one more term of a simple form."""
    term = None if suspect.is_beyond_slopes else lacking_term(suspect)
    if term is None:
        return None
    here = "" if _holds_further(suspect, term) else " at inputs such as these, but not at others that are larger"
    if term.coefficient < 0 and is_added(term.coefficient, term.form, suspect.facts.subject):
        return (
            FindingKind.MISSING_TERM,
            f"{suspect.name}: the returned gradient has the extra term {_number(-term.coefficient)}{term.form}; "
            f"without it, it is right{here}",
            {},
        )
    return (
        FindingKind.MISSING_TERM,
        f"{suspect.name}: the returned gradient lacks the term {term.text}; with the term added, it is right{here}",
        {},
    )


def lacking_term(suspect: Suspect) -> Term | None:
    """The simplest term with which the returned gradient is right, here and at nearby inputs; None if there is none.

    At other sizes the term has to be right too, perhaps with another coefficient.
    """
    facts, place = suspect.facts, suspect.block
    block = facts.subject.domain.blocks[place]
    returned = [g for g in suspect.gradients if g is not None and g.shape == block.shape]
    if block.complex or block.entries > MOST_ENTRIES or len(returned) != len(suspect.gradients):
        return None
    other = suspect.elsewhere
    if other is None and block.size == facts.subject.codomain.size == 1:
        return None  # any term makes one number right
    if not any(np.any(g) for g in returned):
        return None
    for form in forms(facts, place):
        c = _coefficient(facts, place, returned, form)
        if c is None or not facts.explains(place, _fixed(returned, c, form)):
            continue
        if (other is None or _holds(other, form, c)) and _holds_at_other_sizes(suspect, form):
            return Term(text=f"{_number(c)}{form.text}", coefficient=c, form=form.text)
    return None


def _holds(other: Suspect, form: Form, c: float) -> bool:
    """Whether the term makes the gradient right at other inputs, or that cannot be decided there."""
    returned = [g for g in other.gradients if g is not None and g.shape == other.shape]
    there = next((f for f in forms(other.facts, other.block) if f.text == form.text), None)
    if there is None or len(returned) != len(other.gradients):
        return False
    return other.facts.judged(other.block, _fixed(returned, c, there)) is not False


def _holds_at_other_sizes(suspect: Suspect, form: Form) -> bool:
    """Whether some coefficient of the term makes the gradient right at other sizes, or that cannot be decided."""
    there = None if suspect.facts.is_costly else suspect.at(at_other_sizes(suspect.facts))
    same = None if there is None else next((f for f in forms(there.facts, there.block) if f.text == form.text), None)
    if there is None or same is None:
        return True
    returned = [g for g in there.gradients if g is not None and g.shape == there.shape]
    c = _coefficient(there.facts, there.block, returned, same) if len(returned) == len(there.gradients) else None
    return c is None or there.facts.judged(there.block, _fixed(returned, c, same)) is not False


def _holds_further(suspect: Suspect, term: Term) -> bool:
    """Whether the gradient is right with the term at larger inputs, as far as these are meant, or it is right without.

    A threshold may lie between: the term of a branch of backward belongs to the inputs of that branch alone.
    """
    place = suspect.block
    for facts, is_meant in () if suspect.facts.is_costly else far_away(suspect.facts):
        there = suspect.at(facts, right=True) if facts.is_felt(place) else None
        there = there if there is None or is_meant or there.is_beyond_slopes else None
        same = None if there is None else next((f for f in forms(facts, place) if f.text == term.form), None)
        returned = [] if there is None else [g for g in there.gradients if g is not None and g.shape == there.shape]
        if same is None or there is None or len(returned) != len(there.gradients):
            continue
        if facts.judged(place, _fixed(returned, term.coefficient, same), relative=_ROUNDED) is False:
            return False
    return True


def _fixed(returned: Sequence[NDArray[Any]], c: float, form: Form) -> list[Gradient]:
    return [g + c * t for g, t in zip(returned, form.values, strict=True)]


def _coefficient(facts: Facts, place: int, returned: Sequence[NDArray[Any]], form: Form) -> float | None:
    """The least-squares coefficient that fits the form to what the returned gradient lacks; None if it is zero."""
    had, shares = facts.projections(place, returned), facts.projections(place, form.values)
    if had is None or shares is None:
        return None
    lacks = np.concatenate([s.values - h for s, h in zip(facts.slopes(place), had, strict=True)])
    share = np.concatenate(shares)
    square = float(share @ share)
    if not np.isfinite(lacks).all() or not np.isfinite(square) or square == 0.0:
        return None
    return float(lacks @ share) / square or None


def _number(c: float) -> str:
    """The coefficient before a term: nothing for 1, a fraction where it is one."""
    near = Fraction(c).limit_denominator(64)
    if abs(c - near) > _NICE * abs(c):
        return f"{c:.7g}·"
    return {"1": "", "-1": "-"}.get(str(near), f"{near}·")
