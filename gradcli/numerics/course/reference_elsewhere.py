"""Certifies the reference at another point, if finite differences are too inaccurate for that at the given point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradcli.numerics.claims.compare import PASS_RESOLUTION, Impression
from gradcli.numerics.claims.other_points import other_points
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.sizes import FINE, FINEST
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import AUTODIFF, Pair
from gradcli.numerics.screen.pair_result import PairResult
from gradcli.numerics.screen.survey import survey

POINTS = 4
"""At most this many other points are tried."""


def certified_elsewhere(site: Site, weak: dict[Pair, PairResult], significance: float) -> dict[Pair, PairResult]:
    """Decide pairs in which claim and reference agree but finite differences are inconclusive, by another point.

    A reference is wrong because of what forward's body does: it detaches, rounds, or uses another library. That shows
    at every point. If claim, reference and finite differences agree at another point, the reference is therefore
    accepted at the given point too.

    Args:
        site: the given point.
        weak: the results of the pairs there.
        significance: errors below this part of the pair's largest entry do not matter.

    Returns:
        The results of the pairs that agree.
    """
    sure = {pair: result for pair, result in weak.items() if _resolution(result) <= PASS_RESOLUTION}
    found: dict[Pair, PairResult] = {}
    for _, (where, x) in zip(range(POINTS), other_points(site), strict=False):
        open_ = [pair for pair in sure if pair not in found]
        if not open_:
            break
        found |= {pair: _accepted(sure[pair], where) for pair in _certified_at(site, x, open_, significance)}
    return found


def _certified_at(site: Site, x: Vector, pairs: Sequence[Pair], significance: float) -> list[Pair]:
    """The pairs whose claim and reference finite differences certify at x."""
    there = site.moved_to(x)
    if there is None or there.witness_rows is None or not there.claim.finite:
        return []
    usable = [pair for pair in pairs if there.rows(pair[1]).any()]
    results = survey(there, usable, significance) if usable else {}
    return [p for p, s in results.items() if s.impression is Impression.AGREES and s.reference == AUTODIFF]


def _resolution(result: PairResult) -> float:
    """The resolution of the comparison of claim and reference alone; infinite if they do not agree."""
    if result.discrepancy is None or result.impression is not Impression.WEAK:
        return float("inf")
    tight = max(FINEST, 2 * FAIL_FACTOR * result.discrepancy.error)
    return tight if result.discrepancy.error <= FINE else result.discrepancy.resolution


def _accepted(result: PairResult, where: str) -> PairResult:
    """The result of a pair that was certified at another point, described by `where`."""
    resolution = _resolution(result)
    judgement = replace(
        result.judgement,
        impression=Impression.AGREES,
        error=0.0 if result.discrepancy is None else result.discrepancy.error * result.discrepancy.scale,
        tolerance=resolution * result.judgement.scale,
        resolution=resolution,
    )
    note = (
        "accepted: finite differences are too coarse here, but backward agrees with autodiff of forward's body, and "
        f"all three agree at {where}"
    )
    return replace(result, judgement=judgement, resolution=resolution, reference=AUTODIFF, note=note)
