"""Shows by large steps that a claim is wrong, where small steps show only rounding plateaus.

If a claim is wrong, the residual of rounded values (`claims.residual`) has the same slope over intervals of every
length, along every direction, and at nearby points. If the claim is right, the residual is noise, and its slope is not
significant; for a function with jumps of its own, it is not significant at some length at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.residual import REACHES, Stretch, residuals
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.persistence import EXCUSED
from gradcli.numerics.confirm.wide_steps import JUMPING, LEVELS, UNFINISHED, meets_between_jumps, steepest
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.localise.evidence import wide_columns
from gradcli.numerics.maps.floats import Indices, Mask, Matrix, Vector
from gradcli.numerics.maps.sizes import ROUNDING
from gradcli.numerics.outcome import Pair, Table
from gradcli.numerics.regularity.iteration import LOOSE, iterates, left_by_stopping
from gradcli.numerics.regularity.quantisation import has_plateaus, is_gradient_over_plateaus
from gradcli.numerics.regularity.stored_format import floating_format, significance_of
from gradcli.numerics.sampling.directions import ASIDE, TRIES, Focus, focuses, moved, random_direction
from gradcli.numerics.sampling.line import Line

MANY = 8
"""A row must take at least this many different values along a line; a few may be a step function of its own."""
CONSTANTS = 4.0
"""How many constants inside a formula computed in few digits may each be rounded to those digits. The slope of a right
formula may then be wrong by this many relative rounding errors."""
MOVED_BY = 2.0**-4
"""The claim must be wrong at a point moved by this part of the scale as well."""
CLEAR_LEVELS = 2
"""At this many lengths of interval at least, the slope of the residual must exceed three times its uncertainty. All
other lengths that can show it must show the same slope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A claim that large steps show to be wrong along several directions.

    Attributes:
        error: the error of the claimed slope, along the direction where it is largest compared with its bound, relative
            to the pair's largest scaled entry.
        bound: the error bound of `error`, in the same unit.
        noise: the distance of the values from a smooth curve, relative to the values.
        reach: the length of step with the smallest bound.
        table: the columns measured one by one over large steps, if that took place.
    """

    error: float
    bound: float
    noise: float
    reach: float
    table: Table | None

    @property
    def note(self) -> str:
        """How the error was found, in one sentence."""
        return (
            f"forward's values jump by about {self.noise:.0e} of their magnitude (from rounding, or an iteration "
            f"that stops early); finite differences with steps of up to {self.reach:.1g} of the input's magnitude "
            "average out the jumps and show the error"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Off:
    """A row that is wrong along one direction.

    Attributes:
        row: the number of the claimed row.
        slope: the slope of its residual.
        width: the uncertainty of the slope, including that of constants of few digits (`CONSTANTS`).
        noise: the distance of the values from a smooth curve, relative to the values.
        level: the residual on the interval where the uncertainty is smallest.
    """

    row: int
    slope: float
    width: float
    noise: float
    level: Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A pair, and what is known of it beforehand.

    Attributes:
        pair: the numbers of the input block and the output block.
        free: whether entries claimed to be zero can be shown to be wrong too.
        floor: errors below this part of the pair's largest entry do not matter.
        iterating: whether forward iterates, so that stopping early may explain errors.
    """

    pair: Pair
    free: bool
    floor: float
    iterating: bool


def disagreement(site: Site, pair: Pair, significance: float) -> Wrong | None:
    """Show over large steps that the claim for a pair is wrong.

    Forward's values must consist of rounding plateaus with jumps of similar size; or forward must iterate, or jump from
    one smooth curve to another, and the error be larger than stopping early explains. The same row must be wrong along
    three directions, the last one at a nearby point: at two lengths of interval or more, and at all others that can
    show it.

    Args:
        significance: errors below this part of the pair's largest entry do not matter. If forward iterates, errors
            below 1e-3 do not either: a new last step may start at length zero, so that no jump shows how large the
            errors of stopping early are.

    Returns:
        None if the claim may be right. Also None if the residual cannot be measured, and for entries claimed to be zero
        unless forward iterates, the values are floating-point numbers of few digits, or the map is of order 2 and its
        values are gradients of other values with plateaus: values on a fixed grid are a staircase, whose derivative may
        be meant to be zero.
    """
    rows = site.claim.block == pair[1]
    if not site.claim.finite or not rows.any() or not np.isfinite(site.outputs).all():
        return None
    iterating, jumping = iterates(site), False
    if not iterating and not has_plateaus(site, pair):
        iterating = jumping = _jumps_between_curves(site, pair, rows)
        if not jumping:
            return None
    floor = significance_of(site, significance)
    if iterating:
        floor = max(floor, LOOSE)
    free = iterating or floating_format(site, pair[1]) is not None or is_gradient_over_plateaus(site, pair)
    case = _Case(pair=pair, free=free, floor=floor, iterating=iterating)
    for tried, table in _where(site, case):
        first = _worst(site, case, steepest(site, rows, tried), tried, None)
        if first is None or (jumping and _is_right_between_jumps(site, first, tried)):
            continue
        focus = tried if case.free else _claimed_only(site, tried, first.row)
        # Another direction with the signs of the first, so that the errors of several entries add up again.
        likewise = np.copysign(random_direction(site.rng, focus.drawn), first.level.line.v)
        again = _worst(site, case, likewise, focus, first.row)
        if again is not None and _close_by(site, case, focus, first.row):
            return _summary(site, pair, focus, max(first, again, key=lambda off: abs(off.slope) / off.width), table)
    return None


def _jumps_between_curves(site: Site, pair: Pair, rows: Mask) -> bool:
    """Whether the roughest row jumps from one smooth curve to another, as an iteration of a fixed number of steps does.

    What is left of the residual after the fit shows the jumps, whether the claim is right or wrong.
    """
    direction = steepest(site, rows, focuses(site.scales, site.map.domain.slices[pair[0]])[0])
    level = next(_levels(site, direction, np.flatnonzero(rows).tolist()), None)
    if level is None:
        return False
    excess = np.where(rows, level.noise - ROUNDING * level.sizes, 0.0)
    return bool(excess.max() > 0) and level.jumps([int(excess.argmax())], JUMPING)


def _is_right_between_jumps(site: Site, first: _Off, focus: Focus) -> bool:
    """Whether the row has the claimed slope between its jumps: that slope may be the one that is meant."""
    row = np.arange(len(site.claim.forms)) == first.row
    scale = float((np.abs(site.claim.forms[first.row]) * focus.judged).max())
    return scale > 0 and meets_between_jumps(site, first.level.line.v, row, scale)


def _close_by(site: Site, case: _Case, focus: Focus, row: int) -> bool:
    """Whether the row is wrong at a nearby point as well, along one of three random directions.

    Several are tried because errors of several entries may cancel along one.
    """
    there = site.moved_to(moved(site.rng, site.x, site.scales, MOVED_BY))
    if there is None or not there.claim.finite or not np.isfinite(there.outputs).all():
        return False
    close = focus.at(there.scales)
    only = row if site.claim.full else None
    directions = (random_direction(site.rng, close.drawn) for _ in range(TRIES))
    return any(_worst(there, case, direction, close, only) is not None for direction in directions)


def _where(site: Site, case: _Case) -> Iterator[tuple[Focus, Table | None]]:
    """Which entries to move: all of the block; each group of similar scale; those that look wrong when moved alone.

    With the last ones comes the table that shows them.
    """
    place = site.map.domain.slices[case.pair[0]]
    yield from ((focus, None) for focus in focuses(site.scales, place))
    table = wide_columns(site, *case.pair)
    suspects = np.zeros(place.stop - place.start, bool) if table is None else _suspects(site, case, table)
    if suspects.any():
        drawn = np.zeros(site.x.size)
        drawn[place] = np.where(suspects, site.scales[place], 0.0)
        yield Focus(drawn=drawn, judged=site.scales), table


def _suspects(site: Site, case: _Case, table: Table) -> Mask:
    """The columns of the block that are wrong by more than three bounds in some row when each is moved alone."""
    place = site.map.domain.slices[case.pair[0]]
    suspects = np.zeros(place.stop - place.start, bool)
    off = np.abs(table.claimed - table.numeric) > FAIL_FACTOR * table.bound
    suspects[table.columns] = (off & (case.free | (table.claimed != 0))).any(axis=0)
    return suspects


def _claimed_only(site: Site, focus: Focus, row: int) -> Focus:
    """The entries of a focus that a row claims to be nonzero; all entries if the row does not change along those."""
    only = replace(focus, drawn=np.where(site.claim.forms[row] != 0, focus.drawn, 0.0))
    direction = random_direction(site.rng, only.drawn)
    line = Line(site.read, site.x, direction, site.row_values())
    number = line.outputs - len(site.claim.forms) + row
    still = all(line.at(t)[number] == line.centre[number] for t in ASIDE)
    return focus if still else only


