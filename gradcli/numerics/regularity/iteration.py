"""Telling a function that iterates until it is satisfied: the number of its steps depends on the point.

Branches change which lines are run, the number of steps how often. Lines that are run at one point only say nothing of
an iteration; they say on which side of a jump a point lies.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.maps.vector_map import Effort
from gradcli.numerics.sampling.directions import TRIES, moved, random_direction
from gradcli.numerics.sampling.line import GRID_BITS, narrowed, on_grid

FARTHER = tuple(sign * t for t in (0.125, 0.25, 0.5, 0.9, 1.4, 2.0, 3.0, 4.0) for sign in (1.0, -1.0))
FARTHEST = (32.0, -32.0)
"""Newton's method takes the same few steps for inputs of very different magnitudes, since it doubles its digits with
every step."""
FINE = 2.0**-14
COARSE = (0.02, 0.1, 0.3)
EXPLAINED = 10.0
LOOSE = 1e-3
"""The largest difference that an early stop, or noise, may explain. Smaller differences need a longer confirmation."""
GROWN = 128.0
"""Values elsewhere that are larger by more than this factor are not compared: a third power grows by 5^3 when x moves
by four times its magnitude, and values that grow by more are near a pole."""


def iterates(site: Site) -> bool:
    """Whether the map runs more of its code at some points than at others, close by or some sizes of x away.

    An iteration stopped at a tolerance is, close by, a fixed number of steps with a derivative of its own, which is off
    that of the solution by about the tolerance; only its effort elsewhere gives it away. Looked at once a site.

    Args:
        site: the point.
    """
    if site.known_iterating is None:
        site.known_iterating = _iterates(site)
    return site.known_iterating


def _iterates(site: Site) -> bool:
    here = effort_at(site, site.x)
    if here is None or not here.may_repeat or here != effort_at(site, site.x):
        return False
    points = [moved(site.rng, site.x, site.scales) for _ in range(TRIES)]
    for t in (*FARTHER, *FARTHEST):
        points.append(site.x + t * random_direction(site.rng, site.scales))
    return any(_differs(site, x, here) for x in points)


def stops_early(site: Site, first: Reading) -> bool:
    """Whether an early stop explains a larger gap: the map iterates, and its slope depends that much on its steps.

    Across the places where the number of steps changes a slope is that of the solution, between them that of a fixed
    number of steps. A gap proves nothing up to ten times what lies between slopes at steps of 2 % to 30 % and fine
    ones, or up to ten times the slope that what stopping leaves makes on the way to the nearest such place.

    Args:
        site: the point.
        first: the direction in which the claim differs.
    """
    if not iterates(site):
        return False
    leading = first.error >= 0.5 * np.nanmax(first.error)
    quick_readings = [site.quick_reading(first.direction, first.focus, start).short for start in (FINE, *COARSE)]
    with np.errstate(all="ignore"):
        spread = np.fmax.reduce([np.abs(short.value - quick_readings[0].value) for short in quick_readings[1:]])
        if (first.error <= EXPLAINED * spread)[leading].all():
            return True
    place, left = left_by_stopping(site, first.direction)
    left = np.maximum(EXPLAINED * left, left.max())  # the rows share one stopping rule
    return bool((first.error <= left / np.clip(abs(place), FARTHER[0], 1.0))[leading].all())


def where_it_stops(site: Site, direction: Vector) -> tuple[float, Vector] | None:
    """The nearest place along a direction where the number of steps changes, and how far every row jumps there.

    At that place the values with one number of steps and with another stand side by side: they differ by what stopping
    early leaves. A place where the values are far larger than at the point says nothing about the point.

    Args:
        site: the point.
        direction: a direction; t = 1 changes x by about itself.

    Returns:
        The parameter t and the jumps; None where the number of steps does not change within four sizes of x.
    """
    here = effort_at(site, site.x)

    def others(t: float) -> float:
        return float(_other_steps(here, effort_at(site, site.x + t * direction)))

    for t in FARTHER if here is not None else ():
        if not others(t):
            continue
        *_, found = narrowed(others, 0.0, t, GRID_BITS)
        with suppress(Exception):  # outside the domain: try farther
            before, after = site.read(site.x + found.low * direction), site.read(site.x + found.high * direction)
            if _comparable(site, before, after):
                return found.high, np.abs(after - before)
    return None


def left_by_stopping(site: Site, direction: Vector) -> tuple[float, Vector]:
    """The nearest place along a direction where the number of steps changes, and what stopping leaves of every row.

    That is how far the row jumps there, unless the last step comes in from zero, as an integrator's does that adapts
    its steps: then its slopes differ there, and come to what is left over the distance. Without such a place along the
    direction one along all inputs counts: an integrator's steps may not depend on one of them, and its error does.

    Args:
        site: the point.
        direction: a direction; t = 1 changes x by about itself.

    Returns:
        The parameter t, infinite without such a place, and what is left.
    """
    found = _left_along(site, direction)
    if found is not None:
        return found
    if site.known_left is None:
        all_inputs = random_direction(np.random.default_rng(0), site.scales)
        elsewhere = _left_along(site, all_inputs)
        site.known_left = np.zeros(site.row_values().size) if elsewhere is None else elsewhere[1]
    return np.inf, site.known_left


def _left_along(site: Site, direction: Vector) -> tuple[float, Vector] | None:
    stop = where_it_stops(site, direction)
    if stop is None:
        return None
    place, jump = stop
    step = np.copysign(COARSE[0], place)
    with suppress(Exception):  # outside the domain
        bend = np.abs(_slope_from(site, direction, place, step) - _slope_from(site, direction, place, -step))
        if EXPLAINED * jump.max() < COARSE[0] * bend.max():  # jumps close by would bend it as much as they are high
            return place, abs(place) * bend
    return stop


def _slope_from(site: Site, direction: Vector, start: float, step: float) -> Vector:
    """The slope of every row at a place, from three values on one side, to step² / 3 of the third derivative."""
    first, second, third = (site.read(site.x + on_grid(start + k * step) * direction) for k in range(3))
    return np.asarray((-3 * first + 4 * second - third) / (2 * step))


def _comparable(site: Site, *values: Vector) -> bool:
    """Whether values elsewhere are finite and not out of all proportion to those at the point."""
    here = float(np.abs(site.row_values()).max())
    return all(float(np.abs(there).max()) <= GROWN * here for there in values)


def _differs(site: Site, x: np.ndarray, here: Effort) -> bool:
    """Whether the steps at x are others, twice: a cache that is filled, or anybody's callback, counts once."""
    effort = effort_at(site, x)
    return _other_steps(here, effort) and effort == effort_at(site, x) and here == effort_at(site, site.x)


def _other_steps(here: Effort | None, there: Effort | None) -> bool:
    """Whether a line that is run at both of two points is run more often at one of them."""
    if here is None or there is None:
        return False
    return any(there.lines.get(line, times) != times for line, times in here.lines.items())


def on_other_branches(site: Site, one: Vector, two: Vector) -> bool:
    """Whether forward takes another branch at one of two points, with the same steps where both take the same."""
    here, there = effort_at(site, one), effort_at(site, two)
    if here is None or there is None or here == there:
        return False
    return not _other_steps(here, there) and here == effort_at(site, one)


def effort_at(site: Site, x: Vector) -> Effort | None:
    """The lines run at x; None where nobody counts, and outside the domain."""
    with suppress(Exception):
        return site.map.effort(x)
    return None
