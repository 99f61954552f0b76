"""What the options of `gradcli check` mean; everything that can be refused is refused before user code is imported."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from gradcli.cases import InputSpec
from gradcli.cli.arguments.request import CheckRequest
from gradcli.errors import UsageError
from gradcli.reporters.formats import FORMATS, SUFFIXES
from gradcli.runner.planning.choose import Choice
from gradcli.runner.planning.limits import unknown
from gradcli.runner.planning.plan import Shard
from gradcli.runner.store.last import last_failed

REPORT_SUFFIXES = tuple(SUFFIXES)


def inputs_from(inputs: Sequence[str], arguments: Sequence[str]) -> tuple[InputSpec, ...]:
    """The input specs that the flags `-i` and `-a` give."""
    if not inputs and not arguments:
        return ()
    from gradcli.inputs.flags import parse_argument, parse_input

    return (*(parse_input(text) for text in inputs), *(parse_argument(text) for text in arguments))


def format_from(name: str | None, *, terminal: bool) -> str:
    """The format asked for; without one, table on a terminal and plain elsewhere."""
    if name is None:
        return "table" if terminal else "plain"
    if name not in FORMATS:
        raise UsageError(f"--format {name}: {unknown('format', name, FORMATS)}")
    return name


def choice_from(request: CheckRequest, start: Path) -> Choice:
    """Which cases are wanted. With --last-failed and nothing failed last time, all are."""
    failed = last_failed(start) if request.last_failed or request.failed_first else frozenset()
    return Choice(keyword=request.keyword, tags=request.tags, failed=failed or None, first=not request.last_failed)


def shard_from(text: str | None) -> Shard | None:
    """`I/N`, with 1 <= I <= N."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text}: expected I/N with 1 <= I <= N, as in 2/5")
    return Shard(index=int(match[1]), count=int(match[2]))


def reports_from(paths: Sequence[str]) -> tuple[Path, ...]:
    """The files to write reports to, each with a suffix that is known and in a place that can be written.

    They are absolute, for the user's code may change the working directory before they are written.
    """
    return tuple(_report(Path(path)) for path in paths)


def _report(path: Path) -> Path:
    if path.suffix not in REPORT_SUFFIXES:
        known = ", ".join(REPORT_SUFFIXES)
        raise UsageError(f"--report {path}: no report format has the suffix {path.suffix!r}; available: {known}")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(f"--report {path}: is not a regular file")
    return writable(path, "--report", makes_folders=True)


def writable(path: Path, option: str, *, makes_folders: bool = False) -> Path:
    """The absolute path of a file to be written at the end, as the user's code may change the working directory.

    Raises:
        UsageError: it cannot be written, as far as that is known now; `makes_folders` says that missing ones are made.
    """
    if path.is_dir():
        raise UsageError(f"{option} {path}: is a folder; name a file in it")
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{option} {path}: cannot be written: permission denied")
    if path.exists() and not path.is_file():  # a device or a pipe
        return path.absolute()
    folders = path.absolute().parents
    place = next(folder for folder in folders if folder.exists()) if makes_folders else folders[0]
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=place) as trial:
            trial.write(b"{}")
    except OSError as error:
        raise UsageError(f"{option} {path}: {place} cannot be written: {error.strerror or error}") from error
    return path.absolute()