def _worst(site: Site, case: _Case, direction: Vector, focus: Focus, only: int | None) -> _Off | None:
    """The row with the largest error along a direction, in units of its bound; None if none exceeds three bounds.

    The error must exceed three bounds at `CLEAR_LEVELS` lengths of interval, and no other length that can show it may
    contradict. A length at which the row takes fewer than `MANY` different values cannot show it.

    Args:
        only: the row to look at; None for all.
    """
    rows = np.flatnonzero(site.claim.block == case.pair[1]) if only is None else np.array([only])
    if not case.free:
        rows = rows[(site.claim.forms[rows][:, focus.drawn != 0] != 0).any(axis=1)]
    if not rows.size:
        return None
    levels = list(_levels(site, direction, rows.tolist()))
    if len(levels) < LEVELS:
        return None
    slopes = np.array([level.slope[rows] for level in levels])
    widths = np.array([np.where(level.different() < MANY, np.inf, level.width)[rows] for level in levels])
    if case.iterating:
        widths = np.maximum(widths, _left_by_stopping(site, direction, levels, rows))
    best = widths.argmin(axis=0)
    scale = site.claim.entry_scale(site.map.domain.slices[case.pair[0]], case.pair[1], focus.judged)
    found: list[_Off] = []
    for k, row in enumerate(rows.tolist()):
        level, slope, width = levels[best[k]], float(slopes[best[k], k]), float(widths[best[k], k])
        if not 0 < width < np.inf:
            continue
        ratios = np.abs(slope) / widths[:, k]
        apart = np.abs(slopes[:, k] - slope) > widths[:, k] + width
        tells = np.isfinite(widths[:, k]) if case.iterating else ratios > 1
        if np.count_nonzero(ratios > FAIL_FACTOR) < CLEAR_LEVELS or apart[tells].any():
            continue
        noise = float(level.noise[row]) / (float(level.sizes[row]) or 1.0)
        width += CONSTANTS * noise * float(np.abs(site.claim.forms[row]) @ np.abs(direction))
        if abs(slope) <= case.floor * scale:
            continue
        if abs(slope) > FAIL_FACTOR * width:
            found.append(_Off(row=row, slope=slope, width=width, noise=noise, level=level))
    return max(found, key=lambda off: abs(off.slope) / off.width, default=None)


def _left_by_stopping(site: Site, direction: Vector, levels: Sequence[Stretch], rows: Indices) -> Matrix:
    """How wrong the slope of every row may be, over each length of interval, because an iteration stops early.

    Let N be the error that stopping early leaves in a value: the jump where the number of iterations changes, or the
    largest distance from a smooth curve over this or a shorter interval (over a longer one, that may be curvature of
    the function). Over [-T, T] the slope is then wrong by UNFINISHED · N / T. Between two such places the error may be
    a smooth function of x, as for Newton's method, where it is the square of the error of the step before; its
    derivative is of the order of √N, so that the slope may also be wrong by EXCUSED · √(N · value). Infinity if N is
    not above rounding, because the error of stopping early is then unknown.
    """
    claimed = slice(-len(site.claim.forms), None)
    stopping = float(left_by_stopping(site, direction)[1][claimed][rows].max())
    size = np.abs(site.row_values()[claimed][rows])
    left, widths = stopping, []
    for level in reversed(levels):  # the shortest first
        left = max(left, float(level.noise[rows].max()))
        known = left > ROUNDING * float(size.max())
        smooth = EXCUSED * np.sqrt(left * np.maximum(size, left))
        widths.append(np.maximum(UNFINISHED * left / level.reach, smooth) if known else np.full(rows.size, np.inf))
    return np.array(widths[::-1])


def _levels(site: Site, direction: Vector, rows: Sequence[int]) -> Iterator[Stretch]:
    """The residual of some rows at every length of interval, the longest first.

    The short ones are needed as well: only they show that a sawtooth has a slope of its own.
    """
    asked = np.zeros(len(site.claim.forms), bool)
    asked[list(rows)] = True
    return residuals(site, direction, REACHES, asked)


def _summary(site: Site, pair: Pair, focus: Focus, off: _Off, table: Table | None) -> Wrong:
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], focus.judged)
    along = abs(float(site.claim.forms[off.row] @ off.level.line.v) + off.slope)
    scale = max(scale, along / max(1.0, np.count_nonzero(focus.drawn) ** 0.5))
    return Wrong(
        error=abs(off.slope) / scale, bound=off.width / scale, noise=off.noise, reach=off.level.reach, table=table
    )
