"""`gradcli trace A --diff B`: the two traces that are compared, run now or read from a file."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradcli.errors import UsageError
from gradcli.traces import SCHEMA, TraceGraph

FORMATS = ("tree", "table", "json")
_USER_CODE_RAISED = 3
_SEED = re.compile(r"seed=(\d+)")
Document = dict[str, Any]


def is_document(name: str) -> bool:
    """Whether a side is the file of a trace rather than a target to run."""
    return name.endswith(".json")


def read_document(name: str) -> Document:
    """The document of a trace that was written with --format json.

    Raises:
        UsageError: the file does not exist, or is not a trace in JSON.
    """
    try:
        found = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{name}: expected the JSON document of a trace: {error}") from error
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise UsageError(f"{name}: expected a trace (schema {SCHEMA}), as --format json writes it, got {schema!r}")
    return dict(found)


def compared(target: str, other: str, run: Callable[[str, int | None], TraceGraph], form: str) -> tuple[str, int]:
    """The difference as text or as a document, and the exit code; `run` traces a target, or it with another seed."""
    from gradcli.reporters.graph.difference import difference_text
    from gradcli.tracing.difference import difference

    seed = _SEED.fullmatch(other)
    if seed is None and other.startswith("seed="):
        raise UsageError(f"--diff {other}: expected seed=N, N a whole number of at least 0")
    if seed is not None and is_document(target):
        raise UsageError(f"--diff {other}: {target} is a saved trace, which cannot be run again with another seed")
    first = _side(target, run, None)
    second = _side(target, run, int(seed[1])) if seed is not None else _side(other, run, None)
    found = difference(first, second, (target, f"{target} with {other}" if seed is not None else other))
    text = (
        json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n" if form == "json" else difference_text(found)
    )
    return text, _USER_CODE_RAISED if first["error"] is not None or second["error"] is not None else 0


def _side(name: str, run: Callable[[str, int | None], TraceGraph], seed: int | None) -> Document:
    return read_document(name) if is_document(name) else run(name, seed).to_dict()
