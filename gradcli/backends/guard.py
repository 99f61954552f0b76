"""Running the user's code: random generators and modes set and restored, output dropped, its time limited."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, TextIO, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.attribution import phase_of, user_code_error, users_frames
from gradcli.backends.tensor.framework import Framework
from gradcli.errors import ControlFlow, GradcliError, LostDeviceError, UserCodeError, presentable, presented
from gradcli.watchdog.alarm import cleaning
from gradcli.watchdog.case import CURRENT, Call, Distance
from gradcli.watchdog.status import LOST_DEVICE

_end_process = os._exit
"""Kept, since a worker refuses it to the user's code."""
_CHOSEN = (
    "\nThis happened at inputs that gradcli chose; when it does, `gradcli check` runs the case again without these."
)
lost_devices: set[str] = set()
"""The frameworks whose device this process has lost."""
_ORDINARY = 1000.0
"""A backward that iterates to an absolute tolerance near float64's rounding runs forever for larger cotangents."""
Cotangents = Sequence[NDArray[Any] | None]
_Result = TypeVar("_Result")


def are_ordinary(cotangents: Cotangents) -> bool:
    """Whether cotangents are of a size that training has; the large ones of checks have equal entries."""
    for cotangent in cotangents:
        if cotangent is not None and cotangent.size and abs(cotangent.flat[0]) > _ORDINARY:
            return False
    return True


class ModeLeftError(RuntimeError):
    """The user's code entered a mode of its framework, and returned without exiting it."""


class RepeatError(ControlFlow):
    """Random numbers were drawn in a lazy session. Not an Exception, so that it cannot be taken for the user's own."""


_CALLS_BETWEEN_LOOKS = 32
"""After so many calls a lazy session checks whether random numbers were drawn."""


@final
class Attempt:
    """A first run inside a lazy session; `is_void` says afterwards that it has to be repeated.

    It has to if random numbers were drawn in it. An error of the user's code in it does not count then.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._before, self._outer = session.drawn, session.is_repeatable
        self.is_void = False

    def __enter__(self) -> "Attempt":
        self._session.is_repeatable = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Suppress the error of a run that has to be repeated."""
        self._session.is_repeatable = self._outer
        if error is None or isinstance(error, UserCodeError | RepeatError):
            self._session.check()
            self.is_void = self._session.drawn != self._before
        return self.is_void


@final
class Session:
    """A context that restores the random generators of one framework, of Python and of NumPy at its end.

    Each call of the user's code is seeded alike. A lazy session seeds nothing until a number is drawn: few functions
    draw, and seeding takes longer than many calls. What ran until then has to run again, with every call seeded.
    """

    def __init__(self, framework: Framework, *, lazy: bool) -> None:
        self._framework = framework
        self._state = framework.random_state()
        self.lazy = lazy
        self.drawn = 0
        """How often random numbers were found to be drawn without a seed."""
        self.is_repeatable = False
        self.calls = self._looked_at = 0
        self._is_as_it_was = True

    def seed_every_call(self) -> bool:
        """Seed every call from now on; returns whether random numbers were drawn before, without a seed."""
        drawn = self.lazy and self._is_disturbed()
        self.lazy = False
        self.drawn += drawn
        return drawn

    def check(self) -> bool:
        """Whether random numbers were drawn without a seed; if so, every call is seeded from now on."""
        return self.lazy and self._is_disturbed() and self.seed_every_call()

    def _is_disturbed(self) -> bool:
        if self._looked_at != self.calls:
            self._is_as_it_was = self._framework.is_in_state(self._state)
            self._looked_at = self.calls
        return not self._is_as_it_was

    def enter(self, seed: int) -> None:
        """Before a call of the user's code: seed the generators, or look now and then whether numbers were drawn.

        Raises:
            RepeatError: they were, in a first attempt, which has to start again.
        """
        if self.lazy and self.check() and self.is_repeatable:
            raise RepeatError
        if not self.lazy:
            self._framework.seed(seed)

    def attempts(self) -> Iterator[AbstractContextManager["Attempt"]]:
        """One context to run in, and a second one if random numbers were drawn in the first.

        In the second, every call is seeded, and what was computed in the first must not be used.
        """
        self.check()
        first = Attempt(self)
        yield first
        if first.is_void:
            yield nullcontext(first)

    def run_alike(self, work: Callable[[], _Result]) -> _Result:
        """Return what `work` returns in the last of the `attempts`."""
        for attempt in self.attempts():
            with attempt:
                found = work()
        return found

    def close(self) -> None:
        """Restore the generators."""
        if self._framework.name in lost_devices or not self.lazy or self._is_disturbed():
            self._framework.restore_random_state(self._state)


_sessions: dict[str, Session] = {}
"""The session of each framework that has one."""


@contextlib.contextmanager
def generators_restored(framework: Framework, *, lazy: bool = False) -> Iterator[Session]:
    """A session that restores every random generator at its end; inside another session, that one."""
    outer = _sessions.get(framework.name)
    if outer is not None:
        if not lazy:
            outer.seed_every_call()
        yield outer
        return
    session = _sessions[framework.name] = Session(framework, lazy=lazy)
    try:
        yield session
    finally:
        del _sessions[framework.name]
        session.close()


def seed_every_call(framework: Framework) -> None:
    """Seed every call from now on."""
    if framework.name in _sessions:
        _sessions[framework.name].seed_every_call()


def seeds_lazily(framework: Framework) -> bool:
    """Whether calls are not seeded, because no random numbers were drawn so far."""
    return framework.name in _sessions and _sessions[framework.name].lazy


def has_drawn(framework: Framework) -> bool:
    """Whether random numbers were drawn without a seed, so that what has just run has to run again."""
    return framework.name in _sessions and _sessions[framework.name].check()


