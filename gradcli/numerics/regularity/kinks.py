"""Kinks: whether slopes add up, as those of a derivative do, and which input entries lie on a kink or on a jump."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.directional import FINER, FIRST_STEP, directional_derivative
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Status
from gradcli.numerics.differences.stencil import one_sided
from gradcli.numerics.maps.floats import EPS, Mask, Vector
from gradcli.numerics.outcome import KinkNote
from gradcli.numerics.sampling.directions import Focus, halved, random_direction, within
from gradcli.numerics.sampling.line import Line, on_grid

LARGEST_COUNT = 8
"""At most this many entries are listed, or columns measured one by one."""
LARGEST_SEARCH = 160
"""The search measures at most this many directions."""
START = 2.0**-12
"""The largest of the three steps on each side is between this and twice this."""
VISIBLE = 1e-4
"""A change of slope counts as a kink if it is above this part of the slopes: the search does not see smaller ones in
its noise."""
SHARP = 1e-6
"""If three values on each side give the one-sided slopes with an error below this part of their difference, no further
steps are measured."""
STEP_KEPT = 0.9
"""If a change of value keeps this part of itself when the step is divided by four, there is a jump."""


@dataclass(frozen=True, slots=True)
class _Sides:
    """The slopes of every row to the left and to the right, the error bound of both, and which rows jump."""

    left: Vector
    right: Vector
    slack: Vector
    jumps: npt.NDArray[np.bool_]

    @property
    def gap(self) -> Vector:
        """The absolute difference of the two slopes; 0 where one is not finite."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(np.abs(self.right - self.left), nan=0.0, posinf=0.0)


def kink_notes(site: Site, places: slice) -> tuple[KinkNote, ...]:
    """Find the entries of one input block that lie on a kink or a jump.

    A group of entries is moved together; if the slope changes or the values jump, the group is divided into halves,
    down to single entries. That takes a few directions for every entry found, and at most 160 in all. At most 8 entries
    are listed, those with the lowest numbers first.
    """
    notes = (_describe(site, coordinate, sides) for coordinate, sides in _search(site, places))
    return tuple(note for note in notes if note is not None)


def _sides(site: Site, direction: Vector) -> _Sides:
    """Measure the one-sided slopes of all rows along a direction, from three values on each side of the point."""
    line = Line(site.read, site.x, direction, site.row_values())
    first = START * (1 + site.rng.random())
    steps = tuple(on_grid(first * 2.0**-k * (1 + 0.1 * site.rng.random())) for k in range(3))
    with np.errstate(all="ignore"):
        right, right_off = _slope(line, steps, 1.0)
        left, left_off = _slope(line, steps, -1.0)
        jumps = _jumps(line, steps, 1.0) | _jumps(line, steps, -1.0)
    return _Sides(left * line.scale, right * line.scale, np.fmax(left_off, right_off) * line.scale, jumps)


def _slope(line: Line, steps: Sequence[float], sign: float) -> tuple[Vector, Vector]:
    """The slope to one side, by extrapolation of three quotients, and its error bound."""
    values = [line.at(sign * t) for t in steps]
    slopes = [sign * (value - line.centre) / t for value, t in zip(values, steps, strict=True)]
    return one_sided(slopes, steps, np.maximum.reduce([np.abs(line.centre), *(np.abs(value) for value in values)]))


def _jumps(line: Line, steps: Sequence[float], sign: float) -> npt.NDArray[np.bool_]:
    """The rows whose value changes to one side by (almost) as much over the shortest step as over the longest."""
    far, near = (np.abs(line.at(sign * t) - line.centre) for t in (steps[0], steps[-1]))
    found: npt.NDArray[np.bool_] = (near >= STEP_KEPT * far) & (near > 1e3 * EPS * np.abs(line.centre))
    return found


