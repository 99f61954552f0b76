"""Shows by large steps that a claim agrees, at a coarse resolution, where the values are too rough for small steps.

Over steps as long as x itself, rounding plateaus and early stops matter little. The truncation error, which would be
large, is avoided by subtracting the integral of the claim: the residual (`claims.residual`) of a right claim is noise,
at every length of step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.residual import REACHES, ROUGHNESS, Stretch, residuals
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.formats import Format
from gradcli.numerics.maps.floats import EPS, Mask, Vector
from gradcli.numerics.maps.sizes import ROUNDING
from gradcli.numerics.outcome import Pair
from gradcli.numerics.regularity.iteration import (
    EXPLAINED,
    LOOSE,
    SHORT_STEP,
    errors_elsewhere,
    iterates,
    left_by_stopping,
    where_it_stops,
)
from gradcli.numerics.regularity.stored_format import format_at
from gradcli.numerics.sampling.directions import TRIES, Focus, focuses, random_direction
from gradcli.numerics.sampling.line import GRID, Line, on_grid
from gradcli.numerics.wording import of_largest

LEVELS = 3
"""At this many lengths the claim must agree: the longest at which the residual can be measured, its half and
quarter."""
UNFINISHED = 5.0
"""If forward iterates, the slope over [-T, T] is uncertain by 5 N / T instead of ROUGHNESS · N / T: errors of stopping
early have one sign over long distances, so that they do not average out as rounding does."""
ALLOWED_NEARBY = 10 * LOOSE
"""A slope measured up to 2^-9 away from x differs from the claim at x if it is off by this part of the largest entry.
It is ten times what is required at x, because the slope itself may change by some thousandths over that distance."""
LONGEST_FINE = 2.0**-10
"""A slope between jumps is looked for with steps below this; longer ones may cross several jumps."""
ALIKE = 1e-2
"""Slopes over three steps, each about four times the one before, count as equal if they differ by less than this
part."""
JUMPING = 0.02
"""Noise is taken to come from jumps if some jump is at least this part of it. A smooth curve, halved 30 times, leaves
less than 1e-8."""
ROUNDINGS = 4.0
"""Noise of up to this many unit roundoffs of the format that holds the values is rounding: a formula rounds a few
times."""
FEW_ROWS = 8
"""If there are more rows, the one with the largest slope is tried first; if it does not agree, neither does the claim.
This affects only the cost."""
COARSEST = 0.1
"""A claim agrees only at this resolution or a finer one, unless the format of the values allows no finer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """How well a claim agrees over large steps.

    Attributes:
        error: the slope of the residual, relative to the pair's largest scaled entry.
        resolution: every error above this, in the same unit, would have been detected.
        noise: the distance of the values from a smooth curve, relative to the largest value.
        reach: the longest step.
        adaptive: whether forward adapts the number of its steps without a jump.
    """

    error: float
    resolution: float
    noise: float
    reach: float
    adaptive: bool = False

    @property
    def note(self) -> str:
        """Why the resolution is coarse, in one sentence."""
        cause = (
            f"forward's values jump by about {self.noise:.0e} of their magnitude (from rounding, or an iteration "
            "that stops early)"
        )
        if self.adaptive:
            cause = f"forward adapts the number of its steps, and its slopes have errors of about {self.error:.0e}"
        elif self.exact:
            cause = "the outputs change little relative to their magnitude"
        return f"accepted, but {cause}, so an error below {of_largest(self.resolution)} would not have been caught"

    @property
    def exact(self) -> bool:
        """Whether the values are as smooth as float64 allows."""
        return not self.adaptive and self.noise <= ROUNDING


