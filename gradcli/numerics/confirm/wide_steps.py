"""A verdict at the resolution that can be had, where values are too rough for any fine step.

Differences over steps as long as x itself see through rounding plateaus and early stops, if the claim is taken along:
what it leaves of the function's values (`remainder`) is noise where it is right, at every length of step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.residual import ROUGHNESS, ROUNDING, Stretch, stretch
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.formats import Format
from gradcli.numerics.maps.floats import EPS, Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import Pair
from gradcli.numerics.reference.gap import compare
from gradcli.numerics.regularity.formats import format_at
from gradcli.numerics.regularity.iteration import LOOSE, iterates, where_it_stops
from gradcli.numerics.sampling.directions import Focus, focuses, random_direction
from gradcli.numerics.sampling.line import GRID, Line, on_grid
from gradcli.numerics.wording import of_largest

REACHES = tuple(0.8 * 2.0**-k for k in range(12))
LEVELS = 3
"""Lengths of step that must agree: the longest one on which the claim can be followed, and two below."""
UNFINISHED = 5.0
"""If forward iterates, a slope is uncertain by so many times the noise, since the errors of stopping early all have one
sign."""
CLOSE_BY = 10 * LOOSE
LONGEST_FINE = 2.0**-10
ALIKE = 1e-2
"""Slopes at three steps, each about a quarter of the next, count as equal if they differ by less than this part."""
JUMPING = 0.02
"""Noise consists of jumps if there is a jump of at least this part of the noise."""
ROUNDINGS = 4.0
"""Noise below so many units of the format that holds the values is rounding: a formula rounds a few times."""
ROWS_TRIED = 4
FEW_ROWS = 8
"""If there are more rows, one is tried first, to see whether the claim can agree at all."""
COARSEST = 0.1
"""A claim agrees only at this resolution or a finer one, unless the format of the values allows no finer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """An agreement over wide steps, relative to the block's largest scaled entry.

    `error` is the slope of what the claim leaves, `resolution` the least error that would have shown, `noise` how far
    values depart from a smooth curve, relative to themselves, and `reach` the longest step.
    """

    error: float
    resolution: float
    noise: float
    reach: float

    @property
    def note(self) -> str:
        """Why the resolution is coarse, in one sentence."""
        jumps = (
            f"forward's values jump by about {self.noise:.0e} of their magnitude (from rounding, or an iteration "
            "that stops early)"
        )
        cause = "the outputs change little relative to their magnitude" if self.exact else jumps
        return f"accepted, but {cause}, so an error below {of_largest(self.resolution)} would not have been caught"

    @property
    def exact(self) -> bool:
        """Whether the values are as smooth as float64 allows."""
        return self.noise <= ROUNDING * EPS


def overruled(site: Site, pair: Pair, wide: Wide, significance: float) -> bool:
    """Whether a witness stands against an agreement: it parts from the claim by less than wide steps resolve.

    A witness that goes through few digits or an early stop itself, as forward then does, parts for no other reason.
    """
    if site.witness_rows is None or not wide.exact:
        return False
    return significance < compare(site, *pair).error <= wide.resolution


def agreement(site: Site, pair: Pair, gap: float, *, sloped: bool = False) -> Wide | None:
    """Whether the claim for a pair holds over wide steps, and at which resolution.

    Two directions, in the first of which the claimed entries add up, must agree at three lengths of step. Entries of
    far smaller scales are moved alone as well: what is not lost in the noise of the values there must not contradict.

    Args:
        site: the point, without a witness.
        pair: the numbers of the input block and the output block.
        gap: how far the claim seemed to be off over fine steps, relative to the largest entry. Where that is little
            the resolution is no finer than twice as much.
        sloped: do not mind if the values rise between their jumps by themselves.

    Returns:
        None where the claim does not hold, cannot be followed, is zero, or could be wrong by more than a tenth; also
        where what it leaves is not seen to be made of jumps: fine structure of the function is not noise.
    """
    rows = site.claim.block == pair[1]
    if not site.claim.finite or not rows.any() or not np.isfinite(site.outputs).all():
        return None
    stored = format_at(site, pair[1])
    limit = COARSEST if stored is None else max(COARSEST, stored.resolution)
    case = _Case(limit=limit, stored=stored, gap=gap, iterating=iterates(site), sloped=sloped)
    whole, *groups = focuses(site.scales, site.map.domain.slices[pair[0]])
    first = _along(site, pair, whole, case, steepest(site, rows, whole), REACHES)
    if first is None:
        return None
    reaches = [reach for reach in REACHES if reach <= first.reach]
    second = _along(site, pair, whole, case, random_direction(site.rng, whole.drawn), reaches)
    if second is None or any(_contradicts(site, pair, group, case, first.noise) for group in groups):
        return None
    coarsest = max(first, second, key=lambda wide: wide.resolution)
    return replace(coarsest, resolution=max(coarsest.resolution, 2 * gap)) if gap < LOOSE else coarsest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What is known of a pair beforehand: the widest resolution allowed, the gap over fine steps, and the manner.

    `stored` is the format of few digits that holds the values, if one does; `sloped` says that values
    which rise between their jumps do not matter.
    """

    limit: float
    stored: Format | None
    gap: float
    iterating: bool
    sloped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """An iteration's stopping rule along a line: the nearest place where the number of steps changes, and the jump."""

    place: float
    jump: float


