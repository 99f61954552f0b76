"""A second measurement with large steps, if small ones were undecided or the values have few digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.wide_errors import Wrong, disagreement
from gradcli.numerics.confirm.wide_steps import Wide, agreement, overruled
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.formats import may_be_half
from gradcli.numerics.localise.evidence import largest_entry, with_wide_evidence
from gradcli.numerics.maps.floats import EPS
from gradcli.numerics.outcome import DIFFERENCES, BlockOutcome, Doubt, Outcome, Pair
from gradcli.numerics.regularity.formats import floating_format, format_at
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.regularity.quantisation import has_plateaus, is_rough

FEW_DIGITS = (
    "the outputs are rounded to {0:.0e} of their magnitude, so finite differences with small steps show only "
    "the rounding, and those with large steps are inconclusive"
)
TWO_SLOPES = (
    "the outputs jump by about {0:.0e} of their magnitude: the gradient matches the average slope across many jumps, "
    "but not the slope between two jumps, and gradcli cannot tell which of the two is intended"
)


def looked_wider(site: Site, outcome: BlockOutcome, significance: float) -> BlockOutcome:
    """What becomes of an outcome when steps as long as the input are taken, with the claim along.

    A claim that only the roughness of the values kept undecided may agree at a coarse resolution, or differ. So may one
    that fine steps contradict where values are stored in few digits; nothing is held against it if wide steps say
    nothing, or where it holds over wide steps and the values rise between their jumps as well.

    Args:
        site: the point, with its witness where there is one.
        outcome: what fine steps said.
        significance: errors below this part of the block's largest entry do not matter.
    """
    if outcome.outcome is Outcome.DIFFERS:
        early = _unless_early_stop(site, outcome)
        if early is not None or outcome.reference != DIFFERENCES:
            return early or outcome
        return _unless_few_digits(site.alone(), outcome, significance)
    pair = outcome.input, outcome.output
    open_ = outcome.doubt is Doubt.KINK and (iterates(site) or has_plateaus(site.alone(), pair))
    if not open_ and outcome.doubt is not Doubt.NOISE:
        return outcome
    return _over_wide_steps(site, outcome, significance) or outcome


def is_drowned(site: Site, outcome: BlockOutcome) -> bool:
    """Whether a claim of zero is undecided beside what an iteration leaves where it stops.

    A projection onto a vertex has a derivative of zero, and the vertex that it finds moves by what stopping leaves.

    Args:
        site: the point, without a witness.
        outcome: what fine and wide steps said.
    """
    if not may_be_drowned(outcome):
        return False
    claimed = site.claim.forms[site.claim.block == outcome.output][:, site.map.domain.slices[outcome.input]]
    return site.claim.finite and not claimed.any() and iterates(site)


def may_be_drowned(outcome: BlockOutcome) -> bool:
    """Whether an outcome is one that `is_drowned` may explain: noise or kinks left it undecided."""
    return outcome.outcome is Outcome.UNDECIDED and outcome.doubt in (Doubt.NOISE, Doubt.KINK)


def agreed_in_few_digits(site: Site, pair: Pair) -> BlockOutcome | None:
    """The agreement of a claim over wide steps, where values are stored in half precision and forward does not iterate.

    Fine steps see the rounding of such values and nothing else; they are asked where this does not settle a pair.

    Args:
        site: the point, with its witness where there is one.
        pair: the numbers of the input block and the output block.
    """
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], site.scales)
    if not scale > 0 or not _may_be_half(site, pair):
        return None
    alone = site.alone()
    stored = format_at(alone, pair[1])
    if stored is None or not stored.half or iterates(alone):
        return None
    wide = agreement(alone, pair, 0.0)
    open_ = BlockOutcome(input=pair[0], output=pair[1], outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE)
    return None if wide is None or wide.exact else _agreed(alone, pair, open_, wide)


def _over_wide_steps(site: Site, outcome: BlockOutcome, significance: float) -> BlockOutcome | None:
    """Agreement at a coarse resolution, or a difference; None if large steps are inconclusive."""
    pair, alone = (outcome.input, outcome.output), site.alone()
    wide = agreement(alone, pair, outcome.max_rel_error)
    if wide is not None:
        return None if overruled(site, pair, wide, significance) else _agreed(site, pair, outcome, wide)
    wrong = disagreement(alone, pair, significance)
    return None if wrong is None else _wrong(alone, pair, outcome, wrong)


def _unless_early_stop(site: Site, outcome: BlockOutcome) -> BlockOutcome | None:
    """Agreement over large steps, if small ones show the slope at a fixed number of an iteration's steps.

    That slope is the algorithm's own: a bisection between zero and the input itself gives a fixed fraction of the input
    until the next decision. What the iteration converges to is what its values follow over steps across many decisions.
    """
    if not iterates(site):
        return None
    pair, alone = (outcome.input, outcome.output), site.alone()
    wide = agreement(alone, pair, outcome.max_rel_error, sloped=True)
    if wide is None or wide.exact:
        return None
    return replace(_agreed(site, pair, outcome, wide), table=None, wrong_columns=None)


def _unless_few_digits(site: Site, outcome: BlockOutcome, significance: float) -> BlockOutcome:
    """A difference over fine steps, unless these say nothing of the values' digits.

    Of values in half precision they never do: some entries of a block may seem right beside others that seem to be
    zero, as long as the point lies near the edge of a rounding plateau in the former only.
    """
    pair = outcome.input, outcome.output
    stored = floating_format(site, pair[1]) if _may_be_half(site, pair) else None
    few = stored is not None and stored.half
    if few or (not _slope_seen(outcome) and has_plateaus(site, pair)):
        stored = stored or floating_format(site, pair[1])
        undecided = _undecided(outcome, FEW_DIGITS.format(EPS if stored is None else stored.roundoff))
        if few:
            return _over_wide_steps(site, undecided, significance) or undecided
        wrong = disagreement(site, pair, significance)
        return outcome if wrong is None else _wrong(site, pair, undecided, wrong)
    wide = agreement(site, pair, 0.0, sloped=True) if is_rough(site, pair) and not iterates(site) else None
    return outcome if wide is None or wide.exact else _undecided(outcome, TWO_SLOPES.format(wide.noise))


def _may_be_half(site: Site, pair: Pair) -> bool:
    return may_be_half(site.outputs[site.map.codomain.slices[pair[1]]])


def _slope_seen(outcome: BlockOutcome) -> bool:
    """Whether small steps found some nonzero entry right: then there are no rounding plateaus in between."""
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


def _wrong(site: Site, pair: Pair, outcome: BlockOutcome, wrong: Wrong) -> BlockOutcome:
    largest = largest_entry(site, *pair)
    found = replace(
        outcome,
        outcome=Outcome.DIFFERS,
        doubt=None,
        max_abs_error=wrong.error * largest,
        max_rel_error=wrong.error,
        bound=wrong.bound * largest,
        resolution=2 * FAIL_FACTOR * wrong.bound,
        note=wrong.note,
        reference=DIFFERENCES,
    )
    return with_wide_evidence(site, found)
