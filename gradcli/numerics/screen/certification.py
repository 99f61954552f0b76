"""Claim and witness agree: differences along a direction or two certify that both are the map's derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gradcli.numerics.claims.compare import Impression, Judgement, Reading
from gradcli.numerics.claims.site import VANISHING, QuickReading, Site
from gradcli.numerics.differences.estimate import Status
from gradcli.numerics.maps.floats import EPS, Mask
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, Pair
from gradcli.numerics.reference.gap import Gap, supports
from gradcli.numerics.regularity.step_functions import is_staircase, witness_is_zero
from gradcli.numerics.screen.pair_result import (
    ROUNDINGS,
    SHORTEST_START,
    STARTS,
    PairResult,
    certified,
    nothing_seen,
    quick_reading_through,
    unmoved,
    vanishing,
)
from gradcli.numerics.screen.single_pair import certified_at_once

WITNESSED = 1e-8
"""Finite differences that agree with claim and witness to this part of a block certify both."""
ROUGHLY = 1e-2
"""Where the map's values are rough, a bound of this part of a block is enough if the witness agrees with the claim."""


def certify(site: Site, agreed: dict[Pair, Gap], significance: float) -> dict[Pair, PairResult]:
    """One direction through all inputs for the pairs in which claim and witness agree; one an input where it fails."""
    inputs = sorted({input_ for input_, _ in agreed})
    moving = not any(gap.still for gap in agreed.values())
    if moving and (reading := certified_at_once(site, inputs, agreed)) is not None:
        return {pair: _agreed(site, gap, reading) for pair, gap in agreed.items()}
    found: dict[Pair, PairResult] = {}

    def meets(quick_reading: QuickReading, pair: Pair) -> bool:
        gap = agreed[pair]
        return certified(site, quick_reading, pair, WITNESSED, quiet=gap.still, scale=gap.scale)

    enough = partial(_all_meet, meets, list(agreed)) if moving else None
    for start in (_short_start(site, agreed), *STARTS) if moving else STARTS:
        open_ = [pair for pair in agreed if pair not in found]
        quick_reading = quick_reading_through(site, inputs, start, enough) if open_ else None
        if quick_reading is None:
            break
        found |= {
            pair: _agreed(site, agreed[pair], quick_reading.reading) for pair in open_ if meets(quick_reading, pair)
        }
        if len(inputs) == 1 and enough is None and start == STARTS[0]:
            found |= _stairs(site, quick_reading.reading, {pair: agreed[pair] for pair in open_ if pair not in found})
        enough = None
    found |= _nothing_together(site, {pair: gap for pair, gap in agreed.items() if pair not in found})
    for input_ in inputs:
        rest = {pair: gap for pair, gap in agreed.items() if pair[0] == input_ and pair not in found}
        found |= _through_one(site, input_, rest, significance, alone=len(inputs) == 1) if rest else {}
    return found


def _stairs(site: Site, reading: Reading, agreed: dict[Pair, Gap]) -> dict[Pair, PairResult]:
    """The pairs that are zero for claim and witness, and staircases to everybody else."""
    stepped = (pair for pair, gap in agreed.items() if gap.still and is_staircase(site, pair))
    return {
        pair: replace(
            _agreed(site, agreed[pair], reading),
            judgement=replace(_judgement(agreed[pair]), error=0.0, tolerance=0.0, resolution=None),
            resolution=None,
            reference=AUTODIFF if witness_is_zero(site, pair) else DIFFERENCES,
        )
        for pair in stepped
    }


def _through_one(
    site: Site, input_: int, agreed: dict[Pair, Gap], significance: float, *, alone: bool
) -> dict[Pair, PairResult]:
    """The pairs of one input: by three pairs where they suffice (and were not tried), else by the ladder."""
    found: dict[Pair, PairResult] = {}
    open_ = list(agreed)
    for start in () if alone else STARTS[:2]:
        quick_reading = quick_reading_through(site, [input_], start) if open_ else None
        if quick_reading is None:
            break
        found |= _alone(site, quick_reading, {pair: agreed[pair] for pair in open_})
        if start == STARTS[0]:
            found |= _stairs(site, quick_reading.reading, {pair: agreed[pair] for pair in open_ if pair not in found})
        open_ = [pair for pair in agreed if pair not in found]
    if open_:
        reading = site.probe(site.map.domain.slices[input_], cheap=False)
        found |= {pair: _weigh(site, pair, agreed[pair], reading, significance) for pair in open_}
    return found


