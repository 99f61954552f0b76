"""Judges every pair of an input and an output block at one point, with as few evaluations as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gradcli.numerics.claims.compare import PASS_RESOLUTION, Impression, Judgement, QuickReading, Reading, resolution_of
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.estimate import Status
from gradcli.numerics.differences.formats import BFLOAT16, FLOAT32, Format
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.pieces import largest, pieces
from gradcli.numerics.maps.sizes import CERTIFIED, SIGNIFICANT
from gradcli.numerics.outcome import AUTODIFF, DIFFERENCES, Pair
from gradcli.numerics.regularity.cancellation import is_rounding_only
from gradcli.numerics.regularity.iteration import effort_at
from gradcli.numerics.regularity.step_functions import is_staircase, witness_is_zero
from gradcli.numerics.regularity.stored_format import format_at, spread_over
from gradcli.numerics.sampling.directions import LONG, Focus, focuses, is_one_group, within
from gradcli.numerics.screen.long_inputs import GROUP_START, SmallerPair, clearly_wrong, joint_reading, measured
from gradcli.numerics.screen.pair_result import (
    STARTS,
    PairResult,
    certified,
    quick_reading_through,
    short_start,
    stronger,
    unmoved,
    vanishing,
)
from gradcli.numerics.screen.small_entries import DROWNED, LOST, NEARER, UNIT
from gradcli.numerics.screen.with_reference import WitnessComparison, compare_with_witness
from gradcli.numerics.wording import of_largest

DROWNABLE = (Impression.DIFFERS, Impression.WEAK)
"""The results that rounding may explain."""
LEAST_SEEN = 5e-7
"""Large entries are measured alone if an error of 1e-6 in them could remain undetected: a direction shows at least half
of an entry's error, 5e-7."""


def survey(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, PairResult]:
    """Judge pairs of blocks at a site, by its reference and finite differences, or by finite differences alone."""
    compared = WitnessComparison()
    if site.witness_rows is not None and site.claim.finite:
        compared = compare_with_witness(site, pairs, significance)
    found = {
        pair: _unless_rounding(site, pair, as_step_function(site, pair, result))
        for pair, result in compared.found.items()
    }
    rest = [pair for pair in pairs if pair not in found]
    if rest:
        for pair, result in by_differences(site.alone(), rest, compared.significance or significance).items():
            found[pair] = compared.temper(pair, result)
    if compared.significance is None:
        return found
    return {pair: replace(result, allowed=compared.significance) for pair, result in found.items()}


def by_differences(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, PairResult]:
    """Judge pairs by finite differences alone.

    For inputs whose scales are alike, two directions through all of them come first; pairs that these do not certify,
    and those of other inputs, are measured along two directions through their input, or along one through all of it
    and one through every group of scales.
    """
    found = _together(site, pairs, significance) if site.claim.finite else {}
    for pair in [pair for pair in pairs if pair not in found]:
        nothing = is_staircase(site, pair) or is_rounding_only(site, pair)  # both are for claims of zero only
        quick_reading = quick_reading_through(site, [pair[0]]) if nothing else None
        if quick_reading is not None:
            found[pair] = _still(site, pair, _met(site, quick_reading, pair))
    for input_ in sorted({input_ for input_, _ in pairs}):
        outputs = [output for i, output in pairs if i == input_ and (i, output) not in found]
        if outputs:
            found |= _one_by_one(site, input_, outputs, significance)
    found = {pair: _unless_apart(site, pair, result) for pair, result in found.items()}
    return {pair: _at_its_precision(site, pair, _unless_rounding(site, pair, result)) for pair, result in found.items()}


def _unless_apart(site: Site, pair: Pair, result: PairResult) -> PairResult:
    """Return the result, but SILENT for a zero claim whose output stays exactly the same when the input moves.

    Where the values are noisy, the measurement could not show the slope of zero. This alone decides the second
    derivative of a product in float32 by its own factor, which is zero, and an iterated projection onto a vertex (JAX).
    """
    rows = site.rows(pair[1])
    if result.impression is not Impression.WEAK or not is_quiet(site, pair) or not unmoved(site, pair[0])[rows].all():
        return result
    return _still(site, pair, result)


