"""Reading of saved files, which may be damaged, of another kind, or not regular files."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from gradcli.cases import DTYPES
from gradcli.errors import UsageError
from gradcli.findings import FindingKind
from gradcli.settings import HIGHEST_ORDER

FOLDER = Path(".gradcli") / "failures"
LARGEST = 256 << 20
"""Bytes: fifty million numbers in base64 are 530 MB, which no failure of a shrunk input comes near."""
_KEYS: dict[str, tuple[type, ...]] = {
    "schema": (str,),
    "gradcli": (str,),
    "target": (str,),
    "name": (str, type(None)),
    "grad": (str, type(None)),
    "saved": (list,),
    "nondeterminism": (int, float),
    "device": (str, type(None)),
    "construct": (dict,),
    "seed": (int,),
    "order": (int,),
    "dtype": (str,),
    "finding": (str, type(None)),
    "input": (str, type(None)),
    "arguments": (list,),
    "order_asked": (bool,),
    "allow": (dict,),
}
_NEEDED = ("target", "name", "seed", "order", "dtype", "finding", "input", "arguments")
_ARGUMENT_KEYS = {
    "name", "keyword", "fixed", "literal", "dtype", "shape", "requires_grad", "domain", "stands_for", "sparsity",
    "base64", "values",
}  # fmt: skip


def document_in(path: Path, schema: str) -> dict[str, Any]:
    """The document of a regular file of bounded size with this schema, its fields of the types that they have.

    Raises:
        UsageError: it is no such file; says what is wrong with it.
    """
    document = _parsed(path, _text(path))
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise UsageError(f"{path}: expected a saved failure with schema {schema!r}, got schema={found!r:.80}")
    for problem in _problems(document):
        raise UsageError(f"{path}: is damaged: {problem}")
    return dict(document)


def _text(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, encoding="utf-8") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{path}: is not a regular file; expected one that gradcli saved")
            if status.st_size > LARGEST:
                raise UsageError(f"{path}: is larger than {LARGEST >> 20} MB; expected a file that gradcli saved")
            return file.read(LARGEST)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: is not a saved failure: {error}") from error


def _parsed(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not a saved failure: {error}") from error


def _problems(document: dict[str, Any]) -> list[str]:
    problems = [f"unknown field {key!r:.80}" for key in document if key not in _KEYS]
    problems += [f"the field {key!r} is missing" for key in _NEEDED if key not in document]
    for key, value in document.items():
        kinds = _KEYS.get(key)
        if kinds is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            problems.append(f"expected {key} to be {_named(kinds)}, got {key}={value!r:.80}")
    return problems or [*_wrong_values(document), *_wrong_arguments(document)]


def _named(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)


def _wrong_values(document: dict[str, Any]) -> list[str]:
    problems = []
    if document["seed"] < 0:
        problems.append(f"expected a seed of at least 0, got seed={document['seed']}")
    if not 1 <= document["order"] <= HIGHEST_ORDER:
        problems.append(f"expected an order of 1 to {HIGHEST_ORDER}, got order={document['order']}")
    if document["dtype"] not in DTYPES:
        problems.append(f"unknown dtype {document['dtype']!r:.80}")
    if document["finding"] is not None and document["finding"] not in {kind.value for kind in FindingKind}:
        problems.append(f"unknown finding {document['finding']!r:.80}")
    if not all(isinstance(name, str) for name in document.get("saved", ())):
        problems.append(f"expected saved to be a list of names, got saved={document['saved']!r:.80}")
    if not 0 <= document.get("nondeterminism", 0.0) <= 1:
        problems.append(f"expected nondeterminism in [0, 1], got {document['nondeterminism']!r:.80}")
    return problems


def _wrong_arguments(document: dict[str, Any]) -> list[str]:
    arguments = document["arguments"]
    if not arguments or not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in arguments):
        return ["expected a list of arguments, each with a name"]
    problems = [
        f"unknown field {key!r:.80} of the argument {entry['name']!r:.80}"
        for entry in arguments
        for key in entry
        if key not in _ARGUMENT_KEYS
    ]
    names = [entry["name"] for entry in arguments]
    problems += [f"the argument {name!r:.80} appears twice" for name in {n for n in names if names.count(n) > 1}]
    if document["input"] is not None and document["input"] not in names:
        problems.append(f"the finding is about the input {document['input']!r:.80}, which is not among the arguments")
    return problems
