"""When a sentence may say that a wrong gradient is right for something: what a claim "right when" rests on.

Slopes show an error if it is above their bounds, and a gradient counts as right up to an error that rounding may cause.
Neither proves that an error of another place is absent: it may be too small to show there, or vanish at these values by
accident, as a sum of signs does. So the error has to be far above what the comparison misses, relative to one scale,
and the claim has to hold at further inputs, at one of which the error shows. Where the right gradient vanishes, as that
of a softmax does for equal cotangents, a factor and a missing product vanish with it: being right there says nothing.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.entries import tells_of_the_right, wrong_mask
from gradcli.diagnosis.facts import ROUNDING, Facts
from gradcli.diagnosis.slips.elsewhere import far_away
from gradcli.diagnosis.suspect import Suspect
from gradcli.diagnosis.table import SIGNIFICANCE, Gradient
from gradcli.verdict import tells_apart

_MARGIN = 3.0
_VANISHING = 0.1
"""A gradient is called small for a cotangent if half of its entries are less than this part of those for others."""
_REARRANGED = 3
"""At so many inputs with permuted entries a claim is tried, and close by."""


def seen_error(suspect: Suspect) -> float | None:
    """The largest error that the slopes show, relative to the largest slope; None if they show none."""
    known = _errors(suspect.facts, suspect.block, suspect.gradients)
    if known is None:
        return None
    errors, missed = known
    shown = errors[errors > missed + ROUNDING]
    return float(shown.max()) if shown.size else None


def is_clear(suspect: Suspect) -> bool:
    """Whether the slopes show an error far above what may count as rounding."""
    return tells_apart(seen_error(suspect), ROUNDING)


def right_for_row(suspect: Suspect, row: int) -> bool:
    """Whether the gradient is right for one cotangent and wrong for the others, here and at other inputs.

    It has to be far from zero for that cotangent, in the entries that are wrong for others.
    """
    if _vanishes(suspect, row):
        return False
    if _is_right_for(suspect.facts, suspect.block, suspect.gradients, row) is not True:
        return False
    others = [
        _is_right_for(there, suspect.block, there.of(there.subject.active[suspect.block]), row)
        for there in _further(suspect)
    ]
    return True in others and False not in others


def factor_elsewhere(suspect: Suspect, c: float) -> Suspect | None:
    """The suspect at inputs where the gradient is seen not to be c times the right one; None if none is found.

    A number of entries above a threshold may be the factor: values between those of two entries, and of the opposite
    signs where these may have been drawn, change it. Where backward returns zeros or NaN, nothing is concluded.
    """
    facts = suspect.facts
    between = (facts.rearranged(number) for number in (1, 3, 5)[: 1 if facts.is_costly else 3])
    beyond = (there for there, is_meant in (() if facts.is_costly else far_away(facts)) if is_meant)
    for there in (suspect.at(each, right=True) for each in itertools.chain(between, beyond)):
        if there is None or any(g is None or not np.isfinite(g).all() or not np.any(g) for g in there.gradients):
            continue
        scaled = [None if g is None else g / c for g in there.gradients]
        if there.facts.judged(there.block, scaled) is False:
            return there
    return None


def is_right_in(suspect: Suspect, part: float) -> bool:
    """Whether more than this part of the entries of the gradient are seen to be right."""
    mismatch = suspect.mismatch
    if mismatch is None:
        return False
    parts = 2 if suspect.facts.subject.domain.blocks[suspect.block].complex else 1
    wrong = wrong_mask(mismatch, suspect.shape, parts, SIGNIFICANCE)
    seen = wrong is not None and bool(np.count_nonzero(~wrong) > part * wrong.size)
    return wrong is not None and seen and tells_of_the_right(mismatch, wrong, parts)


def _vanishes(suspect: Suspect, row: int) -> bool:
    """Whether what is returned for one cotangent is near zero in entries that are wrong, compared with the others."""
    sizes = np.array([np.abs(g) for g in suspect.gradients if g is not None and g.shape == suspect.shape])
    if len(sizes) < len(suspect.gradients):
        return False
    largest = sizes.max(axis=0)
    parts = 2 if suspect.facts.subject.domain.blocks[suspect.block].complex else 1
    mismatch = suspect.mismatch
    wrong = None if mismatch is None else wrong_mask(mismatch, suspect.shape, parts, SIGNIFICANCE)
    seen = largest > 0 if wrong is None else wrong & (largest > 0)
    return bool(np.median(sizes[row][seen] / largest[seen]) < _VANISHING) if seen.any() else False


def _further(suspect: Suspect) -> Iterator[Facts]:
    close_by = suspect.facts.elsewhere
    if close_by is not None:
        yield close_by
    for number in range(_REARRANGED):
        there = suspect.facts.rearranged(number)
        if there is not None:
            yield there


def _is_right_for(facts: Facts, place: int, gradients: Sequence[Gradient], row: int) -> bool | None:
    """Whether the gradient is right for one cotangent where it is wrong for the others; None where that is not seen."""
    known = _errors(facts, place, gradients)
    if known is None:
        return None
    errors, missed = known
    rest = [other for other in range(len(gradients)) if other != row]
    if not (errors[:, rest] > missed[:, rest] + ROUNDING).any():
        return None
    error = float(errors[:, rest].max(axis=0).min())
    if not tells_apart(float(errors[:, rest].max()), float(errors[:, row].max())):
        return False
    return True if tells_apart(error, max(ROUNDING, float(missed[:, row].max()))) else None


def _errors(facts: Facts, place: int, gradients: Sequence[Gradient]) -> tuple[FloatArray, FloatArray] | None:
    """For each slope and cotangent the error, and the error that the slope may miss, relative to the largest slope.

    None if a gradient is missing, or a slope is not known.
    """
    predicted, slopes = facts.projections(place, gradients), facts.slopes(place)
    if predicted is None:
        return None
    values, bounds = np.array([s.values for s in slopes]), np.array([s.bounds for s in slopes])
    claims = np.array(predicted)
    scale = float(np.abs(np.concatenate([values, claims])).max(initial=0.0))
    if not np.isfinite(claims).all() or not np.isfinite(bounds).all() or not scale > 0:
        return None
    return np.abs(claims - values) / scale, _MARGIN * bounds / scale
