"""Certifies claims that agree with the reference: finite differences along a few directions must confirm both."""

from __future__ import annotations

from gradcli.numerics.claims.compare import Impression, QuickReading, Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.sizes import FINE, ROUGHLY
from gradcli.numerics.outcome import AUTODIFF, Pair
from gradcli.numerics.reference.discrepancy import Discrepancy, supports
from gradcli.numerics.screen.pair_result import (
    STARTS,
    PairResult,
    certified,
    quick_reading_through,
    short_start,
    unmoved,
    vanishing,
)
from gradcli.numerics.screen.single_pair import certified_at_once


def certify(site: Site, agreed: dict[Pair, Discrepancy], significance: float) -> dict[Pair, PairResult]:
    """Certify pairs in which claim and reference agree: by one direction through all inputs, or one through each.

    In this order: one pair of values; two or three pairs of values with the steps of `STARTS`;
    `directional_derivative` along each input alone. If claim and reference are zero, forward may also be a step
    function.

    Returns:
        A result for every pair; its impression is AGREES or SILENT if finite differences confirm the claim.
    """
    inputs = sorted({input_ for input_, _ in agreed})
    moving = not any(discrepancy.still for discrepancy in agreed.values())
    if moving and (reading := certified_at_once(site, inputs, agreed)) is not None:
        return {pair: _agreed(site, discrepancy, reading) for pair, discrepancy in agreed.items()}
    found: dict[Pair, PairResult] = {}

    def meets(quick_reading: QuickReading, pair: Pair) -> bool:
        return certified(site, quick_reading, pair, FINE, quiet=agreed[pair].still)

    def all_meet(quick_reading: QuickReading) -> bool:
        return all(meets(quick_reading, pair) for pair in agreed)

    enough = all_meet if moving else None
    # 32 roundings of the values, over this step, stay below a quarter of the error allowed.
    for start in (short_start(site, agreed, FINE, 128.0), *STARTS) if moving else STARTS:
        open_ = [pair for pair in agreed if pair not in found]
        quick_reading = quick_reading_through(site, inputs, start, enough) if open_ else None
        if quick_reading is None:
            break
        found |= {
            pair: _agreed(site, agreed[pair], quick_reading.reading) for pair in open_ if meets(quick_reading, pair)
        }
        enough = None
    for input_ in inputs:
        open_ = [pair for pair in agreed if pair[0] == input_ and pair not in found]
        if open_:
            reading = site.probe(site.map.domain.slices[input_], cheap=False)
            found |= {pair: _weigh(site, pair, agreed[pair], reading, significance) for pair in open_}
    return found


def _agreed(site: Site, discrepancy: Discrepancy, reading: Reading) -> PairResult:
    return PairResult(
        site=site,
        judgement=discrepancy.judged(Impression.SILENT if discrepancy.still else Impression.AGREES),
        reading=reading,
        reference=AUTODIFF,
        discrepancy=discrepancy,
        quiet=discrepancy.still,
    )


def _weigh(site: Site, pair: Pair, discrepancy: Discrepancy, reading: Reading, significance: float) -> PairResult:
    """The result for a pair in which claim and reference agree, from a measured direction through its input alone.

    A coarse bound suffices (`ROUGHLY`), or for zeros, values that do not change at all when the input moves.
    """
    judgement, rows = site.judge(reading, *pair, significance), site.rows(pair[1])
    silent = judgement.impression is Impression.SILENT and vanishing(reading, rows)
    confirmed = judgement.impression is Impression.AGREES
    if judgement.impression is Impression.WEAK:
        # Values in a low precision look noisy, but an output that does not depend on the input stays exactly the same.
        apart = discrepancy.still and bool(unmoved(site, pair[0])[rows].all())
        confirmed = apart or supports(reading, rows, discrepancy.scale, ROUGHLY)
    if confirmed or (silent and discrepancy.still):
        return _agreed(site, discrepancy, reading)
    return PairResult(
        site=site,
        judgement=judgement,
        reading=reading,
        discrepancy=discrepancy,
        quiet=silent,
    )
