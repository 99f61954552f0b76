"""Finds errors that are small compared with the largest entry of their block, but not with the entry they are in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gradcli.numerics.claims.claim import fits_in_full
from gradcli.numerics.claims.compare import Decision, Impression, Judgement
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Status
from gradcli.numerics.differences.formats import SAMPLED
from gradcli.numerics.maps.sizes import WANTED
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import AUTODIFF, Outcome, Pair
from gradcli.numerics.reference.arbitration import Ruling, settle
from gradcli.numerics.reference.discrepancy import Discrepancy, compare_all, tail
from gradcli.numerics.regularity.gradient_noise import jitter
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.sampling.directions import random_direction
from gradcli.numerics.screen.pair_result import PairResult

TAILED = "the largest entries are right; only far smaller entries are wrong, by more than 0.1 % of their own value"
UNBALANCED = 1e4
"""Outputs whose slopes differ by more than this factor are weighted before they are added up. If they differ by less,
an error of a thousandth in the smallest is at least 1e-7 of the largest, the significance, and shows anyway."""
BY_CHANCE, AT_MOST = 1e-3, 1e-2
"""Slopes along a random direction may be small because terms cancel. Up to a thousandth of the slopes may be this small
by chance; up to a hundredth, if most slopes are far below the largest."""
HEAVIEST = 1e15
"""No output is weighted by more than this."""


def wrong_in_the_tail(site: Site, agreed: dict[Pair, Discrepancy], most: float = 0.5) -> dict[Pair, PairResult]:
    """The pairs whose claim is wrong in small entries, although claim and reference agree within the significance.

    Finite differences along those entries alone must support the reference. Nothing is reported if forward iterates.

    Args:
        site: the point, with its reference.
        agreed: the pairs, and how claim and reference compare.
        most: small entries are examined only if they are at most this part of the block.
    """
    found: dict[Pair, PairResult] = {}
    noise = None
    for pair, discrepancy in agreed.items():
        if discrepancy.equal:
            continue
        noise = jitter(site) if noise is None else noise
        entries = tail(site, *pair, noise, most)
        dispute = None if entries is None or iterates(site) else settle(site, *pair, discrepancy, entries)
        if dispute is None or dispute.ruling is not Ruling.CLAIM_WRONG or dispute.reading is None:
            continue
        judgement = judgement_of(discrepancy)
        found[pair] = PairResult(
            site=site,
            judgement=judgement,
            reading=dispute.reading,
            resolution=None,
            reference=AUTODIFF,
            decision=Decision(outcome=Outcome.DIFFERS, judgement=judgement, note=TAILED),
            discrepancy=discrepancy,
        )
    return found


def judgement_of(discrepancy: Discrepancy) -> Judgement:
    """The judgement DIFFERS, with the numbers of a comparison in which the claim has been found wrong."""
    return Judgement(
        impression=Impression.DIFFERS,
        scale=discrepancy.scale,
        error=discrepancy.error * discrepancy.scale,
        tolerance=discrepancy.resolution * discrepancy.scale
        if discrepancy.error < FAIL_FACTOR * discrepancy.resolution
        else 0.0,
        resolution=None,
        statuses=(Status.OK,),
    )


def wrong_in_small_rows(site: Site, results: Mapping[Pair, PairResult]) -> dict[Pair, PairResult]:
    """The pairs whose claim is wrong in outputs of small slope, whose errors are lost in a sum u·f over all outputs.

    Every output is weighted by the inverse of its slope instead. Maps whose claim is computed row by row are left to
    `course.small_rows`, which compares every row with its own largest entry.

    Args:
        site: the point, with its reference.
        results: the results of all pairs; only those certified by the reference are examined.
    """
    found: dict[Pair, PairResult] = {}
    if fits_in_full(site.map):
        return found
    for output in sorted({output for _, output in results}):
        settled = {pair: known for pair, known in results.items() if known.decision is None and pair[1] == output}
        ours = {pair: known for pair, known in settled.items() if known.reference == AUTODIFF}
        balanced = _balanced(site, output, next(iter(ours.values()))) if ours else None
        if balanced is not None:
            found |= wrong_in_the_tail(balanced, compare_all(balanced, ours), most=1.0)
    return found


def _balanced(site: Site, output: int, result: PairResult) -> Site | None:
    """The site with one cotangent, which weighs every entry of an output by the inverse of its slope.

    None if the slopes do not differ much (`are_alike`) or are not known for single outputs.
    """
    places = site.map.codomain.slices[output]
    if site.claim.cotangents is None or not site.claim.watch or are_alike(result.reading.numeric[places]):
        return None
    value = np.where(np.isfinite(site.outputs[places]), np.abs(site.outputs[places]), 0.0)
    slopes = np.maximum(np.abs(result.reading.numeric[places]), WANTED * value)
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
    """Whether no more slopes are far below the largest (`UNBALANCED`) than chance makes small along one direction.

    A slope along a random direction is below p times its usual size with a probability of about p. The usual size is
    taken to be the median M. If the largest slope is m, k slopes contain about e = k (m / 10⁴) / M small ones by
    chance, and e + 3 √e at most, three standard deviations more. The slopes may have signs.
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
