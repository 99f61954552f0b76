"""One point of a map, with its scales, values, claim and reference, and the directions measured through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.claim import FEW_PROJECTIONS, Claim, is_usable, make_claim
from gradcli.numerics.claims.compare import Judgement, QuickReading, Reading, judge
from gradcli.numerics.claims.row_noise import RowNoise
from gradcli.numerics.differences.directional import FIRST_STEP, directional_derivative
from gradcli.numerics.differences.estimate import Status
from gradcli.numerics.differences.three_pairs import QUICK_STEP, ThreePairs, measure_pairs
from gradcli.numerics.maps.floats import EPS, Mask, Matrix, Vector
from gradcli.numerics.maps.pieces import all_finite, root_of_squares
from gradcli.numerics.maps.sizes import CERTIFIED, COMPUTED, FINEST, MEASURABLE
from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.sampling.directions import Focus, entry_scales, nudged, random_direction, snap, within

NUDGES = 6
"""At this many points close to x, noise is measured and claims are compared."""


def witness_rows_at(site: Site, x: Vector) -> Matrix | None:
    """The reference's gradients of the claimed rows at x; None if there are none, or not finite."""
    rows = np.eye(site.map.codomain.size) if site.claim.cotangents is None else site.claim.cotangents
    try:
        with np.errstate(all="ignore"):
            found = None if site.witness is None else np.asarray(site.witness.vjp_many(x, rows), dtype=np.float64)
    except Exception:
        return None
    return found if found is not None and is_usable(found, site.claim) else None