def steepest(site: Site, rows: Mask, focus: Focus) -> Vector:
    """A direction along which the claimed entries of one row, that with the largest of them, add up."""
    forms = site.claim.forms[rows]
    row = forms[int(np.argmax((np.abs(forms) * focus.judged).max(axis=1)))]
    return np.where(row < 0, -1.0, 1.0) * np.abs(random_direction(site.rng, focus.drawn))


def _along(
    site: Site, pair: Pair, focus: Focus, case: _Case, direction: Vector, reaches: Sequence[float]
) -> Wide | None:
    """The result of a direction through some entries, at the longest steps that give enough information."""
    rows = site.claim.block == pair[1]
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], focus.judged)
    if not scale > 0:
        return None
    stop = _stop(site, direction, rows) if case.iterating else None
    if stop is None and not case.sloped and _sloped(site, direction, rows, scale):
        return None
    known: dict[float, Stretch] = {}
    if np.count_nonzero(rows) > FEW_ROWS and not _may_agree(site, case, direction, reaches, rows, stop, scale, known):
        return None
    best: Wide | None = None
    for levels in _windows(site, direction, reaches, rows, known):
        off, wide = _weigh(site, levels, rows, stop, scale)
        agrees = off <= 1 and wide.resolution <= (case.limit if best is None else best.resolution)
        if (agrees or off > FAIL_FACTOR) and _is_noise(site, levels, rows, stop, case):
            if not agrees:
                return None
            if best is None:
                best = wide
                continue
            return wide
        if best is not None:
            break
    return best


def _may_agree(
    site: Site,
    case: _Case,
    direction: Vector,
    reaches: Sequence[float],
    rows: Mask,
    stop: _Stop | None,
    scale: float,
    known: dict[float, Stretch],
) -> bool:
    """Whether the claim on the row with the largest slope holds over some lengths of step; a gradient a place tells."""
    slopes = np.where(rows, np.abs(site.claim.forms @ direction), -1.0)
    steep = np.arange(rows.size) == int(slopes.argmax())
    weighed = (_weigh(site, levels, steep, stop, scale) for levels in _windows(site, direction, reaches, steep, known))
    return any(off <= 1 and wide.resolution <= case.limit for off, wide in weighed)


def _contradicts(site: Site, pair: Pair, focus: Focus, case: _Case, noise: float) -> bool:
    """Whether the claim is clearly off in entries of small scales, beside the noise that the values have elsewhere.

    Where so few entries hardly move the values, these stay on one plateau and show no noise of their own.
    """
    rows = site.claim.block == pair[1]
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], focus.judged)
    if not scale > 0:
        return False
    direction = random_direction(site.rng, focus.drawn)
    stop = _stop(site, direction, rows) if case.iterating else None
    weighed = (
        _weigh(site, levels, rows, stop, scale, noise) for levels in _windows(site, direction, REACHES, rows, {})
    )
    off, _ = next(weighed, (0.0, None))
    return off > FAIL_FACTOR


def _windows(
    site: Site, direction: Vector, reaches: Sequence[float], rows: Mask, known: dict[float, Stretch]
) -> Iterator[list[Stretch]]:
    """Every three adjacent lengths of step at which the claim on some rows can be followed, longest first.

    Values at the lengths that are `known`, for other rows, are used again; what is measured is added there.
    """
    levels: list[Stretch] = []
    for reach in reaches:
        longer, again = levels[-1] if levels else None, known.get(reach)
        level = stretch(site, direction, reach, rows, longer=longer, again=again)
        if level is not None:
            known[reach] = level
            levels = [*levels, level][-LEVELS:]
            if len(levels) == LEVELS:
                yield levels