def agreement(site: Site, pair: Pair, gap: float, *, sloped: bool = False, least: float = 0.0) -> Wide | None:
    """Show over large steps that the claim for a pair agrees, and at which resolution.

    The slope of the residual must be within its tolerance along two directions, at three lengths of interval each.
    Along the first direction the claimed entries add up.

    Args:
        site: the point, without a reference.
        pair: the numbers of the input block and the output block.
        gap: the error that small steps showed, relative to the pair's largest entry. If it is below 1e-3, the
            resolution is at least twice as large.
        sloped: accept values that have a slope of their own between their jumps.
        least: errors are compared with this, if the pair's largest scaled claimed entry is smaller.

    Returns:
        None if the claim does not agree, is zero (with `least` zero too), or the resolution is coarser than `COARSEST`
        (the format's resolution if that is coarser); if the residual cannot be measured; and if its noise does not
        consist of rounding or jumps, because a ripple or another fine structure of the function is not noise.
    """
    rows = site.claim.block == pair[1]
    if not site.claim.finite or not rows.any() or not np.isfinite(site.outputs).all():
        return None
    stored = format_at(site, pair[1])
    limit = COARSEST if stored is None else max(COARSEST, stored.resolution)
    whole = focuses(site.scales, site.map.domain.slices[pair[0]])[0]
    scale = max(least, site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], whole.judged))
    if not scale > 0:
        return None
    direction = steepest(site, rows, whole)
    stop = None
    if iterates(site):
        adaptive = _across_steps(site, rows, (direction, random_direction(site.rng, whole.drawn)), scale, gap)
        if adaptive is not None:
            return adaptive if adaptive.resolution <= limit else None
        stop = _stop(site, direction, rows)
    case = _Case(limit=limit, stored=stored, gap=gap, stop=stop, sloped=sloped, scale=scale)
    first = _along(site, rows, case, direction, REACHES)
    if first is None:
        return None
    reaches = [reach for reach in REACHES if reach <= first.reach]
    second = _along(site, rows, case, random_direction(site.rng, whole.drawn), reaches, noise=first.noise)
    if second is None:
        return None
    coarsest = max(first, second, key=lambda wide: wide.resolution)
    return replace(coarsest, resolution=max(coarsest.resolution, 2 * gap)) if gap < LOOSE else coarsest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """The nearest place along a line where the number of iterations changes: its distance, and the jump there.

    Without such a place the distance is infinite, and the jump is that along another line (`left_by_stopping`), if it
    is as small as that of an early stop at a usual tolerance (`LOOSE`), and otherwise 0.
    """

    place: float
    jump: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What is known of a pair beforehand.

    Attributes:
        limit: the coarsest resolution at which the claim may agree.
        stored: the format of few digits that holds the values, if there is one.
        gap: the error that small steps showed, relative to the pair's largest entry.
        stop: where the number of iterations changes, if forward iterates.
        sloped: whether the values may have a slope of their own between their jumps.
        scale: errors are compared with this.
    """

    limit: float
    stored: Format | None
    gap: float
    stop: _Stop | None
    sloped: bool
    scale: float


def _across_steps(site: Site, rows: Mask, directions: Sequence[Vector], scale: float, gap: float) -> Wide | None:
    """How well the claim agrees with an integrator that adapts its steps, judged where it takes other numbers of them.

    An error of the claim does not depend on the number of steps, but the errors of such a forward do. If the row with
    the largest error has less than a third of it at some place, or the other sign, the errors are forward's, and those
    of the claim are no larger than a few times the largest.

    Returns:
        None if forward is not such an integrator, or the errors are alike at all places.
    """
    largest = gap * scale
    for direction in directions:
        found = errors_elsewhere(site, direction)
        here = np.abs((site.claim.forms @ direction)[rows]).max()
        slopes, errors = (np.array([each[k][-rows.size :][rows] for each in found]) for k in (0, 1))
        sizes = np.abs(slopes).max(axis=1, initial=0.0) if found else np.zeros(0)
        telling = EXPLAINED * sizes > here
        if np.count_nonzero(telling) < TRIES:
            return None
        relative = errors[telling] / sizes[telling, None]
        worst = relative[:, np.unravel_index(np.abs(relative).argmax(), relative.shape)[1]]
        with np.errstate(all="ignore"):
            alike = 3 * (worst / worst[np.abs(worst).argmax()]).min() >= 1
        if alike:
            return None
        largest = max(largest, float(np.abs(worst).max()) * here)
    error = largest / scale
    return Wide(error=error, resolution=2 * FAIL_FACTOR * error, noise=0.0, reach=SHORT_STEP, adaptive=True)


def steepest(site: Site, rows: Mask, focus: Focus) -> Vector:
    """A random direction along which all claimed entries of one row add up: the row with the largest scaled entry."""
    forms = site.claim.forms[rows]
    row = forms[int(np.argmax((np.abs(forms) * focus.judged).max(axis=1)))]
    return np.where(row < 0, -1.0, 1.0) * np.abs(random_direction(site.rng, focus.drawn))


def _along(
    site: Site, rows: Mask, case: _Case, direction: Vector, reaches: Sequence[float], noise: float = 0.0
) -> Wide | None:
    """How well the claim agrees along one direction.

    Three adjacent lengths of interval form a window; only windows whose noise consists of rounding or jumps count. The
    first one that agrees at an allowed resolution gives the result. The next one replaces it if it agrees at a finer
    resolution. Noise that was found to consist of these along another direction is `noise`, relative to the values: it
    is not looked at again unless it is clearly larger, by `FAIL_FACTOR`.

    Returns:
        None if no window agrees; if one before the result, or the next one after it, contradicts by more than three
        tolerances; or if the values have a slope of their own (`_sloped`).
    """
    if case.stop is None and not case.sloped and _sloped(site, direction, rows, case.scale):
        return None
    known: dict[float, Stretch] = {}
    if np.count_nonzero(rows) > FEW_ROWS:  # the row of the largest slope needs one gradient at every place
        steep = np.arange(rows.size) == int(np.where(rows, np.abs(site.claim.forms @ direction), -1.0).argmax())
        weighed = (_weigh(site, levels, steep, case) for levels in _windows(site, direction, reaches, steep, known))
        if not any(off <= 1 and wide.resolution <= case.limit for off, wide in weighed):
            return None
    best: Wide | None = None
    for levels in _windows(site, direction, reaches, rows, known):
        off, wide = _weigh(site, levels, rows, case)
        agrees = off <= 1 and wide.resolution <= (case.limit if best is None else best.resolution)
        is_known = wide.noise <= FAIL_FACTOR * noise
        if (agrees or off > FAIL_FACTOR) and (is_known or _is_noise(site, levels, rows, case)):
            if not agrees:
                return None
            if best is None:
                best = wide
                continue
            return wide
        if best is not None:
            break
    return best


def _windows(
    site: Site, direction: Vector, reaches: Sequence[float], rows: Mask, known: dict[float, Stretch]
) -> Iterator[Sequence[Stretch]]:
    """The residuals of some rows on every three adjacent lengths of interval at which they are known, longest first."""
    levels: list[Stretch] = []
    for level in residuals(site, direction, reaches, rows, known):
        levels = [*levels, level][-LEVELS:]
        if len(levels) == LEVELS:
            yield levels


def _sloped(site: Site, direction: Vector, rows: Mask, scale: float) -> bool:
    """Whether some row has a slope between its jumps that is not the claimed one, at x or close by.

    Rounded values are constant on their plateaus. A function that rises between its jumps has a derivative there, which
    may be the one that is meant.
    """
    claimed = (site.claim.forms @ direction)[rows]
    return any(
        bool(((slopes != 0) & (np.abs(slopes - claimed) > allowed * scale)).any())
        for allowed, slopes in _slopes_between_jumps(site, direction, rows, scale)
    )


def meets_between_jumps(site: Site, direction: Vector, rows: Mask, scale: float) -> bool:
    """Whether some row has the claimed slope between its jumps, at x or close by."""
    claimed = (site.claim.forms @ direction)[rows]
    return any(
        bool((np.abs(slopes - claimed) <= allowed * scale).any())
        for allowed, slopes in _slopes_between_jumps(site, direction, rows, scale)
    )


def _slopes_between_jumps(site: Site, direction: Vector, rows: Mask, scale: float) -> Iterator[tuple[float, Vector]]:
    """The slope of every row between two jumps, at x and at two places close by; NaN where there is none.

    Three steps, the smallest that rounding allows and about 4 and 16 times as large, must give the same slope. They are
    jittered, because a few jumps could give equal slopes over steps in whole ratios. Nothing is found if rounding
    allows only steps above `LONGEST_FINE`.

    Yields:
        How far a slope that is the claimed one may be off it, relative to `scale`, and the slopes.
    """
    line = Line(site.read, site.x, direction, site.row_values())
    chosen = slice(line.outputs - rows.size, line.outputs)
    size = np.abs(site.row_values()[chosen])[rows]
    shortest = max(64 * GRID, 4 * EPS * float(size.max()) / (ALIKE * LOOSE * scale))
    for allowed, centre in ((LOOSE, 0.0), *((ALLOWED_NEARBY, site.rng.uniform(-1, 1) * 2.0**-9) for _ in range(2))):
        steps = [on_grid(shortest * times * (1 + 0.4 * site.rng.random())) for times in (1, 4, 16)]
        if not steps[-1] < LONGEST_FINE:
            return
        with np.errstate(all="ignore"):
            one, two, three = (
                ((line.at(on_grid(centre + t)) - line.at(on_grid(centre - t))) * line.scale)[chosen][rows] / (2 * t)
                for t in steps
            )
            alike = (np.abs(two - one) <= ALIKE * np.abs(one)) & (np.abs(three - one) <= ALIKE * np.abs(one))
            yield allowed, np.where(alike, one, np.nan)


def _stop(site: Site, direction: Vector, rows: Mask) -> _Stop:
    """The nearest place where the number of iterations changes, and the largest jump of any row there.

    The largest is taken because all rows share one stopping rule.
    """
    found = where_it_stops(site, direction)
    place, jumps = found or left_by_stopping(site, direction)
    jump, size = (float(np.abs(each)[-rows.size :][rows].max()) for each in (jumps, site.row_values()))
    return _Stop(place=abs(place), jump=jump if found is not None or jump <= LOOSE * size else 0.0)


def _is_noise(site: Site, levels: Sequence[Stretch], rows: Mask, case: _Case) -> bool:
    """Whether the noise of the residual consists of rounding or jumps, rather than of fine structure of the function.

    Noise of a few roundings of the format that holds the values is rounding. Otherwise the roughest rows must have a
    jump of `JUMPING` times their noise. If forward iterates, a jump where the number of iterations changes suffices. An
    integrator with adaptive steps may be rough without a jump, because a new last step starts at length zero; if the
    claim is off by less than 1e-3 over small steps, it suffices that the number of steps changes within the interval.
    """
    size = np.abs(site.row_values()[-rows.size :])
    coarsest = max(levels, key=lambda level: float(level.noise[rows].max()))
    rounding = ROUNDING * size
    if case.stored is not None:
        rounding = np.maximum(rounding, ROUNDINGS * case.stored.roundoff * coarsest.sizes)
    noise = np.where(rows & (coarsest.noise > rounding), coarsest.noise, 0.0)
    stop = case.stop
    if stop is not None and (stop.jump >= JUMPING * noise.max() or (case.gap < LOOSE and stop.place <= coarsest.reach)):
        return True
    roughest = [row for row in np.argsort(-noise)[:TRIES].tolist() if noise[row] > 0.1 * noise.max()]
    return coarsest.jumps(roughest, JUMPING)


def _weigh(site: Site, levels: Sequence[Stretch], rows: Mask, case: _Case) -> tuple[float, Wide]:
    """Compare the slope of the residual with its tolerance, at all the given lengths of interval.

    Args:
        site: the point.
        levels: the residual at each length.
        rows: the rows to compare.
        case: what is known of the pair.

    Returns:
        The largest slope of the residual in units of its tolerance, over all rows and lengths; and the error and
        resolution at the length with the smallest tolerance.
    """
    size = float(np.abs(site.row_values()[-rows.size :][rows]).max())
    noise = np.maximum.reduce([level.noise for level in levels])[rows]
    if case.stop is not None:
        noise = np.full(noise.size, max(case.stop.jump, float(noise.max())))
    roughness = ROUGHNESS if case.stop is None else UNFINISHED
    tolerances = [np.maximum(level.uncertainty[rows], roughness * noise / level.reach) for level in levels]
    errors = [np.abs(level.slope[rows]) for level in levels]
    off = max(_largest_ratio(error, tolerance) for error, tolerance in zip(errors, tolerances, strict=True))
    finest = min(range(len(levels)), key=lambda k: float(tolerances[k].max()))
    return off, Wide(
        error=float(errors[finest].max()) / case.scale,
        resolution=2 * FAIL_FACTOR * float(tolerances[finest].max()) / case.scale,
        noise=float(noise.max()) / size if size > 0 else 0.0,
        reach=levels[0].reach,
    )


def _largest_ratio(errors: Vector, tolerances: Vector) -> float:
    """The largest error in units of its tolerance. An error of exactly zero counts as 0, even if the tolerance is 0."""
    with np.errstate(all="ignore"):
        return float(np.where(errors == 0, 0.0, errors / tolerances).max())
