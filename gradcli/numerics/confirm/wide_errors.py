"""Claims that are wrong by more than wide steps leave uncertain, where fine steps see only rounding plateaus.

What a wrong claim leaves of rounded values (`remainder`) has one slope at every length of step, along every direction
and close by; where the claim is right, that is noise, and so is it at some length at least where the function jumps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.residual import ROUNDING, Stretch, stretch
from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.persistence import EXCUSED
from gradcli.numerics.confirm.wide_steps import LEVELS, REACHES, UNFINISHED, steepest
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.localise.evidence import wide_columns
from gradcli.numerics.maps.floats import EPS, Indices, Mask, Matrix
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import Pair
from gradcli.numerics.regularity.formats import floating_format, significance_of
from gradcli.numerics.regularity.iteration import LOOSE, iterates, left_by_stopping
from gradcli.numerics.regularity.quantisation import MANY, has_plateaus, made_of_plateaus
from gradcli.numerics.sampling.directions import TRIES, Focus, focuses, moved, random_direction
from gradcli.numerics.sampling.line import Line, on_grid

CONSTANTS = 4.0
"""A formula in few digits may use constants that are each wrong by one rounding: its slope may be wrong by so many
roundings."""
ASIDE = 2.0**-4
"""The claim must be wrong at a point moved by this part of the scale as well."""
FAR = (0.8, 0.3, -0.3, -0.8)
CLEAR_LEVELS = 2
"""So many lengths of step must show the error by more than three times its uncertainty; every other length that can
show it must give the same slope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A claim that wide steps contradict along several directions.

    `error` and `bound` are slopes along the one that shows it best, relative to the block's largest scaled entry;
    `noise` is how far values depart from a smooth curve, relative to themselves, and `reach` the step that is surest.
    """

    error: float
    bound: float
    noise: float
    reach: float

    @property
    def note(self) -> str:
        """What showed it, in one sentence."""
        return (
            f"forward's values jump by about {self.noise:.0e} of their magnitude (from rounding, or an iteration "
            f"that stops early); finite differences with steps of up to {self.reach:.1g} of the input's magnitude "
            "average out the jumps and show the error"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Off:
    """One row along one direction: the slope of what the claim leaves, how uncertain it is, and over which stretch.

    `widths` is the uncertainty together with what constants of few digits may do.
    """

    row: int
    slope: float
    width: float
    noise: float
    level: Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A pair, and which of its rows may be held against the claim: `free` says that claims of zero may too.

    `iterating` says that the roughness of the values may be what an iteration leaves when it stops.
    """

    pair: Pair
    free: bool
    floor: float
    iterating: bool


def disagreement(site: Site, pair: Pair, significance: float) -> Wrong | None:
    """Whether the claim for a pair is wrong by more than wide steps leave uncertain.

    Forward's values must be made of plateaus with like jumps, or forward must iterate, and the error be larger than
    what stopping early explains. Three directions, the last at a point close by, must show the same row wrong, each at
    two lengths of step and at every other that can tell.

    Args:
        site: the point, without a witness.
        pair: the numbers of the input block and the output block.
        significance: errors below this part of the block's largest entry do not matter; nor do those below a
            thousandth where forward iterates, whose last step may come in from zero without a jump.

    Returns:
        None where the claim may be right: also if it cannot be followed, and for entries
        claimed to be zero of values that are in no format of few digits (a grid is a staircase that may be meant).
    """
    rows = site.claim.block == pair[1]
    if not site.claim.finite or not rows.any() or not np.isfinite(site.outputs).all():
        return None
    iterating = iterates(site)
    if not iterating and not has_plateaus(site, pair):
        return None
    floor = significance_of(site, significance)
    if iterating:
        floor = max(floor, LOOSE)
    free = iterating or floating_format(site, pair[1]) is not None
    case = _Case(pair=pair, free=free, floor=floor, iterating=iterating)
    for tried in _where(site, case):
        first = _first(site, case, tried)
        if first is None:
            continue
        focus = tried if case.free else _claimed_only(site, tried, first.row)
        again = _worst(site, case, _likewise(site, first, focus), focus, first.row)
        if again is not None and _close_by(site, case, focus, first.row):
            return _summary(site, pair, focus, max(first, again, key=lambda off: abs(off.slope) / off.width))
    return None


def _likewise(site: Site, first: _Off, focus: Focus) -> Vector:
    """Another direction in which what the first one showed does not cancel: of the same signs."""
    return np.copysign(np.abs(random_direction(site.rng, focus.drawn)), first.level.line.v)


def _close_by(site: Site, case: _Case, focus: Focus, row: int) -> bool:
    """Whether the row is wrong at a nearby point along one of some random directions, along which errors may cancel."""
    there = site.moved_to(moved(site.rng, site.x, site.scales, ASIDE))
    if there is None or not there.claim.finite or not np.isfinite(there.outputs).all():
        return False
    close = focus.at(there.scales)
    only = row if site.claim.full else None
    directions = (random_direction(site.rng, close.drawn) for _ in range(TRIES))
    return any(_worst(there, case, direction, close, only) is not None for direction in directions)