def _at_its_precision(site: Site, pair: Pair, result: PairResult) -> PairResult:
    """Return the result, but AGREES for a claim that is within a coarse bound, if the values are stored in few digits.

    The resolution must be at least as fine as the format's. This saves evaluations: large steps would mostly agree
    too, at a finer resolution, after six times as many.
    """
    coarse = (
        result.impression is Impression.WEAK
        and result.resolution is not None
        and result.resolution <= BFLOAT16.resolution
    )
    ours = site.rows(pair[1]) & ~result.reading.claimless
    with np.errstate(all="ignore"):
        met = result.reading.smooth & (result.reading.error <= result.reading.tolerance)
    if not coarse or not ours.any() or not met[ours].all():
        return result
    stored = format_at(site, pair[1]) or (None if site.noise_of_single() is None else FLOAT32)
    if stored is None or result.resolution is None or result.resolution > stored.resolution:
        return result
    what = f"are {stored.name} numbers"
    if _may_be_halved(site, pair[1], stored):
        what = (
            f"have at most {stored.digits} binary digits (those of a bisection that stops early, or of {stored.name})"
        )
    note = f"accepted, but the outputs {what}, so an error below {of_largest(result.resolution)} cannot be detected"
    return replace(result, judgement=replace(result.judgement, impression=Impression.AGREES), note=note)


def _may_be_halved(site: Site, output: int, stored: Format) -> bool:
    """Whether values that fit into a format may instead be multiples of a fixed step, computed by a loop: a bisection.

    After k halvings of an interval its middle needs about k digits, in whatever format it is stored.
    """
    values = site.outputs[site.map.codomain.slices[output]]
    if spread_over(values, stored):
        return False
    effort = effort_at(site, site.x)
    return effort is not None and effort.may_repeat


def _unless_rounding(site: Site, pair: Pair, result: PairResult) -> PairResult:
    """Return the result, but SILENT for a difference that may be rounding in a tail, so that other points are tried.

    Finite differences may know a gradient of 1e-73 to many digits, while a right formula has only three of them, or
    none: one that computes 1 - erf(x) gives zero there, or a few roundings of the values nearer to zero.
    """
    if result.impression not in DROWNABLE or not _is_rounding(site, pair, result):
        return result
    judgement = replace(result.judgement, impression=Impression.SILENT, resolution=None)
    return replace(result, judgement=judgement, decision=None)


def _is_rounding(site: Site, pair: Pair, result: PairResult) -> bool:
    """Whether a difference may be rounding: in a tail, unless it is confirmed, or of values that stay the same."""
    if result.decision is None and (
        is_below_rounding(site, pair, result) or _is_rounding_nearer_to_zero(site, pair, result)
    ):
        return True
    from gradcli.numerics.screen.held_still import is_held_still

    return is_held_still(site, pair, result)


def is_below_rounding(site: Site, pair: Pair, result: PairResult) -> bool:
    """Whether a difference is negligible compared with the output's values at a site, or with their noise.

    Claim and error must be below `DROWNED` times the largest value, or below the noise that the map gives. Such a
    gradient may consist of the rounding errors of larger terms.

    Args:
        site: the point whose values are compared.
        result: the result, at this or another point.
    """
    place = site.map.codomain.slices[pair[1]]
    if result.impression not in DROWNABLE:
        return False
    most = max(result.judgement.scale, result.judgement.error)
    if most <= DROWNED * _size(site.outputs[place]):
        return True
    with np.errstate(all="ignore"):
        noise = site.map.value_noise(site.x)
    return noise is not None and most <= float(np.nanmax(noise[place], initial=0.0))


def _is_rounding_nearer_to_zero(site: Site, pair: Pair, result: PairResult) -> bool:
    """Whether a difference may come from rounding of the values at x / 8 or -x / 8, in a tail that falls off there.

    Claim and error must be below `DROWNED` times those values. If they are even below `UNIT` times those values, the
    error must be at most `LOST` times the block: a larger one is a mistake, however small the block is.
    """
    if result.impression not in DROWNABLE:
        return False
    most = max(result.judgement.scale, result.judgement.error)
    for factor in NEARER:
        size = _size(site.value_at(factor * site.x)[site.map.codomain.slices[pair[1]]])
        if most <= DROWNED * size and (most > UNIT * size or result.judgement.error <= LOST * most):
            return True
        if most > SIGNIFICANT * size:  # values do not fall off from there to x: those at -x / 8 do not matter
            return False
    return False


