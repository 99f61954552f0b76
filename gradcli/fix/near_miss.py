"""Edits that make the gradient right but are not offered, because the check still fails for another reason."""

from gradcli.diagnosis.slips.hooks import running
from gradcli.edits.draft import Draft
from gradcli.errors import GradcliError
from gradcli.findings import FindingKind
from gradcli.fix.examine import Examination, sentences
from gradcli.patches import Patch
from gradcli.results import Finding
from gradcli.runner.arguments.prepare import Prepared
from gradcli.runner.case import check_object
from gradcli.runner.outcome.proof import checked, plain, rebuilt
from gradcli.verdict import Verdict


def remaining(ready: Prepared, target: object, seen: Examination, draft: Draft, made: Draft) -> str | None:
    """What still fails with an edit, as a sentence; None if it makes no gradient right, or the code raises.

    Code that raises at some of the inferred inputs alone, as where an optional argument is left out, still fails.
    """
    with running(made.codes):
        anew, error = rebuilt(ready, target, made.codes), None
        try:
            result = check_object(anew, plain(ready.case), supply=ready.supply, backends=(ready.backend,))
        except GradcliError:  # the user's code raises with this edit
            return None
        if result.verdict is Verdict.ERROR:
            error, own = result.error, checked(check_object, ready, anew, ready.supply.specs)
            if own is None or own.verdict is Verdict.ERROR:
                return None
            result = own
    if not result.findings and error is None:
        return None
    if any(f.kind is FindingKind.NEEDS_INPUT_GRAD and f not in seen.findings for f in result.findings):
        return None  # the condition was that of another input
    corrected = {_mark(f) for f in seen.findings if f.input is not None} - {_mark(f) for f in result.findings}
    if not corrected:
        return None
    said = sentences(result.findings[:1])[0] if result.findings else f"{error}"
    names = ", ".join(sorted({str(name) for name, _ in corrected}))
    return f"{_edit(draft, made)} the gradient of {names} is right, but the check still fails: {said}"


def breaking(ready: Prepared, draft: Draft, made: Draft, broken: str) -> str:
    """Which Function fails with an edit that is right for the target, as a sentence."""
    return f"{_edit(draft, made)} {ready.info.name} passes, but {broken}, which runs the same code, then fails"


def _edit(draft: Draft, made: Draft) -> str:
    """The first line that an edit changes."""
    patch = Patch(file=draft.file.path, before=draft.file.text, after=made.file.text, proven=())
    (line, _, text), *_ = patch.changed_lines()
    return f"with line {line} as `{' '.join(text.split())}`" if text.strip() else f"without line {line}"


def _mark(finding: Finding) -> tuple[str | None, int]:
    return finding.input, finding.order
