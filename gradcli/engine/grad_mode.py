"""Whether operations are recorded: the mode of the current thread, and the contexts that change it."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")
SavedHooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class _State(threading.local):
    """What recording depends on, one copy per thread."""

    enabled: bool = True
    inference: bool = False
    anomaly: bool = False
    check_nan: bool = True
    saved_hooks: tuple[SavedHooks, ...] = ()
    why_no_saved_hooks: str | None = None
    why_no_random: str | None = None
    transforms: int = 0  # how many functions of `func` are calling what they were given
    forward: bool = False  # whether forward mode has begun: then gradients have tangents, and passes free nothing
    walk: Any = None  # the backward pass that is running, if any


STATE = _State()


def is_grad_enabled() -> bool:
    """Tell whether operations are being recorded in this thread."""
    return STATE.enabled


def is_inference_mode_enabled() -> bool:
    """Tell whether this thread is inside `inference_mode`."""
    return STATE.inference


class _GradModeContext:
    """A context manager and decorator that holds the recording mode at one value."""

    mode: bool

    def __init__(self) -> None:
        self._previous: list[bool] = []

    def __enter__(self) -> None:
        self._previous.append(STATE.enabled)
        STATE.enabled = self.mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        STATE.enabled = self._previous.pop()

    def _fresh(self) -> _GradModeContext:
        return type(self)()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        return _decorate(self._fresh, function)


def _decorate(context: Callable[[], Any], function: Callable[P, R]) -> Callable[P, R]:
    if inspect.isgeneratorfunction(function):
        generator: Callable[P, R] = _decorate_generator(context, function)
        return generator

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with context():
            return function(*args, **kwargs)

    return wrapped


def _decorate_generator(context: Callable[[], Any], function: Callable[..., Any]) -> Any:
    """Return a generator function that is in the context while its body runs, and not while it waits."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        body = function(*args, **kwargs)
        try:
            with context():
                yielded = next(body)
            while True:
                try:
                    sent = yield yielded
                except GeneratorExit:
                    with context():
                        body.close()
                    raise
                except BaseException as error:
                    with context():
                        yielded = body.throw(error)
                else:
                    with context():
                        yielded = body.send(sent)
        except StopIteration as end:
            return end.value

    return wrapped


class no_grad(_GradModeContext):  # noqa: N801  (the name programs use)
    """Stop recording: results are untracked leaves. Works as a context and as a decorator."""

    mode = False

    @overload
    def __new__(cls, function: None = None) -> no_grad: ...
    @overload
    def __new__(cls, function: Callable[P, R]) -> Callable[P, R]: ...  # type: ignore[misc]  # bare @no_grad decorates
    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Return the context, or the decorated function for a bare `@no_grad`."""
        return super().__new__(cls) if function is None else _decorate(cls, function)


class enable_grad(_GradModeContext):  # noqa: N801  (the name programs use)
    """Record again inside `no_grad`. Works as a context and as a decorator."""

    mode = True

    @overload
    def __new__(cls, function: None = None) -> enable_grad: ...
    @overload
    def __new__(cls, function: Callable[P, R]) -> Callable[P, R]: ...  # type: ignore[misc]  # bare decorator
    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Return the context, or the decorated function for a bare `@enable_grad`."""
        return super().__new__(cls) if function is None else _decorate(cls, function)


class set_grad_enabled(_GradModeContext):  # noqa: N801  (the name programs use)
    """Set recording on or off at once, and put it back when used as a context that ends.

    Args:
        mode: True records, False does not.
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._before = STATE.enabled
        STATE.enabled = self.mode

    def __enter__(self) -> None:
        STATE.enabled = self.mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        STATE.enabled = self._before

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function under this mode, and leave the mode outside as it was before."""
        STATE.enabled = self._before
        mode = self.mode
        return _decorate(lambda: set_grad_enabled(mode), function)


class inference_mode(_GradModeContext):  # noqa: N801  (the name programs use)
    """Stop recording, and mark the thread as being in inference; here no stricter than `no_grad`."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = not mode
        self._inference = mode
        self._flags: list[bool] = []

    def _fresh(self) -> inference_mode:
        return inference_mode(self._inference)

    def __enter__(self) -> None:
        self._previous.append(STATE.enabled)
        self._flags.append(STATE.inference)
        STATE.inference = self._inference
        STATE.enabled = STATE.enabled and self.mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        STATE.enabled = self._previous.pop()
        STATE.inference = self._flags.pop()
