"""Recognises step functions such as floor, round and sign, whose derivative is zero although they rise from far away.

A smooth function that is computed in a lower precision is constant between jumps too, but there a zero gradient is a
mistake. The two differ in their jumps. Rounding to a floating-point format makes jumps of 2^-8 (bfloat16) to 2^-24
(float32) of the value, at every magnitude of the value; a floor or a fixed grid has large relative jumps where its
values are small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.outcome import Pair
from gradcli.numerics.regularity.quantisation import on_plateaus
from gradcli.numerics.sampling.directions import TRIES, random_direction, within
from gradcli.numerics.sampling.line import narrowed

MEANT = 2.0**-6
"""A jump of at least this part of the value belongs to the function itself: rounding to a floating-point format makes
smaller ones. A change of this size within an interval that has been halved 30 times is a jump: a continuous function
would have a slope of 2^-6 · 2^30, more than ten million times its value, although it is constant close by."""
LEAST = 2.0**-20
"""Jumps below this (not relative to the value) may be those of float16, whose smallest numbers are 2^-24 apart."""
SHRINKING = (0, 0, 1, 2, 3, 6, 10, 14, 18, 22, 26, 30, 34, 38, 0, 0, 0, 0)
"""The search for jumps starts at x times 2 to minus these powers: closer and closer to zero. At the end it starts at x
again, with other directions, for a function that has no jump closer to zero."""


def is_staircase(site: Site, pair: Pair) -> bool:
    """Whether an output is a step function of an input, and the claim is exactly zero.

    The output must vary from plateau to plateau (`on_plateaus`). The steps must be intended: either the reference is
    zero too and its graph leads from the input to the output, or there is a large jump (`MEANT`) on the way to zero,
    in each of up to three entries of the output.

    Args:
        site: the point, with its reference if there is one.
        pair: the numbers of the input block and the output block.
    """
    if _claimed(site, pair).any():
        return False
    varying = on_plateaus(site, site.map, site.map.domain.slices[pair[0]], site.map.codomain.slices[pair[1]])
    if not varying.size:
        return False
    if witness_is_zero(site, pair):
        return True
    known = site.map.jumping.setdefault(pair, set())
    open_ = set(site.rng.permutation(varying)[:TRIES].tolist()) - known
    known |= _with_large_jumps(site, pair, open_)
    return open_ <= known


def _claimed(site: Site, pair: Pair) -> Vector:
    """The claimed derivative of a pair."""
    forms: Vector = site.claim.forms[site.claim.block == pair[1]][:, site.map.domain.slices[pair[0]]]
    return forms


def witness_is_zero(site: Site, pair: Pair) -> bool:
    """Whether the reference's derivative of a pair is zero, and its graph leads from the input to the output."""
    if site.witness_rows is None or site.witness is None:
        return False
    if site.witness_rows[site.claim.block == pair[1]][:, site.map.domain.slices[pair[0]]].any():
        return False
    return bool(site.witness.depends(site.x)[pair[1], pair[0]])


def _with_large_jumps(site: Site, pair: Pair, outputs: set[int]) -> set[int]:
    """Those of the given outputs that have a jump of `MEANT` times their value or more between x and zero."""
    found: set[int] = set()
    for power in SHRINKING:
        if found == outputs:
            break
        x = site.x * 2.0**-power
        direction = random_direction(site.rng, within(site.scales, site.map.domain.slices[pair[0]])) * 2.0**-power
        place = site.map.codomain.slices[pair[1]]
        at = cache(lambda t, x=x, direction=direction, place=place: site.value_at(x + t * direction)[place])
        found |= {output for output in outputs - found if _first_jump(at, output) >= MEANT}
    return found


def _first_jump(at: Callable[[float], Vector], output: int) -> float:
    """The first jump of one output between t = 0 and t = 1, relative to its size there.

    0.0 if the output is the same at both ends, if the jump is below `LEAST`, or if its first changes are too small
    (`MEANT`). Only the first jump counts: a larger jump farther on may be the function's own, among the rounding
    plateaus of a format.
    """
    below = float(at(0.0)[output])
    jump = size = 0.0
    for bracket in narrowed(lambda t: float(at(t)[output] != below), 0.0, 1.0):
        above = float(at(bracket.high)[output])
        jump, size = abs(above - below), max(abs(below), abs(above))
        if not 0 < MEANT * size <= jump < np.inf:
            return 0.0
    return jump / size if jump >= LEAST else 0.0
