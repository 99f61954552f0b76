"""One point of a map: its scales, its values, its claimed derivative, and directions measured through it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradcli.numerics.certify import predict
from gradcli.numerics.compare import Judgement, Reading, judge
from gradcli.numerics.difference import directional_derivative
from gradcli.numerics.estimate import Status
from gradcli.numerics.noise import Mask
from gradcli.numerics.probe import Focus, entry_scales, random_direction, snap, within
from gradcli.numerics.projection import Claim, make_claim
from gradcli.numerics.space import Vector
from gradcli.numerics.vector_map import CountedMap

CERTIFIED = 1e-9
"""A prediction must be met within this part of the block's scale."""
ZERO_FLOOR = 1e-14
"""Where f is zero at every node its rounding is unknown (1 - tanh(20) is 0): smaller slopes are not judged."""


class BudgetExceededError(Exception):
    """The evaluations allowed for one verification are used up."""


@dataclass(slots=True)
class Site:
    """A point with its claim; `rng` and the evaluation budget are those of the whole verification."""

    map: CountedMap
    x: Vector
    scales: Vector
    outputs: Vector
    claim: Claim
    rng: np.random.Generator
    budget: int
    noise: Vector | None = None

    @classmethod
    def at(cls, map_: CountedMap, x: Vector, rng: np.random.Generator, budget: int) -> Site:
        """Evaluate the map and its claim at x, rounded to the grid.

        Raises:
            Exception: whatever value or vjp raise.
        """
        scales = entry_scales(map_.domain, x)
        with np.errstate(all="ignore"):
            x = snap(x, scales)
            outputs = np.asarray(map_.value(x), dtype=np.float64)
            claim = make_claim(map_, x, rng)
        return cls(map_, x, scales, outputs, claim, rng, budget)

    def moved_to(self, x: Vector) -> Site | None:
        """The site at another point; None where the map cannot be evaluated or differentiated there.

        Whatever the user's code raises away from the point under test means that the other point is not in the domain.
        """
        try:
            return Site.at(self.map, x, self.rng, self.budget)
        except Exception:
            return None

    def read(self, x: Vector) -> Vector:
        """The rows' values at x."""
        return self.claim.read(np.asarray(self.map.value(x), dtype=np.float64))

    def rows(self, output: int) -> Mask:
        """The rows of one output block whose value at the point is finite."""
        chosen: Mask = (self.claim.row_blocks() == output) & np.isfinite(self.claim.read(self.outputs))
        return chosen

    def row_scales(self, places: slice, scales: Vector) -> Vector:
        """For every row, the entry scale of its output block and the given input block."""
        blocks = self.claim.row_blocks()
        by_block = [self.claim.entry_scale(places, o, scales) for o in range(len(self.map.codomain.blocks))]
        return np.array(by_block)[blocks] if blocks.size else np.zeros(0)

    def probe(self, places: slice, focus: Focus | None = None, *, cheap: bool = True) -> Reading:
        """Measure a fresh random direction through some entries."""
        focus = focus or Focus(drawn=within(self.scales, places), judged=self.scales)
        return self.measure(random_direction(self.rng, focus.drawn), places, focus, cheap=cheap)

    def measure(self, v: Vector, places: slice, focus: Focus, *, cheap: bool = True, start: float = 0.05) -> Reading:
        """Differentiate every row along v: three pairs if they meet the claim, the whole ladder otherwise."""
        if self.map.values >= self.budget:
            raise BudgetExceededError
        claimed, rounding = self.claim.along(v)
        f0 = self.claim.read(self.outputs)
        claimless = np.isnan(claimed) & self._unclaimed(claimed.size)
        size = np.abs(f0)
        if cheap and np.isfinite(f0).all():
            short = predict(self.read, self.x, v, f0=f0, rng=self.rng)
            entries = self.row_scales(places, focus.judged)
            allowed = np.where(entries > 1e-12 * size, CERTIFIED * entries, 1e-11 * size)
            if (short.certifies(claimed, allowed) | claimless).all() and not claimless.all():
                error = np.abs(short.value - claimed)
                return Reading(
                    direction=v,
                    focus=focus,
                    numeric=short.value,
                    bound=4 * error + short.rounding,
                    claimed=claimed,
                    rounding=rounding,
                    left=short.value,
                    right=short.value,
                    kink_bound=np.zeros_like(f0),
                    status=np.zeros(f0.size, np.int8),
                    size=size,
                    noise=short.rounding,
                    claimless=claimless,
                    certified=True,
                )
        estimate = directional_derivative(
            self.read, self.x, v, rng=self.rng, f0=f0, noise=self.noise, start=start, target=1e-10
        )
        if start == 0.05 and (estimate.status == Status.OK).all():
            self.noise = estimate.noise
        rounding = rounding + np.where((f0 == 0) & (estimate.value == 0), ZERO_FLOOR, 0.0)
        return Reading(
            direction=v,
            focus=focus,
            numeric=estimate.value,
            bound=estimate.bound,
            claimed=claimed,
            rounding=rounding,
            left=estimate.left,
            right=estimate.right,
            kink_bound=estimate.kink_bound,
            status=estimate.status,
            size=size,
            noise=estimate.noise,
            claimless=claimless,
            certified=False,
        )

    def _unclaimed(self, rows: int) -> Mask:
        """Rows that are only watched: outputs beside the projections, where no jvp speaks for them."""
        watched = np.zeros(rows, bool)
        if self.claim.watch and not self.claim.jvp_rows:
            watched[: self.map.codomain.size] = True
        return watched

    def judge(self, reading: Reading, input_: int, output: int, significance: float) -> Judgement:
        """Judge a direction through one input block for one output block."""
        places = self.map.domain.slices[input_]
        scale = self.claim.entry_scale(places, output, reading.focus.judged)
        columns = int(np.count_nonzero(reading.direction[places]))
        return judge(reading, self.rows(output), scale, columns, significance)

    def claim_at(self, x: Vector) -> Claim | None:
        """The claim at a point close by, with the same rows; None where backward raises there."""
        claim = self.claim
        rows = np.eye(self.map.codomain.size) if claim.cotangents is None else claim.cotangents
        try:
            forms = np.asarray(self.map.vjp_many(x, rows), dtype=np.float64)
        except Exception:
            return None
        return replace(claim, x=x, forms=forms)
