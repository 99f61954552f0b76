"""Decides by finite differences which is right where claim and reference differ."""

from __future__ import annotations

from enum import Enum

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.compare import QuickReading, Reading
from gradcli.numerics.claims.residual import REACHES, residuals
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.three_pairs import BOUNDED_STEP, QUICK_STEP
from gradcli.numerics.maps.floats import Mask, Vector
from gradcli.numerics.reference.discrepancy import Discrepancy, block_of, compare, reference_rows, rounding_of
from gradcli.numerics.regularity.iteration import iterates
from gradcli.numerics.sampling.directions import MOVE, Focus, moved

DECISIVE = 0.05
"""A slope decides between claim and reference if it is within this part of their difference of one of the two."""
PERSISTENT = 1e-2
"""At a nearby point claim and reference must differ by at least this part of their difference at x."""


class Ruling(Enum):
    """Which of the two finite differences support."""

    CLAIM_WRONG = "finite differences agree with autodiff of forward's body, not with the gradient"
    WITNESS_WRONG = "finite differences agree with the gradient, not with autodiff of forward's body"
    NEITHER = "finite differences are inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """The decision between claim and reference for one pair.

    Attributes:
        ruling: which of the two is wrong, if that is known.
        reading: the last direction measured.
        wide: whether only large steps decided.
    """

    ruling: Ruling
    reading: Reading | None = None
    wide: bool = False


def settle(site: Site, input_: int, output: int, discrepancy: Discrepancy, only: Mask | None = None) -> Dispute:
    """Decide between claim and reference by finite differences along two directions, which must support the same side.

    With d the difference of claim and reference, the first direction is d s² (so that each entry counts according to
    its scale), the second has the entries with the largest d only, with other weights and steps. Along each, three
    pairs of values are tried first, then `directional_derivative`, and if rounding hides the slope, large steps. If
    the claim is found wrong, claim and reference must also differ at a nearby point.

    Args:
        only: if given, only these entries of the block are compared; large steps are then not used.
    """
    number, vectors = _vectors(site, input_, output, only)
    rulings: list[Ruling] = []
    reading, wide = None, False
    for v, start in zip(vectors, (QUICK_STEP, BOUNDED_STEP), strict=True):
        ruling, reading = _along(site, v, number, start)
        if ruling is Ruling.NEITHER and only is None:
            ruling, wide = _over_wide_steps(site, v, number), True
        rulings.append(ruling)
        if ruling is Ruling.NEITHER or ruling is not rulings[0]:
            return Dispute(ruling=Ruling.NEITHER, reading=reading)
    if rulings[0] is Ruling.CLAIM_WRONG and not _persists(site, input_, output, discrepancy):
        return Dispute(ruling=Ruling.NEITHER, reading=reading)
    return Dispute(ruling=rulings[0], reading=reading, wide=wide)


def _vectors(site: Site, input_: int, output: int, only: Mask | None) -> tuple[int, tuple[Vector, Vector]]:
    """The row in which claim and reference differ most, compared with rounding, and the two directions of `settle`."""
    claimed, reference = block_of(site, input_, output)
    scales = site.scales[site.map.domain.slices[input_]]
    apart = claimed - reference if only is None else np.where(only, claimed - reference, 0.0)
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
    """Decide along v, in the claimed row `number`, by small steps."""
    focus = Focus(drawn=np.where(v != 0, site.scales, 0.0), judged=site.scales)
    quick_reading = site.quick_reading(v, focus, start)
    reference, claimed = float(reference_rows(site)[number] @ v), float(site.claim.forms[number] @ v)
    apart = DECISIVE * abs(claimed - reference)
    short = quick_reading.short
    row = len(short.value) - len(site.claim.forms) + number
    kink = _kink(site, quick_reading, number)
    if short.rounding[row] + kink <= apart and short.shift[row] <= 10 * apart:
        return _side(float(short.value[row]), claimed, reference, apart), quick_reading.reading
    reading = site.measure(v, slice(0, v.size), focus, cheap=False)
    if not reading.smooth[row]:
        return Ruling.NEITHER, reading
    return _side(float(reading.numeric[row]), claimed, reference, float(reading.tolerance[row])), reading


def _over_wide_steps(site: Site, v: Vector, number: int) -> Ruling:
    """Decide along v, in the claimed row `number`, by the slope of the residual over two lengths of interval.

    They are the two longest of five at which it can be measured. NEITHER if the two disagree, if there are not two, or
    if forward iterates.
    """
    if not np.isfinite(site.row_values()).all() or iterates(site):
        return Ruling.NEITHER
    reference, claimed = float(reference_rows(site)[number] @ v), float(site.claim.forms[number] @ v)
    asked = np.arange(len(site.claim.forms)) == number
    rulings: list[Ruling] = []
    for level in residuals(site, v, REACHES[:5], asked):
        off, uncertainty = float(level.slope[number]), float(level.uncertainty[number])
        rulings.append(_side(claimed + off, claimed, reference, uncertainty))
        if len(rulings) == 2:
            return rulings[0] if rulings[0] is rulings[1] else Ruling.NEITHER
    return Ruling.NEITHER


def _kink(site: Site, quick_reading: QuickReading, number: int) -> float:
    """The change of slope of one row at x; of a projection, the sum of |u_i| · kink of its outputs, if they are known.

    In the sum u·f itself, kinks of several outputs may cancel.
    """
    kinks = np.abs(quick_reading.short.kink)
    row = len(kinks) - len(site.claim.forms) + number
    if site.claim.cotangents is None or not site.claim.watch:
        return float(kinks[row])
    return float(np.abs(site.claim.cotangents[number]) @ kinks[: site.map.codomain.size])


def _side(value: float, claimed: float, reference: float, allowed: float) -> Ruling:
    """Which side is wrong: more than three times `allowed` from the measured slope `value`, the other within `allowed`.

    `claimed` and `reference` are the slopes of claim and reference.
    """
    near = (abs(value - reference) <= allowed, abs(value - claimed) <= allowed)
    far = (abs(value - reference) > FAIL_FACTOR * allowed, abs(value - claimed) > FAIL_FACTOR * allowed)
    if near[0] and far[1]:
        return Ruling.CLAIM_WRONG
    return Ruling.WITNESS_WRONG if near[1] and far[0] else Ruling.NEITHER


def _persists(site: Site, input_: int, output: int, discrepancy: Discrepancy) -> bool:
    """Whether claim and reference differ at a nearby point too, by at least a hundredth of their difference here."""
    for _ in range(2):
        there = site.with_same_rows(moved(site.rng, site.x, site.scales, MOVE))
        if there is None:
            continue
        found = compare(there, input_, output)
        if not found.equal and found.error > PERSISTENT * discrepancy.error:
            return True
    return False
