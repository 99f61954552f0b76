"""The stream that results are written to, apart from everything that the target prints."""

import atexit
import contextlib
import io
import os
import sys
from functools import cache

from gradcli.runner.process.descriptors import keep_stdout

_ASCII = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "×": "x",
        "·": "-",
        "±": "+-",
        "▸": ">",
        "│": "|",
        "├": "|",
        "└": "`",
        "─": "-",
        "…": "...",
        "→": "->",
        "←": "<-",
        "↩": "<-",
        "−": "-",
        "≤": "<=",
        "≥": ">=",
        "°": "deg",
        "²": "^2",
        "'": "'",
        "“": '"',
        "”": '"',
        "█": "#",
        "■": "#",
    }
)


class ReportStream(io.TextIOBase):
    """Text to a descriptor: in ASCII where the encoding has no other glyphs, quiet once the reader has gone.

    `problem` says why results could not be written.
    """

    def __init__(self, descriptor: int, encoding: str) -> None:
        self._file = open(descriptor, "w", encoding=encoding, errors="backslashreplace", newline="")  # noqa: SIM115 - lives as long as the process
        self._plain = not _has_glyphs(encoding)
        self._terminal = os.isatty(descriptor)
        self.problem: str | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only here, as in every concrete stream
        """The encoding of the bytes written."""
        return self._file.encoding

    def isatty(self) -> bool:
        """Whether a person reads it on a terminal."""
        return self._terminal

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, text: str) -> int:
        """Write `text`; once the reader has closed the pipe, discard it."""
        try:
            self._file.write(text.translate(_ASCII) if self._plain else text)
        except OSError as error:
            self._detach(error)
        return len(text)

    def write_bytes(self, raw: bytes) -> None:
        """Write bytes as they are, after the text that was written before."""
        self.flush()
        try:
            self._file.buffer.write(raw)
        except OSError as error:
            self._detach(error)

    def flush(self) -> None:
        """Hand what was written to the reader."""
        try:
            self._file.flush()
        except OSError as error:
            self._detach(error)

    def close(self) -> None:
        """Close the descriptor; everything that could be written has been."""
        super().close()
        with contextlib.suppress(OSError):
            self._file.close()

    def _detach(self, error: OSError) -> None:
        """Discard what is written from here on; a reader that has gone is no problem, a full disk is one."""
        if not isinstance(error, BrokenPipeError):
            self.problem = error.strerror or str(error)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)


@cache
def report_stream() -> ReportStream:
    """The stream for results; the first call takes standard output away from everybody else, for good.

    To be called before any of the user's code is imported.
    """
    encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding
    stream = ReportStream(keep_stdout(), encoding or "utf-8")
    atexit.register(stream.close)
    return stream


def progress_wanted() -> bool:
    """Whether standard error is a terminal, the only place where progress is shown."""
    return sys.stderr is not None and sys.stderr.isatty()


def _has_glyphs(encoding: str) -> bool:
    try:
        "✓▸±×│".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
