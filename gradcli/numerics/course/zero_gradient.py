"""Compares other points if claim and derivative are both zero at the given one, which proves little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gradcli.frozen import dataclass
from gradcli.numerics.claims.claim import PROJECTIONS
from gradcli.numerics.claims.compare import Impression
from gradcli.numerics.claims.other_points import other_points, paths_away, without_large_terms
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import Indices, Vector
from gradcli.numerics.maps.sizes import CERTIFIED, SIGNIFICANT
from gradcli.numerics.outcome import BlockOutcome, Pair
from gradcli.numerics.sampling.directions import TRIES
from gradcli.numerics.screen.pair_result import PairResult, certified, quick_reading_through
from gradcli.numerics.screen.survey import is_below_rounding, is_quiet, survey

CONFIRMING = 4
"""At this many points, besides the first, claim and derivative must be zero to count as zero everywhere. One of them
may be missing, outside the domain for example."""
CONFIRMING_WITH_WITNESS = 2
"""The same with a reference, which shows at once whether a derivative is zero, without rounding."""
OfRows = Callable[[Pair, Vector, Indices], BlockOutcome | None]
WITHOUT_LARGE_TERMS = "cotangents of large terms set to zero"


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """What other points showed for one pair.

    Attributes:
        result: the most informative result at a point where claim or derivative is not zero; None if there is no such
            point.
        where: a description of that point.
        zeros: at how many points both were zero.
        enough: whether these are enough to call the gradient zero everywhere.
        wrong: a description of a point at which the claim differs, if that is not counted (`look_elsewhere`).
        hidden: whether the claim is not zero at the given point, but below rounding of the values.
    """

    result: PairResult | None
    where: str
    zeros: int
    enough: bool
    wrong: str | None = None
    hidden: bool = False

    @property
    def differs(self) -> bool:
        """Whether the claim differs at the point that decides."""
        return self.result is not None and self.result.impression is Impression.DIFFERS

    @property
    def note(self) -> str:
        """A sentence on the point that decides, and on one that is not counted."""
        size = "below rounding errors" if self.hidden else "zero"
        if self.wrong is None:
            joint = "with" if self.where == WITHOUT_LARGE_TERMS else "at"
            return f"the gradient is {size} here; compared {joint} {self.where} instead"
        return (
            f"the gradient is {size} at your inputs, so they prove little. With {self.where}, and your other inputs "
            "unchanged, the gradient that backward returns is right. Where all inputs change together "
            f"({self.wrong}), it is wrong. This does not fail the check, because forward may not be meant for such "
            "inputs. If your program uses them, run the check on them"
        )


def look_elsewhere(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, Elsewhere]:
    """Try other points until claim or derivative is not zero at one. Each point is tried for all pairs.

    If the resolution there is coarser than `SIGNIFICANT`, as in a flat region, up to three more points are tried, and
    the result with the finest resolution counts. A difference that is negligible compared with the values at the given
    point is ignored: it lies in a tail, in which a right formula may lose its digits.

    With a reference, claim and reference are compared at the other points; finite differences are used only where one
    of them is not zero.

    If the user gave values (`VectorMap.given`), forward may not be meant for others, such as a lower limit above the
    upper one. A claim that differs then counts only if it also differs where claim or derivative first becomes nonzero
    as one input leaves its values, whichever input that is.

    Args:
        site: the given point, where both are zero.
    """
    found = _at_points(site, pairs, significance)
    if site.map.given:
        found |= _agreeing_nearby(site, {pair: each for pair, each in found.items() if each.differs}, significance)
    return {pair: replace(each, hidden=_claimed(site, pair)) for pair, each in found.items()}


def without_large_outputs(
    site: Site, here: PairResult, pair: Pair, other: Elsewhere, of_rows: OfRows | None
) -> tuple[BlockOutcome | None, bool]:
    """Decide a pair by its outputs of small value alone, if rounding of larger ones hides a claim that is not zero.

    Args:
        other: what other points showed; where the claim differs there, that decides.
        of_rows: verifies some rows of a pair as a map of their own.

    Returns:
        The outcome, if they decide the pair; and whether the claim is zero, noise, or what the reference says.
    """
    if not other.hidden or other.differs:
        return None, not other.hidden
    from gradcli.numerics.course.separate_rows import is_noise, of_all_rows, small_outputs  # seldom needed

    site = site.alone()
    if of_rows is None or is_noise(site, pair):
        return None, True
    small = small_outputs(site, here, pair)
    if small is None or not small.rows.size:
        return None, here.witnessed
    return of_all_rows(pair, small, of_rows(pair, site.x, small.rows)), False


def _claimed(site: Site, pair: Pair) -> bool:
    """Whether the claim of a pair is not zero."""
    return bool(site.claim.of_block(pair[1])[:, site.map.domain.slices[pair[0]]].any())


def _agreeing_nearby(site: Site, wrong: Mapping[Pair, Elsewhere], significance: float) -> dict[Pair, Elsewhere]:
    """The pairs that agree at the first point of some path away from x where claim or derivative is not zero.

    Args:
        wrong: the pairs that differ somewhere, and where.
    """
    agreeing: dict[Pair, Elsewhere] = {}
    for path in paths_away(site) if wrong else ():
        open_ = [pair for pair in wrong if pair not in agreeing]
        for where, x in path:
            if not open_:
                break
            for pair, result in _compared(site, x, open_, significance)[1].items():
                open_.remove(pair)
                if result.impression is Impression.AGREES:
                    agreeing[pair] = replace(wrong[pair], result=result, where=where, wrong=wrong[pair].where)
    return agreeing


def _at_points(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, Elsewhere]:
    """What other points show for each pair; no more of them are tried than needed."""
    needed = CONFIRMING if site.witness_rows is None else CONFIRMING_WITH_WITNESS
    zeros, answers = dict.fromkeys(pairs, 0), dict.fromkeys(pairs, 0)
    decided = _without_large_terms(site, pairs, significance)
    answers |= dict.fromkeys(decided, 1)
    for where, x in other_points(site):
        open_ = [pair for pair in pairs if _is_open(decided.get(pair), answers[pair], zeros[pair], needed)]
        if not open_:
            break
        still, signal = _compared(site, x, open_, significance)
        for pair in still:
            zeros[pair] += 1
        for pair, result in signal.items():
            answers[pair] += 1
            before = decided.get(pair)
            if before is None or before.result is None or _tells_more(result, before.result):
                decided[pair] = Elsewhere(result=result, where=where, zeros=zeros[pair], enough=False)
    for pair in pairs:
        if pair not in decided:
            decided[pair] = Elsewhere(result=None, where="", zeros=zeros[pair], enough=zeros[pair] >= needed - 1)
    return decided


def _without_large_terms(site: Site, pairs: Sequence[Pair], significance: float) -> dict[Pair, Elsewhere]:
    """The pairs that show something where cotangents whose terms hide them are zero (`without_large_terms`)."""
    found: dict[Pair, Elsewhere] = {}
    for pair in pairs:
        x = without_large_terms(site, *pair)
        result = None if x is None else _compared(site, x, [pair], significance)[1].get(pair)
        if result is not None:
            found[pair] = Elsewhere(result=result, where=WITHOUT_LARGE_TERMS, zeros=0, enough=False)
    return found


def _is_open(known: Elsewhere | None, answers: int, zeros: int, needed: int) -> bool:
    """Whether another point is to be tried for a pair."""
    if known is None or known.result is None:
        return zeros < needed
    return answers <= TRIES and (known.result.resolution is None or known.result.resolution > SIGNIFICANT)


def _tells_more(result: PairResult, before: PairResult) -> bool:
    """Whether a result replaces an earlier one: it differs where that agreed, or its resolution is finer."""
    if result.impression is not before.impression:
        return result.impression is Impression.DIFFERS
    return result.resolution is not None and (before.resolution is None or result.resolution < before.resolution)


def _compared(
    site: Site, x: Vector, pairs: Sequence[Pair], significance: float
) -> tuple[list[Pair], dict[Pair, PairResult]]:
    """The pairs that are zero at x, and the results of others that agree, or differ by more than rounding in a tail.

    The reference may be a rounding error: autodiff of log((y - a) / (b - y)) gives a second derivative by a and b of
    1e-16, where a formula gives the right zero. It counts as zero if claim and differences are zero as well.
    """
    witnessed = site.witness_rows is not None
    there = site.moved_to(x, projections=1 if witnessed else PROJECTIONS, evaluate=not witnessed)
    if there is None or not there.claim.finite or (witnessed and there.witness_rows is None):
        return [], {}
    still = _zero_in_both(there, pairs) if witnessed else _zero_in_differences(there, pairs)
    full = site.moved_to(x) if len(still) < len(pairs) else None
    if full is None:
        return still, {}
    open_ = [pair for pair in pairs if pair not in still and full.rows(pair[1]).any()]
    results = survey(full, open_, significance) if full.claim.finite else {}
    telling = (Impression.AGREES, Impression.DIFFERS)
    for pair, found in list(results.items()):
        equal = not witnessed or (found.discrepancy is not None and found.discrepancy.equal)
        if found.quiet and found.impression is Impression.SILENT and equal:
            still.append(pair)
        if found.impression not in telling or is_below_rounding(site, pair, found):
            del results[pair]
    return still, results


def _zero_in_both(there: Site, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs whose claim and reference are exactly zero."""
    zero = []
    for input_, output in pairs:
        places, rows = there.map.domain.slices[input_], there.claim.block == output
        if not any(
            forms is not None and forms[rows][:, places].any() for forms in (there.claim.forms, there.witness_rows)
        ):
            zero.append((input_, output))
    return zero


def _zero_in_differences(there: Site, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs whose claim is zero, as three pairs of values are to within rounding."""
    open_ = [pair for pair in pairs if there.rows(pair[1]).any()]
    quick_reading = quick_reading_through(there, sorted({input_ for input_, _ in open_})) if open_ else None
    if quick_reading is None:
        return []
    return [
        pair for pair in open_ if is_quiet(there, pair) and certified(there, quick_reading, pair, CERTIFIED, quiet=True)
    ]