@dataclass(slots=True)
class Site:
    """A point with its claim and reference. `rng` is that of the whole verification.

    `measured_noise` is that of the rows, found along an earlier direction. `witness` is the reference, and
    `witness_rows` are its gradients of the claimed rows, None if there is none or they are not finite. `few_rows` says
    that claim and reference have one row for every output block only. `known_...` store results that are computed once:
    `known_slopes` for each input those of every single output along it, and perhaps others, up to a common factor.
    """

    map: CountedMap
    x: Vector
    scales: Vector
    claim: Claim
    rng: np.random.Generator
    measured_noise: Vector | None = None
    witness: VectorMap | None = None
    witness_rows: Matrix | None = None
    known_outputs: Vector | None = None
    known_noise: RowNoise | None = None
    known_single: list[Vector | None] = field(default_factory=list)
    known_rows: Vector | None = None
    known_steady: Vector | None = None
    known_iterating: bool | None = None
    known_close_by: list[Vector] | None = None
    known_left: Vector | None = None
    known_jitter: Matrix | None = None
    known_slopes: dict[int, Vector] = field(default_factory=dict)
    known_masks: dict[int, Mask] = field(default_factory=dict)
    few_rows: bool = False
    without_witness: Site | None = None

    @classmethod
    def at(
        cls,
        map_: CountedMap,
        x: Vector,
        rng: np.random.Generator,
        *,
        witness: VectorMap | None = None,
        projections: int | None = None,
    ) -> Site:
        """Round x to the grid, and compute the claim and the reference there.

        Args:
            projections: rows for every output block; by default 1 with a reference, otherwise as in `make_claim`.

        Raises:
            Exception: whatever value or vjp raise.
        """
        scales = entry_scales(map_.domain, x)
        few_rows = projections is None and witness is not None
        with np.errstate(all="ignore"):
            x = snap(x, scales)
            claim, reference = make_claim(map_, x, rng, 1 if few_rows else projections, witness)
        site = cls(map_, x, scales, claim, rng, witness=witness, witness_rows=reference, few_rows=few_rows)
        site.known_outputs = claim.outputs
        return site

    def ask_again(self) -> None:
        """Compute claim and reference again, for the usual number of rows with a reference."""
        with np.errstate(all="ignore"):
            self.claim, self.witness_rows = make_claim(self.map, self.x, self.rng, FEW_PROJECTIONS, self.witness)
        self.known_rows = self.known_noise = self.known_jitter = None
        self.known_masks = {}
        self.few_rows = False

    def evaluate(self) -> Vector:
        """Return f(x), which is evaluated at the first call. Raises whatever the map raises."""
        if self.known_outputs is None:
            with np.errstate(all="ignore"):
                self.known_outputs = np.asarray(self.map.value(self.x), dtype=np.float64)
        return self.known_outputs

    @property
    def outputs(self) -> Vector:
        """f(x)."""
        return self.evaluate()

    def row_noise(self) -> RowNoise:
        """The noise of the rows beyond their own rounding, as the map gives it, and as measured if that is smaller."""
        if self.known_noise is None:
            with np.errstate(all="ignore"):
                own = self.map.value_noise(self.x)
                given = np.zeros(self.claim.rows) if own is None else self.claim.read_noise(np.asarray(own, np.float64))
                measured = self.witness is None and (given > MEASURABLE * np.abs(self.row_values())).any()
                self.known_noise = RowNoise(given=given, seen=np.fmin(given, self._jitter()) if measured else given)
        return self.known_noise

    def noise_along(self, v: Vector) -> RowNoise:
        """The noise of the rows in slopes along v. Along cotangents, float32 values stay the same."""
        noise, below = self.row_noise(), self.map.below
        if below is None or not v[: below.domain.size].any() or (single := self.noise_of_single()) is None:
            return noise
        return replace(noise, seen=np.maximum(noise.seen, single))

    def noise_of_single(self) -> Vector | None:
        """The noise that float32 values leave in a gradient (`mixed_precision`); None with a reference."""
        if self.map.below is not None and self.witness is None and not self.known_single:
            from gradcli.numerics.claims.mixed_precision import noise_of_single  # needed at order 2 and above

            found = noise_of_single(self.map, self.x, self.scales, self.outputs, self.read, self.rng)
            self.known_single.append(found)
        return self.known_single[0] if self.known_single else None

    def _jitter(self) -> Vector:
        """Measure the noise of the rows: their largest change when x moves by a few roundings, and their own rounding.

        It is smaller than the noise that the map gives if the rounding errors of large terms cancel.
        """
        here = self.row_values()
        spread = np.zeros(here.size)
        for _ in range(NUDGES):
            spread = np.maximum(spread, np.abs(self.read(nudged(self.rng, self.x)) - here))
        return np.where(np.isnan(spread), np.inf, spread + 4 * EPS * np.abs(here))  # NaN where nothing is known

    def moved_to(self, x: Vector, *, projections: int | None = None, evaluate: bool = True) -> Site | None:
        """The site at another point; None outside the domain: if backward raises there, or with `evaluate` forward."""
        try:
            there = Site.at(self.map, x, self.rng, witness=self.witness, projections=projections)
            if evaluate:
                there.evaluate()
        except Exception:
            return None
        return there

    def with_same_rows(self, x: Vector) -> Site | None:
        """The site at another point with the same rows and scales; None if something raises or is not finite there."""
        claim = self.claim_at(x)
        reference = witness_rows_at(self, x)
        if claim is None or reference is None or not claim.finite:
            return None
        there = Site(self.map, x, self.scales, claim, self.rng, witness=self.witness, witness_rows=reference)
        if x is self.x:
            there.known_outputs = self.known_outputs
        try:
            there.evaluate()
        except Exception:  # outside forward's domain
            return None
        return there

    def alone(self) -> Site:
        """The same point without the reference, and with the claim in full if the map is small."""
        if self.witness is None:
            return self
        if self.without_witness is None:
            claim = self.claim if self.claim.full else make_claim(self.map, self.x, self.rng)[0]
            self.without_witness = Site(self.map, self.x, self.scales, claim, self.rng, known_outputs=self.outputs)
            self.without_witness.known_iterating = self.known_iterating
        return self.without_witness

    def value_at(self, x: Vector) -> Vector:
        """The outputs at another point; NaN outside the domain, where the map raises."""
        with np.errstate(all="ignore"):
            try:
                return np.asarray(self.map.value(x), dtype=np.float64)
            except Exception:  # anything that the user's function raises away from x
                return np.full(self.map.codomain.size, np.nan)

    def read(self, x: Vector, seen: Callable[[Vector], None] | None = None) -> Vector:
        """The values of all rows at another point; NaN outside the domain. `seen` is given the outputs there."""
        if self.claim.full:
            return self.value_at(x)
        with np.errstate(all="ignore"):
            try:
                value = self.map.seen_at(x)
                if seen is not None:
                    seen(value)
                return self.rows_of(value)
            except Exception:  # as above
                return np.full(self.claim.rows, np.nan)

    def rows_of(self, value: Vector) -> Vector:
        """The values of all rows, from the value of the map."""
        value = np.asarray(value, dtype=np.float64)
        return value if self.claim.full else self.claim.read_beside(value, self.outputs, self.row_values())

    def rows(self, output: int) -> Mask:
        """The rows of one output block that are finite at the point."""
        chosen = self.known_masks.get(output)
        if chosen is None:
            values = self.row_values()
            if len(self.map.codomain.blocks) == 1 and all_finite(values):
                chosen = np.ones(values.size, bool)
            else:
                chosen = (self.claim.row_blocks() == output) & np.isfinite(values)
            self.known_masks[output] = chosen
        return chosen

    def row_values(self) -> Vector:
        """The values of all rows at the point."""
        if self.known_rows is None:
            self.known_rows = self.claim.read(self.outputs)
        return self.known_rows

    def row_sizes(self) -> Vector:
        """For every row, |u·f|, or how large it is if its terms have random signs, where that is larger.

        The sum itself may be small by accident, but the rounding errors of the values are not.
        """
        sizes = np.abs(self.row_values())
        if self.claim.cotangents is not None:
            with np.errstate(all="ignore"):
                typical = root_of_squares(self.claim.cotangents, self.outputs)
            sizes[-typical.size :] = np.fmax(sizes[-typical.size :], typical)
        return sizes

    def row_scales(self, places: slice, scales: Vector) -> Vector:
        """For every row, the largest |claimed entry| · scale of its output block and the input block at `places`."""
        blocks = self.claim.row_blocks()
        by_block = [self.claim.entry_scale(places, o, scales) for o in range(len(self.map.codomain.blocks))]
        return np.array(by_block)[blocks] if blocks.size else np.zeros(0)

    def probe(self, places: slice, focus: Focus | None = None, *, cheap: bool = True) -> Reading:
        """Measure a new random direction through the entries at `places`, or those of `focus`."""
        focus = focus or Focus(drawn=within(self.scales, places), judged=self.scales)
        return self.measure(random_direction(self.rng, focus.drawn), places, focus, cheap=cheap)

    def measure(
        self, v: Vector, places: slice, focus: Focus, *, cheap: bool = True, start: float = FIRST_STEP
    ) -> Reading:
        """Measure the slopes of all rows along v with `directional_derivative`.

        With `cheap`, three pairs of values are tried first; they are enough if they meet the claim in all rows.
        """
        self.map.require_budget()
        claimed, rounding = self.claim.along(v)
        f0 = self.row_values()
        if cheap and np.isfinite(f0).all():
            short = self.quick_reading(v, focus)
            if self.is_met(short, places):
                return short.reading
        estimate = directional_derivative(
            self.read, self.x, v, rng=self.rng, f0=f0, noise=self.measured_noise, start=start
        )
        if start == FIRST_STEP and (estimate.status == Status.OK).all():
            self.measured_noise = estimate.noise
        rounding = rounding + np.where((f0 == 0) & (estimate.value == 0), FINEST, 0.0)
        noise, steps = self.noise_along(v), np.maximum(estimate.step, 2.0**-44)
        bound = estimate.bound + noise.slope_error(estimate.value, claimed, steps)
        with np.errstate(all="ignore"):
            missed = np.abs(estimate.value - claimed) > bound
        bound = bound + np.where(missed, noise.inherited(estimate.value, claimed, f0), 0.0)
        smooth = self.reading(v, focus, estimate.value, bound, (claimed, rounding), estimate.noise)
        return replace(
            smooth, left=estimate.left, right=estimate.right, kink_bound=estimate.kink_bound, status=estimate.status
        )

    def reading(
        self, v: Vector, focus: Focus, numeric: Vector, bound: Vector, along: tuple[Vector, Vector], noise: Vector
    ) -> Reading:
        """The reading of slopes that are the same on both sides; `along` has the claimed ones and their rounding."""
        rows = numeric.size
        claimed, rounding = along
        return Reading(
            direction=v,
            focus=focus,
            numeric=numeric,
            bound=bound,
            claimed=claimed,
            rounding=rounding,
            left=numeric,
            right=numeric,
            kink_bound=np.zeros(rows),
            status=np.zeros(rows, np.int8),
            size=np.abs(self.row_values()),
            noise=noise,
            claimless=np.arange(rows) < self.claim.watched,
        )

    def is_met(self, short: QuickReading, places: slice, rounding: Vector | float = 0.0) -> bool:
        """Whether the slopes meet the claim in every row that has one, to nine digits of its block or `rounding`."""
        reading, entries = short.reading, self.row_scales(places, short.reading.focus.judged)
        allowed = np.where(entries > COMPUTED * reading.size, CERTIFIED * entries, MEASURABLE * reading.size)
        met = short.met(np.maximum(allowed, rounding)) | reading.claimless
        return bool(met.all() and not reading.claimless.all())

    def quick_reading(
        self,
        v: Vector,
        focus: Focus,
        start: float = QUICK_STEP,
        enough: Callable[[QuickReading], bool] | None = None,
        seen: Callable[[Vector], None] | None = None,
    ) -> QuickReading:
        """Measure the slopes of all rows along v with three pairs of values, to compare them with the claim.

        Args:
            start: the largest step is between this and 2.2 times this.
            enough: decides from the two smaller pairs whether the third may be left out.
            seen: is given the outputs at each point, to be copied.
        """
        self.map.require_budget()
        along = self.claim.along(v)
        quick_readings: list[QuickReading] = []

        def judged(short: ThreePairs) -> bool:
            quick_readings.append(self._beside(short, v, focus, along, start))
            return enough is not None and enough(quick_readings[-1])

        early = None if enough is None else judged
        short = measure_pairs(
            partial(self.read, seen=seen), self.x, v, f0=self.row_values(), rng=self.rng, start=start, enough=early
        )
        if quick_readings and quick_readings[-1].short is short:
            return quick_readings[-1]
        return self._beside(short, v, focus, along, start)

    def _beside(
        self, short: ThreePairs, v: Vector, focus: Focus, along: tuple[Vector, Vector], start: float
    ) -> QuickReading:
        """Put the slopes of three pairs of values next to the claimed slopes (`along`).

        Three pairs give no bound of the truncation error. Four times the difference of claim and slope is used as the
        bound instead: if they agree to many digits, both are close to the derivative.
        """
        noise = short.rounding + self.noise_along(v).slope_error(
            short.value, along[0], np.full(short.value.size, start / 2)
        )
        with np.errstate(all="ignore"):
            error = np.abs(short.value - along[0])
        bound = np.where(np.isnan(error), short.shift, 4 * error) + noise
        return QuickReading(short=short, reading=self.reading(v, focus, short.value, bound, along, noise))

    def judge(self, reading: Reading, input_: int, output: int, significance: float) -> Judgement:
        """Judge a measured direction through one input block for one output block (`compare.judge`)."""
        places = self.map.domain.slices[input_]
        scale = self.claim.entry_scale(places, output, reading.focus.judged)
        columns = int(np.count_nonzero(reading.direction[places]))
        return judge(reading, self.rows(output), scale, columns, significance)

    def claim_at(self, x: Vector, asked: Mask | None = None, *, factor: float = 1.0) -> Claim | None:
        """The claim for the same rows at another point, zero for rows that are not `asked`; None if backward raises.

        Backward gets the cotangents times `factor`, by which the result is divided: only its rounding depends on that.
        """
        claim = self.claim
        rows = np.eye(self.map.codomain.size) if claim.cotangents is None else claim.cotangents
        try:
            if asked is None:
                forms = np.asarray(self.map.vjp_many(x, rows * factor), dtype=np.float64) / factor
            else:
                forms = np.zeros_like(claim.forms)
                forms[asked] = self.map.vjp_many(x, rows[asked] * factor) / factor
        except Exception:
            return None
        return replace(claim, x=x, forms=forms, outputs=None)
