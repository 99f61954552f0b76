"""Outputs that stay exactly the same: they say nothing of a claim that the rounding of forward's values would hide."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.formats import FLOAT32
from gradcli.numerics.maps.floats import EPS
from gradcli.numerics.maps.sizes import SIGNIFICANT
from gradcli.numerics.outcome import Pair
from gradcli.numerics.regularity.stored_format import HIDDEN, format_elsewhere
from gradcli.numerics.screen.pair_result import PairResult
from gradcli.numerics.screen.small_entries import DROWNED, NEARER


def is_held_still(site: Site, pair: Pair, result: PairResult) -> bool:
    """Whether a claim differs only in outputs that stay exactly the same, by less than rounding to their format hides.

    log(1 + exp(x)) in float32 is zero below -16.6, where 1 + exp(x) is rounded to 1; its derivative, exp(x), is not.
    The format is that of the values at other points, and float64 if these do not determine it. What rounding hides is
    as many roundoffs as in float64 (`DROWNED`). Values of half precision are compared over large steps instead.
    """
    ours = site.rows(pair[1]) & ~result.reading.claimless
    if not ((result.reading.numeric == 0) & (result.reading.error > 0))[ours].any():
        return False
    reading = site.probe(site.map.domain.slices[pair[0]], result.reading.focus, cheap=False)
    still, error = reading.numeric == 0, reading.error
    with np.errstate(all="ignore"):
        met = error <= np.maximum(FAIL_FACTOR * reading.tolerance, SIGNIFICANT * result.judgement.scale)
    if not (still | met)[ours].all() or not np.isfinite(reading.tolerance[ours]).all():
        return False
    most = float(error[ours & still & ~met].max(initial=0.0))
    largest = [_size(site, factor, pair[1]) for factor in (1.0, *NEARER)]
    if most > SIGNIFICANT * largest[1]:  # values do not fall off from there to x: those at -x / 8 do not matter
        del largest[2]
    hidden = DROWNED / EPS * max(largest)
    if not most <= FLOAT32.roundoff * hidden:
        return False
    stored = format_elsewhere(site, pair[1])
    if stored is not None and stored.half:
        return False
    roundoff, smallest = (EPS, 0.0) if stored is None else (stored.roundoff, stored.smallest)
    return most <= roundoff * hidden + HIDDEN * smallest


def _size(site: Site, factor: float, output: int) -> float:
    values = site.value_at(factor * site.x)[site.map.codomain.slices[output]]
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
