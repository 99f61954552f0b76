"""Detects iterations: forwards in which the number of steps of a loop depends on the input.

For every line of the user's code that an evaluation runs, gradcli counts how often it runs. If a line that runs at both
of two points runs more often at one of them, the number of steps differs. A line that runs at only one of them belongs
to a branch, and shows on which side of a jump the point lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from typing import Any

import numpy as np

from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.sizes import COMPUTED
from gradcli.numerics.maps.vector_map import Effort
from gradcli.numerics.sampling.directions import TRIES, moved, random_direction
from gradcli.numerics.sampling.line import GRID_BITS, on_grid

FARTHER = tuple(sign * t for t in (0.125, 0.25, 0.5, 0.9, 1.4, 2.0, 3.0, 4.0, 32.0, 1024.0) for sign in (1.0, -1.0))
"""Places, in magnitudes of x, at which the number of steps is compared with that at x. The last are far away: Newton's
method takes the same few steps for inputs of very different magnitudes, because it doubles the number of right digits
in every step; and where all entries share one stopping rule, as in a layer's fixed point, the number of steps is that
of the slowest entry, which may be the same for all inputs close by."""
SHORT_STEP = 2.0**-14
"""A step so short that the number of iterations is usually the same at both ends."""
LONG_STEPS = (0.02, 0.1, 0.3)
"""Steps that are long enough to cross places where the number of iterations changes."""
SAME_CHANGE = 7
"""Over so many halvings of an interval, the change of values across it stays the same if there is a jump inside."""
EXPLAINED = 10.0
"""An early stop explains a difference of up to ten times the error that it was seen to make."""
OFTEN = 0.1
"""Differences below this part are often due to an early stop; larger ones are not explained by it so easily."""
LOOSE = 1e-3
"""Differences below this part of the largest entry are UNDECIDED if forward iterates or the claim is noisy: an early
stop at a usual tolerance, or rounding, may explain them. Larger ones need more evidence to be explained."""
GROWN = 128.0
"""Values elsewhere that exceed those at x by more than this factor are not compared. A third power grows by 5^3 when x
moves by four times its magnitude; values that grow by more are near a pole."""


def iterates(site: Site) -> bool:
    """Whether forward iterates: some line of code runs more often at one point than at another.

    Points close by and some magnitudes of x away are compared with x. Close to x alone, an iteration that stops at a
    tolerance runs a fixed number of steps; its derivative is off that of the solution by about the tolerance, but
    nothing shows this. The result is computed once for a site.

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
    steps = [moved(site.rng, site.x, site.scales) - site.x for _ in range(TRIES)]
    steps += [t * random_direction(site.rng, site.scales) for t in FARTHER]
    return any(_differs(site, step, here) for step in steps) and not _is_exact(site)


def _is_exact(site: Site) -> bool:
    """Whether all loops with a number of steps that depends on x compute exact results, as a range reduction does.

    Where an iteration that stops early takes one more step, the values change by its error: by more than rounding, and
    by a small part of them. If the values stay the same, as in a halving that is undone later, the number of steps does
    not matter; if they change by a third or more, as in a greedy selection, forward has a jump there. The
    same holds for the slopes where the values do not jump: those of an integrator change by a small part, those of
    pool-adjacent-violators by a large one. One place is looked at for each line whose number of runs changes.
    """
    rng = np.random.default_rng(0)
    seen, found, directions = set[Any](), False, [random_direction(rng, site.scales) for _ in range(TRIES)]
    for direction in directions:
        for t, before, after in _places(site, direction, seen):
            if _may_be_an_error(site, site.x + t * direction, directions, before, after):
                return False
            found = True
    return found


def _may_be_an_error(site: Site, place: Vector, directions: Sequence[Vector], before: Vector, after: Vector) -> bool:
    """Whether the values, or the slopes, change at a place as the error of an early stop would make them.

    The slopes are those along several directions, so that one that runs along a kink does not hide it. Their errors
    fall with the square of the step: a kink is what stays when the step is shorter. Slopes may be small by accident
    along all these directions, so that a kink is compared with the values as well.
    """
    rounding = _rounding(site)
    change, largest = _largest_part(before, after)
    if change > rounding:
        return 3 * change < largest
    steps = (LONG_STEPS[0] ** 2, LONG_STEPS[0] ** 3)
    (coarse, _), (kink, steepest) = (
        _largest_part(
            *(
                np.array([value, *(_slope_from(site, place, each, sign * step) for each in directions)])
                for sign, value in ((-1.0, before), (1.0, after))
            )
        )
        for step in steps
    )
    if not np.isfinite(coarse + kink):
        return True
    return coarse < 2 * kink and rounding < kink * steps[1] and 3 * kink < steepest


