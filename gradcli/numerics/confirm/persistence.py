"""Decides whether a difference is real.

It must persist along other directions, with other steps and at other points, and nothing else may explain it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from gradcli.numerics.claims.claim import Claim
from gradcli.numerics.claims.compare import Decision, Impression, Judgement, Reading
from gradcli.numerics.claims.site import NUDGES, Site
from gradcli.numerics.differences.directional import FINER, FIRST_STEP
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Status
from gradcli.numerics.differences.three_pairs import BOUNDED_STEP
from gradcli.numerics.localise.entries import Located
from gradcli.numerics.maps.floats import EPS, Mask, Vector
from gradcli.numerics.maps.sizes import MEASURABLE
from gradcli.numerics.outcome import Doubt, Outcome
from gradcli.numerics.reference.arbitration import PERSISTENT
from gradcli.numerics.reference.symmetric import NOTE, on_symmetric_changes
from gradcli.numerics.regularity.gradient_noise import nudged_claims
from gradcli.numerics.regularity.iteration import EXPLAINED, LOOSE, iterates, stops_early
from gradcli.numerics.regularity.jumps import jump_nearby
from gradcli.numerics.regularity.kinks import additive
from gradcli.numerics.regularity.stored_format import format_at, hidden_by_format
from gradcli.numerics.sampling.directions import LONG, MOVE, Focus, moved, random_direction, within
from gradcli.numerics.wording import STOPS_EARLY, of_largest

MOVES = (MOVE, MOVE, 2.0**-16, 2.0**-24, 2.0**-24)
"""The distances of five points, in units of the scale, at one of which the difference must persist. The short ones are
for functions that change their character within 2^-10."""
COARSEST_FINER = 2.0**-4
"""The smaller steps that confirm located entries are at least 16 times smaller than those before, even if rounding of
the values then hides a part of the difference."""
RANDOM, PERIODS = 0.05, 10.0
"""Values look random if their noise exceeds 5 % of their size. A fast oscillation is a possible explanation if the
claimed slope, over the shortest step, would change the values by more than ten times the noise."""
READABLE = 300.0
"""An error of up to this many unit roundoffs r of the values is explained by their format. Two values that are each
wrong by r, at both ends of a step t of a twentieth of the scale, make the quotient wrong by r / t = 20 r; extrapolation
and the factor of 8 standard deviations in the bound make that some hundreds."""
EXCUSED = 3.0
"""A difference may be the effect of an iteration that stops at a tolerance τ if it is at most 3 √τ, where τ is the
noise or a jump, relative to the values. The error after a step of Newton's method is about the square of the error e
before it, τ = e², and the derivative of e² is of the order of e = √τ."""


def confirm(site: Site, input_: int, output: int, first: Reading, significance: float) -> Decision:
    """Decide whether a difference measured along one direction is real.

    The claim DIFFERS only if all of this holds:

    1. another direction with other steps shows a difference as well;
    2. an iteration that stops early does not explain the difference (`_early_stop`);
    3. no run with smaller steps along the first direction agrees with the claim (`FINER`), and nothing else explains
       the difference (`_better_explanation`);
    4. a nearby point shows it as well (`MOVES`).
    """
    symmetric = on_symmetric_changes(site, input_, output, significance)
    if symmetric is not None:
        return along_symmetric_changes(symmetric)
    judged = site.judge(first, input_, output, significance)
    places = site.map.domain.slices[input_]
    again: list[Judgement] = []
    second = first
    for _ in range(2):
        second = site.probe(places, first.focus, cheap=False)
        again.append(site.judge(second, input_, output, significance))
        if again[-1].off:
            break
    if not again[-1].off:
        return _unconfirmed(judged, again)
    latest = max(judged, again[-1], key=_relative_error)
    doubt, note = _early_stop(site, first, latest)
    if doubt is None:
        failing = first.differing(judged.scale, significance) & site.rows(output)
        spread, left = _against_finer_scales(site, places, first, failing)
        doubt, note = _better_explanation(site, output, places, first, left, spread, latest)
    if doubt is not None:
        return Decision(outcome=Outcome.UNDECIDED, doubt=doubt, note=note, judgement=latest)
    return _at_moved_points(site, input_, output, significance, latest, first)


def _relative_error(judgement: Judgement) -> float:
    """The error divided by the block's scale. If that is zero: infinity, or 0 for no error."""
    if judgement.scale > 0.0:
        return judgement.error / judgement.scale
    return math.inf if judgement.error > 0.0 else 0.0


