"""Where differences are too coarse to certify the witness, another point may do: it is the same code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradcli.numerics.claims.compare import PASS_RESOLUTION, Impression
from gradcli.numerics.claims.other_points import other_points
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import AUTODIFF, Pair
from gradcli.numerics.reference.gap import FINEST
from gradcli.numerics.screen.pair_result import PairResult
from gradcli.numerics.screen.survey import survey

POINTS = 4
"""Other points at which the witness is tried."""
TIGHT = 1e-8
"""Claim and witness that agree this well would have shown an error of a few times their difference."""


def vouched(site: Site, weak: dict[Pair, PairResult], significance: float) -> dict[Pair, PairResult]:
    """The pairs whose claim meets the witness here, where differences see little, and whose witness holds elsewhere.

    What makes a witness wrong is written in forward's body: a detach, a rounding, another library. A point at which
    differences are sharp shows it, and if claim, witness and differences agree there, the witness is believed here.

    Args:
        site: the point under test.
        weak: what is known of each pair there.
        significance: as for the comparison.
    """
    sure = {pair: seen for pair, seen in weak.items() if _resolution(seen) <= PASS_RESOLUTION}
    found: dict[Pair, PairResult] = {}
    for _, (where, x) in zip(range(POINTS), other_points(site), strict=False):
        open_ = [pair for pair in sure if pair not in found]
        if not open_:
            break
        found |= {pair: _vouch(sure[pair], where) for pair in _certified_at(site, x, open_, significance)}
    return found


def _certified_at(site: Site, x: Vector, pairs: Sequence[Pair], significance: float) -> list[Pair]:
    there = site.moved_to(x)
    if there is None or there.witness_rows is None or not there.claim.finite:
        return []
    usable = [pair for pair in pairs if there.rows(pair[1]).any()]
    seen = survey(there, usable, significance) if usable else {}
    return [p for p, s in seen.items() if s.impression is Impression.AGREES and s.reference == AUTODIFF]


def _resolution(seen: PairResult) -> float:
    """What the agreement of claim and witness alone would have shown; infinite where it does not exist."""
    if seen.gap is None or seen.impression is not Impression.WEAK:
        return float("inf")
    tight = max(FINEST, 2 * FAIL_FACTOR * seen.gap.error)
    return tight if seen.gap.error <= TIGHT else seen.gap.resolution


def _vouch(seen: PairResult, where: str) -> PairResult:
    resolution = _resolution(seen)
    judgement = replace(
        seen.judgement,
        impression=Impression.AGREES,
        error=0.0 if seen.gap is None else seen.gap.error * seen.gap.scale,
        tolerance=resolution * seen.judgement.scale,
        resolution=resolution,
    )
    note = (
        "accepted: finite differences are too coarse here, but backward agrees with autodiff of forward's body, and "
        f"all three agree at {where}"
    )
    return replace(seen, judgement=judgement, resolution=resolution, reference=AUTODIFF, note=note)