def _rounding(site: Site) -> float:
    """The largest change of a value at the point that rounding may make."""
    return float(COMPUTED * np.abs(site.row_values()).max())


def _largest_part(one: Vector, two: Vector) -> tuple[float, float]:
    """The largest change of a row (a column of both arrays), and the largest absolute value in that row."""
    changes, values = np.atleast_2d(np.abs(two - one)).max(0), np.atleast_2d(np.fmax(np.abs(one), np.abs(two))).max(0)
    row = changes.argmax()
    return float(changes[row]), float(values[row])


def stops_early(site: Site, first: Reading) -> bool:
    """Whether an early stop explains a difference above `LOOSE`.

    Between places where the number of iterations changes, the slope is that of a fixed number of iterations; across
    many such places, it is that of the limit. An early stop therefore explains a difference if forward iterates, and in
    the rows with the largest errors (at least half the largest) the error is at most

    * ten times the largest change of the slope between small steps (those that show the difference, and 2^-14) and
      steps of 2 %, 10 % and 30 %, or
    * ten times the error N that stopping leaves (`left_by_stopping`), divided by the distance to the nearest place
      where the number of iterations changes. That distance is taken as 1/8 to 1. The rows share one stopping rule, so
      that N of a row is at least a third of the largest N: its own may be small by accident.

    So does an integrator that adapts its steps, if the error is another one elsewhere (`_changes_with_steps`).

    Args:
        site: the point.
        first: the direction along which the claim differs.
    """
    if not iterates(site):
        return False
    leading = first.error >= 0.5 * np.nanmax(first.error)
    quick_readings = [
        site.quick_reading(first.direction, first.focus, start).short for start in (SHORT_STEP, *LONG_STEPS)
    ]
    with np.errstate(all="ignore"):
        fine, *coarse = (short.value for short in quick_readings)
        spread = np.fmax.reduce([np.abs(slope - small) for slope in coarse for small in (first.numeric, fine)])
        if (first.error <= EXPLAINED * spread)[leading].all():
            return True
    place, left = left_by_stopping(site, first.direction)
    left = EXPLAINED * np.maximum(left, left.max() / 3)  # the rows share one stopping rule
    if (first.error <= left / np.clip(abs(place), FARTHER[0], 1.0))[leading].all():
        return True
    return _changes_with_steps(site, first)


def _changes_with_steps(site: Site, first: Reading) -> bool:
    """Whether the error of the row with the largest one is that of an integrator's steps (`errors_elsewhere`).

    It is if the claim is right to a third of the error at some place, or wrong with the other sign. Errors above
    `OFTEN` are the claim's.
    """
    row = int(np.nanargmax(first.error))
    claimed = float(site.claim.along(first.direction)[0][row])
    error = claimed - float(first.numeric[row])
    if not abs(error) < OFTEN * abs(claimed):
        return False
    elsewhere = ((slopes[row], errors[row]) for slopes, errors in errors_elsewhere(site, first.direction))
    telling = [(slope, off) for slope, off in elsewhere if EXPLAINED * abs(slope) > abs(claimed)]
    return any(3 * (off / slope) / (error / claimed) < 1 for slope, off in telling)