def along_symmetric_changes(judgement: Judgement) -> Decision:
    """The decision for a forward that reads one triangle of a symmetric matrix, from symmetric directions only."""
    if judgement.impression is Impression.AGREES:
        return Decision(outcome=Outcome.AGREES, note=NOTE, judgement=judgement)
    return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.NOISE, note=NOTE, judgement=judgement)


def confirm_sparse(site: Site, input_: int, output: int, found: Located | None, significance: float) -> Decision | None:
    """Confirm a difference of a large block in a few directions, if its wrong entries are known.

    All other entries have been found right. Early stops and rounding would show in them too, so that fewer tests are
    needed than in `confirm`. The difference must show again along another direction through the wrong entries, with
    steps about 256 times smaller, and at a point moved by 2^-10 of the scale.

    Returns:
        The decision DIFFERS; None if `found` is None, the block has at most `LONG` entries, or a test fails.
    """
    if found is None or site.map.domain.blocks[input_].size <= LONG:
        return None
    drawn = within(site.scales, site.map.domain.slices[input_].start + found.entries)
    focus = Focus(drawn=drawn, judged=site.scales)
    direction = random_direction(site.rng, drawn)

    def judged(start: float) -> Judgement:
        return site.judge(site.quick_reading(direction, focus, start).rough(), input_, output, significance)

    latest = judged(BOUNDED_STEP)
    if not (found.additive and latest.off and judged(_finer_start(site, output, latest)).off):
        return None
    if latest.error < LOOSE * latest.scale and (_claim_moves(site, direction, latest.error) or iterates(site)):
        return None
    if on_symmetric_changes(site, input_, output, significance) is not None:
        return None
    for amount in MOVES[:2]:
        there = site.moved_to(moved(site.rng, site.x, site.scales, amount))
        if there is None or not there.claim.finite:
            continue
        close = there.quick_reading(
            random_direction(site.rng, focus.at(there.scales).drawn), focus.at(there.scales)
        ).rough()
        judgement = there.judge(close, input_, output, significance)
        if judgement.off and judgement.error > PERSISTENT * latest.error:
            return Decision(outcome=Outcome.DIFFERS, judgement=latest, located=found.entries, searched=True)
    return None


def _finer_start(site: Site, output: int, latest: Judgement) -> float:
    """The largest step for a second run: BOUNDED_STEP / 256, or larger where rounding would hide the difference.

    The rounding error of the slope is about 32 ε |u·f| / t, and a difference must exceed three bounds. The step is
    therefore such that six times this rounding error is below the difference, but at most BOUNDED_STEP / 16. Example:
    an error of a millionth in one of a million entries is lost at BOUNDED_STEP / 256, in the rounding of their sum.
    """
    size = float(np.abs(site.row_values()[site.rows(output)]).max(initial=0.0))
    readable = 2 * FAIL_FACTOR * 32 * EPS * size / latest.error
    return BOUNDED_STEP * min(max(FINER[0], readable / BOUNDED_STEP), COARSEST_FINER)


def _claim_moves(site: Site, direction: Vector, gap: float) -> bool:
    """Whether the claimed slope changes by a third of the difference `gap` when x moves by a few roundings."""
    here = site.claim.along(direction)[0]
    changes = (np.nanmax(np.abs(claim.along(direction)[0] - here)) for claim in nudged_claims(site))
    return any(FAIL_FACTOR * change > gap for change in changes)


def _early_stop(site: Site, first: Reading, latest: Judgement) -> tuple[Doubt | None, str | None]:
    """The doubt and a sentence, if an early stop may explain the difference: the cheapest explanation to look for."""
    gap = _relative_error(latest)
    if not (iterates(site) if gap < LOOSE else stops_early(site, first)):
        return None, None
    return Doubt.NOISE, (
        f"the gradient differs from finite differences by {of_largest(gap)}, but {STOPS_EARLY}, which may explain the "
        "difference: if the iteration stops early, tighten its tolerance or fix the number of iterations"
    )


def _better_explanation(
    site: Site, output: int, places: slice, first: Reading, left: Mask, spread: Vector, latest: Judgement
) -> tuple[Doubt | None, str | None]:
    """Why a right claim may differ from finite differences in the rows `left`: the kind of doubt, and a sentence.

    Args:
        left: the rows that differ at all step sizes; if none does, that is the reason.
        spread: for every row, how much the slopes of different step sizes contradict each other.

    Returns:
        None, None if there is no such reason.
    """
    if not left.any():
        return Doubt.NOISE, (
            "finite differences with large steps contradict the gradient, but those with small steps agree with it"
        )
    text = (
        _too_fast(site, first, left)
        or _few_digits(site, output, first, left)
        or hidden_by_format(site, output, first, left)
        or _roughness(site, output, first, left, spread, latest)
    )
    if text is not None:
        return Doubt.NOISE, text
    if not additive(site, places, left, first.focus, first.error / EXPLAINED):
        return Doubt.KINK, (
            "the slope along the sum of two directions is not the sum of the slopes along them, so forward has no "
            "derivative at this point"
        )
    return None, None