def _nothing_together(site: Site, agreed: dict[Pair, Gap]) -> dict[Pair, PairResult]:
    """The pairs of several inputs that are nothing beside their output, which moving all these inputs does not move."""
    found: dict[Pair, PairResult] = {}
    for output in sorted({output for _, output in agreed}):
        size = float(np.abs(site.row_values()[site.rows(output)]).max(initial=0.0))
        ours = {p: gap for p, gap in agreed.items() if p[1] == output and gap.scale <= VANISHING * size}
        quick_reading = (
            quick_reading_through(site, [input_ for input_, _ in ours], STARTS[1]) if len(ours) > 1 else None
        )
        if quick_reading is not None and nothing_seen(
            quick_reading, site.rows(output) & ~quick_reading.reading.claimless
        ):
            found |= {pair: _nothing(site, gap, quick_reading.reading) for pair, gap in ours.items()}
    return found


def _nothing(site: Site, gap: Gap, reading: Reading) -> PairResult:
    """A block that differences show to be nothing: zero, or as little as claim and witness say it is."""
    if gap.still:
        return _agreed(site, gap, reading)
    judgement = replace(_judgement(gap), impression=Impression.SILENT, resolution=None)
    return PairResult(site=site, judgement=judgement, reading=reading, resolution=None, gap=gap, quiet=True)


def _alone(site: Site, quick_reading: QuickReading, agreed: dict[Pair, Gap]) -> dict[Pair, PairResult]:
    """The pairs of one input that three pairs certify, as far as rounding lets them see, or show to be zero."""
    found: dict[Pair, PairResult] = {}
    for pair, gap in agreed.items():
        rows = site.rows(pair[1]) & ~quick_reading.reading.claimless
        if _roughly(quick_reading, rows, gap):
            found[pair] = _agreed(site, gap, quick_reading.reading)
        elif nothing_seen(quick_reading, rows):
            found[pair] = _nothing(site, gap, quick_reading.reading)
    return found


def _roughly(quick_reading: QuickReading, rows: Mask, gap: Gap) -> bool:
    """Whether nothing but the rounding of the values keeps differences from certifying what a witness agrees on."""
    short = quick_reading.short
    allowed = np.maximum(WITNESSED * gap.scale, ROUNDINGS * short.rounding)
    seen: Mask = rows & short.certifies(quick_reading.reading.claimed, np.minimum(allowed, ROUGHLY * gap.scale))
    return bool(rows.any() and seen[rows].all())


def _short_start(site: Site, agreed: dict[Pair, Gap]) -> float:
    """The coarsest of three steps along one direction through all entries.

    Truncation leaves something of every entry in u·f, and is held against a single one: steps are as short as they may
    be if rounding, about 8 eps |u·f| / t at the finest, is to stay below a quarter of what is allowed.
    """
    return min(STARTS[0], max(SHORTEST_START, 4 * 32 * EPS * _largest_value(site, agreed)))


def _largest_value(site: Site, agreed: dict[Pair, Gap]) -> float:
    """The largest row value, in units of what may be missed of its block."""
    values = np.abs(site.row_values())
    return max(
        float(values[site.rows(output)].max(initial=0.0)) / (WITNESSED * gap.scale)
        for (_, output), gap in agreed.items()
    )


def _all_meet(meets: Callable[[QuickReading, Pair], bool], pairs: Sequence[Pair], quick_reading: QuickReading) -> bool:
    return all(meets(quick_reading, pair) for pair in pairs)


def _judgement(gap: Gap) -> Judgement:
    return Judgement(
        impression=Impression.SILENT if gap.still else Impression.AGREES,
        scale=gap.scale,
        error=gap.error * gap.scale,
        tolerance=gap.resolution * gap.scale,
        resolution=gap.resolution,
        statuses=(Status.OK,),
    )


def _agreed(site: Site, gap: Gap, reading: Reading) -> PairResult:
    return PairResult(
        site=site,
        judgement=_judgement(gap),
        reading=reading,
        resolution=gap.resolution,
        reference=AUTODIFF,
        gap=gap,
        quiet=gap.still,
    )


def _weigh(site: Site, pair: Pair, gap: Gap, reading: Reading, significance: float) -> PairResult:
    """Claim and witness agree; what does a direction through this input alone say?"""
    judgement, rows = site.judge(reading, *pair, significance), site.rows(pair[1])
    silent = judgement.impression is Impression.SILENT and vanishing(reading, rows)
    confirmed = judgement.impression is Impression.AGREES
    if judgement.impression is Impression.WEAK:
        # Values in a low precision are noisy to the ladder, but what does not depend on an input at all stays as it is.
        apart = gap.still and bool(unmoved(site, pair[0])[rows].all())
        confirmed = apart or supports(reading, rows, gap.scale, ROUGHLY)
    if confirmed or (silent and gap.still):
        return _agreed(site, gap, reading)
    return PairResult(
        site=site, judgement=judgement, reading=reading, resolution=judgement.resolution, gap=gap, quiet=silent
    )
