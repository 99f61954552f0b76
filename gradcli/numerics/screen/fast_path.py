"""Decides the most common case in three evaluations: one output block, and equal claim and reference.

The conditions are those of the general protocol, which takes over, with everything computed so far, if one of them does
not hold. Without this file, a verification of a right gradient would spend most of its time in the general loops over
rows and blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from gradcli.numerics.claims.claim import WATCHED_OUTPUTS, Claim
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import EPS, TINY, Vector
from gradcli.numerics.maps.pieces import UNTHREADED, all_finite, dot, pieces
from gradcli.numerics.maps.sizes import COMPUTED, FINEST
from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.outcome import AUTODIFF, BlockOutcome, Outcome, Verification
from gradcli.numerics.reference.discrepancy import FLOOR
from gradcli.numerics.sampling.directions import entry_scales, random_direction, signed_cotangents, snap
from gradcli.numerics.sampling.line import point_along
from gradcli.numerics.screen.single_pair import changes, step_for, straightness
from gradcli.numerics.screen.small_entries import are_alike

EVALUATIONS = 3
"""The largest number of evaluations that the fast path takes."""


@dataclass(slots=True)
class _Likeness:
    """How claim and reference compare in one input block: `error` and `scale` as in `Discrepancy`.

    `largest` is the largest claimed entry, without scales.
    """

    error: float
    scale: float
    largest: float


@final
@dataclass(slots=True)
class Beginning:
    """Claim and reference at a point for one row: a projection u·f of the outputs, or the only output.

    `cotangent` is u, `outputs` f(x), `form` the claimed gradient and `reference` the reference's, None if it has none.
    """

    map: CountedMap
    witness: VectorMap
    x: Vector
    scales: Vector
    rng: np.random.Generator
    cotangent: Vector
    outputs: Vector
    form: Vector
    reference: Vector | None

    def site(self) -> Site:
        """The site from which the general protocol continues, with one row (`few_rows`)."""
        cotangents = None if self.cotangent.size == 1 else self.cotangent[None]
        claim = Claim(
            map=self.map,
            x=self.x,
            forms=self.form[None],
            cotangents=cotangents,
            block=np.zeros(1, np.intp),
            watch=cotangents is not None and self.cotangent.size <= WATCHED_OUTPUTS,
            outputs=self.outputs,
        )
        reference = None if self.reference is None or not all_finite(self.reference) else self.reference[None]
        site = Site(self.map, self.x, self.scales, claim, self.rng, witness=self.witness, witness_rows=reference)
        site.known_outputs, site.few_rows = self.outputs, True
        return site


def begin(map_: CountedMap, witness: VectorMap, x: Vector, rng: np.random.Generator) -> Beginning | None:
    """Compute claim and reference for one row.

    Returns:
        None if the fast path does not apply: for several output blocks, or empty blocks.

    Raises:
        Exception: whatever value or vjp raise.
    """
    outputs = map_.codomain.sizes
    if len(outputs) != 1 or not outputs[0] or not all(map_.domain.sizes):
        return None
    with np.errstate(all="ignore"):
        scales = entry_scales(map_.domain, x)
        x = snap(x, scales)
        rows = signed_cotangents(rng, outputs[0], 1) if outputs[0] > 1 else np.ones((1, 1))
        value, forms, reference = map_.value_and_vjps_beside(witness, x, rows)
        value = np.asarray(map_.value(x) if value is None else value, dtype=np.float64)
        form = np.asarray(forms, dtype=np.float64).reshape(x.size)
    other = None if reference is None or reference.shape != (1, x.size) else reference[0]
    return Beginning(map_, witness, x, scales, rng, rows[0], value, form, other)


def at_first_sight(begun: Beginning) -> Verification | None:
    """The verification, if every block agrees: claim and reference are equal, and one pair of values confirms them.

    Returns:
        None if that is not so, or if the values have noise; the general protocol then decides.

    Raises:
        Exception: whatever the map's `value_noise` raises.
    """
    outputs = begun.outputs
    if begun.reference is None or begun.map.value_noise(begun.x) is not None:
        return None
    with np.errstate(all="ignore"):
        total, typical = _sizes(begun.cotangent, outputs)
        rounding = FLOOR * total
        found = _likenesses(begun.form, begun.reference, begun) if rounding < np.inf else None
        least = 0.0 if found is None else min(likeness.scale for likeness in found)
        if found is None or least <= EPS * rounding or not _is_met(begun, outputs, typical, least):
            return None
    return Verification(
        blocks=tuple([_agrees(number, likeness, rounding) for number, likeness in enumerate(found)]),
        kinks=(),
        point=begun.x,
        moved=False,
        evaluations=begun.map.values,
        vjps=begun.map.vjps,
        notes=(),
    )


def _agrees(input_: int, likeness: _Likeness, rounding: float) -> BlockOutcome:
    resolution = max(FINEST, 4 * likeness.error + rounding / likeness.scale)
    return BlockOutcome(
        input=input_,
        output=0,
        outcome=Outcome.AGREES,
        max_abs_error=likeness.error * likeness.largest,
        max_rel_error=likeness.error,
        bound=resolution * likeness.largest,
        resolution=resolution,
        reference=AUTODIFF,
    )


def _likenesses(form: Vector, reference: Vector, begun: Beginning) -> list[_Likeness] | None:
    """Compare claim and reference in every input block; None if they differ, are zero or not finite in some block."""
    found = []
    for place in begun.map.domain.slices:
        largest = apart = scaled = scaled_apart = 0.0
        for piece in pieces(place):
            scales = begun.scales[piece]
            claimed, difference = np.abs(form[piece]), form[piece] - reference[piece]
            most = float(np.abs(difference, out=difference).max())
            if not most < np.inf:
                return None
            largest, apart = max(largest, float(claimed.max())), max(apart, most)
            scaled = max(scaled, float(np.multiply(claimed, scales, out=claimed).max()))
            scaled_apart = max(scaled_apart, float(np.multiply(difference, scales, out=difference).max()))
        if not (0 < largest < np.inf and 0 < scaled < np.inf):
            return None
        error = max(apart / largest, scaled_apart / scaled)
        if not error <= COMPUTED:
            return None
        found.append(_Likeness(error, scaled, largest))
    return found


def _sizes(cotangent: Vector, outputs: Vector) -> tuple[float, float]:
    """The sum of |u_j f_j|, and the root of the sum of their squares."""
    total = squares = 0.0
    for piece in pieces(slice(0, outputs.size), UNTHREADED):
        terms = np.abs(cotangent[piece] * outputs[piece])
        total += float(terms.sum())
        squares += float(terms @ terms)
    return total, squares**0.5


def _rise(cotangent: Vector, right: Vector, left: Vector, centre: Vector) -> tuple[float, float]:
    """u·(right - left) and u·(right + left - 2 centre).

    Each output's difference is taken before they are added up, because the rounding errors of the sum of u_j f_j are
    larger than those of the f_j, by a factor of five for a million outputs.
    """
    rise = bend = 0.0
    for piece in pieces(slice(0, cotangent.size), UNTHREADED):
        above, below, u = right[piece] - centre[piece], left[piece] - centre[piece], cotangent[piece]
        rise += float(u @ (above - below))
        bend += float(u @ (above + below))
    return rise, bend


def _is_met(begun: Beginning, outputs: Vector, typical: float, scale: float) -> bool:
    """Whether one pair of values meets the claim, as in `single_pair`, and no output needs a closer look.

    No output may have a kink or strong curvature, and not many may have slopes far below the largest (`are_alike`).
    `typical` is the size of u·f if its terms have random signs. The sum itself may be smaller by accident, but its
    rounding error is not.
    """
    x, cotangent, watched = begun.x, begun.cotangent, 1 < outputs.size <= WATCHED_OUTPUTS
    size = max(abs(dot(cotangent, outputs)), typical)
    chosen = step_for(size / scale, x.size, begun.rng)
    if chosen is None:
        return False
    step, part = chosen
    v = random_direction(begun.rng, begun.scales)
    try:
        right, left = begun.map.values_at([point_along(x, v, t) for t in (step, -step)])
    except Exception:  # outside the domain
        return False
    rise, bend = _rise(cotangent, right, left, outputs)
    error = abs(rise * (0.5 / step) - dot(begun.form, v)) + (4 * EPS * (size + abs(rise)) + 16 * TINY) / step
    straight = straightness(x.size) * scale
    if not (error <= part * scale and abs(bend) * (0.5 / step) <= straight):
        return False
    if not watched:
        moved = right - left
        return outputs.size == 1 or are_alike(moved[moved != 0])  # a rectifier has many zeros
    moved, bent = changes(right, left, outputs)
    return bool(bent.max() * (0.5 / step) <= straight) and are_alike(moved)