def _sloped(site: Site, direction: Vector, rows: Mask, scale: float) -> bool:
    """Whether some row, at the point or very close to it, has a clear slope that is not the claimed one.

    Rounded values are constant on plateaus; a function that rises between its jumps has a derivative, whatever it does
    over longer steps. Three of the finest steps that rounding allows must show it. They are jittered: a slope that a
    few jumps make would repeat over steps in whole ratios.
    """
    line = Line(site.read, site.x, direction, site.row_values())
    chosen = slice(line.outputs - rows.size, line.outputs)
    claimed, size = (site.claim.forms @ direction)[rows], np.abs(site.row_values()[chosen])[rows]
    shortest = 4 * EPS * float(size.max()) / (ALIKE * LOOSE * scale)
    for allowed, centre in ((LOOSE, 0.0), *((CLOSE_BY, site.rng.uniform(-1, 1) * 2.0**-9) for _ in range(2))):
        steps = [on_grid(shortest * times * (1 + 0.4 * site.rng.random())) for times in (1, 4, 16)]
        if not 64 * GRID < steps[0] < steps[-1] < LONGEST_FINE:
            return False
        with np.errstate(all="ignore"):
            one, two, three = (
                ((line.at(on_grid(centre + t)) - line.at(on_grid(centre - t))) * line.scale)[chosen][rows] / (2 * t)
                for t in steps
            )
            alike = (np.abs(two - one) <= ALIKE * np.abs(one)) & (np.abs(three - one) <= ALIKE * np.abs(one))
            if (alike & (one != 0) & (np.abs(one - claimed) > allowed * scale)).any():
                return True
    return False


def _stop(site: Site, direction: Vector, rows: Mask) -> _Stop:
    """Where an iteration's number of steps changes, and the largest jump there: its rows share one stopping rule."""
    found = where_it_stops(site, direction)
    if found is None:
        return _Stop(place=np.inf, jump=0.0)
    return _Stop(place=abs(found[0]), jump=float(found[1][-rows.size :][rows].max()))


def _is_noise(site: Site, levels: list[Stretch], rows: Mask, stop: _Stop | None, case: _Case) -> bool:
    """Whether the roughest rows' departures are rounding or hold jumps, and so are no fine structure of the function.

    Some roundings of a format that holds all the values are rounding, whatever else could be hidden in them.
    An iteration of varying steps may be rough without a jump, if its last step comes in from zero: where the number of
    steps changes on the way that roughness explains a small gap.
    """
    size = np.abs(site.row_values()[-rows.size :])
    coarsest = max(levels, key=lambda level: float(level.noise[rows].max()))
    rounding = ROUNDING * EPS * size
    if case.stored is not None:
        rounding = np.maximum(rounding, ROUNDINGS * case.stored.roundoff * coarsest.sizes)
    noise = np.where(rows & (coarsest.noise > rounding), coarsest.noise, 0.0)
    if stop is not None and (stop.jump >= JUMPING * noise.max() or (case.gap < LOOSE and stop.place <= coarsest.reach)):
        return True
    roughest = [row for row in np.argsort(-noise)[:ROWS_TRIED].tolist() if noise[row] > 0.1 * noise.max()]
    return all(coarsest.jumps(row, JUMPING) for row in roughest)


def _weigh(
    site: Site, levels: list[Stretch], rows: Mask, stop: _Stop | None, scale: float, least: float = 0.0
) -> tuple[float, Wide]:
    """How many tolerances the claim is off at worst, over all levels, and what the finest level resolves.

    The values have at least the noise `least`, relative to the largest.
    """
    size = float(np.abs(site.row_values()[-rows.size :][rows]).max())
    noise = np.maximum(np.maximum.reduce([level.noise for level in levels])[rows], least * size)
    if stop is not None:
        noise = np.full(noise.size, max(stop.jump, float(noise.max())))
    roughness = ROUGHNESS if stop is None else UNFINISHED
    tolerances = [np.maximum(level.uncertainty[rows], roughness * noise / level.reach) for level in levels]
    errors = [np.abs(level.slope[rows]) for level in levels]
    off = max(_largest_ratio(error, tolerance) for error, tolerance in zip(errors, tolerances, strict=True))
    finest = min(range(len(levels)), key=lambda k: float(tolerances[k].max()))
    return off, Wide(
        error=float(errors[finest].max()) / scale,
        resolution=2 * FAIL_FACTOR * float(tolerances[finest].max()) / scale,
        noise=float(noise.max()) / size if size > 0 else 0.0,
        reach=levels[0].reach,
    )


def _largest_ratio(errors: Vector, tolerances: Vector) -> float:
    """The largest error in units of its tolerance; a row that is exactly zero everywhere has no error."""
    with np.errstate(all="ignore"):
        return float(np.where(errors == 0, 0.0, errors / tolerances).max())