def _too_fast(site: Site, first: Reading, left: Mask) -> str | None:
    """A sentence, if forward may oscillate too fast for finite differences; otherwise None.

    sin(1e10 x) has many periods within every step, so that its values look random at all steps. All rows `left` must
    have noise above rounding, and a claimed change over the shortest step above PERIODS times that noise. In
    addition, in every row the noise is above RANDOM of the values, or the claim times ε (the change when x moves by a
    rounding) is larger than the values; or in every row the claim changes by half the difference within that step.
    """
    with np.errstate(all="ignore"):
        rough = first.status == Status.NOISE
        immense = np.abs(first.claimed) * EPS > first.size
        random = rough & (immense | (first.noise > RANDOM * first.size))
        many = np.abs(first.claimed) * FIRST_STEP * FINER[-1] > PERIODS * first.noise
    if not (rough & many)[left].all() or not (random[left].all() or _swings(site, first, left)):
        return None
    return (
        "forward's values look random at every step size, so finite differences are inconclusive: if the gradient is "
        "right, forward oscillates too fast for them"
    )


def _swings(site: Site, first: Reading, left: Mask) -> bool:
    """Whether the claimed slope changes by half the difference or more within the shortest step, in all rows `left`."""
    shortest = FIRST_STEP * FINER[-1]
    shifts = site.rng.uniform(-shortest, shortest, NUDGES)
    spread = _spread(first, (site.claim_at(site.x + t * first.direction) for t in shifts))
    return bool((2 * spread >= first.error)[left].all())


def _spread(first: Reading, claims: Iterable[Claim | None]) -> Vector:
    """For every row, the largest change of the claimed slope in some claims."""
    spread = np.zeros(first.claimed.size)
    for claim in claims:
        if claim is not None:
            spread = np.fmax(spread, np.abs(claim.along(first.direction)[0] - first.claimed))
    return spread


def _few_digits(site: Site, output: int, first: Reading, left: Mask) -> str | None:
    """A sentence, if the values are float16 or bfloat16 numbers whose rounding explains the difference (READABLE)."""
    stored = format_at(site, output)
    if stored is None or not stored.half:
        return None
    with np.errstate(all="ignore"):
        explained = (first.error <= READABLE * stored.roundoff * first.size)[left].all()
    if not explained:
        return None
    return f"forward's values are {stored.name} numbers, which have too few digits for finite differences to decide"


def _roughness(site: Site, output: int, first: Reading, left: Mask, spread: Vector, latest: Judgement) -> str | None:
    """A sentence, if noise of the claim, or jumps or noise of forward explain the difference."""
    gap = _relative_error(latest)
    if gap < LOOSE and _claim_is_noisy(site, first, left):
        return (
            f"the gradient differs from finite differences by {of_largest(gap)}, but the gradient itself changes by "
            "as much from rounding alone, so rounding may explain the difference"
        )
    if _excused(site, first, site.rows(output), left, spread):
        return (
            f"the gradient differs from finite differences by {of_largest(gap)}, but forward's values jump or are "
            "noisy (from a solver's tolerance or rounding) by enough to explain the difference"
        )
    return None


def _unconfirmed(judged: Judgement, again: list[Judgement]) -> Decision:
    for judgement in again:
        if judgement.impression is Impression.AGREES:
            note = (
                "accepted: the gradient seemed wrong along one direction, but a second measurement along other "
                "directions agrees with it"
            )
            return Decision(outcome=Outcome.AGREES, note=note, judgement=judgement)
    kinked = any(judgement.impression is Impression.KINKED for judgement in again)
    return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.KINK if kinked else Doubt.NOISE, judgement=judged)


def _against_finer_scales(site: Site, places: slice, first: Reading, failing: Mask) -> tuple[Vector, Mask]:
    """Repeat the measurement along the first direction with much smaller steps (`FINER`).

    Returns:
        For every row, the largest difference of two slopes that contradict each other by more than three bounds, or 0;
        and the failing rows without those that agree with the claim at some smaller step size.
    """
    spread = np.zeros(failing.size)
    left = failing.copy()
    for factor in FINER:
        fine = site.measure(first.direction, places, first.focus, cheap=False, start=FIRST_STEP * factor)
        with np.errstate(all="ignore"):
            near = (fine.error <= FAIL_FACTOR * fine.tolerance) & (fine.error < 0.5 * first.error)
            agrees = near & (fine.tolerance < first.error / FAIL_FACTOR)
            shift = np.abs(fine.numeric - first.numeric)
            apart = fine.smooth & first.smooth & (shift > FAIL_FACTOR * (fine.bound + first.bound))
        spread = np.where(apart, np.maximum(spread, shift), spread)
        left &= ~(agrees & fine.smooth)
    return spread, left


