"""Whose code it was: files and frames of the user's, and the error that stands for what their code raised."""

import contextlib
import functools
import os
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType

from gradcli.errors import GradcliError, OverrunError, UsageError, UserCodeError, message_of, raised_on_host

_PACKAGE = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_EXAMPLES = f"{_PACKAGE}examples{os.sep}"
_LONGEST_SAID = 8000
_LIBRARIES = ("torch", "jax", "jaxlib", "numpy", "triton")
_INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))
_STANDARD_LIBRARY = f"{Path(contextlib.__file__).resolve().parent}{os.sep}"


_begun: ContextVar[Path | None] = ContextVar("begun", default=None)


@contextlib.contextmanager
def paths_from_here() -> Iterator[None]:
    """A context in which reports show paths relative to the working directory at its start, or at that of an outer one.

    The user's code may change the working directory.
    """
    try:
        token = _begun.set(_begun.get() or Path.cwd())
    except FileNotFoundError:  # it no longer exists: paths are shown in full
        token = _begun.set(Path())
    try:
        yield
    finally:
        _begun.reset(token)


def shown_path(filename: str) -> str:
    """The path as reports show it: relative where it lies below the working directory that the program began in."""
    return _relative(filename, _begun.get() or Path.cwd())


def readable_path(shown: str) -> str:
    """A path to read what `shown_path` shows."""
    return str((_begun.get() or Path.cwd()) / shown)


@functools.lru_cache(maxsize=4096)
def _relative(filename: str, here: Path) -> str:
    path = Path(filename)
    return str(path.relative_to(here)) if path.is_relative_to(here) else filename


@functools.cache  # there are as many as files with Python code in the process
def is_users_file(filename: str) -> bool:
    """Whether a frame of this file is the user's: not gradcli's own, not a framework's, not the interpreter's."""
    if filename.startswith("<frozen"):
        return False
    name = filename if os.sep == "/" else os.path.normpath(filename)
    if name.startswith(_PACKAGE):
        return name.startswith(_EXAMPLES)
    for folder in _INSTALLED:
        inside = name.partition(folder)[2]
        if inside:
            return inside.partition(os.sep)[0] not in _LIBRARIES
    return not name.startswith(_STANDARD_LIBRARY)


def users_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames of a traceback that are in the user's files, outermost first."""
    return [frame for frame in traceback.extract_tb(trace) if is_users_file(frame.filename)]


def users_traceback(error: BaseException) -> str:
    """The user's part of a traceback, formatted as Python does it."""
    return _formatted(users_frames(error.__traceback__), error)


def _formatted(frames: list[traceback.FrameSummary], error: BaseException) -> str:
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    said = "".join(traceback.format_exception_only(type(error), error))
    said = raised_on_host(said) or said
    return "".join([*lines, said[:_LONGEST_SAID]]).rstrip()


def is_users_own(error: BaseException) -> bool:
    """Whether an exception that came through gradcli is the user's: raised in a file of theirs, or no Exception.

    gradcli itself raises only subclasses of Exception, except to end a run.
    """
    if isinstance(error, GradcliError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return not isinstance(error, Exception) or (bool(frames) and is_users_file(frames[-1].filename))


def phase_of(error: BaseException) -> str:
    """The name of the user's function that raised: the outermost one in a file of theirs, else "the target"."""
    frames = users_frames(error.__traceback__)
    return frames[0].name if frames and frames[0].name.isidentifier() else "the target"


def _in_kernel(error: BaseException) -> tuple[list[traceback.FrameSummary], BaseException]:
    """The user's frames of an exception, and the exception itself.

    Triton's interpreter wraps what a kernel raises in an exception of its own, and that in another one for each calling
    function; the first one has the message.
    """
    frames = users_frames(error.__traceback__)
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
        frames += users_frames(error.__traceback__)
    return frames, error


def user_code_error(error: BaseException, phase: str) -> UserCodeError:
    """The error that stands for `error`, raised by the user's code in `phase` ("forward", "backward").

    Raises:
        UsageError: `error` is one: a backward that was named for a function does not fit it.
    """
    if isinstance(error, UsageError):
        raise error
    if isinstance(error, OverrunError):
        return type(error)(str(error), phase=error.phase, file=error.file, line=error.line)
    frames, error = _in_kernel(error)
    last = frames[-1] if frames else None
    text = message_of(error).strip() or "no message"
    host = raised_on_host(text)
    return UserCodeError(
        f"{phase} called a Python function from compiled code (a callback), which raised {host}"
        if host
        else f"{phase} raised {type(error).__name__}: {text}",
        phase=phase,
        user_traceback=host or _formatted(frames, error),
        file=last.filename if last else None,
        line=last.lineno if last else None,
        error_type=type(error).__name__,
    )
