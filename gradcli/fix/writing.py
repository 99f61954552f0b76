"""A patch applied to the user's file: only where nothing of theirs can be lost, and as a whole or not at all."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from gradcli.edits.source import encoding_of
from gradcli.errors import UsageError
from gradcli.patches import Patch

_SECONDS = 20


def write(patch: Patch, *, force: bool) -> None:
    """Put the patched text into the file.

    Raises:
        UsageError: the file has changed since or cannot be written; or git could not restore it, without `force`.
    """
    path = Path(os.path.realpath(patch.file))
    encoding = _encoding(path)
    with contextlib.suppress(OSError, ValueError):
        raw = path.read_bytes()
        if raw.decode(encoding) != patch.before:
            raise UsageError(
                f"{patch.shown_file}: has changed since it was checked; nothing was written. Run the command again."
            )
    why = None if force else _unsafe(path)
    if why is not None:
        raise UsageError(
            f"{patch.shown_file}: {why}, so git could not restore the original; nothing was written. Commit the file "
            "with git first, or use --force to write anyway"
        )
    try:
        _replace(path, patch.after.encode(encoding))
    except OSError as error:
        raise UsageError(f"{patch.shown_file}: cannot be written: {error.strerror or error}") from error


def diff_bytes(patch: Patch) -> bytes:
    """The diff in the encoding of the file, as `git apply` and `patch -p1` compare it with the file's bytes."""
    encoding = _encoding(Path(patch.file))
    if encoding == "utf-8-sig":  # a mark of byte order is part of the first line
        encoding, mark = "utf-8", "\ufeff"
        patch = replace(patch, before=mark + patch.before, after=mark + patch.after)
    lines = patch.diff().split("\n")
    names, rest = "\n".join(lines[:2]), "\n".join(lines[2:])
    return names.encode(errors="surrogateescape") + b"\n" + rest.encode(encoding)


def _encoding(path: Path) -> str:
    """The encoding of a Python file, UTF-8 where it cannot be read."""
    try:
        return encoding_of(path.read_bytes())
    except (OSError, SyntaxError):
        return "utf-8"


def _unsafe(path: Path) -> str | None:
    """Why git could not bring the file back as it is; None where it could."""
    git = shutil.which("git")
    if git is None:
        return "git is not on PATH"
    try:
        known = _git(git, path, "ls-files", "--error-unmatch", "--", path.name)
        changed = _git(git, path, "status", "--porcelain", "--", path.name)
    except (OSError, subprocess.SubprocessError) as error:
        return f"git failed ({error})"
    if known.returncode != 0 or changed.returncode != 0:
        return "it is not under version control (git)"
    return "it has changes that are not committed" if changed.stdout.strip() else None


def _git(git: str, path: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(  # noqa: S603 - git itself, with a file's own name
        [git, "-C", str(path.parent), *arguments], capture_output=True, timeout=_SECONDS, check=False
    )


def _replace(path: Path, text: bytes) -> None:
    descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, made)
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise
