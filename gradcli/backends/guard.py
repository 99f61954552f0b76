"""Running the user's code: generators reset, repeats silenced, exceptions told apart by whose they are."""

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TextIO, final

import numpy as np

from gradcli.backends.framework import Framework
from gradcli.errors import ControlFlow, GradcliError, OverrunError, UserCodeError, message_of, presentable
from gradcli.watchdog.alarm import cleaning
from gradcli.watchdog.case import Call, Distance, current

_PACKAGE = Path(__file__).resolve().parent.parent
_EXAMPLES = _PACKAGE / "examples"
_LONGEST_SAID = 8000
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
    said = "".join(traceback.format_exception_only(type(error), error))
    return "".join([*lines, said[:_LONGEST_SAID]]).rstrip()


def is_users_own(error: BaseException) -> bool:
    """Whether an exception that came through gradcli is the user's: raised in a file of theirs, or no Exception.

    gradcli raises exceptions alone, but for what ends a run.
    """
    if isinstance(error, GradcliError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return not isinstance(error, Exception) or (bool(frames) and is_users_file(frames[-1].filename))


def phase_of(error: BaseException) -> str:
    """What of the user's code raised: the first function in a file of theirs, "the target" where there is none."""
    frames = users_frames(error.__traceback__)
    return frames[0].name if frames and frames[0].name.isidentifier() else "the target"


def _raised_on_host(text: str) -> str | None:
    """The exception of a host callback, whose whole traceback a framework quotes in its message; None for any other."""
    if "callback" not in text.lower() or "Traceback (most recent call last):" not in text:
        return None
    raised = [line for line in text.rpartition("\n  File ")[2].splitlines()[1:] if line and not line.startswith(" ")]
    return raised[0] if raised else None


def user_code_error(error: BaseException, phase: str) -> UserCodeError:
    """The error that stands for `error`, raised by the user's code in `phase` ("forward", "backward")."""
    if isinstance(error, OverrunError):
        return OverrunError(str(error), phase=error.phase, file=error.file, line=error.line)
    frames = users_frames(error.__traceback__)
    last = frames[-1] if frames else None
    text = message_of(error).strip() or "no message"
    host = _raised_on_host(text)
    return UserCodeError(
        f"{phase} called a function on the host that raised {host}"
        if host
        else f"{phase} raised {type(error).__name__}: {text}",
        phase=phase,
        user_traceback=host or users_traceback(error),
        file=last.filename if last else None,
        line=last.lineno if last else None,
        error_type=type(error).__name__,
    )


class RepeatError(ControlFlow):
    """Random numbers were drawn that nobody had set; no Exception, so that nobody takes it for the user's own."""


_CALLS_TRUSTED = 32
"""After so many calls a trusting session looks whether somebody drew: what seems noisy is called hundreds of times."""


@final
class Session:
    """A time at whose end one framework's random generators, Python's and NumPy's are back where they were.

    A trusting one leaves them as they are until somebody draws from one: few functions do, and to set the generators
    before every call takes longer than many a call. What ran by then has to run again, with care: each call from the
    same seed.
    """

    def __init__(self, framework: Framework, *, trusting: bool) -> None:
        self._framework = framework
        self._state = framework.random_state()
        self.trusting = trusting
        self._has_erred = False
        self._is_repeatable = False
        self._calls = self._calls_seen = 0
        self._is_as_it_was = True

    def take_care(self) -> bool:
        """Set the generators before every call from now on; returns whether someone has drawn without that."""
        drawn = self.trusting and self._is_disturbed()
        self.trusting = False
        self._has_erred = self._has_erred or drawn
        return drawn

    def check(self) -> bool:
        """Whether someone has drawn while nobody took care; from then on care is taken."""
        return self.trusting and self._is_disturbed() and self.take_care()

    def _is_disturbed(self) -> bool:
        if self._calls_seen != self._calls:
            self._is_as_it_was = self._framework.is_in_state(self._state)
            self._calls_seen = self._calls
        return not self._is_as_it_was

    def enter(self, seed: int) -> None:
        """Before a call of the user's code: set the generators, or see now and then that nobody has drawn.

        Raises:
            RepeatError: somebody has, and whoever called `begin` has to start again.
        """
        self._calls += 1
        if self.trusting and self._calls % _CALLS_TRUSTED == 0 and self.check() and self._is_repeatable:
            raise RepeatError
        if not self.trusting:
            self._framework.seed(seed)

    def begin(self) -> None:
        """What ran so far does not count: it took care of itself. What runs now can be repeated."""
        self.check()
        self._has_erred, self._is_repeatable = False, True

    def must_repeat(self) -> bool:
        """Whether what ran since `begin` has to run again, as it does with care from now on."""
        self.check()
        repeat, self._has_erred, self._is_repeatable = self._has_erred, False, False
        return repeat

    def close(self) -> None:
        """Put the generators back where they were."""
        if not self.trusting or self._is_disturbed():
            self._framework.restore_random_state(self._state)


_sessions: dict[str, Session] = {}
"""The session of each framework that has one."""


@contextlib.contextmanager
def generators_kept(framework: Framework, *, trusting: bool = False) -> Iterator[Session]:
    """Restore every random generator at the end; within a session it is that one, which takes care if asked to."""
    outer = _sessions.get(framework.name)
    if outer is not None:
        if not trusting:
            outer.take_care()
        yield outer
        return
    session = _sessions[framework.name] = Session(framework, trusting=trusting)
    try:
        yield session
    finally:
        del _sessions[framework.name]
        session.close()


def take_care(framework: Framework) -> None:
    """Set the generators before every call from now on."""
    if framework.name in _sessions:
        _sessions[framework.name].take_care()


def is_trusting(framework: Framework) -> bool:
    """Whether the generators are left alone before a call, because nobody is known to draw from them."""
    return framework.name in _sessions and _sessions[framework.name].trusting


def has_drawn(framework: Framework) -> bool:
    """Whether what has just run drew random numbers that nobody had set, so that it has to run again."""
    return framework.name in _sessions and _sessions[framework.name].check()


@final
class _Unheard(io.TextIOBase):
    """A stream that drops what is printed, however much that is, and lets nobody close it."""

    def write(self, text: str) -> int:
        """Drop the text."""
        return len(text)

    def writable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Stay open: every call of the user's code is given this one."""


_UNHEARD = _Unheard()


@final
class UsersCode(contextlib.AbstractContextManager[None]):
    """What `users_code` gives: a context that is entered once, written out because it is entered for every call."""

    __slots__ = (
        "_call",
        "_calm",
        "_framework",
        "_numpy",
        "_own",
        "_process",
        "_recorded",
        "_recording",
        "_seed",
        "_silent",
        "_streams",
        "_watchdog",
    )

    def __init__(self, framework: Framework, call: Call, *, silent: bool, seed: int, recording: bool) -> None:
        self._framework, self._silent, self._seed, self._recording = framework, silent, seed, recording
        self._call = call
        self._recorded = True
        self._process = os.getpid()
        self._own: Session | None = None
        self._streams: tuple[TextIO, TextIO] | None = None
        self._numpy = np.errstate(all="ignore")
        self._calm: contextlib.AbstractContextManager[None] | None = None
        self._watchdog = current()

    def __enter__(self) -> None:
        """Set the generators, and drop what is printed if that is asked for: the numerics call forward many times."""
        framework = self._framework
        if self._watchdog is not None:
            self._watchdog.admit(self._call)
        session = _sessions.get(framework.name)
        if session is None:
            session = self._own = _sessions[framework.name] = Session(framework, trusting=False)
        session.enter(self._seed)
        if self._silent:
            self._streams = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = _UNHEARD
        self._numpy.__enter__()
        self._calm = framework.calm()
        if self._calm is not None:
            self._calm.__enter__()
        if self._recording:
            self._recorded = framework.record(True)
        if self._watchdog is not None:
            self._watchdog.start(self._call)

    @cleaning
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put back the streams, and the generators if nobody else will; make what the user's code raised safe to show.

        A child process that the user's code made, and that comes back here, ends: it is no checker.

        Raises:
            OverrunError: the time was over.
        """
        stopped = self._watchdog is not None and self._watchdog.stop(self._call, returned=kind is None)
        if os.getpid() != self._process:
            os._exit(0 if error is None else 1)
        if self._recording:
            self._framework.record(self._recorded)
        if self._calm is not None:
            self._calm.__exit__(None, None, None)
        self._numpy.__exit__(None, None, None)
        if self._streams is not None:
            sys.stdout, sys.stderr = self._streams
        if self._own is not None:
            del _sessions[self._framework.name]
            self._own.close()
        if stopped and self._watchdog is not None:
            frames = users_frames(trace)
            raise self._watchdog.overrun(self._call, frames[-1] if frames else None) from None
        if error is not None and (shown := presentable(error)) is not error:
            raise shown


def users_code(
    framework: Framework,
    *,
    silent: bool,
    seed: int = 0,
    recording: bool = False,
    asked: bool = False,
    forward: int = 1,
    distance: Distance | None = None,
) -> UsersCode:
    """Run the user's code inside: generators set to `seed`, then restored; floating-point warnings off.

    In a trusting session the generators are not set; whoever opened it sees to it that nobody draws.

    Args:
        framework: whose generators are set, beside Python's and NumPy's.
        silent: whether what the code prints is dropped.
        seed: what the generators are set to.
        recording: whether a graph is recorded, whatever the caller of the checker has set.
        asked: whether it runs at inputs that were asked for; elsewhere its time is limited.
        forward: how often forward is among what runs; the time of one call tells how sparingly to call it.
        distance: how far from the inputs asked for it runs.
    """
    call = Call(asked, forward, distance)
    return UsersCode(framework, call, silent=silent, seed=seed, recording=recording)
