"""Finds errors that are small compared with the largest entry of their block, but not with the entry they are in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gradcli.numerics.claims.claim import Claim, fits_in_full
from gradcli.numerics.claims.compare import Decision, Impression
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.formats import SAMPLED
from gradcli.numerics.maps.floats import Vector, median
from gradcli.numerics.maps.sizes import UNBALANCED, WANTED
from gradcli.numerics.outcome import AUTODIFF, Outcome, Pair
from gradcli.numerics.reference.arbitration import Ruling, settle
from gradcli.numerics.reference.discrepancy import Discrepancy, compare_all, tail
from gradcli.numerics.regularity.gradient_noise import jitter
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.sampling.directions import random_direction, through
from gradcli.numerics.sampling.line import point_along
from gradcli.numerics.screen.pair_result import PairResult
from gradcli.numerics.screen.single_pair import NEAREST

TAILED = "the largest entries are right; only far smaller entries are wrong, by more than 0.1 % of their own value"
BY_CHANCE = 1e-3
"""The probability with which a slope may be called small although its terms cancel by chance along one direction."""
WIDTH = 1e15
"""Outputs whose slopes are within this factor are added up, each weighted by the inverse of its slope. Weights of 1e22
could overflow in float32."""
DROWNED = 1e-13
"""A difference in a block whose entries are below this part of the output may be rounding, and is not reported."""
NEARER = (0.125, -0.125)
"""A tail is compared with the values at these multiples of x, nearer to zero."""
UNIT, LOST = 1e-17, 0.05
"""A block in a tail may consist of rounding of the values at x / 8 if it is above the first part of them. Below that,
nothing is left of rounding, and a lost term makes the block wrong by at most the second part of itself."""


def wrong_in_the_tail(site: Site, agreed: dict[Pair, Discrepancy], most: float = 0.5) -> dict[Pair, PairResult]:
    """The pairs whose claim is wrong in small entries, although claim and reference agree within the significance.

    Finite differences along those entries alone must support the reference. Nothing is reported if forward iterates.

    Args:
        most: small entries are examined only if they are at most this part of the block.
    """
    found: dict[Pair, PairResult] = {}
    for pair, discrepancy in agreed.items():
        if discrepancy.equal:
            continue
        entries = tail(site, *pair, jitter(site), most)
        dispute = None if entries is None or iterates(site) else settle(site, *pair, discrepancy, entries)
        if dispute is None or dispute.ruling is not Ruling.CLAIM_WRONG or dispute.reading is None:
            continue
        judgement = discrepancy.judged(Impression.DIFFERS)
        found[pair] = PairResult(
            site=site,
            judgement=judgement,
            reading=dispute.reading,
            reference=AUTODIFF,
            decision=Decision(outcome=Outcome.DIFFERS, judgement=judgement, note=TAILED, in_small_entries=True),
            discrepancy=discrepancy,
        )
    return found


def wrong_in_small_rows(site: Site, results: Mapping[Pair, PairResult]) -> dict[Pair, PairResult]:
    """The pairs whose claim is wrong in outputs of small slope, whose errors are lost in a sum u·f over all outputs.

    The outputs are divided into bands of similar slope (`WIDTH`). Within a band, every output is weighted by the
    inverse of its slope. Maps whose claim is computed row by row are left to `course.small_rows`, which compares every
    row with its own largest entry.

    Args:
        results: the results of all pairs; only those certified by the reference are examined.
    """
    found: dict[Pair, PairResult] = {}
    if fits_in_full(site.map):
        return found
    for output in sorted({output for _, output in results}):
        settled = {pair: known for pair, known in results.items() if known.decision is None and pair[1] == output}
        ours = {pair: known for pair, known in settled.items() if known.reference == AUTODIFF}
        slopes = _slopes(site, output, ours) if ours else None
        for band in () if slopes is None else bands(site, output, slopes):
            balanced = _balanced(site, output, band)
            rest = {pair: known for pair, known in ours.items() if pair not in found}
            if balanced is not None and rest:
                found |= wrong_in_the_tail(balanced, compare_all(balanced, rest), most=1.0)
    return found


def bands(site: Site, output: int, slopes: Vector) -> Iterator[Vector]:
    """The weights of every output of a block in each band.

    They are zero for outputs of other bands, and those in a tail; but in the last band, that of the largest slopes, all
    outputs of smaller slopes have the largest weight. There are no bands if the slopes do not differ much.

    Args:
        slopes: the slope of every output of the block along one direction.
    """
    if are_alike(slopes):
        return
    outputs = site.outputs[site.map.codomain.slices[output]]
    slopes = np.maximum(np.abs(slopes), WANTED * np.where(np.isfinite(outputs), np.abs(outputs), 0.0))
    known = np.isfinite(slopes) & (slopes > 0)
    if not known.any() or are_alike(slopes[known]):
        return
    weights = np.where(known, slopes[known].max() / np.where(known, slopes, 1.0), 0.0)
    far = weights > WIDTH
    if far.any():  # in a tail, a right formula may compute only rounding errors
        far &= slopes >= DROWNED * _nearer_to_zero(site, output)
    level = np.where(far, np.log(np.maximum(weights, 1.0)) // np.log(WIDTH), 0)
    for number in np.unique(level[far]):
        ours = level == number
        yield np.where(ours, weights / weights[ours].min(), 0.0)
    yield np.minimum(weights, WIDTH)


def _slopes(site: Site, output: int, results: Mapping[Pair, PairResult]) -> Vector | None:
    """The slope of every single output of a block along a direction through its inputs; None if it is not known."""
    if site.claim.cotangents is None:
        return None
    if not site.claim.watch:
        return slopes_along(site, output, sorted({input_ for input_, _ in results}))
    readings = {id(known.reading): known.reading.numeric for known in results.values()}
    measured = [numeric[site.map.codomain.slices[output]] for numeric in readings.values()]
    return np.asarray(np.max(np.abs(measured), axis=0), dtype=np.float64)


def slopes_along(site: Site, output: int, inputs: Sequence[int]) -> Vector | None:
    """The slope of every output of a block along a random direction through some inputs, up to a common factor.

    From one pair of values, unless those along all of these inputs are known; None outside the domain.
    """
    known, *others = [site.known_slopes.get(input_) for input_ in inputs]
    if known is not None and all(other is known for other in others):
        return known[site.map.codomain.slices[output]]
    v = random_direction(site.rng, through(site.map.domain, site.scales, inputs))
    try:
        right, left = site.map.values_at([point_along(site.x, v, t) for t in (NEAREST, -NEAREST)])
    except Exception:  # outside the domain
        return None
    places = site.map.codomain.slices[output]
    with np.errstate(all="ignore"):
        slopes: Vector = (right[places] - left[places]) / (2 * NEAREST)
    return slopes


def _nearer_to_zero(site: Site, output: int) -> Vector:
    """The larger |value| of every output of a block at x / 8 and -x / 8; zero where neither is known."""
    values = [site.value_at(factor * site.x)[site.map.codomain.slices[output]] for factor in NEARER]
    size: Vector = np.nan_to_num(np.fmax(*np.abs(values)), posinf=np.inf)
    return size


def _balanced(site: Site, output: int, weights: Vector) -> Site | None:
    """The site with one cotangent, of these weights for the outputs of a block; None if something is not finite."""
    claim = weighted(site, output, weights)
    rows = Site(site.map, site.x, site.scales, claim, site.rng, witness=site.witness)
    rows.known_outputs = site.outputs
    return rows.with_same_rows(site.x)


def weighted(site: Site, output: int, weights: Vector) -> Claim:
    """The claim for one random cotangent, of these weights for the outputs of a block; its form is not computed."""
    cotangent = np.zeros((1, site.map.codomain.size))
    cotangent[0, site.map.codomain.slices[output]] = random_direction(site.rng, weights)
    return replace(site.claim, cotangents=cotangent, block=np.array([output]), forms=np.zeros((1, site.x.size)))


def are_alike(slopes: Vector) -> bool:
    """Whether no more slopes are far below the largest (`UNBALANCED`) than chance makes small along one direction.

    A slope along a random direction is below p times its usual size, taken to be the median M, with a probability of
    about p. If the largest slope is m, k slopes contain about e = k (m / 10⁴) / M small ones by chance, and e + 3 √e at
    most, three standard deviations more. The smallest one of k slopes is below p M / k with a probability of p
    (`BY_CHANCE`). Slopes that are exactly zero do not count there: a rectifier has many. The slopes may have signs.
    """
    sizes = np.abs(slopes)
    least = float(sizes.max(initial=0.0)) / UNBALANCED
    count = np.count_nonzero(sizes < least)
    if not count:
        return least < np.inf
    usual = float(median(sizes[:: sizes.size // SAMPLED | 1]))
    expected = sizes.size * least / max(usual, least)
    tiny = (sizes > 0) & (sizes < BY_CHANCE * usual / sizes.size)
    return bool(least < usual < np.inf and count <= expected + 3 * expected**0.5 and not tiny.any())
