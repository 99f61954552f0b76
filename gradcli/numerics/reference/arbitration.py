"""Claim and witness part: which of the two the map's own differences support."""

from __future__ import annotations

from enum import Enum

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.residual import stretch
from gradcli.numerics.claims.site import QuickReading, Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.floats import Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.reference.gap import Gap, block_of, compare, reference_rows, rounding_of
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.sampling.directions import MOVE, Focus, moved

DECISIVE = 0.05
"""A direction decides between claim and witness if its slope agrees with one of them to this part of their
difference."""
PERSISTENT = 1e-2
SECOND_START = 0.006
"""The coarsest step of a second measurement, not a simple fraction of the first one, 0.02."""
REACHES = (0.8, 0.55, 0.3, 0.15, 0.06)
"""Steps as long as x. The two longest ones along which the claim can be followed must decide alike."""


class Ruling(Enum):
    """Which of the two the differences of the map support."""

    CLAIM_WRONG = "finite differences agree with autodiff of forward's body, not with the gradient"
    WITNESS_WRONG = "finite differences agree with the gradient, not with autodiff of forward's body"
    NEITHER = "finite differences are inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """A ruling on one block, with the last direction measured; `wide` says that only steps as long as x decided."""

    ruling: Ruling
    reading: Reading | None = None
    wide: bool = False


def settle(site: Site, input_: int, output: int, gap: Gap, only: Mask | None = None) -> Dispute:
    """Ask the map's differences along the direction in which claim and witness part, in the entries `only` if given.

    Two directions must rule alike: d scaled by s² (so that each entry counts by its size), and the worst entries alone
    with other weights and steps. Where three pairs do not decide along a direction, the ladder may, and where it is
    drowned in the values' rounding, steps as long as x along which the claim is integrated.
    """
    number, vectors = _vectors(site, input_, output, only)
    rulings: list[Ruling] = []
    reading, wide = None, False
    for v, start in zip(vectors, (0.02, SECOND_START), strict=True):
        ruling, reading = _along(site, v, number, start)
        if ruling is Ruling.NEITHER and only is None:
            ruling, wide = _over_wide_steps(site, v, number), True
        rulings.append(ruling)
        if ruling is Ruling.NEITHER or ruling is not rulings[0]:
            return Dispute(ruling=Ruling.NEITHER, reading=reading)
    if rulings[0] is Ruling.CLAIM_WRONG and not _persists(site, input_, output, gap):
        return Dispute(ruling=Ruling.NEITHER, reading=reading)
    return Dispute(ruling=rulings[0], reading=reading, wide=wide)


def ruled_over_wide_steps(site: Site, input_: int, output: int) -> Ruling:
    """The ruling by steps as long as x alone, along both directions."""
    number, vectors = _vectors(site, input_, output)
    one, two = (_over_wide_steps(site, v, number) for v in vectors)
    return one if one is two else Ruling.NEITHER


def _vectors(site: Site, input_: int, output: int, only: Mask | None = None) -> tuple[int, tuple[Vector, Vector]]:
    """The row in which claim and witness part most beyond rounding, and two directions along which they do."""
    claimed, told = block_of(site, input_, output)
    scales = site.scales[site.map.domain.slices[input_]]
    apart = claimed - told if only is None else np.where(only, claimed - told, 0.0)
    with np.errstate(over="ignore"):
        beyond = np.abs(apart) * scales / np.maximum(rounding_of(site, output), 1e-300)[:, None]
    row = int(np.argmax(beyond.max(1)))
    relative = apart[row] * scales
    size = np.abs(relative) / np.abs(relative).max()
    weights = site.rng.integers(128, 256, relative.size) / 256
    one, two = np.zeros((2, site.x.size))
    one[site.map.domain.slices[input_]] = np.round(np.sign(relative) * size * 256) / 256 * scales
    two[site.map.domain.slices[input_]] = np.where(size >= 0.3, np.sign(relative) * weights, 0.0) * scales
    return int(np.flatnonzero(site.claim.block == output)[row]), (one, two)


def _along(site: Site, v: Vector, number: int, start: float) -> tuple[Ruling, Reading]:
    """Rule along v by the row `number` of the claim's forms."""
    focus = Focus(drawn=np.where(v != 0, site.scales, 0.0), judged=site.scales)
    quick_reading = site.quick_reading(v, focus, start)
    told, claimed = float(reference_rows(site)[number] @ v), float(site.claim.forms[number] @ v)
    apart = DECISIVE * abs(claimed - told)
    short = quick_reading.short
    row = len(short.value) - len(site.claim.forms) + number
    kink = _kink(site, quick_reading, number)
    if short.rounding[row] + kink <= apart and short.shift[row] <= 10 * apart:
        return _side(float(short.value[row]), claimed, told, apart), quick_reading.reading
    reading = site.measure(v, slice(0, v.size), focus, cheap=False)
    if not reading.smooth[row]:
        return Ruling.NEITHER, reading
    return _side(float(reading.numeric[row]), claimed, told, float(reading.tolerance[row])), reading


def _over_wide_steps(site: Site, v: Vector, number: int) -> Ruling:
    """Rule along v by what the claim leaves of the values over two lengths of step, where forward does not iterate."""
    if not np.isfinite(site.row_values()).all() or iterates(site):
        return Ruling.NEITHER
    told, claimed = float(reference_rows(site)[number] @ v), float(site.claim.forms[number] @ v)
    asked = np.arange(len(site.claim.forms)) == number
    rulings: list[Ruling] = []
    for reach in REACHES:
        level = stretch(site, v, reach, asked)
        if level is None:
            continue
        off, uncertainty = float(level.slope[number]), float(level.uncertainty[number])
        rulings.append(_side(claimed + off, claimed, told, uncertainty))
        if len(rulings) == 2:
            return rulings[0] if rulings[0] is rulings[1] else Ruling.NEITHER
    return Ruling.NEITHER


def _kink(site: Site, quick_reading: QuickReading, number: int) -> float:
    """The kink of one row, summed over its outputs without their signs where they are known."""
    kinks = np.abs(quick_reading.short.kink)
    row = len(kinks) - len(site.claim.forms) + number
    if site.claim.cotangents is None or not site.claim.watch:
        return float(kinks[row])
    return float(np.abs(site.claim.cotangents[number]) @ kinks[: site.map.codomain.size])


def _side(value: float, claimed: float, told: float, allowed: float) -> Ruling:
    """Which of the two agrees with the value within `allowed`, the other being three times as far away."""
    near = (abs(value - told) <= allowed, abs(value - claimed) <= allowed)
    far = (abs(value - told) > FAIL_FACTOR * allowed, abs(value - claimed) > FAIL_FACTOR * allowed)
    if near[0] and far[1]:
        return Ruling.CLAIM_WRONG
    return Ruling.WITNESS_WRONG if near[1] and far[0] else Ruling.NEITHER


def _persists(site: Site, input_: int, output: int, gap: Gap) -> bool:
    """Whether claim and witness differ at a nearby point too, by more than a hundredth of the gap here."""
    for _ in range(2):
        there = site.with_same_rows(moved(site.rng, site.x, site.scales, MOVE))
        if there is None:
            continue
        found = compare(there, input_, output)
        if not found.equal and found.error > PERSISTENT * gap.error:
            return True
    return False