def errors_elsewhere(site: Site, direction: Vector) -> list[tuple[Vector, Vector]]:
    """The claimed slopes of an integrator that adapts its steps, at x and where it takes another number, and errors.

    The error of such a forward is smooth as long as the number of steps stays the same, and so is that of its slope,
    which may be some percent: over every shorter step it looks like an error of the claim. Its size and sign change
    with the number of steps, though. Places up to four magnitudes away are tried, along random directions through all
    inputs, until there are five with values that can be compared (`GROWN`).

    Args:
        site: the point.
        direction: the direction of the slopes.

    Returns:
        The slopes and errors of all rows, for every place; nothing if forward is not such an integrator.
    """
    all_inputs = _through_all_inputs(site)
    stop = where_it_stops(site, all_inputs) if iterates(site) else None
    jumps = stop is None or stop[1].max() > _rounding(site)
    if jumps or _bend(site, all_inputs, stop) is None:
        return []
    here = effort_at(site, site.x)
    found: list[tuple[Vector, Vector]] = []
    for t in (0.0, *TRIES * FARTHER[:16]):
        if len(found) == 5:
            break
        x = site.x + on_grid(t) * random_direction(site.rng, site.scales)
        if t and not _other_steps(here, effort_at(site, x)):
            continue
        with suppress(Exception):  # outside the domain
            claim = site.claim_at(x)
            ends = [site.read(x + step * direction) for step in (SHORT_STEP, -SHORT_STEP)]
            if claim is not None and _comparable(site, *ends):
                slopes = claim.along(direction)[0]
                found.append((slopes, slopes - (ends[0] - ends[1]) / (2 * SHORT_STEP)))
    return found


def where_it_stops(site: Site, direction: Vector) -> tuple[float, Vector] | None:
    """The nearest place along a direction where the number of iterations changes, and the jump of every row there.

    On its two sides the same value is computed with different numbers of iterations, so that the jump is the error of
    stopping early. A place where values exceed those at x by a factor above `GROWN` is ignored.

    Args:
        site: the point.
        direction: a direction; t = 1 changes x by about its own magnitude.

    Returns:
        The parameter t, found by halving, and the absolute values of the jumps; None if the number of iterations is the
        same at all places of `FARTHER`.
    """
    place = next(_places(site, direction, set()), None)
    return None if place is None else (place[0], np.abs(place[2] - place[1]))


def _places(site: Site, direction: Vector, seen: set[Any]) -> Iterator[tuple[float, Vector, Vector]]:
    """Places along a direction where lines run another number of times: t, and the rows on both sides.

    Lines that were `seen` to do so do not count, and those of a place are added to them. Places where values exceed
    those at x by a factor above `GROWN` are left out.
    """
    here = effort_at(site, site.x)
    for t in FARTHER:
        there = effort_at(site, site.x + t * direction)
        lines = _other_steps(here, there) - seen
        if here is None or there is None or not lines:
            continue
        place, before, after, changed = _where_steps_change(site, direction, here, t, there, lines)
        seen |= changed
        if _comparable(site, before, after):
            yield place, before, after


def _where_steps_change(
    site: Site, direction: Vector, here: Effort, t: float, there: Effort, lines: Set[Any]
) -> tuple[float, Vector, Vector, Set[Any]]:
    """The place between x and t where some of the `lines` run another number of times, the rows beside it, the lines.

    The interval is halved until the change of the values across it has stayed the same, to a third, over the last
    `SAME_CHANGE` halvings: a jump J and a slope s over the length h change the values by J + h s, so that h s is then
    less than a hundredth of J. Without a jump, it is halved `GRID_BITS` times. Rows are NaN outside the domain.
    """
    low, high, near, far = 0.0, t, here, there
    changes: list[float] = []
    for _ in range(GRID_BITS):
        middle = on_grid(0.5 * (low + high))
        between = effort_at(site, site.x + middle * direction)
        if between is None:
            outside = np.full(site.row_values().size, np.nan)
            return high, outside, outside, lines
        if _other_steps(here, between) & lines:
            high, far = middle, between
        else:
            low, near = middle, between
        changes.append(_largest_change(near, far))
        if len(changes) > SAME_CHANGE and 0 < np.max(changes[-SAME_CHANGE:]) <= 1.5 * np.min(changes[-SAME_CHANGE:]):
            break
    before, after = (_rows_at(site, site.x + t * direction, effort) for t, effort in ((low, near), (high, far)))
    return high, before, after, _other_steps(near, far)


def _largest_change(one: Effort, two: Effort) -> float:
    """The largest change of an output between two evaluations; NaN if a value is not known."""
    if one.value is None or two.value is None:
        return np.nan
    with np.errstate(all="ignore"):
        return float(np.abs(two.value - one.value).max(initial=0.0))


def _rows_at(site: Site, x: Vector, effort: Effort) -> Vector:
    """The rows at x, from the evaluation that counted its steps if that gave the value."""
    return site.read(x) if effort.value is None else site.rows_of(effort.value)


