"""A report back from its JSON document or its lines of NDJSON, so that several can become one."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradcli.cases import InputSpec
from gradcli.errors import UsageError
from gradcli.findings import FindingKind
from gradcli.results import SCHEMA, CheckResult, Entry, Evidence, Finding, Location, Report, compared_orders
from gradcli.verdict import Fault, Reason, Verdict

_LARGEST = 1 << 30
_KINDS = {kind.value: kind for kind in FindingKind}
_VERDICTS = {verdict.value: verdict for verdict in Verdict}
_REASONS = {reason.value: reason for reason in Reason}


def read_report(path: Path) -> Report:
    """The report in a file, whole or cut off: of NDJSON the lines that are complete count.

    What a document does not hold (tracebacks, source lines, bounds of single entries) is missing in the report;
    everything that it holds comes out again as it was.

    Raises:
        UsageError: the file cannot be read, or holds no report of this schema.
    """
    text = _text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    try:
        if isinstance(document, dict) and "cases" in document:
            return _report(document, [case_from(case) for case in document["cases"]])
        return _from_lines(text)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = f"unexpected {type(error).__name__}: {error}" if not isinstance(error, _NoReportError) else str(error)
        raise UsageError(f"{path}: not a report of schema {SCHEMA}: {reason}") from error


class _NoReportError(ValueError):
    """The document is something else."""


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise UsageError(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path}: larger than {_LARGEST:,} bytes")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _from_lines(text: str) -> Report:
    """NDJSON: a case a line, then a summary; a last line that is cut off is left out, and so may the summary be."""
    cases: list[CheckResult] = []
    summary: dict[str, Any] | None = None
    lines = [line for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines) and cases:
                break
            raise _NoReportError(f"line {number} is not JSON") from None
        if "id" in document:
            cases.append(case_from(document))
        else:
            summary = document
    if summary is None and not cases:
        raise _NoReportError("the file is empty")
    partial = {"schema": SCHEMA, "seed": 0, "summary": {"seconds": sum(c.seconds for c in cases)}, "interrupted": True}
    return _report(partial if summary is None else summary, cases)


def _report(document: dict[str, Any], cases: list[CheckResult]) -> Report:
    if document.get("schema") != SCHEMA:
        raise _NoReportError(f"it has the schema {document.get('schema')!r}")
    doubtful = any(case.verdict is Verdict.INCONCLUSIVE for case in cases)
    return Report(
        cases=tuple(cases),
        seed=document["seed"],
        seconds=float(document["summary"]["seconds"]),
        allow_inconclusive=doubtful and document.get("exit_code") == 0,
        interrupted=bool(document.get("interrupted", False)),
    )


def case_from(document: dict[str, Any]) -> CheckResult:
    """The result in one of a report's `cases`. Raises KeyError, TypeError or ValueError where it is none."""
    evidence = tuple(_evidence(check) for check in document["checks"])
    fault = document.get("fault")
    return CheckResult(
        case_id=document["id"],
        target=document["target"],
        name=document["name"],
        backend=document["backend"],
        verdict=_VERDICTS[document["verdict"]],
        seed=document["seed"],
        samples=document["samples"],
        inputs_from=document["inputs_from"],
        inputs=tuple(_input(each) for each in document["inputs"]),
        evidence=evidence,
        findings=tuple(_finding(each) for each in document["findings"]),
        notes=tuple(document["notes"]),
        error=document["error"],
        expected=document["expected"],
        smallest=tuple(document["smallest"]),
        forwards=document["evaluations"]["forward"],
        backwards=document["evaluations"]["backward"],
        seconds=float(document["seconds"]),
        replay=document["replay"],
        orders=compared_orders(evidence),
        fault=None if fault is None else Fault(fault),
    )


def _evidence(document: dict[str, Any]) -> Evidence:
    reason = document["reason"]
    return Evidence(
        check=document["check"],
        verdict=_VERDICTS[document["verdict"]],
        order=document["order"],
        input=document["input"],
        output=document["output"],
        reference=document["reference"],
        max_abs_error=_real(document["max_abs_error"]),
        max_rel_error=_real(document["max_rel_error"]),
        bound=_real(document["bound"]),
        resolution=_real(document["resolution"]),
        reason=None if reason is None else _REASONS[reason],
        note=document["note"],
    )


def _finding(document: dict[str, Any]) -> Finding:
    place = document["location"]
    return Finding(
        kind=_KINDS[document["name"]],
        message=document["message"],
        order=document["order"],
        input=document["input"],
        output=document["output"],
        entries=tuple(_entries(document)),
        entries_total=document["entries_total"],
        predicate=document["predicate"],
        factor=document["factor"],
        location=None if place is None else Location(file=place["file"], line=place["line"]),
    )


def _entries(document: dict[str, Any]) -> Iterator[Entry]:
    """The entries; earlier documents have no bounds."""
    bounds = document.get("bounds", [None] * len(document["entries"]))
    columns = (document["entries"], document["analytic"], document["numeric"], bounds)
    for index, analytic, numeric, bound in zip(*columns, strict=True):
        value = _number(numeric)
        yield Entry(
            index=tuple(index),
            analytic=_number(analytic),
            numeric=math.nan if value is None else value,
            bound=math.nan if bound is None else float(bound),
        )


def _input(document: dict[str, Any]) -> InputSpec:
    if document["kind"] == "value":
        return InputSpec(name=document["name"], kind="value", value=document["value"])
    return InputSpec(
        name=document["name"],
        shape=tuple(document["shape"]),
        dtype=document["dtype"],
        domain=document["domain"],
        requires_grad=document["requires_grad"],
    )


def _real(value: Any) -> float | None:
    return None if value is None else float(value)


def _number(value: Any) -> complex | None:
    """What `plain_number` wrote: a number, "nan", "inf", or the two parts of a complex one."""
    if isinstance(value, list):
        return complex(float(value[0]), float(value[1]))
    return _real(value)
