"""Staircases that are meant: floor, round and sign have a derivative of zero, however they rise from far away.

A function that is smooth on paper but computed in a lower precision is a staircase too, and there a gradient of zero is
a mistake. The two differ in their jumps: rounding to a floating-point format has jumps of 2^-8 (bfloat16) to 2^-24
(float32) of the value at every size of the value, a floor or a fixed grid has large ones where its values are small.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache

import numpy as np

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import EPS, Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import ASIDE, TRIES, moved, random_direction
from gradcli.numerics.sampling.line import narrowed

Pair = tuple[int, int]

FINER = (2.0**-8, 2.0**-16, 2.0**-24, 2.0**-32, 2.0**-38, 2.0**-44)
MEANT = 2.0**-6
"""A jump of at least this part of the value is the function's own and not rounding to a floating-point format. Whatever
rises by so much within a bracket that has been halved 30 times is a jump: a continuous function would have a slope of
ten million times its value there, but it is constant close by."""
LEAST = 2.0**-20
"""Smaller jumps may be those of float16, whose smallest numbers lie 2^-24 apart."""
SHRINKING = (0, 0, 1, 2, 3, 6, 10, 14, 18, 22, 26, 30, 34, 38, 0, 0, 0, 0)
"""Powers of two by which the point is scaled down; at the end not at all, for values below their first jump."""


def is_staircase(site: Site, pair: Pair) -> bool:
    """Whether an output is constant round the point, and round others close by, though it varies further away.

    The claim for the pair must be exactly zero. Constant means bit for bit, over a distance at which the change seen
    from far away would be many units of rounding. The jumps must be meant as such: the witness is zero too, and its
    graph leads from the input to the output, or somewhere along the way to zero a jump is large beside the value.

    Args:
        site: the point, with its witness where there is one.
        pair: the numbers of the input block and the output block.
    """
    if _claimed(site, pair).any():
        return False
    points = [site.x, *(moved(site.rng, site.x, site.scales) for _ in range(TRIES))]
    seen = [_steps(site, x, pair) for x in points]
    if any(flat is None for flat in seen):
        return False
    flat, steep = np.sum([one[0] for one in seen if one], axis=0), np.sum([one[1] for one in seen if one], axis=0)
    varying = np.flatnonzero(steep > 0)
    if not varying.size or (2 * flat[varying] < steep[varying]).any():
        return False
    if witness_is_zero(site, pair):
        return True
    known = site.map.jumping.setdefault(pair, set())
    open_ = set(site.rng.permutation(varying)[:TRIES].tolist()) - known
    known |= _with_large_jumps(site, pair, open_)
    return open_ <= known


def _claimed(site: Site, pair: Pair) -> Vector:
    forms: Vector = site.claim.forms[site.claim.block == pair[1]][:, site.map.domain.slices[pair[0]]]
    return forms


def witness_is_zero(site: Site, pair: Pair) -> bool:
    """Whether a site's witness says that a pair's derivative is zero, and can know it."""
    if site.witness_rows is None or site.witness is None:
        return False
    if site.witness_rows[site.claim.block == pair[1]][:, site.map.domain.slices[pair[0]]].any():
        return False
    return bool(site.witness.depends(site.x)[pair[1], pair[0]])


def _steps(site: Site, x: Vector, pair: Pair) -> tuple[Mask, Mask] | None:
    """Which outputs are flat along a line through one input though they vary far away, and which vary far away.

    Flat at a distance means unchanged there, although a slope like that from far away would change them by many units
    of rounding. None where the output is not finite, or one without steps moves.
    """
    direction = _direction(site, pair)
    try:
        here = _values(site, x, pair)
        far = [_values(site, x + t * direction, pair) for t in ASIDE]
        changes = np.maximum.reduce([np.abs(values - here) for values in far])
        flat = _still_at(site, x, pair, direction, here, changes)
    except Exception:  # outside the domain: nothing is known of the function there
        return None
    return (flat, changes > 0) if np.isfinite([here, *far]).all() else None


def _still_at(site: Site, x: Vector, pair: Pair, direction: Vector, here: Vector, changes: Vector) -> Mask:
    """Which outputs stay the same over the shortest distance that a slope like `changes` would cross visibly.

    What is unchanged farther away on a plateau is so here: one distance is enough for each output.
    """
    flat, open_ = np.zeros(here.size, bool), changes > 0
    for t in reversed(FINER):
        visible = open_ & (changes * (t / ASIDE[0]) >= 16 * EPS * np.abs(here))
        if visible.any():
            still = np.logical_and.reduce([_values(site, x + s * t * direction, pair) == here for s in (1, -1)])
            flat |= still & visible
            open_ &= ~visible
    return flat


def _direction(site: Site, pair: Pair) -> Vector:
    drawn = np.zeros(site.x.size)
    places = site.map.domain.slices[pair[0]]
    drawn[places] = site.scales[places]
    return random_direction(site.rng, drawn)


def _values(site: Site, x: Vector, pair: Pair) -> Vector:
    return np.asarray(site.map.value(x), dtype=np.float64)[site.map.codomain.slices[pair[1]]]


def _with_large_jumps(site: Site, pair: Pair, outputs: set[int]) -> set[int]:
    """Those of some outputs that, somewhere between the point and zero, jump by a large part of their size."""
    found: set[int] = set()
    for power in SHRINKING:
        if found == outputs:
            break
        x, direction = site.x * 2.0**-power, _direction(site, pair) * 2.0**-power
        at = cache(lambda t, x=x, direction=direction: _values(site, x + t * direction, pair))
        with suppress(Exception):  # outside the domain: closer to zero may be inside
            found |= {output for output in outputs - found if _first_jump(at, output) >= MEANT}
    return found


def _first_jump(at: Callable[[float], Vector], output: int) -> float:
    """The first jump of one output on the way from one end of a line, 0, to the other, 1, relative to its size there.

    0.0 if it does not change, or by less than what counts within some part of the way: that is searched no further. A
    larger jump farther on may be the function's own, among the rounding plateaus of a format.
    """
    below = float(at(0.0)[output])
    jump = size = 0.0
    for bracket in narrowed(lambda t: float(at(t)[output] != below), 0.0, 1.0):
        above = float(at(bracket.high)[output])
        jump, size = abs(above - below), max(abs(below), abs(above))
        if not 0 < MEANT * size <= jump < np.inf:
            return 0.0
    return jump / size if jump >= LEAST else 0.0