@final
class _NullStream(io.TextIOBase):
    """A stream that drops what is written to it, and cannot be closed."""

    def write(self, text: str) -> int:
        """Drop the text."""
        return len(text)

    def writable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """Stay open: every call of the user's code is given this one."""


_NULL_STREAM = _NullStream()


@final
class UsersCode(contextlib.AbstractContextManager[None]):
    """The context of every call of the user's code; everything that it sets is restored at its end.

    It sets: the random generators of Python, NumPy and the framework to `seed` (except in a lazy session); NumPy's
    floating-point warnings off; autocast off; graph recording on, if `recording`; output dropped, if `silent`; and
    the watchdog's time limit. It is a class rather than a generator because it is entered for every call.

    Args:
        framework: whose generators and modes are set.
        silent: whether what the code prints is dropped.
        seed: what the generators are set to.
        recording: whether a graph is recorded, whatever the caller of the checker has set.
        asked: whether it runs at inputs that were asked for; elsewhere its time is limited.
        passed: the cotangents passed back, if any; the time is limited for larger ones than training has.
        forward: how often forward is among what runs; the time of one call tells how sparingly to call it.
        distance: how far from the inputs asked for it runs.
    """

    __slots__ = (
        "_autocast",
        "_call",
        "_framework",
        "_modes",
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

    def __init__(
        self,
        framework: Framework,
        *,
        silent: bool,
        seed: int = 0,
        recording: bool = False,
        asked: bool = False,
        forward: int = 1,
        distance: Distance | None = None,
        passed: Cotangents = (),
    ) -> None:
        asked = asked and are_ordinary(passed)
        self._framework, self._silent, self._seed, self._recording = framework, silent, seed, recording
        self._call = Call(asked, forward, distance)
        self._recorded = True
        self._modes = 0
        self._process = os.getpid()
        self._own: Session | None = None
        self._streams: tuple[TextIO, TextIO] | None = None
        self._numpy = np.errstate(all="ignore")
        self._autocast: contextlib.AbstractContextManager[None] | None = None
        self._watchdog = CURRENT.get()

    @cleaning
    def __enter__(self) -> None:
        """Set everything that the class says."""
        framework = self._framework
        if self._watchdog is not None:
            self._watchdog.admit(self._call)
        session = _sessions.get(framework.name)
        if session is None:
            session = self._own = _sessions[framework.name] = Session(framework, lazy=False)
        session.calls += 1
        if not session.lazy or session.calls % _CALLS_BETWEEN_LOOKS == 0:
            session.enter(self._seed)
        if self._silent:
            self._streams = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = _NULL_STREAM
        self._numpy.__enter__()
        self._autocast = framework.autocast_off() if framework.has_autocast else None
        if self._autocast is not None:
            self._autocast.__enter__()
        if self._recording:
            self._recorded = framework.namespace.is_grad_enabled()
            if not self._recorded:
                framework.namespace.set_grad_enabled(True)
        if framework.mode_count is not None:
            self._modes = framework.mode_count()
        if self._watchdog is not None:
            self._watchdog.start(self._call)

    @cleaning
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore everything, and make what the user's code raised safe to show.

        If the user's code forked, the child process ends here.

        Raises:
            LostDeviceError: a kernel failed, and the device with it.
            OverrunError: the time was over.
            ModeLeftError: a mode was left entered, which would rewrite what the checker computes from now on.
        """
        lost = None if error is None else self._lost_device(error)
        stopped = self._watchdog is not None and self._watchdog.stop(self._call, returned=kind is None)
        if os.getpid() != self._process:
            os._exit(0 if error is None else 1)
        count = self._framework.mode_count
        left = () if count is None or count() <= self._modes else self._framework.exit_modes(self._modes)
        if self._recording and self._framework.namespace.is_grad_enabled() is not self._recorded:
            self._framework.namespace.set_grad_enabled(self._recorded)
        if self._autocast is not None:
            self._autocast.__exit__(None, None, None)
        self._numpy.__exit__(None, None, None)
        if self._streams is not None:
            sys.stdout, sys.stderr = self._streams
        if self._own is not None:
            del _sessions[self._framework.name]
            self._own.close()
        if lost is not None:
            raise lost from error
        if stopped and self._watchdog is not None:
            frames = users_frames(trace)
            raise self._watchdog.overrun(self._call, frames[-1] if frames else None) from None
        if error is None:
            if left:
                names = ", ".join(dict.fromkeys(left))
                raise ModeLeftError(f"the target left {names} switched on: use a `with` statement")
            return
        own = type(error)  # not isinstance, which asks the error for its __class__
        if issubclass(own, GradcliError) and not issubclass(own, UserCodeError) and users_frames(trace):
            raise presented(error)  # gradcli's own, of a call that the user's code made
        if (shown := presentable(error)) is not error:
            raise shown

    def _lost_device(self, error: BaseException) -> LostDeviceError | None:
        """What to raise if the call has lost the device and a case runs.

        The process ends here if the command can run the case again without this call.
        """
        if not self._framework.has_lost_device():
            return None
        asked, watchdog = self._call.asked, self._watchdog
        if watchdog is not None and watchdog.is_shared and not asked:
            _end_process(LOST_DEVICE)
        lost_devices.add(self._framework.name)
        failure = user_code_error(presentable(error), "backward" if self._call.forward == 0 else phase_of(error))
        if not asked:
            failure.args = (f"{failure}{_CHOSEN}",)
        return None if watchdog is None else LostDeviceError(failure)


users_code = UsersCode
"""The context by the name under which it is used: `with users_code(framework, silent=True):`."""