def _where(site: Site, case: _Case) -> Iterator[Focus]:
    """All entries of the block, each group of scales, and the entries that look wrong when each is moved alone."""
    place = site.map.domain.slices[case.pair[0]]
    yield from focuses(site.scales, place)
    suspects = _suspects(site, case)
    if suspects.any():
        drawn = np.zeros(site.x.size)
        drawn[place] = np.where(suspects, site.scales[place], 0.0)
        yield Focus(drawn=drawn, judged=site.scales)


def _suspects(site: Site, case: _Case) -> Mask:
    """Columns of the block with an entry that is off by more than three bounds, when each is moved alone."""
    table = wide_columns(site, *case.pair)
    place = site.map.domain.slices[case.pair[0]]
    suspects = np.zeros(place.stop - place.start, bool)
    if table is None:
        return suspects
    off = np.abs(table.claimed - table.numeric) > FAIL_FACTOR * table.bound
    suspects[table.columns] = (off & (case.free | (table.claimed != 0))).any(axis=0)
    return suspects


def _first(site: Site, case: _Case, focus: Focus) -> _Off | None:
    """The worst row along the direction in which the claim adds up, if its values are made of plateaus."""
    direction = steepest(site, site.claim.block == case.pair[1], focus)
    found = _worst(site, case, direction, focus, None)
    if found is None or case.iterating:
        return found
    return found if made_of_plateaus(site, found.level, found.row) else None


def _claimed_only(site: Site, focus: Focus, row: int) -> Focus:
    """The entries of a focus for which a row claims more than zero; all if the row does not depend on those at all."""
    only = replace(focus, drawn=np.where(site.claim.forms[row] != 0, focus.drawn, 0.0))
    direction = random_direction(site.rng, only.drawn)
    line = Line(site.read, site.x, direction, site.row_values())
    number = line.outputs - len(site.claim.forms) + row
    still = all(line.at(on_grid(t))[number] == line.centre[number] for t in FAR)
    return focus if still else only


def _worst(site: Site, case: _Case, direction: Vector, focus: Focus, only: int | None) -> _Off | None:
    """The row that is off by most bounds along a direction, over three bounds at all lengths of step that can tell."""
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
        told = np.abs(slope) / widths[:, k]
        apart = np.abs(slopes[:, k] - slope) > widths[:, k] + width
        tells = np.isfinite(widths[:, k]) if case.iterating else told > 1
        if np.count_nonzero(told > FAIL_FACTOR) < CLEAR_LEVELS or apart[tells].any():
            continue
        noise = float(level.noise[row]) / (level.size(row) or 1.0)
        width += CONSTANTS * noise * float(np.abs(site.claim.forms[row]) @ np.abs(direction))
        if abs(slope) <= case.floor * scale:
            continue
        if abs(slope) > FAIL_FACTOR * width:
            found.append(_Off(row=row, slope=slope, width=width, noise=noise, level=level))
    return max(found, key=lambda off: abs(off.slope) / off.width, default=None)


def _left_by_stopping(site: Site, direction: Vector, levels: Sequence[Stretch], rows: Indices) -> Matrix:
    """How far the slope of every row may be off over each length because an iteration stops early.

    Stopping leaves N of a value: what shows where the number of steps changes, or the largest departure from a smooth
    curve over that length or a shorter one (over a longer one it may be the function's curvature). Over a length T that
    is a slope of a few N / T, and if it goes on smoothly between such places (as what Newton's method leaves does,
    which is the square of what the step before left) one of a few times the root of N. Infinite where N is not above
    rounding: nothing is known of what stopping leaves.
    """
    claimed = slice(-len(site.claim.forms), None)
    stopping = float(left_by_stopping(site, direction)[1][claimed][rows].max())
    size = np.abs(site.row_values()[claimed][rows])
    left, widths = stopping, []
    for level in reversed(levels):  # the shortest first
        left = max(left, float(level.noise[rows].max()))
        known = left > ROUNDING * EPS * float(size.max())
        smooth = EXCUSED * np.sqrt(left * np.maximum(size, left))
        widths.append(np.maximum(UNFINISHED * left / level.reach, smooth) if known else np.full(rows.size, np.inf))
    return np.array(widths[::-1])


def _levels(site: Site, direction: Vector, rows: Sequence[int]) -> Iterator[Stretch]:
    """Every length of step on which the claim on some rows can be followed: a sawtooth shows itself at the shortest."""
    asked = np.zeros(len(site.claim.forms), bool)
    asked[list(rows)] = True
    longer: Stretch | None = None
    for reach in REACHES:
        level = stretch(site, direction, reach, asked, longer=longer)
        if level is not None:
            longer = level
            yield level


def _summary(site: Site, pair: Pair, focus: Focus, off: _Off) -> Wrong:
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], focus.judged)
    along = abs(float(site.claim.forms[off.row] @ off.level.line.v) + off.slope)
    scale = max(scale, along / max(1.0, np.count_nonzero(focus.drawn) ** 0.5))
    return Wrong(error=abs(off.slope) / scale, bound=off.width / scale, noise=off.noise, reach=off.level.reach)
