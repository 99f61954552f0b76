"""Keep the screens in a page true: `python tools/screens.py docs/tutorial.md` plays the page and writes it anew.

A page is played from top to bottom in an empty folder. Three comments, each before a fenced block, say what to do:
`<!-- file: NAME -->` writes the block to a file, `<!-- change: NAME -->` applies a diff without line numbers, and
`<!-- screen: gradcli check ... -->` puts the command and what it prints in place of the block.
"""

import contextlib
import io
import linecache
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from gradcli.cli import app, pipeline

_STEP = re.compile(r"<!-- (file|change|screen): (.*?) -->\n```(\w*)\n(.*?)```", re.S)


class _Screen(io.StringIO):
    """A stream that takes the place of standard output."""

    problem = None


def run(arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code and the output of `gradcli` with `arguments`, in this process and folder."""
    screen = _Screen()
    path = list(sys.path)
    with mock.patch.object(pipeline, "report_stream", return_value=screen):
        code = app.run([*arguments, "--format", "table", "--in-process"])
    sys.path[:] = path
    return code, screen.getvalue()


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """A temporary folder as the working directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def played(page: str) -> str:
    """The page with its screens as they are now."""
    with empty_folder() as folder:
        return _STEP.sub(lambda found: _step(found, folder), page)


def _step(found: re.Match[str], folder: Path) -> str:
    action, what, language, text = found.groups()
    if action == "screen":
        text = f"$ {what}\n{run(shlex.split(what)[1:])[1].rstrip()}\n"
    elif action == "file":
        (folder / what).parent.mkdir(parents=True, exist_ok=True)
        (folder / what).write_text(text, encoding="utf-8")
    else:
        _change(folder / what, text.splitlines())
    return f"<!-- {action}: {what} -->\n```{language}\n{text}```"


def _change(file: Path, diff: Sequence[str]) -> None:
    """Replace the lines that start with `-` by those that start with `+`; the others say where."""
    old = "\n".join(line[1:] for line in diff if line[:1] != "+")
    new = "\n".join(line[1:] for line in diff if line[:1] != "-")
    before = file.read_text(encoding="utf-8")
    if before.count(old) != 1:
        raise SystemExit(f"{file.name} has {before.count(old)} places for the change\n{old}")
    file.write_text(before.replace(old, new), encoding="utf-8")
    linecache.clearcache()
    # A file that changes twice within the clock's resolution would be taken from the cache of compiled modules.
    for compiled in file.parent.glob("__pycache__/*"):
        compiled.unlink()
    for name in [name for name, module in sys.modules.items() if getattr(module, "__file__", None) == str(file)]:
        del sys.modules[name]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        place = Path(argument).resolve()
        place.write_text(played(place.read_text(encoding="utf-8")), encoding="utf-8")
