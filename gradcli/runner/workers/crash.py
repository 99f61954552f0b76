"""Where a process was when it crashed or was stopped: what Python's fault handler wrote, the user's part of it."""

import os
import re
import sys
from pathlib import Path

from gradcli.frozen import dataclass

_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep
_EXAMPLES = os.path.join(_PACKAGE, "examples")
_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.+)$')
_LONGEST = 1 << 16
_LIBRARIES = ("numpy", "torch", "jax", "jaxlib", "triton")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The user's frames when a process ended, the innermost last, each as file, line and function."""

    frames: tuple[tuple[str, int, str], ...] = ()

    @property
    def location(self) -> str:
        """` in forward, m.py line 12`; nothing where no frame is the user's."""
        if not self.frames:
            return ""
        file, line, name = self.frames[-1]
        return f" in {name}, {os.path.basename(file)} line {line}"

    @property
    def trace(self) -> str | None:
        """The frames as Python shows them."""
        lines = [f'  File "{file}", line {line}, in {name}' for file, line, name in self.frames]
        return "\n".join(["Traceback (most recent call last):", *lines]) if lines else None


def sink() -> int | None:
    """A descriptor of memory that a worker's fault handler writes to; None where there is no such thing."""
    return os.memfd_create("gradcli-crash") if hasattr(os, "memfd_create") else None


def read(descriptor: int | None) -> Crash:
    """What a worker's fault handler wrote: its first thread, without the frames of gradcli and of the interpreter."""
    if descriptor is None:
        return Crash()
    text = os.pread(descriptor, _LONGEST, 0).decode("utf-8", "replace")
    _, _, current = text.partition("Current thread ")
    first = (current or text).partition("\n\n")[0]
    found = [match for line in first.splitlines() if (match := _FRAME.match(line))]
    frames = [(match["file"], int(match["line"]), match["name"]) for match in found if _is_users(match["file"])]
    return Crash(frames=tuple(reversed(frames)))


def _is_users(file: str) -> bool:
    if file == os.path.abspath(sys.argv[0]):  # the script that started the command
        return False
    if file.startswith(_PACKAGE):
        return file.startswith(_EXAMPLES)
    in_library = any(f"{os.sep}{folder}{os.sep}" in file for folder in _LIBRARIES)
    return not in_library and not file.startswith(("<", os.path.dirname(os.__file__) + os.sep))
