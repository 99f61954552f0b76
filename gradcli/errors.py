"""The errors gradcli raises, each with the exit code it stands for; and the user's, made safe to show."""

import signal
from typing import Any, ClassVar

_LONGEST_MESSAGE = 4000
_ROOM = 80
"""Characters for saying that a message was cut, which must not be cut again."""


class GradcliError(Exception):
    """Anything gradcli raises on purpose; shown as one message without a traceback."""

    exit_code: ClassVar[int] = 70


class ControlFlow(BaseException):
    """What gradcli raises to itself through the user's code; no Exception, so that no user's `except` stops it."""


class UsageError(GradcliError):
    """The command line, the configuration or an argument is wrong."""

    exit_code = 2


class SpecError(UsageError):
    """A spec is wrong; carries every problem found, each as `file:line:column: what`."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class TargetError(UsageError):
    """A target was not found, or is nothing that can be checked."""


class TargetImportError(TargetError):
    """The user's module raised while it was imported; carries the user's part of the traceback."""

    def __init__(self, message: str, user_traceback: str) -> None:
        super().__init__(message)
        self.user_traceback = user_traceback


class OtherFrameworkError(UsageError):
    """A callable was run with NumPy arrays and returned tensors of a framework, `framework`: it belongs to that one."""

    def __init__(self, message: str, framework: str) -> None:
        super().__init__(message)
        self.framework = framework


class WithoutDerivativeError(UsageError):
    """A callable on NumPy arrays has no derivative that could be checked."""


class MissingExtraError(UsageError):
    """A framework the target needs is not installed."""


class InputsNotFoundError(GradcliError):
    """No inputs were found that forward accepts; says what was tried.

    `refuses_double` is an error of forward about tensors of 64 bits, empty where it raised none; `is_lasting` says that
    forward accepts no inputs at all, because a line that every call gets to raises.
    """

    exit_code = 3
    refuses_double = ""
    is_lasting = False


class NothingToCheckError(GradcliError):
    """The targets contain nothing that could be checked."""

    exit_code = 5


class UserCodeError(GradcliError):
    """The user's forward, backward or script raised, exited or ran over its time."""

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        phase: str,
        user_traceback: str = "",
        file: str | None = None,
        line: int | None = None,
        error_type: str = "",
    ) -> None:
        super().__init__(message)
        self.phase = phase
        self.user_traceback = user_traceback
        self.file = file
        self.line = line
        self.error_type = error_type


class RelayedError(GradcliError):
    """An error of another process; its message is complete, with hint and traceback."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # that of the error relayed


class OverrunError(UserCodeError):
    """A call of the user's code was stopped, or not made, because its time was over: nothing is known of that point."""


class StuckError(OverrunError):
    """A call at the inferred inputs themselves was stopped, so that there is nothing to check."""


class LostDeviceError(ControlFlow):
    """A kernel has failed, so that its device can no longer be used in this process; `error` says what was raised."""

    def __init__(self, error: UserCodeError) -> None:
        super().__init__(str(error))
        self.error = error


class PresentedError(Exception):
    """Stands for an exception of the user's that is no Exception, or whose message cannot be shown as it is."""


_TRACEBACK: Any = BaseException.__dict__["__traceback__"]
"""Reads the traceback of an exception, whatever its class does when it is asked for an attribute."""


def is_interrupt(error: BaseException) -> bool:
    """Whether `error` ends a run: gradcli's own signals, and Ctrl-C where Python raises KeyboardInterrupt for it."""
    kind = type(error)  # isinstance would ask the error for its class, which may raise
    if issubclass(kind, KeyboardInterrupt):
        return signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return issubclass(kind, ControlFlow)


def message_of(error: BaseException) -> str:
    """The message of an exception, whatever its `__str__` does, of at most 4000 characters: its beginning and end."""
    try:
        text = str.__str__(str(error))
    except BaseException as trouble:
        if is_interrupt(trouble):
            raise
        return f"(its message cannot be shown: str() raised {type(trouble).__name__})"
    if len(text) <= _LONGEST_MESSAGE:
        return text
    half = (_LONGEST_MESSAGE - _ROOM) // 2
    return f"{text[:half]}... (cut: the message has {len(text):,} characters) ...{text[-half:]}"


def presentable(error: BaseException) -> BaseException:
    """An exception of the user's code as the rest of gradcli may handle it: an Exception with a message.

    What is one already, or ends the run, is returned itself; for any other one a PresentedError under its name.
    """
    own = type(error)
    if is_interrupt(error) or issubclass(own, GradcliError):
        return error
    message = message_of(error)
    if issubclass(own, Exception | SystemExit) and _is_plain(error, message):
        return error
    return presented(error)


def presented(error: BaseException) -> BaseException:
    """A PresentedError under the name of `error`, with its message and traceback."""
    own = type(error)
    kind = type(
        type.__getattribute__(own, "__name__"),
        (PresentedError,),
        {"__module__": type.__getattribute__(own, "__module__")},
    )
    made: BaseException = kind(message_of(error))
    made.__cause__ = None
    return made.with_traceback(_TRACEBACK.__get__(error))


def _is_plain(error: BaseException, message: str) -> bool:
    """Whether `str` of the error gives its message, does so again, and its attributes can be read."""
    try:
        ordinary = error.__class__ is type(error) and error.__traceback__ is _TRACEBACK.__get__(error)
        return ordinary and type(str(error)) is str and str(error) == message
    except BaseException as trouble:
        if is_interrupt(trouble):
            raise
        return False


def counted(count: int, noun: str) -> str:
    """A noun with its number, as messages have it: 1 gradient, 2 gradients."""
    return f"{count} {noun}{'s' * (count != 1)}"


def raised_on_host(text: str) -> str | None:
    """The exception of a host callback, whose whole traceback a framework quotes in its message; None for any other."""
    if "callback" not in text.lower() or "Traceback (most recent call last):" not in text:
        return None
    raised = [line for line in text.rpartition("\n  File ")[2].splitlines()[1:] if line and not line.startswith(" ")]
    return raised[0] if raised else None
