"""The directional derivative with an error bound: decides which steps to evaluate, and gives the result.

The bound is an estimate: it holds if the truncation error is at most four times the change that the largest step makes
in the extrapolated slope, and if all values have the noise of those close to x. On difficult functions one bound in a
thousand does not hold, so that a claim differs only beyond three bounds (`FAIL_FACTOR`).
The derivation of the bound, and of the order of the steps, is in docs/numerics.md, sections 1 and 2.
"""

from __future__ import annotations

import numpy as np

from gradcli.numerics.differences.breaks import (
    JUMPS,
    SMALL_JUMP,
    broken_at_centre,
    even_dominates,
    exponents,
    jump_size,
    staircases,
)
from gradcli.numerics.differences.estimate import Estimate, Status
from gradcli.numerics.differences.ladder import CLUSTER, Choice, Ladder
from gradcli.numerics.differences.stencil import WIDTH, one_sided
from gradcli.numerics.maps.floats import EPS, TINY, Mask, Vector
from gradcli.numerics.maps.sizes import COARSE, COMPUTED, FINE, NOTHING, ROUGHLY, SIGNIFICANT, WANTED
from gradcli.numerics.sampling.line import GRID, Function, Line, on_grid

FIRST_STEP = 0.05
"""The largest step is this to twice this, in units of the scale: a twentieth of x."""
FINER = (2.0**-8, 2.0**-16, 2.0**-25)
"""A measurement is repeated with steps so much smaller. The last one starts at 1.5e-9 of the scale, where rounding
leaves some seven digits of a slope."""
DEEP_CLUSTERS = (18, 25)
"""The second and third cluster are at these levels: steps 2^18 and 2^25 times smaller than the first."""
FINEST_LEVEL = 29
"""No step is halved so often; at level 28 a step is about 3e-10 of the scale, and rounding leaves six digits."""
CHANGE_HIDDEN = 0.02
"""If the noise exceeds this part of the change of the values over all steps, the derivative is UNRESOLVED."""
ABOVE_ROUNDING = 256.0
"""Noise of more than this many unit roundoffs of the value is not due to the rounding of the value alone."""


def directional_derivative(
    f: Function,
    x: Vector,
    v: Vector,
    *,
    rng: np.random.Generator,
    f0: Vector | None = None,
    noise: Vector | None = None,
    start: float = FIRST_STEP,
) -> Estimate:
    """Differentiate all outputs of f at x along v, each with an error bound.

    Args:
        f: the function, from a vector of length n to one of length m. If it raises at a point other than x, its values
            there count as NaN.
        x: the point. For exact steps, its entries are multiples of 2^-44 s_i, where s_i is a power of two above |x_i|.
        v: the direction, of entries k s_i / 256 with whole |k| <= 256, so that t = 1 changes x by about its magnitude.
        f0: f(x), if it is known; saves one evaluation.
        noise: standard deviations of the outputs, known from another direction; used if all are near rounding level.
        start: the largest step lies in [start, 2 start).

    Returns:
        An `Estimate`, after 17 evaluations for an ordinary function (9 with `noise`, 16 with `f0`) and up to 100 for a
        difficult one.

    Raises:
        Exception: whatever f raises at x itself.
    """
    line = Line(f, x, v, f0)
    given = noise
    if given is not None and not (given <= ABOVE_ROUNDING * EPS * np.abs(line.centre * line.scale)).all():
        given = None
    return _Search(line, rng, given, start).run()