def _claim_is_noisy(site: Site, first: Reading, failing: Mask) -> bool:
    """Whether rounding explains the difference in all failing rows, for a claim that is itself noisy.

    The error must be at most three times the bound plus eight times the change of the claimed slope when x moves by a
    few roundings, or when the cotangents are multiplied by a number near 1: where large parts of a claim cancel, its
    digits are those of these parts, which may be the same at neighbouring points.
    """
    spread = _spread(first, nudged_claims(site))
    factors = 1 + site.rng.uniform(0.0, MOVE, 3)
    spread = np.fmax(spread, _spread(first, (site.claim_at(site.x, factor=factor) for factor in factors.tolist())))
    with np.errstate(all="ignore"):
        explained = first.error <= FAIL_FACTOR * (first.tolerance + 8 * spread)
    return bool(explained[failing].all())


def _excused(site: Site, first: Reading, rows: Mask, failing: Mask, spread: Vector) -> bool:
    """Whether roughness of forward explains the difference in every failing row.

    An error is explained if it is at most ten times the contradiction of slopes over different steps (`spread`), or
    EXCUSED · √(noise · size) for noise that an early stop or few digits leave (above `MEASURABLE`), or
    EXCUSED · √(jump · size) for jumps nearby.
    """
    with np.errstate(all="ignore"):
        noise = np.where(first.noise > MEASURABLE * first.size, first.noise, 0.0)
        allowed = np.maximum(EXPLAINED * spread, EXCUSED * np.sqrt(noise * first.size))
        open_ = failing & ~(first.error <= allowed)
        if not open_.any():
            return True
        if not (first.error[open_] < EXCUSED * 0.1 * first.size[open_]).any():
            return False
        jumps = jump_nearby(site, first.direction, rows)
        return not (open_ & ~(first.error <= EXCUSED * np.sqrt(jumps * first.size))).any()


def _lasting(there: Judgement, here: Judgement) -> bool:
    """Whether the difference at a moved point is at least a hundredth of that at the given point.

    Either the errors themselves are compared or, if the difference is significant at the moved point, the errors
    relative to the block's scale at each point.
    """
    least = PERSISTENT * here.error
    relative = there.impression is Impression.DIFFERS and there.error * here.scale > least * there.scale
    return relative or there.error > least


def _at_moved_points(
    site: Site, input_: int, output: int, significance: float, latest: Judgement, first: Reading
) -> Decision:
    places = site.map.domain.slices[input_]

    def judged(scales: Vector) -> Iterator[Judgement]:
        for amount in MOVES:
            there = site.moved_to(moved(site.rng, site.x, scales, amount))
            if there is not None and np.isfinite(there.outputs[np.isfinite(site.outputs)]).all():
                own = there.judge(there.probe(places, first.focus.at(there.scales)), input_, output, significance)
                if own.impression is not Impression.DIFFERS or _lasting(own, latest):
                    yield own
                else:  # an entry of zero has a scale of its own there, as small as the move, and so has its error
                    yield there.judge(there.probe(places, first.focus), input_, output, significance)

    impressions: list[Impression] = []
    for judgement in judged(site.scales):
        if judgement.off and _lasting(judgement, latest):
            return Decision(outcome=Outcome.DIFFERS, judgement=latest)
        impressions.append(judgement.impression)
    if not impressions:
        note = (
            "the gradient seems wrong, but this could not be confirmed, because forward raised or was not "
            "finite at nearby points"
        )
        return Decision(outcome=Outcome.UNDECIDED, doubt=Doubt.DOMAIN, note=note, judgement=latest)
    # Another input may hold labels, between which forward means nothing: now only this input is moved.
    alone = list(judged(within(site.scales, places))) if len(site.map.domain.blocks) > 1 else []
    if len(alone) > 1 and all(judgement.off and _lasting(judgement, latest) for judgement in alone):
        return Decision(outcome=Outcome.DIFFERS, judgement=latest)
    held = sum(impression in (Impression.AGREES, Impression.SILENT) for impression in impressions) >= 2
    reason = "the gradient seems wrong at exactly this point, but it is right at nearby points"
    kinked = held or Impression.KINKED in impressions
    return Decision(
        outcome=Outcome.UNDECIDED,
        doubt=Doubt.KINK if kinked else Doubt.NOISE,
        note=reason if held else None,
        judgement=latest,
        here_only=held,
    )