def _search(site: Site, places: slice) -> list[tuple[int, _Sides]]:
    """The entries that lie on a kink or a jump, in order, each with what was measured along it alone."""
    measured: dict[int, _Sides] = {}

    def bent(start: int, stop: int) -> bool:
        group = slice(places.start + start, places.start + stop)
        alone = within(site.scales, group)
        sides = measured[start] = _sides(site, alone if stop - start == 1 else random_direction(site.rng, alone))
        return bool((sides.jumps | (sides.gap > VISIBLE * np.abs(sides.left + sides.right) + 100 * _noise(site))).any())

    found = halved(places.stop - places.start, bent, most=LARGEST_COUNT, tries=LARGEST_SEARCH)
    return [(places.start + number, measured[number]) for number in found]


def _noise(site: Site) -> Vector:
    """The rounding error of the rows' slopes at the shortest step of the search, which is START / 4 or longer."""
    noise: Vector = 8 * EPS * np.abs(site.row_values()) / (START / 4)
    return noise


def _describe(site: Site, coordinate: int, sides: _Sides) -> KinkNote | None:
    """The note on one entry, for the row whose slope changes most.

    The one-sided slopes of the search are used if they are accurate (`SHARP`). Otherwise they are measured with all
    steps of `directional_derivative`; None if that finds neither a kink nor a jump. A jump has no slopes (NaN).
    """
    size = float(site.scales[coordinate])
    direction = np.zeros(site.x.size)
    direction[coordinate] = size
    row = int(np.argmax(sides.gap))
    if sides.jumps.any():
        row = int(np.argmax(sides.jumps))
        left = right = float("nan")
        slack, jump = 0.0, True
    elif sides.slack[row] <= SHARP * sides.gap[row]:
        left, right, slack, jump = sides.left[row], sides.right[row], sides.slack[row], False
    else:
        estimate = directional_derivative(site.read, site.x, direction, rng=site.rng, f0=site.row_values(), start=START)
        if not estimate.broken.any():
            return None
        row = int(np.argmax(np.where(estimate.broken, np.abs(estimate.right - estimate.left), -1.0)))
        left, right, jump = estimate.left[row], estimate.right[row], estimate.status[row] == Status.JUMP
        slack = estimate.bound[row] + estimate.kink_bound[row]
    output = None if row >= site.map.codomain.size or not (site.claim.full or site.claim.watch) else row
    return KinkNote(
        coordinate=coordinate,
        left=float(left) / size,
        right=float(right) / size,
        claimed=_claimed(site, direction, row, output, coordinate),
        output=output,
        slack=float(slack) / size,
        jump=bool(jump),
    )


def _claimed(site: Site, direction: Vector, row: int, output: int | None, coordinate: int) -> float:
    """The claimed entry of one row, as a derivative (not scaled)."""
    if output is not None and site.claim.watch:
        unit = np.zeros(site.map.codomain.size)
        unit[output] = 1.0
        return float(site.map.vjp(site.x, unit)[coordinate])
    return float(site.claim.along(direction)[0][row]) / float(direction[coordinate])


def additive(site: Site, places: slice, rows: Mask, focus: Focus, slack: Vector | float = 0.0) -> bool:
    """Whether D(v) + D(w) = D(v + w) within three bounds, or within `slack`, for all the given rows.

    At a tie, a sorting function is smooth along every line through the point but has no derivative: its slopes do not
    add up. Then no claim can be called wrong. Also False if a row is not smooth in any of the three measurements.
    """
    open_ = rows.copy()
    # Rows that are not smooth along these lines are measured along others over smaller steps: a kink may be close.
    for start in (FIRST_STEP, FIRST_STEP * FINER[0], FIRST_STEP * FINER[0]):
        one, two = random_direction(site.rng, focus.drawn), random_direction(site.rng, focus.drawn)
        readings = [site.measure(v, places, focus, cheap=False, start=start) for v in (one, two, one + two)]
        first, second, both = readings
        smooth = first.smooth & second.smooth & both.smooth
        with np.errstate(all="ignore"):
            gap = np.abs(first.numeric + second.numeric - both.numeric)
            allowed = FAIL_FACTOR * (first.bound + second.bound + both.bound)
            apart = smooth & ~(gap <= np.maximum(allowed, slack))
        if (apart & open_).any():
            return False
        open_ &= ~smooth
        if not open_.any():
            return True
    return False