class _Search:
    """The evaluation of one line, step by step, until the bounds are good enough or cannot improve.

    Masks over the outputs: `noisy` outputs have noise at all small steps, and are differentiated by large steps, which
    are those above the first cluster. `on_staircase` outputs are constant over small steps and their noise is unknown,
    so that they get no bound. Outputs of both kinds are `quiet`: no kink is sought in them.
    """

    def __init__(self, line: Line, rng: np.random.Generator, noise: Vector | None, start: float) -> None:
        self.line, self.rng = line, rng
        first = on_grid(start * (1 + rng.random()))
        self.two_sided, inside = self._inside(first)
        self.ladder = Ladder(line, rng, inside, noise)
        self.quiet = np.zeros(line.outputs, bool)
        self.noisy = np.zeros(line.outputs, bool)
        self.on_staircase = np.zeros(line.outputs, bool)

    def _inside(self, start: float) -> tuple[bool, float]:
        """Divide the largest step by 8 until both of its ends are in the domain.

        Returns:
            True and that step; or, if there is none, False and the largest step with one end in the domain.
        """
        step = start
        one_side = None
        for _ in range(14):
            reach = on_grid(step)
            right, left = self.line.finite(reach), self.line.finite(-reach)
            if right and left:
                return True, step
            if one_side is None and (right or left):
                one_side = step
            if step / 8 < 2.0**12 * GRID:
                break
            step = on_grid(step / 8)
        return False, one_side or start

    def run(self) -> Estimate:
        """Evaluate steps and clusters as needed, and give the estimate."""
        if not self.two_sided:
            return self._one_sided()
        ladder = self.ladder
        for level in range(WIDTH):
            ladder.add_level(level)
        if ladder.given is None:
            ladder.add_cluster(CLUSTER)
        chosen = ladder.choose()
        if ladder.given is not None and (self._truncated(chosen) | self._kinked(chosen)).any():
            ladder.given = None
            ladder.add_cluster(CLUSTER)
            chosen = ladder.choose()
        for level in range(WIDTH, CLUSTER - 1, 2):
            if not (self._truncated(chosen) | self._kinked(chosen)).any():
                break
            ladder.add_level(level)
            ladder.add_level(level + 1)
            chosen = ladder.choose()
        if ladder.given is None:
            chosen = self._deepen(chosen)
        chosen = self._lengthen(chosen)
        return self._estimate(chosen)

    def _relative(self, chosen: Choice) -> Vector:
        """The bounds relative to the slopes, or to a thousandth of the values if the slopes are smaller."""
        signal = np.maximum(np.abs(chosen.value), COARSE * np.maximum(np.abs(self.line.centre), COMPUTED) + NOTHING)
        with np.errstate(all="ignore"):
            return chosen.bound / signal

    def _bad(self, chosen: Choice) -> Mask:
        """The outputs whose relative bound is above `WANTED`."""
        bad: Mask = (self._relative(chosen) > WANTED) & np.isfinite(self.line.centre)
        return bad

    def _truncated(self, chosen: Choice) -> Mask:
        """The outputs whose bound is above `WANTED` and not mainly noise: smaller steps may help."""
        with np.errstate(all="ignore"):
            truncated = ~np.isfinite(chosen.bound) | (chosen.bound > 2.5 * chosen.noise)
        needed: Mask = self._bad(chosen) & truncated
        return needed

    def _kinked(self, chosen: Choice) -> Mask:
        """The outputs whose change of slope exceeds twice its bound, and the bound of the slope."""
        size = np.abs(chosen.kink)
        kinked: Mask = np.isfinite(chosen.kink_bound) & (size > 2 * chosen.kink_bound) & (size > chosen.bound)
        return kinked

    def _deepen(self, chosen: Choice) -> Choice:
        """Evaluate smaller steps and clusters where the large steps are inconclusive or the noise is above rounding."""
        ladder, size = self.ladder, np.abs(self.line.centre)
        first = ladder.clusters[CLUSTER]
        rough = (first.noise > ABOVE_ROUNDING * EPS * size) | ~np.isfinite(first.noise)
        noisy = self._bad(chosen) & rough
        self.on_staircase = staircases(ladder)
        wanted = self._truncated(chosen) | self._kinked(chosen) | noisy | first.broken
        wanted &= np.isfinite(self.line.centre)
        if not wanted.any():
            self._settle_staircases()
            return chosen
        second = ladder.add_cluster(DEEP_CLUSTERS[0])
        self.on_staircase |= staircases(ladder)
        deeper = wanted & (
            (noisy & (second.noise > 0.02 * first.noise))
            | second.broken
            | ~(second.noise <= ABOVE_ROUNDING * EPS * size)
            | (second.constant & noisy)
        )
        # A jump nearer to x than the first cluster's points looks like one at x there. All longer steps cross it.
        beside = first.broken & ~second.broken & ~second.constant
        usable = ~first.constant & np.isfinite(first.noise) & ~beside
        noise_known = self.on_staircase & usable
        coarse_works = (chosen.bound < 2.5 * chosen.noise) & ~beside
        if deeper.any():
            third = ladder.add_cluster(DEEP_CLUSTERS[1])
            self.on_staircase |= staircases(ladder)
            # The noise of float32 values never falls below their rounding (`measure_cluster`), and so always lasts.
            lasting = (np.isfinite(third.noise) & (third.noise > 0.1 * first.noise)) | self.on_staircase
            self.noisy = noisy & wanted & lasting & ~third.broken & ~second.broken & coarse_works
            noise_known |= self.on_staircase & usable
        self.noisy |= noise_known
        self.on_staircase &= ~noise_known
        self.quiet |= self.noisy
        fine = self._descend(wanted & ~self.noisy, first.broken, bool(deeper.any()))
        return self._weigh(chosen, fine, wanted & ~self.noisy, rough)

    def _descend(self, live: Mask, broken: Mask, to_the_end: bool) -> Choice:
        """Evaluate smaller and smaller steps until no `live` output needs more; to level 28 only if `to_the_end`."""
        ladder = self.ladder
        chosen = ladder.choose(quiet=self.quiet)
        if not live.any():
            return chosen
        last = FINEST_LEVEL if to_the_end else DEEP_CLUSTERS[0]
        for level in range(CLUSTER + 1, last):
            open_ = self._truncated(chosen) | self._kinked(chosen) | (broken & self._bad(chosen))
            if to_the_end:
                known = (chosen.kink_bound <= SIGNIFICANT * np.abs(chosen.kink)) | (exponents(ladder) < JUMPS)
                open_ &= ~(broken_at_centre(ladder) & known)
            if not (open_ & live).any():
                break
            ladder.add_level(level)
            if (level - CLUSTER) % 2 == 1 and level >= CLUSTER + 3:
                chosen = ladder.choose(quiet=self.quiet)
        return ladder.choose(quiet=self.quiet)

    def _weigh(self, coarse: Choice, fine: Choice, live: Mask, rough: Mask) -> Choice:
        """Decide between large and small steps, where the values are rough at the first cluster.

        If f has structure at that scale (a ripple, a pole, a kink close by), the slope over small steps is the
        derivative. If f has small jumps (from rounding, or from stopping early), it is only the slope between two
        jumps. In up to four outputs, those where the two estimates differ most, a jump is sought; if two of these have
        one, all others count as quantised too.
        """
        ladder = self.ladder
        edge = self._edge()
        above = ladder.choose(above=edge, quiet=self.quiet)
        fine.replace(self.noisy, above)
        suspects = live & rough & np.isfinite(fine.bound) & (fine.step < edge)
        with np.errstate(all="ignore"):
            gap = np.where(np.isfinite(coarse.bound), np.abs(fine.value - coarse.value), np.abs(fine.value))
        order = [int(j) for j in np.argsort(-np.where(suspects, gap, -1.0)) if suspects[j]][:4]
        jumps = []
        for j in order:
            size = jump_size(ladder, j, float(fine.value[j]), float(fine.step[j]), float(gap[j]))
            jumps.append(size is not None and size < SMALL_JUMP)
        plateaus = np.zeros_like(suspects)
        plateaus[[j for j, small in zip(order, jumps, strict=True) if small]] = True
        if len(order) == 4 and sum(jumps) >= 2:
            plateaus = suspects.copy()
        plateaus |= suspects & self.on_staircase
        fine.replace(plateaus, above)
        self.noisy |= plateaus
        self.quiet |= plateaus
        self._settle_staircases()
        fine.kink_bound[self.quiet] = np.inf
        fine.bound[ladder.unusable] = np.inf
        return fine

    def _edge(self) -> float:
        """Steps above this are larger than those of the first cluster."""
        return 0.99 * self.ladder.clusters[CLUSTER].step if CLUSTER in self.ladder.clusters else 0.0

    def _settle_staircases(self) -> None:
        """Give up on the outputs in `on_staircase`: they get no bound."""
        self.ladder.unusable |= self.on_staircase
        self.quiet |= self.on_staircase

    def _lengthen(self, chosen: Choice) -> Choice:
        """Evaluate up to three larger steps, at most t = 1 and inside the domain, for bounds that are due to noise."""
        ladder = self.ladder
        for _ in range(3):
            limited = self._bad(chosen) & ~self._truncated(chosen) & np.isfinite(chosen.bound)
            limited &= chosen.step > ladder.start * 2.0**-6
            top = min(ladder.levels)
            if not limited.any() or ladder.start * 2.0 ** (1 - top) > 1.0:
                break
            ladder.add_level(top - 1)
            longer = ladder.choose(above=self._edge(), quiet=self.quiet)
            chosen.replace(limited & (longer.bound < chosen.bound), longer)
        return chosen

    def _estimate(self, chosen: Choice) -> Estimate:
        line, ladder = self.line, self.ladder
        status = np.where(np.isfinite(chosen.bound), Status.OK, Status.UNRESOLVED).astype(np.int8)
        status[self.noisy & np.isfinite(chosen.bound)] = Status.NOISE
        drowned = self._drowned(chosen) | self._unsettled(chosen)
        status[drowned] = Status.UNRESOLVED
        status[self._kinked(chosen)] = Status.KINK
        if len(ladder.clusters) > 1:
            power = exponents(ladder)
            broken = (broken_at_centre(ladder) | even_dominates(ladder)) & ~self.quiet & ~self._bends(chosen)
            status[broken & (power < 1.5)] = Status.KINK
            status[broken & (power < 0.85)] = Status.CUSP
            status[broken & (power < JUMPS)] = Status.JUMP
        status[self.on_staircase] = Status.STAIRCASE
        status[~np.isfinite(line.centre)] = Status.DOMAIN
        bound = np.where(np.isfinite(line.centre) & ~drowned, chosen.bound, np.inf)
        sigma = np.zeros(line.outputs)
        for step in np.unique(chosen.step).tolist():
            sigma = np.where(chosen.step == step, ladder.sigma(step or 1.0), sigma)
        kink = np.where(np.isfinite(chosen.kink_bound), chosen.kink, 0.0)
        scale = line.scale
        with np.errstate(all="ignore"):
            floor = 16 * TINY / np.where(chosen.step > 0, chosen.step, 1.0)
            return Estimate(
                value=chosen.value * scale,
                bound=bound * scale + floor,
                status=status,
                left=(chosen.value - kink) * scale,
                right=(chosen.value + kink) * scale,
                kink_bound=chosen.kink_bound * scale,
                noise=sigma * scale,
                step=chosen.step,
                evaluations=line.evaluations,
            )

    def _drowned(self, chosen: Choice) -> Mask:
        """The outputs whose noise is not small compared with their change: perhaps they oscillate too fast."""
        if not self.ladder.clusters:
            return np.zeros(self.line.outputs, bool)
        noise = self.ladder.clusters[min(self.ladder.clusters)].noise
        steps = [sign * p.step for p in self.ladder.levels.values() for sign in (1.0, -1.0)]
        with np.errstate(all="ignore"):
            moves = np.fmax.reduce([np.abs(self.line.at(t) - self.line.centre) for t in steps])
            rough = noise > ABOVE_ROUNDING * EPS * np.abs(self.line.centre)
            coarse = chosen.step >= self.ladder.clusters[min(self.ladder.clusters)].step
            drowned: Mask = rough & coarse & ~(noise < CHANGE_HIDDEN * moves)
        return drowned

    def _bends(self, chosen: Choice) -> Mask:
        """The outputs whose slopes on both sides of x are the same in all digits that matter (`FINE`).

        Only their higher derivatives jump there, as those of x |x| do.
        """
        with np.errstate(all="ignore"):
            change = np.abs(chosen.kink) + chosen.kink_bound
            same: Mask = np.maximum(chosen.bound, change) <= FINE * np.abs(chosen.value)
        return same

    def _unsettled(self, chosen: Choice) -> Mask:
        """The outputs whose bound by small steps is above 1 % of the slope: a kink may be nearer than these steps."""
        unsettled: Mask = ~self.noisy & (chosen.step < self._edge()) & (chosen.bound > ROUGHLY * np.abs(chosen.value))
        return unsettled

    def _one_sided(self) -> Estimate:
        """The slope on the side where f is finite, by extrapolation with polynomials in t; the status is DOMAIN.

        Windows of six steps are tried, and the smallest bound counts.
        """
        line, start = self.line, self.ladder.start
        reach = on_grid(start)
        sign = 1.0 if line.finite(reach) else -1.0
        usable = line.finite(sign * reach)
        value, step = np.zeros((2, line.outputs))
        bound = np.full(line.outputs, np.inf)
        steps = [on_grid(start * 2.0**-k * (1 + 0.1 * self.rng.random())) for k in range(26)] if usable else []
        steps = [t for t in steps if t > 2.0**10 * GRID]
        with np.errstate(all="ignore"):
            slopes = [sign * (line.at(sign * t) - line.centre) / t for t in steps]
            for first in range(len(steps) - 5):
                ts = steps[first : first + 6]
                size = np.maximum(np.abs(line.centre), np.abs(line.at(sign * ts[0])))
                d, b = one_sided(slopes[first : first + 6], ts, size)
                better = np.isfinite(d) & (b < bound)
                value, bound = np.where(better, d, value), np.where(better, b, bound)
                step = np.where(better, ts[-1], step)
        scale = line.scale
        status = np.full(line.outputs, Status.DOMAIN, dtype=np.int8)
        slope = value * scale
        infinite = np.full(line.outputs, np.inf)
        return Estimate(
            value=slope,
            bound=bound * scale,
            status=status,
            left=slope,
            right=slope,
            kink_bound=infinite,
            noise=EPS * np.abs(line.centre * scale),
            step=step,
            evaluations=line.evaluations,
        )
