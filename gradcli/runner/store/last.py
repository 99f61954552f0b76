"""Which cases failed last time: a small file beside the saved failures."""

import json
from collections.abc import Iterable
from pathlib import Path

from gradcli.errors import UsageError
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

FILE = Path(".gradcli") / "last-failed.json"
_SCHEMA = "gradcli.last/1"
_LARGEST = 1 << 24


def last_failed(start: Path) -> frozenset[str]:
    """The ids of the cases that did not pass when they were last run from the folder `start`.

    Raises:
        UsageError: the file cannot be read; it can be deleted.
    """
    file = start / FILE
    if not file.exists():
        return frozenset()
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            raise ValueError(f"not a regular file of at most {_LARGEST} bytes")
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["schema"] != _SCHEMA or not all(isinstance(each, str) for each in document["failed"]):
            raise ValueError("another schema")
        return frozenset(document["failed"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{FILE} is damaged ({error}); delete it") from error


def note_failed(start: Path, results: Iterable[CheckResult]) -> str | None:
    """Write down which of these cases did not pass; cases that were not run keep what was known of them.

    Returns:
        Why the file could not be written, None where it was or nothing has changed.
    """
    try:
        before = last_failed(start)
    except UsageError:
        before = frozenset()
    run = [result for result in results if result.verdict is not Verdict.SKIPPED]
    now = before - {result.case_id for result in run} | {
        result.case_id for result in run if result.verdict is not Verdict.PASSED
    }
    if now == before:
        return None
    file = start / FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"schema": _SCHEMA, "failed": sorted(now)}, indent=1) + "\n", encoding="utf-8")
    except (OSError, UnicodeError) as error:
        return f"{FILE} cannot be written: {error}"
    return None