def _size(values: Vector) -> float:
    """The largest finite |value|; zero if there is none."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def as_step_function(site: Site, pair: Pair, result: PairResult) -> PairResult:
    """Return the result, but SILENT if forward is a step function: a zero claim is right although its values rise."""
    known = result.impression in (Impression.SILENT, Impression.AGREES)
    return result if known or not is_staircase(site, pair) else _still(site, pair, result)


def _still(site: Site, pair: Pair, result: PairResult) -> PairResult:
    """The result SILENT for a pair whose claim and derivative are zero."""
    judgement = replace(result.judgement, impression=Impression.SILENT, error=0.0, tolerance=0.0, resolution=None)
    reference = AUTODIFF if witness_is_zero(site, pair) else DIFFERENCES
    return replace(result, judgement=judgement, decision=None, quiet=True, reference=reference)


def _together(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, PairResult]:
    """The pairs that two directions through all inputs at once certify.

    Pairs that are not certified with the first steps are tried with smaller ones: at any step size, a slope does not
    meet a claim to nine digits by accident. For a claim of zero, the output must also stay exactly the same when its
    input moves (`unmoved`). If a large input is the only pair and clearly differs, the first direction decides.
    """
    slices = site.map.domain.slices
    inputs = sorted({input_ for input_, _ in pairs})
    open_ = [pair for pair in pairs if is_one_group(site.scales[slices[pair[0]]])]
    quiet = {pair for pair in open_ if is_quiet(site, pair)}
    found: dict[Pair, PairResult] = {}
    starts = (short_start(site, open_), *STARTS[1:]) if any(_is_long(site, pair) for pair in open_) else STARTS
    for start in starts:
        quick_reading = quick_reading_through(site, inputs, start) if open_ else None
        if quick_reading is None:
            break
        if len(pairs) == 1 and start == starts[0] and _is_long(site, pairs[0]):
            clear = clearly_wrong(site, pairs, quick_reading, significance)
            if clear:
                return clear
        if start == starts[0]:
            found |= _twice(site, inputs, start, quick_reading, {pair: pair in quiet for pair in open_})
        else:
            found |= _twice(site, inputs, start, quick_reading, dict.fromkeys(open_, False))
        open_ = [pair for pair in open_ if pair not in found and pair not in quiet]
    for input_ in sorted({input_ for input_, _ in quiet & set(found)}):
        ours = [pair for pair in quiet if pair in found and pair[0] == input_]
        same = unmoved(site, input_)
        for pair in ours:
            if not same[site.rows(pair[1])].all():
                del found[pair]
    return found


def _twice(
    site: Site, inputs: Sequence[int], start: float, first: QuickReading, pairs: dict[Pair, bool]
) -> dict[Pair, PairResult]:
    """The pairs that a first direction, and a second one with steps of the same size, certify.

    `pairs` says for each pair whether its claim is zero.
    """
    met = [pair for pair, quiet in pairs.items() if certified(site, first, pair, CERTIFIED, quiet=quiet)]
    second = quick_reading_through(site, inputs, start) if met else None
    if second is None:
        return {}
    met = [pair for pair in met if certified(site, second, pair, CERTIFIED, quiet=pairs[pair])]
    return {pair: stronger(_met(site, first, pair), _met(site, second, pair)) for pair in met}


def is_quiet(site: Site, pair: Pair) -> bool:
    """Whether the claim of a pair is zero, or below `UNIT` times the output: nothing is left of rounding."""
    rows = site.rows(pair[1])
    size = float(np.abs(site.row_values()[rows]).max(initial=0.0))
    return site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], site.scales) <= UNIT * size


def _met(site: Site, quick_reading: QuickReading, pair: Pair) -> PairResult:
    """The result for a pair that three pairs of values certify."""
    rows = site.rows(pair[1]) & ~quick_reading.reading.claimless
    scale = site.claim.entry_scale(site.map.domain.slices[pair[0]], pair[1], site.scales)
    tolerance = float(quick_reading.reading.tolerance[rows].max(initial=0.0))
    resolution = resolution_of(tolerance, scale)
    sure = resolution is not None and resolution <= PASS_RESOLUTION
    judgement = Judgement(
        impression=Impression.AGREES if sure else Impression.SILENT,
        scale=scale,
        error=float(quick_reading.reading.error[rows].max(initial=0.0)),
        tolerance=tolerance,
        resolution=resolution,
        statuses=(Status.OK,),
    )
    return PairResult(
        site=site,
        judgement=judgement,
        reading=quick_reading.reading,
        quiet=not sure and is_quiet(site, pair),
    )


def _is_long(site: Site, pair: Pair) -> bool:
    """Whether an input is so large that wrong entries are located before a difference is confirmed."""
    return site.map.domain.blocks[pair[0]].size > LONG


def _one_by_one(site: Site, input_: int, outputs: Sequence[int], significance: float) -> dict[Pair, PairResult]:
    """Judge pairs along two directions through their input block, or one through every group of scales."""
    places = site.map.domain.slices[input_]
    best: dict[Pair, PairResult] = {}
    chosen = focuses(site.scales, places)
    pairs = [(input_, output) for output in outputs]
    first: list[QuickReading] = []
    for number, (focus, known) in enumerate(_directions(site, input_, outputs, chosen, best, first)):
        reading = known
        if reading is None and _is_long(site, pairs[0]):
            start = GROUP_START if number else short_start(site, pairs)
            beside = first[0] if len(chosen) > 1 and number > 0 else None
            closest = None if number or site.claim.watch else SmallerPair()
            quick_reading, met = measured(site, places, focus, start, first=beside, seen=closest)
            differing = {} if met else clearly_wrong(site, pairs, quick_reading, significance)
            if len(differing) == len(outputs):
                return differing
            reading = quick_reading.reading if met else None
            first.append(quick_reading)
            if met and closest is not None and closest.change is not None:
                site.known_slopes[input_] = closest.change
        reading = reading or site.probe(places, focus)
        for output in outputs:
            judgement = site.judge(reading, input_, output, significance)
            result = PairResult(
                site=site,
                judgement=judgement,
                reading=reading,
                quiet=judgement.impression is Impression.SILENT and vanishing(reading, site.rows(output)),
            )
            before = best.get((input_, output))
            combine = stronger if len(chosen) == 1 and number < 2 else _unless_contradicted
            best[input_, output] = result if before is None else combine(before, result)
    return best


def _directions(
    site: Site,
    input_: int,
    outputs: Sequence[int],
    chosen: list[Focus],
    best: Mapping[Pair, PairResult],
    first: Sequence[QuickReading],
) -> Iterator[tuple[Focus, Reading | None]]:
    """The directions to measure: one through all entries, one through every group; then the `_underweighted` ones.

    Of a long input, one direction through all the groups and the underweighted entries is enough, which then comes with
    its reading, if it meets the claim. `best` and `first` are what the caller knows by then.
    """
    yield chosen[0], None
    places, groups = site.map.domain.slices[input_], chosen[1:]
    if groups and _is_long(site, (input_, outputs[0])):
        small = [*groups, *_underweighted(site, input_, outputs, best)]
        joint = joint_reading(site, places, small, first[0]) if len(small) > 1 else None
        if joint is not None:
            yield joint.focus, joint
            return
    yield from [(group, None) for group in groups or chosen]
    yield from [(focus, None) for focus in _underweighted(site, input_, outputs, best)]


def _underweighted(site: Site, input_: int, outputs: Sequence[int], best: Mapping[Pair, PairResult]) -> list[Focus]:
    """A focus on large entries in which an error of 1e-6 could remain undetected; none if there are none.

    Along a direction through all entries, each counts times the scale of its input, so that an error in an entry of
    small scale may be below the resolution although the entry is as large as any.
    """
    places = site.map.domain.slices[input_]
    known = [(output, best[input_, output]) for output in outputs]
    resolutions = {
        o: result.resolution for o, result in known if result.impression is Impression.AGREES and result.resolution
    }
    scales, hidden = site.scales[places], np.zeros(places.stop - places.start, bool)
    for output, resolution in resolutions.items():
        claimed = site.claim.of_block(output)[:, places]
        least, most = 0.5 * largest(claimed), resolution * site.claim.entry_scale(places, output, site.scales)
        for piece in pieces(slice(0, scales.size)):
            size = np.abs(claimed[:, piece]).max(axis=0)
            hidden[piece] |= (size >= least) & (LEAST_SEEN * size * scales[piece] < most)
    if not hidden.any():
        return []
    drawn = within(site.scales, places.start + np.flatnonzero(hidden))
    return [Focus(drawn=drawn, judged=np.full(site.x.size, drawn.max()))]


def _unless_contradicted(whole: PairResult, group: PairResult) -> PairResult:
    """The result of all entries, unless a group of entries that count little in it contradicts it.

    The group counts if it differs or is on a kink, or if all entries together gave no signal. A group whose bound is
    too wide is left out: the resolution is then that of all entries, and does not hold for each of the group.
    """
    if whole.impression is Impression.SILENT or group.impression in (Impression.KINKED, Impression.DIFFERS):
        return stronger(whole, group)
    return whole