def left_by_stopping(site: Site, direction: Vector) -> tuple[float, Vector]:
    """The nearest place along a direction where the number of iterations changes, and the error of stopping early.

    The error of a row is its jump at that place. An integrator with adaptive steps has a kink there instead, because a
    new last step starts at length zero; its error is the change of slope times the distance to that place. If there is
    no such place along the direction, the error along a random direction through all inputs is used: the steps of an
    integrator may not depend on an input although its error does.

    Args:
        site: the point.
        direction: a direction; t = 1 changes x by about its own magnitude.

    Returns:
        The parameter t, infinite if there is no such place along this direction, and the error of every row, zero if
        none is known.
    """
    found = _left_along(site, direction)
    if found is not None:
        return found
    if site.known_left is None:
        elsewhere = _left_along(site, _through_all_inputs(site))
        site.known_left = np.zeros(site.row_values().size) if elsewhere is None else elsewhere[1]
    return np.inf, site.known_left


def _left_along(site: Site, direction: Vector) -> tuple[float, Vector] | None:
    stop = where_it_stops(site, direction)
    bend = _bend(site, direction, stop)
    return stop if stop is None or bend is None else (stop[0], abs(stop[0]) * bend)


def _bend(site: Site, direction: Vector, stop: tuple[float, Vector] | None) -> Vector | None:
    """The change of slope of every row where the number of iterations changes; None where values jump, and nowhere."""
    if stop is None:
        return None
    place, jump = stop
    step = np.copysign(LONG_STEPS[0], place)
    # Over a much shorter step the change of slope is the same at a kink, but not where the slope changes quickly.
    parts = (LONG_STEPS[0], LONG_STEPS[0] ** 2)
    bend = np.minimum(*(_change_of_slope(site, direction, place, part * step) for part in parts))
    # Other jumps of this height nearby would change a slope over LONG_STEPS[0] by at most height / LONG_STEPS[0].
    return np.asarray(bend) if EXPLAINED * jump.max() < LONG_STEPS[0] * bend.max() else None


def _change_of_slope(site: Site, direction: Vector, place: float, step: float) -> Vector:
    """The change of slope of every row at a place, from values up to three steps to both sides."""
    there = site.x + on_grid(place) * direction
    return np.abs(_slope_from(site, there, direction, step) - _slope_from(site, there, direction, -step))


def _slope_from(site: Site, start: Vector, direction: Vector, step: float) -> Vector:
    """The slope of every row at a place, from three values beside it on one side; the error is 11 step² f''' / 6.

    The place itself is left out: the value there belongs to one of its sides, and differs from the other by the jump.
    """
    first, second, third = (site.read(start + k * step * direction) for k in (1, 2, 3))
    near, far = (second - first) / step, (third - second) / step
    return np.asarray(near + (near - far) * 3 / 2)


def _comparable(site: Site, *values: Vector) -> bool:
    """Whether values elsewhere are finite, and at most `GROWN` times the largest value at the point."""
    here = float(np.abs(site.row_values()).max())
    return all(float(np.abs(there).max()) <= GROWN * here for there in values)


def _differs(site: Site, step: Vector, here: Effort) -> bool:
    """Whether the number of steps at x + `step` differs from that at x, and both are the same in a second run.

    A cache that is filled, or a callback, changes the counts of one run only. Outside the domain, the step is divided
    by 8 up to three times.
    """
    for x in (site.x + step / 8**k for k in range(TRIES + 1)):
        effort = effort_at(site, x)
        if effort is not None:
            return bool(_other_steps(here, effort)) and effort == effort_at(site, x) and here == effort_at(site, site.x)
    return False


def _other_steps(here: Effort | None, there: Effort | None) -> Set[Any]:
    """The lines that run at both of two points, but more often at one of them."""
    if here is None or there is None:
        return set()
    return {line for line, times in here.lines.items() if there.lines.get(line, times) != times}


def on_other_branches(site: Site, one: Vector, two: Vector) -> bool:
    """Whether forward takes different branches at two points: other lines run, those in common equally often."""
    here, there = effort_at(site, one), effort_at(site, two)
    if here is None or there is None or here == there:
        return False
    return not _other_steps(here, there) and here == effort_at(site, one)


def effort_at(site: Site, x: Vector) -> Effort | None:
    """How often each line runs at x; None if the backend does not count lines, and outside the domain."""
    with suppress(Exception):
        return site.map.effort(x)
    return None


def _through_all_inputs(site: Site) -> Vector:
    return random_direction(np.random.default_rng(0), site.scales)
