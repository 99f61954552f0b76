"""A failed case with a patch: the correction that came with its name, put to the whole check."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradcli.diagnosis.slips.wording import AT_THESE_RANKS, CORRECTED
from gradcli.edits.draft import drafts_for
from gradcli.patches import Patch
from gradcli.results import CheckResult
from gradcli.runner.arguments.prepare import Prepared
from gradcli.runner.outcome.proof import (
    CaseCheck,
    brings_sizes,
    failures_of,
    input_of,
    of_shape,
    proof_of,
    tells_numbers,
    tells_sizes,
    within,
)
from gradcli.runner.outcome.ranks import OtherNumbers, OtherRanks
from gradcli.runner.outcome.sharing import Spared, sparing_others
from gradcli.watchdog.case import Watchdog
from gradcli.watchdog.limit import DELAY, TimeLimit
from gradcli.watchdog.omissions import Omissions

PATCHING_SECONDS = 5.0
"""Processor time that the proof of a patch may take; most take less than a tenth of it."""
_CHECKS = 4
"""Checks in a proof: at the case's own inputs, and at three sets of other sizes."""
_LEAST_SECONDS = 0.5
_STILL_WRONG = f"{CORRECTED} at these inputs, but other checks still find it wrong"


def with_patch(
    result: CheckResult, ready: Prepared, target: object, watchdog: Watchdog, check: CaseCheck
) -> CheckResult:
    """The result with a patch, where a correction passes the whole check in `PATCHING_SECONDS` of processor time.

    Where the gradient is wrong at other inputs with the correction in place, the finding says so.

    Nothing is tried in a check that is itself a proof, nor for a target that is meant to fail, of which calls do not
    return, or whose forward, by the quickest of its calls, takes so long that a proof would not come to its end.
    """
    if watchdog.overruns or watchdog.omissions != Omissions():
        return result  # a proof would make calls again that do not return, and nobody would end them
    left = min(DELAY * PATCHING_SECONDS, watchdog.optional_left)
    if _CHECKS * result.forwards * (watchdog.forward_seconds or 0.0) > PATCHING_SECONDS:
        return result
    texts = dict.fromkeys(f.corrected for f in result.findings if f.corrected is not None)
    is_wanted = ready.case.settings.shrink and ready.case.spec.expect.verdict == "passed"
    drafts = list(drafts_for(ready.info).values()) if texts and is_wanted and left >= _LEAST_SECONDS else []
    limit = TimeLimit(PATCHING_SECONDS, clock=left)
    for draft, text in itertools.product(drafts, texts):
        made = draft.at(text)
        failed: list[CheckResult] = []
        proof = None if made is None else proof_of(ready, target, made.codes, check=check, limit=limit, failed=failed)
        result = _qualified(result, text, failed)
        known = proof is not None and (proof.sizes_tried or not brings_sizes(ready, draft.file.text, text))
        if made is None or proof is None or not known:
            continue
        holds = tells_sizes(ready, target, made.codes, check=check, limit=limit)
        holds = holds and tells_numbers(ready, target, draft, made, check=check)
        others: dict[str, Any] = {"ready": within(ready, limit), "target": target, "check": check}
        holds = holds and OtherNumbers(**others).wrong_with(made.codes) is None
        if holds and OtherRanks(**others).hold(made.codes):
            spared = sparing_others(ready, target, draft, made, check=check, limit=limit)
            if not isinstance(spared, Spared):
                continue
            patch = Patch(
                file=draft.file.path,
                before=draft.file.text,
                after=spared.draft.file.text,
                proven=(*proof.sentences, *spared.proven),
                unproven=spared.unproven,
            )
            findings = tuple(replace(f, corrected=patch.after) if f.corrected == text else f for f in result.findings)
            return replace(result, patch=patch, findings=findings)
    return result


def still_wrong(message: str) -> str:
    """The message on a correction with which other checks fail, in place of what it says of other inputs."""
    return message.replace(CORRECTED + AT_THESE_RANKS, CORRECTED, 1).replace(CORRECTED, _STILL_WRONG, 1)


def _qualified(result: CheckResult, text: str, failed: Sequence[CheckResult]) -> CheckResult:
    """The result with a sentence on a correction that says so if a check that it failed found the gradient wrong."""
    wrong = {input_of(e) for each in failed for e in failures_of(each) if e.order == 1 and not of_shape(e)}
    findings = tuple(
        replace(f, message=still_wrong(f.message))
        if f.corrected == text and f.input in wrong and _STILL_WRONG not in f.message
        else f
        for f in result.findings
    )
    return replace(result, findings=findings)
