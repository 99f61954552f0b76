"""Decides pairs by large steps, where small steps were inconclusive or the values have few digits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gradcli.numerics.claims.compare import resolution_of
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.wide_steps import Wide, agreement
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.formats import may_be_half
from gradcli.numerics.localise.evidence import largest_entry, with_wide_evidence
from gradcli.numerics.maps.floats import EPS
from gradcli.numerics.outcome import DIFFERENCES, BlockOutcome, Doubt, Outcome, Pair
from gradcli.numerics.regularity.iteration import EXPLAINED, LONG_STEPS, LOOSE, effort_at, iterates, left_by_stopping
from gradcli.numerics.regularity.quantisation import has_plateaus, is_rough
from gradcli.numerics.regularity.stored_format import floating_format, format_at
from gradcli.numerics.sampling.directions import random_direction, within
from gradcli.numerics.sampling.line import on_grid

if TYPE_CHECKING:
    from gradcli.numerics.confirm.wide_errors import Wrong

FEW_DIGITS = (
    "the outputs are rounded to {0:.0e} of their magnitude, so finite differences with small steps show only "
    "the rounding, and those with large steps are inconclusive"
)
TWO_SLOPES = (
    "the outputs jump by about {0:.0e} of their magnitude: the gradient matches the average slope across many jumps, "
    "but not the slope between two jumps, and gradcli cannot tell which of the two is intended"
)

BELOW_THE_STOP = (
    "accepted as zero: even large changes of this input change the outputs by less than {0:.0e} of their magnitude, "
    "and stopping the iteration in forward early explains that much"
)


def with_large_steps(
    site: Site, outcome: BlockOutcome, significance: float, *, only_agreement: bool = False
) -> BlockOutcome:
    """The outcome of a pair after large steps, about as long as x itself, if these can change it.

    Large steps can decide two kinds of outcome. A pair that is UNDECIDED because of noise (or a kink, if forward
    iterates or is quantised) may agree, at a coarse resolution, or differ. A pair that DIFFERS over small steps, where
    forward iterates or its values have few digits, may agree or become UNDECIDED: small steps may show only the slope
    of a rounding plateau, or that of a fixed number of iterations. Any other outcome is returned unchanged.

    Args:
        only_agreement: whether an UNDECIDED pair may agree, but not differ. Showing that it differs takes far more
            evaluations.
    """
    if outcome.outcome is Outcome.DIFFERS or undecided_by_values(outcome):
        below = _unless_below_the_stop(site, outcome)
        if below is not None:
            return below
    if outcome.outcome is Outcome.DIFFERS:
        return _unless_rough(site, outcome, significance)
    pair = outcome.input, outcome.output
    open_ = outcome.doubt is Doubt.KINK and (iterates(site) or has_plateaus(site.alone(), pair))
    if not open_ and outcome.doubt is not Doubt.NOISE:
        return outcome
    return _over_wide_steps(site, outcome, significance, only_agreement=only_agreement) or outcome


def _unless_rough(site: Site, outcome: BlockOutcome, significance: float) -> BlockOutcome:
    """The outcome for a difference where forward does not iterate, but small steps may mislead.

    A difference that autodiff confirms is doubted only for a loop that may be an iteration of a fixed number of steps.
    """
    if outcome.reference == DIFFERENCES:
        return _unless_few_digits(site.alone(), outcome, significance)
    effort = effort_at(site, site.x)
    if effort is None or not effort.may_repeat or has_plateaus(site.alone(), (outcome.input, outcome.output)):
        return outcome
    return _unless_two_slopes(site.alone(), outcome)


def is_zero_of_an_iteration(site: Site, outcome: BlockOutcome) -> bool:
    """Whether the claim of a pair is zero and forward iterates.

    An iterative projection onto a polytope, whose nearest point is a vertex, has the derivative zero. The computed
    vertex moves with the input nevertheless, by the error that stopping early leaves, so that the derivative zero
    cannot be confirmed at this point.
    """
    claimed = site.claim.forms[site.claim.block == outcome.output][:, site.map.domain.slices[outcome.input]]
    return site.claim.finite and not claimed.any() and iterates(site)


def undecided_by_values(outcome: BlockOutcome) -> bool:
    """Whether an outcome is UNDECIDED because of noise or kinks."""
    return outcome.outcome is Outcome.UNDECIDED and outcome.doubt in (Doubt.NOISE, Doubt.KINK)


def agreed_in_half_precision(site: Site, pair: Pair) -> BlockOutcome | None:
    """Compare a pair whose values are float16 or bfloat16 numbers over large steps, before small ones are tried.

    Small steps would show only the rounding of such values. A forward that iterates is not compared here.

    Returns:
        The agreement; None if the claim does not agree over large steps, or if the conditions above do not hold. The
        pair is then measured with small steps.
    """
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], site.scales)
    if not scale > 0 or not may_be_half(site.outputs[site.map.codomain.slices[pair[1]]]):
        return None
    alone = site.alone()
    stored = format_at(alone, pair[1])
    if stored is None or not stored.half or iterates(alone):
        return None
    wide = agreement(alone, pair, 0.0)
    open_ = BlockOutcome(input=pair[0], output=pair[1], outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE)
    return None if wide is None or wide.exact else _agreed(alone, pair, open_, wide)


def _over_wide_steps(
    site: Site, outcome: BlockOutcome, significance: float, *, only_agreement: bool = False
) -> BlockOutcome | None:
    """Agreement at a coarse resolution, or a difference; None if large steps are inconclusive."""
    pair, alone = (outcome.input, outcome.output), site.alone()
    wide = agreement(alone, pair, outcome.max_rel_error)
    if wide is not None:
        return _agreed(site, pair, outcome, wide)
    small = outcome.max_rel_error < LOOSE / 2 and iterates(alone)
    wrong = None if only_agreement or small else _disagreement(alone, pair, significance)
    return None if wrong is None else _wrong(alone, pair, outcome, wrong)


def _unless_below_the_stop(site: Site, outcome: BlockOutcome) -> BlockOutcome | None:
    """Agreement for a claim of zero, if the input moves the values by no more than stopping early does.

    The solution does not depend on where its iteration starts, but the computed values do, by about the tolerance. None
    if forward does not iterate, if large steps change the values by more, or if the iteration stops too early to tell.
    """
    if not is_zero_of_an_iteration(site, outcome):
        return None
    direction = random_direction(site.rng, within(site.scales, site.map.domain.slices[outcome.input]))
    rows = np.flatnonzero(site.claim.block == outcome.output) - len(site.claim.forms)
    here = site.row_values()[rows]
    left = EXPLAINED * float(left_by_stopping(site, direction)[1][rows].max(initial=0.0))
    if not 0 < left <= LOOSE * float(np.abs(here).max(initial=0.0)):
        return None
    there = [site.read(site.x + on_grid(sign * t) * direction)[rows] for t in LONG_STEPS for sign in (1, -1)]
    if not float(np.abs(np.array(there) - here).max()) <= left:
        return None
    undecided = _undecided(outcome, BELOW_THE_STOP.format(left / float(np.abs(here).max())))
    return replace(undecided, outcome=Outcome.AGREES, doubt=None)


def _unless_few_digits(site: Site, outcome: BlockOutcome, significance: float) -> BlockOutcome:
    """The outcome for a difference over small steps, where the rounding of the values may be its only reason.

    * Values in float16 or bfloat16: large steps decide. Small steps may show some entries right and others zero,
      because the point lies near the edge of a rounding plateau along the former only.
    * Other rounding plateaus, and no entry that small steps show right: the difference stays. If large steps confirm
      it, its numbers come from them.
    * Small jumps between which the values rise: see `_unless_two_slopes`.
    """
    pair = outcome.input, outcome.output
    half = may_be_half(site.outputs[site.map.codomain.slices[pair[1]]])
    stored = floating_format(site, pair[1]) if half else None
    few = stored is not None and stored.half
    if few or (not _slope_seen(outcome) and has_plateaus(site, pair)):
        stored = stored or floating_format(site, pair[1])
        undecided = _undecided(outcome, FEW_DIGITS.format(EPS if stored is None else stored.roundoff))
        if few:
            return _over_wide_steps(site, undecided, significance) or undecided
        wrong = _disagreement(site, pair, significance)
        return outcome if wrong is None else _wrong(site, pair, undecided, wrong)
    return _unless_two_slopes(site, outcome)


def _unless_two_slopes(site: Site, outcome: BlockOutcome) -> BlockOutcome:
    """UNDECIDED for a difference over small steps, if the values jump and the claim agrees over large steps.

    Between jumps the values have another slope, and either may be the one that is meant. A bisection of a fixed number
    of steps is such a function: between two jumps the slope is that of its last interval.
    """
    pair = outcome.input, outcome.output
    if outcome.outcome is not Outcome.DIFFERS or not is_rough(site, pair) or iterates(site):
        return outcome
    wide = agreement(site, pair, 0.0, sloped=True, least=_steepest_seen(site, outcome))
    return outcome if wide is None or wide.exact else _undecided(outcome, TWO_SLOPES.format(wide.noise))


def _steepest_seen(site: Site, outcome: BlockOutcome) -> float:
    """The largest slope that small steps found, at the scale of its entry; 0 if no entries were measured."""
    table = outcome.table
    if table is None:
        return 0.0
    slopes = np.abs(table.numeric) * site.scales[site.map.domain.slices[outcome.input]][table.columns]
    return float(np.nanmax(slopes, initial=0.0))


def _slope_seen(outcome: BlockOutcome) -> bool:
    """Whether small steps found some entry right whose slope is not zero.

    The values then do not change by jumps between rounding plateaus only.
    """
    table = outcome.table
    if table is None:
        return False
    with np.errstate(all="ignore"):
        right = np.abs(table.claimed - table.numeric) <= table.bound
        return bool((right & (np.abs(table.numeric) > FAIL_FACTOR * table.bound)).any())


def _undecided(outcome: BlockOutcome, note: str) -> BlockOutcome:
    return replace(
        outcome,
        outcome=Outcome.UNDECIDED,
        doubt=Doubt.NOISE,
        note=note,
        table=None,
        wrong_columns=None,
        bound=None,
        resolution=None,
    )


def _agreed(site: Site, pair: Pair, outcome: BlockOutcome, wide: Wide) -> BlockOutcome:
    largest = largest_entry(site, *pair)
    return replace(
        outcome,
        outcome=Outcome.AGREES,
        doubt=None,
        max_abs_error=wide.error * largest,
        max_rel_error=wide.error,
        bound=wide.resolution / (2 * FAIL_FACTOR) * largest,
        resolution=wide.resolution,
        note=wide.note,
        reference=DIFFERENCES,
    )


def _disagreement(site: Site, pair: Pair, significance: float) -> Wrong | None:
    from gradcli.numerics.confirm.wide_errors import disagreement  # a smooth function needs none of it

    return disagreement(site, pair, significance)


def _wrong(site: Site, pair: Pair, outcome: BlockOutcome, wrong: Wrong) -> BlockOutcome:
    largest = largest_entry(site, *pair)
    found = replace(
        outcome,
        outcome=Outcome.DIFFERS,
        doubt=None,
        max_abs_error=wrong.error * largest,
        max_rel_error=wrong.error,
        bound=wrong.bound * largest,
        resolution=resolution_of(wrong.bound, 1.0),
        note=wrong.note,
        reference=DIFFERENCES,
    )
    return with_wide_evidence(site, found, wrong.table)
