"""Mistakes that are small beside the largest entry of their block, but not beside their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gradcli.numerics.claims.claim import fits_in_full
from gradcli.numerics.claims.compare import Decision, Impression, Judgement
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Status
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import AUTODIFF, Outcome, Pair
from gradcli.numerics.reference.arbitration import Ruling, settle
from gradcli.numerics.reference.gap import Gap, compare_all, tail
from gradcli.numerics.regularity.gradient_noise import jitter
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.sampling.directions import random_direction
from gradcli.numerics.screen.pair_result import PairResult

TAILED = "the largest entries are right; only far smaller entries are wrong, by more than 0.1 % of their own value"
UNBALANCED = 1e4
"""Outputs whose slopes differ by more than this factor are weighted before they are added up. Below it, an error of a
thousandth in the smallest is a ten-millionth of the largest, which is seen without weights."""
BY_CHANCE, AT_MOST = 1e-3, 1e-2
"""The first part of the slopes along a random direction may be this small because terms cancel, or up to the second
part if most of them are far below the largest."""
SAMPLED = 500
"""So many slopes are enough to see what is usual."""
LEAST = 1e-10
"""A slope below this part of the output's value is rounding, and gets the weight of a slope of this magnitude."""
HEAVIEST = 1e15


def wrong_in_the_tail(site: Site, agreed: dict[Pair, Gap], most: float = 0.5) -> dict[Pair, PairResult]:
    """Pairs whose claim, though right where it is large, is shown to be wrong in a few entries that are small."""
    found: dict[Pair, PairResult] = {}
    noise = None
    for pair, gap in agreed.items():
        if gap.equal:
            continue
        noise = jitter(site) if noise is None else noise
        entries = tail(site, *pair, noise, most)
        dispute = None if entries is None or iterates(site) else settle(site, *pair, gap, entries)
        if dispute is None or dispute.ruling is not Ruling.CLAIM_WRONG or dispute.reading is None:
            continue
        judgement = parted(gap)
        found[pair] = PairResult(
            site=site,
            judgement=judgement,
            reading=dispute.reading,
            resolution=None,
            reference=AUTODIFF,
            decision=Decision(outcome=Outcome.DIFFERS, judgement=judgement, note=TAILED),
            gap=gap,
        )
    return found


def parted(gap: Gap) -> Judgement:
    """What a gap between claim and witness amounts to once it is laid at the claim's door."""
    return Judgement(
        impression=Impression.DIFFERS,
        scale=gap.scale,
        error=gap.error * gap.scale,
        tolerance=gap.resolution * gap.scale if gap.error < FAIL_FACTOR * gap.resolution else 0.0,
        resolution=None,
        statuses=(Status.OK,),
    )


def wrong_in_small_rows(site: Site, seen: Mapping[Pair, PairResult]) -> dict[Pair, PairResult]:
    """Pairs whose claim is wrong in outputs that a sum over all of them drowns, because their slopes are small.

    For maps whose claim can be asked for row by row, `small_rows` says more.
    """
    found: dict[Pair, PairResult] = {}
    if fits_in_full(site.map):
        return found
    for output in sorted({output for _, output in seen}):
        settled = {pair: known for pair, known in seen.items() if known.decision is None and pair[1] == output}
        ours = {pair: known for pair, known in settled.items() if known.reference == AUTODIFF}
        balanced = _balanced(site, output, next(iter(ours.values()))) if ours else None
        if balanced is not None:
            found |= wrong_in_the_tail(balanced, compare_all(balanced, ours), most=1.0)
    return found


def _balanced(site: Site, output: int, seen: PairResult) -> Site | None:
    """The site with one cotangent for an output that weighs every entry by its slope; None where they are alike."""
    places = site.map.codomain.slices[output]
    if site.claim.cotangents is None or not site.claim.watch or are_alike(seen.reading.numeric[places]):
        return None
    value = np.where(np.isfinite(site.outputs[places]), np.abs(site.outputs[places]), 0.0)
    slopes = np.maximum(np.abs(seen.reading.numeric[places]), LEAST * value)
    known = slopes[np.isfinite(slopes) & (slopes > 0)]
    if not known.size or are_alike(known):
        return None
    with np.errstate(over="ignore"):
        weights = np.where(np.isfinite(slopes) & (slopes > 0), known.max() / np.where(slopes > 0, slopes, 1.0), 0.0)
    cotangent = np.zeros((1, site.map.codomain.size))
    cotangent[0, places] = random_direction(site.rng, np.minimum(weights, HEAVIEST))
    claim = replace(site.claim, cotangents=cotangent, block=np.array([output]), forms=np.zeros((1, site.x.size)))
    rows = Site(site.map, site.x, site.scales, claim, site.rng, site.budget, witness=site.witness)
    rows.known_outputs = site.outputs
    return rows.with_same_rows(site.x)


def are_alike(slopes: Vector) -> bool:
    """Whether no more slopes, which may have a sign, lie far below the largest than chance alone makes small.

    A slope along a random direction is below a part p of its usual size in about p of all cases, and the usual size is
    the median: of slopes a hundred times below the largest, one in a hundred is ten thousand times below it.
    """
    sizes = np.abs(slopes)
    least = float(sizes.max()) / UNBALANCED
    small = np.count_nonzero(sizes < least)
    if small <= BY_CHANCE * sizes.size:
        return least < np.inf
    some = np.sort(sizes[:: sizes.size // SAMPLED | 1])
    usual = float(some[some.size // 2])
    expected = sizes.size * least / max(usual, least)
    return bool(small <= min(expected + 3 * expected**0.5, AT_MOST * sizes.size))
