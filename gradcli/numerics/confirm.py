"""A difference is reported only if it persists over directions, steps, points, and has no better explanation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradcli.numerics.compare import FAIL_FACTOR, Impression, Judgement, Reading
from gradcli.numerics.estimate import Status
from gradcli.numerics.jumps import smallest_jump
from gradcli.numerics.noise import Mask
from gradcli.numerics.outcome import Doubt, Outcome
from gradcli.numerics.probe import moved, random_direction
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector
from gradcli.numerics.symmetric import holds_on_symmetric_matrices

FINER = (2.0**-8, 2.0**-16, 2.0**-25)
ITERATIVE_GAP = 1e-2
"""Only differences below this part of the block can be an iteration's stopping error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome for a block whose claim first seemed to differ."""

    outcome: Outcome
    doubt: Doubt | None = None
    note: str | None = None
    judgement: Judgement


def confirm(site: Site, input_: int, output: int, first: Reading, significance: float) -> Decision:
    """Decide whether a difference seen along one direction is real.

    The claim differs only if a second run with other steps and another direction says so too, no finer scale agrees with
    the claim, the gap is not the noise of the claim nor a jump's, and it is there at one of two points moved by 2^-10 of
    the scale as well.
    """
    seen = site.judge(first, input_, output, significance)
    places = site.map.domain.slices[input_]
    again = []
    for _ in range(2):
        second = site.measure(random_direction(site.rng, site.scales, places), places, cheap=False)
        again.append(site.judge(second, input_, output, significance))
        if again[-1].impression is Impression.DIFFERS:
            break
    if again[-1].impression is not Impression.DIFFERS:
        return _unconfirmed(seen, again)
    latest = again[-1]
    gap = latest.error / latest.scale
    failing = first.differing(seen.scale, significance) & site.rows(output)
    inconsistent, left = _against_finer_scales(site, places, first, failing)
    if not left.any():
        note = "a finer scale agrees with the claim"
        return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE, note=note, judgement=latest)
    if gap < 1e-3 and _claim_is_noisy(site, first, left):
        note = f"the claim changes by more than the difference ({gap:.1e}) when x moves by a few units of rounding"
        return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE, note=note, judgement=latest)
    if gap < ITERATIVE_GAP and (latest.noisy or seen.noisy or inconsistent or smallest_jump(site, places, left)):
        note = (
            f"the claim differs from the computed function by {gap:.1e}, but the function jumps or is rough at that level: "
            "a loosely converged iteration, or rounding?"
        )
        return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE, note=note, judgement=latest)
    if holds_on_symmetric_matrices(site, input_, output, significance):
        note = "holds on symmetric matrices only: a convention of functions that read one triangle"
        return Decision(outcome=Outcome.AGREES, note=note, judgement=latest)
    return _at_moved_points(site, input_, output, significance, latest)


def _unconfirmed(seen: Judgement, again: list[Judgement]) -> Decision:
    for judgement in again:
        if judgement.impression is Impression.AGREES:
            note = "a first difference was not confirmed along other directions"
            return Decision(outcome=Outcome.AGREES, note=note, judgement=judgement)
    kinked = any(judgement.impression is Impression.KINKED for judgement in again)
    return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.KINK if kinked else Doubt.NOISE, judgement=seen)


def _against_finer_scales(site: Site, places: slice, first: Reading, failing: Mask) -> tuple[bool, Mask]:
    """Repeat the direction with much finer steps; a row that agrees with the claim there is not counted as failing."""
    inconsistent = False
    left = failing.copy()
    for factor in FINER:
        fine = site.measure(first.direction, places, cheap=False, start=0.05 * factor)
        with np.errstate(all="ignore"):
            agrees = (fine.error <= FAIL_FACTOR * fine.tolerance) & (fine.tolerance < first.error / FAIL_FACTOR)
            apart = np.abs(fine.numeric - first.numeric) > FAIL_FACTOR * (fine.bound + first.bound)
        left &= ~(agrees & fine.smooth)
        rough = (fine.status == Status.STAIRCASE) & (first.noise > 1e3 * 2.0**-53 * first.size)
        inconsistent = inconsistent or bool(((apart & fine.smooth) | rough)[failing].any())
    return inconsistent, left


def _claim_is_noisy(site: Site, first: Reading, failing: Mask) -> bool:
    """Whether the claim along the direction moves as much as the gap when x moves by a few units in the last place."""
    spread = np.zeros(first.claimed.size)
    for _ in range(3):
        nudged = site.x * (1 + 2.0**-51 * site.rng.integers(-4, 5, site.x.size))
        try:
            claimed = site.claim_at(nudged).along(first.direction)[0]
        except Exception:  # noqa: BLE001 - a claim that cannot be asked here says nothing about its noise
            continue
        spread = np.fmax(spread, np.abs(claimed - first.claimed))
    with np.errstate(all="ignore"):
        explained = first.error <= FAIL_FACTOR * (first.tolerance + 8 * spread)
    return bool(explained[failing].all())


def _at_moved_points(site: Site, input_: int, output: int, significance: float, latest: Judgement) -> Decision:
    places = site.map.domain.slices[input_]
    impressions = []
    for _ in range(4):
        if len(impressions) == 2:
            break
        try:
            there = Site.at(site.map, moved(site.rng, site.x, site.scales), site.rng, site.budget)
        except Exception:  # noqa: BLE001 - outside the domain: try another point
            continue
        if not np.isfinite(there.outputs[np.isfinite(site.outputs)]).all():
            continue
        reading = there.measure(_direction(there, places), places)
        judgement = there.judge(reading, input_, output, significance)
        if judgement.impression is Impression.DIFFERS and judgement.error > 0.01 * latest.error:
            return Decision(outcome=Outcome.DIFFERS, judgement=latest)
        impressions.append(judgement.impression)
    if not impressions:
        note = "the function could not be evaluated at points moved by 1e-3 of the scale"
        return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.DOMAIN, note=note, judgement=latest)
    held = all(impression in (Impression.AGREES, Impression.SILENT) for impression in impressions)
    note = "the claim is wrong at this very point only: it holds at points moved by 1e-3 of the scale" if held else None
    kinked = held or Impression.KINKED in impressions
    return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.KINK if kinked else Doubt.NOISE, note=note, judgement=latest)


def _direction(site: Site, places: slice) -> Vector:
    return random_direction(site.rng, site.scales, places)
