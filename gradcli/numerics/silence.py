"""When claim and derivative are both zero at a point: look elsewhere before believing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradcli.numerics.compare import FAIL_FACTOR, Impression, Judgement, Reading
from gradcli.numerics.noise import Mask
from gradcli.numerics.probe import random_direction
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector

SHRINKINGS = (2.0**-3, 2.0**-6, 2.0**-9, 2.0**-12)
VANISHING = 1e-12
CONFIRMING = 3
"""Points, besides the first, at which a zero derivative must be seen before it counts as zero everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """What other points say: the first one with a signal, or how many were truly zero."""

    site: Site | None
    where: str
    judgement: Judgement | None
    reading: Reading | None
    zeros: int


def _other_points(site: Site) -> Iterator[tuple[str, Vector]]:
    yield "-x", -site.x
    for factor in SHRINKINGS:
        yield f"x times {factor:g}", site.x * factor
    yield "x times 4", site.x * 4.0
    for _ in range(3):
        drawn = random_direction(site.rng, np.ones(site.x.size))
        yield "random numbers of the size of x", drawn * site.scales
        yield "random numbers of size 1", drawn


def vanishing(reading: Reading, rows: Mask) -> bool:
    """Whether derivative and claim are zero, or within 1e-12 of the outputs, in all the rows that have a claim."""
    ours = rows & ~reading.claimless
    with np.errstate(all="ignore"):
        still = np.abs(reading.numeric) <= FAIL_FACTOR * reading.bound
        none = np.abs(reading.claimed) <= VANISHING * reading.size
    return bool((still & none)[ours].all())


def look_elsewhere(site: Site, input_: int, output: int, significance: float) -> Elsewhere:
    """Try other points until one shows a derivative or a claim that is not zero.

    Args:
        site: the point where neither showed.
        input_: the input block.
        output: the output block.
        significance: as for the comparison.
    """
    zeros = 0
    places = site.map.domain.slices[input_]
    for where, x in _other_points(site):
        there = site.moved_to(x)
        if there is None:
            continue
        rows = there.rows(output)
        if not rows.any() or not there.claim.finite:
            continue
        reading = there.probe(places)
        judgement = there.judge(reading, input_, output, significance)
        if judgement.impression in (Impression.AGREES, Impression.DIFFERS):
            return Elsewhere(site=there, where=where, judgement=judgement, reading=reading, zeros=zeros)
        if judgement.impression is Impression.SILENT and vanishing(reading, rows):
            zeros += 1
            if zeros >= 2 * CONFIRMING:
                break
    return Elsewhere(site=None, where="", judgement=None, reading=None, zeros=zeros)
