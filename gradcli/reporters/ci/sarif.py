"""The report in SARIF 2.1.0 (OASIS), which code-scanning services show beside the lines of backward."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from gradcli._version import __version__
from gradcli.findings import FindingKind
from gradcli.patches import Patch
from gradcli.reporters.escaping import printable
from gradcli.reporters.plain import plain_case
from gradcli.results import CheckResult, Finding, Location, Report
from gradcli.verdict import Reason, Verdict

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_RULES: tuple[FindingKind | Reason, ...] = (*FindingKind, *Reason)


def sarif_report(report: Report) -> str:
    """One run: a rule for every kind of finding, a result for every finding.

    A finding is a result of kind `fail` at the line of backward. An inconclusive case is a result of kind `open`
    (SARIF, 3.27.9: too little information to decide), and an error of the user's code a notification of the
    invocation. Paths below the working directory are relative to `SRCROOT`. The partial fingerprint of a result is made
    of the target, the case's name, the finding, its order, input and output: it survives edits elsewhere in the file.
    ASCII only.
    """
    cases = report.cases
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": [result for case in cases for result in _results(case)],
        "properties": {"seed": report.seed, "verdict": report.verdict.value},
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _driver() -> dict[str, Any]:
    return {
        "name": "gradcli",
        "version": __version__,
        "informationUri": "https://pypi.org/project/gradcli/",
        "rules": [_rule(kind) for kind in _RULES],
    }


def _rule(kind: FindingKind | Reason) -> dict[str, Any]:
    finding = isinstance(kind, FindingKind)
    help_text = f"{kind.remedy}\n\nMore: gradcli explain {kind.value}"
    rule: dict[str, Any] = {
        "id": _rule_id(kind),
        "name": "".join(word.capitalize() for word in kind.value.split("-")),
        "shortDescription": {"text": kind.sentence},
        "help": {"text": help_text, "markdown": f"{kind.remedy}\n\nMore: `gradcli explain {kind.value}`"},
        "defaultConfiguration": {"level": "error" if finding else "none"},
        "properties": {"tags": ["gradient", "correctness"] if finding else ["gradient", "inconclusive"]},
    }
    if isinstance(kind, FindingKind):
        rule["fullDescription"] = {"text": kind.detection}
    return rule


def _rule_id(kind: FindingKind | Reason) -> str:
    return kind.code if isinstance(kind, FindingKind) else f"inconclusive/{kind.value}"


def _invocation(report: Report) -> dict[str, Any]:
    errors = [case for case in report.cases if case.verdict is Verdict.ERROR]
    return {
        "executionSuccessful": not errors,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": printable(plain_case(case))},
                "locations": [{"logicalLocations": [_logical(case)]}],
            }
            for case in errors
        ],
    }


def _results(case: CheckResult) -> Iterator[dict[str, Any]]:
    if case.verdict is Verdict.FAILED:
        yield from (_failure(case, finding) for finding in case.findings)
    elif case.verdict is Verdict.INCONCLUSIVE:
        yield _open(case)


def _failure(case: CheckResult, finding: Finding) -> dict[str, Any]:
    properties = {
        "input": finding.input,
        "output": finding.output,
        "order": finding.order,
        "factor": finding.factor,
        "predicate": finding.predicate,
        "entries": [list(entry.index) for entry in finding.entries],
        "seed": case.seed,
        "replay": case.replay,
    }
    corrects = case.patch is not None and finding.corrected == case.patch.after
    return {
        "ruleId": finding.kind.code,
        "ruleIndex": _RULES.index(finding.kind),
        "kind": "fail",
        "level": "error",
        "message": {"text": printable(finding.message)},
        "locations": [_location(case, finding.location)],
        "partialFingerprints": {"gradcliFinding/v1": _fingerprint(case, finding)},
        "properties": {key: _clean(value) for key, value in properties.items() if value is not None},
        **({"fixes": [_fix(case.patch)]} if corrects and case.patch is not None else {}),
    }


def _fix(patch: Patch) -> dict[str, Any]:
    """The patch as a fix object (SARIF, 3.55): whole lines replaced."""
    replacements = [
        {
            "deletedRegion": {"startLine": start, "startColumn": 1, "endLine": stop, "endColumn": 1},
            "insertedContent": {"text": text},
        }
        for start, stop, text in patch.changed_lines()
    ]
    change = {"artifactLocation": _artifact(patch.shown_file), "replacements": replacements}
    return {"description": {"text": printable("; ".join(patch.proven))}, "artifactChanges": [change]}


def _open(case: CheckResult) -> dict[str, Any]:
    result: dict[str, Any] = {
        "kind": "open",
        "level": "none",
        "message": {"text": printable(plain_case(case))},
        "locations": [_location(case, None)],
        "partialFingerprints": {"gradcliFinding/v1": _hashed(case.target, case.name or "", "inconclusive")},
        "properties": {"seed": case.seed},
    }
    if case.reason is not None:
        result |= {"ruleId": _rule_id(case.reason), "ruleIndex": _RULES.index(case.reason)}
    return result


def _location(case: CheckResult, place: Location | None) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [_logical(case)]}
    if place is None:
        return location
    region: dict[str, Any] = {"startLine": place.line}
    excerpt = case.excerpt
    if excerpt is not None and excerpt.file == place.file and excerpt.marked == place.line:
        region["snippet"] = {"text": printable(excerpt.lines[place.line - excerpt.first])}
    location["physicalLocation"] = {"artifactLocation": _artifact(place.file), "region": region}
    return location


def _artifact(file: str) -> dict[str, Any]:
    path: PurePath = PureWindowsPath(file) if "\\" in file and not file.startswith("/") else PurePath(file)
    if path.is_absolute():
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(printable(path.as_posix())), "uriBaseId": _ROOT}


def _logical(case: CheckResult) -> dict[str, Any]:
    return {"fullyQualifiedName": printable(case.case_id), "kind": "function"}


def _fingerprint(case: CheckResult, finding: Finding) -> str:
    place = (finding.kind.code, str(finding.order), finding.input or "", str(finding.output))
    return _hashed(case.target, case.name or "", *place)


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _clean(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value
