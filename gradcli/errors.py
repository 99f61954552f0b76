"""The errors gradcli raises, each with the exit code it stands for."""

from typing import ClassVar


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


class MissingExtraError(UsageError):
    """A framework the target needs is not installed."""


class InputsNotFoundError(GradcliError):
    """No inputs were found that forward accepts; says what was tried."""

    exit_code = 3


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
