"""Running the user's code: generators reset, repeats silenced, exceptions told apart by whose they are."""

import contextlib
import io
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, final

import numpy as np

from gradcli.backends.framework import Framework
from gradcli.errors import UserCodeError

_PACKAGE = Path(__file__).resolve().parent.parent
_EXAMPLES = _PACKAGE / "examples"
_LIBRARIES = ("torch", "jax", "jaxlib", "numpy")
_STANDARD_LIBRARY = Path(contextlib.__file__).resolve().parent


def is_users_file(filename: str) -> bool:
    """Whether a frame of this file is the user's: not gradcli's own, not a framework's, not the interpreter's."""
    if filename.startswith("<frozen"):
        return False
    path = Path(filename)
    if _PACKAGE in path.parents:
        return _EXAMPLES in path.parents
    parts = path.parts
    for folder in ("site-packages", "dist-packages"):
        if folder in parts[:-1]:
            return parts[parts.index(folder) + 1] not in _LIBRARIES
    return _STANDARD_LIBRARY not in path.parents


def users_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames of a traceback that are in the user's files, outermost first."""
    return [frame for frame in traceback.extract_tb(trace) if is_users_file(frame.filename)]


def users_traceback(error: BaseException) -> str:
    """The user's part of a traceback, formatted as Python does it."""
    frames = users_frames(error.__traceback__)
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return "".join([*lines, *traceback.format_exception_only(type(error), error)]).rstrip()


def user_code_error(error: BaseException, phase: str) -> UserCodeError:
    """The error that stands for `error`, raised by the user's code in `phase` ("forward", "backward")."""
    frames = users_frames(error.__traceback__)
    last = frames[-1] if frames else None
    text = str(error).strip() or "no message"
    return UserCodeError(
        f"{phase} raised {type(error).__name__}: {text}",
        phase=phase,
        user_traceback=users_traceback(error),
        file=last.filename if last else None,
        line=last.lineno if last else None,
        error_type=type(error).__name__,
    )


_keeping: set[str] = set()
"""Frameworks whose generators an enclosing `generators_kept` will restore."""


@contextlib.contextmanager
def generators_kept(framework: Framework) -> Iterator[None]:
    """Restore every random generator at the end; the snapshot is taken once, at the outermost use."""
    if framework.name in _keeping:
        yield
        return
    state = framework.random_state()
    _keeping.add(framework.name)
    try:
        yield
    finally:
        _keeping.discard(framework.name)
        framework.restore_random_state(state)


@final
class UsersCode(contextlib.AbstractContextManager[None]):
    """What `users_code` gives: a context that is entered once, written out because it is entered for every call."""

    def __init__(self, framework: Framework, *, silent: bool, seed: int) -> None:
        self._framework, self._silent, self._seed = framework, silent, seed
        self._state: tuple[Any, Any, object] | None = None
        self._streams: tuple[TextIO, TextIO] | None = None
        self._numpy = np.errstate(all="ignore")
        self._calm: contextlib.AbstractContextManager[None] = framework.calm()

    def __enter__(self) -> None:
        """Set the generators, and drop what is printed if that is asked for: the numerics call forward many times."""
        framework = self._framework
        if framework.name not in _keeping:
            self._state = framework.random_state()
            _keeping.add(framework.name)
        framework.seed(self._seed)
        if self._silent:
            self._streams = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = io.StringIO()
        self._numpy.__enter__()
        self._calm.__enter__()

    def __exit__(self, *raised: object) -> None:
        """Put back the streams, and the generators if nobody else will."""
        self._calm.__exit__(None, None, None)
        self._numpy.__exit__(None, None, None)
        if self._streams is not None:
            sys.stdout, sys.stderr = self._streams
        if self._state is not None:
            _keeping.discard(self._framework.name)
            self._framework.restore_random_state(self._state)


def users_code(framework: Framework, *, silent: bool, seed: int = 0) -> UsersCode:
    """Run the user's code inside: generators set to `seed`, then restored; floating-point warnings off.

    Args:
        framework: whose generators are set, beside Python's and NumPy's.
        silent: whether what the code prints is dropped.
        seed: what the generators are set to.
    """
    return UsersCode(framework, silent=silent, seed=seed)
