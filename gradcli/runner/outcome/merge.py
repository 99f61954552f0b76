"""The evidence of several samples of one case, merged."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradcli.results import LEFT_OUT, CheckResult, Evidence
from gradcli.runner.outcome.notes import noted_once
from gradcli.verdict import Reason, Verdict

_Key = tuple[str, int, str | None, int | None]
_WORSE = (Verdict.SKIPPED, Verdict.PASSED, Verdict.INCONCLUSIVE, Verdict.ERROR, Verdict.FAILED)


def merge(samples: Sequence[Iterable[Evidence]]) -> tuple[Evidence, ...]:
    """One piece of evidence for each check, order, input and output: the worst verdict, bound and resolution.

    Mismatches are dropped: only the diagnosis needs them, and they hold arrays. So are the notes of a sample in which a
    derivative is zero everywhere, if it is not zero in another, and the notes of those that passed or are
    inconclusive, if another is worse: an accepted sample does not settle an undecided one or excuse a failure.
    """
    merged: dict[_Key, Evidence] = {}
    noted: dict[_Key, dict[int, list[Evidence]]] = {}
    for number, sample in enumerate(samples):
        for evidence in sample:
            key = (evidence.check, evidence.order, evidence.input, evidence.output)
            merged[key] = (_both(merged[key], evidence) if key in merged else evidence).settled()
            noted.setdefault(key, {}).setdefault(number, []).append(evidence)
    return tuple(
        replace(
            evidence,
            note=noted_once(
                [each.note for each in sample if each.note and _counts(each, evidence)]
                for sample in noted[key].values()
            ),
        )
        for key, evidence in merged.items()
    )


def with_reason(result: CheckResult) -> CheckResult:
    """An inconclusive result with the reason, where nothing was compared and no check says why."""
    if result.verdict is not Verdict.INCONCLUSIVE or result.reason is not None:
        return result
    unwanted = any(e.check == "gradient" and e.note == LEFT_OUT for e in result.evidence)
    note = "the check gradient was left out on request, and no other check compares the first derivative"
    doubt = Evidence(
        check="gradient",
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.NO_SIGNAL,
        note=note if unwanted else "no check compared a gradient with finite differences",
    )
    return replace(result, evidence=(*result.evidence, doubt))


def _counts(each: Evidence, merged: Evidence) -> bool:
    """Whether the note of one sample belongs to the merged evidence."""
    outdone = each.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE) and each.verdict is not merged.verdict
    return each.zero_everywhere <= merged.zero_everywhere and not outdone


def _both(one: Evidence, other: Evidence) -> Evidence:
    worse = max(one, other, key=lambda evidence: _WORSE.index(evidence.verdict))
    return replace(
        worse,
        max_abs_error=_larger(one.max_abs_error, other.max_abs_error),
        max_rel_error=_larger(one.max_rel_error, other.max_rel_error),
        bound=_larger(one.bound, other.bound),
        resolution=_larger(one.resolution, other.resolution),
        zero_everywhere=one.zero_everywhere and other.zero_everywhere,
    )


def _larger(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return next((value for value in known if math.isnan(value)), max(known, default=None))
