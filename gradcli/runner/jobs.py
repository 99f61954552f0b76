"""Jobs, which import and run the user's code in some process, and the four outcomes that a job can have."""

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, final

from gradcli.cases import FrameworkObject, InputSpec
from gradcli.errors import GradcliError, LostDeviceError, TargetImportError, UsageError, UserCodeError
from gradcli.frozen import dataclass
from gradcli.runner.process.interrupts import Interrupted
from gradcli.watchdog.case import Watchdog
from gradcli.watchdog.omissions import Omissions
from gradcli.watchdog.status import StatusReading, new_status

if TYPE_CHECKING:
    from gradcli.results import CheckResult
    from gradcli.runner.arguments.overview import Survey
    from gradcli.runner.planning.plan import CheckCase
    from gradcli.runner.store.failures import Failure
    from gradcli.traces import TraceGraph

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_FAULT = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(ABC):
    """Work that imports the user's code; `target` is its name in messages."""

    target: str

    def after(self, status: StatusReading, how: str) -> "Job | None":  # noqa: ARG002 - for those that override it
        """The job to do in another process, after one that ended as `how` says; None where that would help nothing."""
        return None

    @property
    def label(self) -> str:
        """Its name in progress messages."""
        return self.target

    @property
    def calls_limited(self) -> bool:
        """Whether the number of calls of a slow forward is limited."""
        return False

    @abstractmethod
    def run(self, begun: Callable[[], None]) -> object:
        """Do the work; `begun` is called once the target has been imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesJob(Job):
    """Which Functions does a module or file define?"""

    def run(self, begun: Callable[[], None]) -> tuple[tuple[str, str | None], ...]:
        """The targets, as `listed_in` gives them."""
        from gradcli.runner.planning.functions import listed_in

        return listed_in(self.target, begun)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckJob(Job):
    """Check one case; a failure is saved in the folder `failures`, if one is given."""

    case: "CheckCase"
    failures: Path | None = None
    omissions: Omissions = field(default_factory=Omissions)

    @property
    def label(self) -> str:
        """The id of the case."""
        return self.case.spec.case_id

    @property
    def calls_limited(self) -> bool:
        """True if no budget is given."""
        return self.case.settings.budget is None

    def after(self, status: StatusReading, how: str) -> "CheckJob | None":
        """The job to do in another process, after one that ended as `how` says; None where that would help nothing."""
        omissions = self.omissions.after(status, how)
        return None if omissions is None else replace(self, omissions=omissions)

    def run(self, begun: Callable[[], None]) -> "CheckResult":
        """The result, without arrays and without objects of the user's classes."""
        from gradcli.runner.case import check_object
        from gradcli.spec.resolve import resolve

        target = resolve(self.case.spec.target).object
        begun()
        watchdog = Watchdog(budget=self.case.settings.budget, omissions=self.omissions, status=new_status())
        result = check_object(target, self.case, failures=self.failures, watchdog=watchdog)
        return replace(result, arguments=(), inputs=tuple(_portable(spec) for spec in result.inputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyJob(Job):
    """How would a case be checked?"""

    case: "CheckCase"

    def run(self, begun: Callable[[], None]) -> "Survey":
        """The target as it would be checked, and its inputs."""
        from gradcli.runner.arguments.overview import survey

        seen = survey(self.case, begun)
        alternatives = tuple(tuple(_portable(spec) for spec in each) for each in seen.alternatives)
        return replace(seen, inputs=tuple(_portable(spec) for spec in seen.inputs), alternatives=alternatives)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob(Job):
    """Run forward and backward once and say what happened."""

    flags: tuple[InputSpec, ...] = ()
    seed: int = 0
    check: bool = False
    every_node: bool = False
    memory: bool = False
    budget: int | None = None

    def run(self, begun: Callable[[], None]) -> "TraceGraph":
        """The graph with the hook calls and the symptoms."""
        from gradcli.runner.trace import trace_target

        return trace_target(
            self.target,
            flags=self.flags,
            seed=self.seed,
            check=self.check,
            every_node=self.every_node,
            memory=self.memory,
            budget=self.budget,
            begun=begun,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayJob(Job):
    """Run a saved failure again."""

    failure: "Failure"
    tables: bool = False

    def run(self, begun: Callable[[], None]) -> "CheckResult":
        """The result, without arrays and without objects of the user's classes."""
        from gradcli.runner.store.replay import replay

        result = replay(self.failure, begun, tables=self.tables)
        return replace(result, arguments=(), inputs=tuple(_portable(spec) for spec in result.inputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The job was done; `value` is what it returned."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The target, its spec or its inputs are not as the job needs them; `message` is complete."""

    message: str
    exit_code: int

    def message_for(self, target: str) -> str:  # noqa: ARG002 - the message names it
        """Why the job on `target` was not done."""
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """gradcli itself failed."""

    trace: str
    exit_code: ClassVar[int] = GradcliError.exit_code

    def message_for(self, target: str) -> str:
        """Why the job on `target` was not done, with the traceback."""
        return f"{target}: internal error in gradcli:\n{self.trace}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The process that did the job ended, or was stopped at a time limit; `begun` says whether the import was over.

    `how` says what happened, and `sudden` whether it happened at one moment of the run, as a crash does: a process that
    was stopped because it took too long, and one that never started, have no such moment. `location` and `trace` say
    where in the user's code it was, `doing` in which part of the check, if that is known.
    """

    how: str
    begun: bool
    sudden: bool
    seconds: float
    location: str = ""
    trace: str | None = None
    doing: str = ""

    @property
    def exit_code(self) -> int:
        """2 if the target was still being imported, 3 if its code ran."""
        return UserCodeError.exit_code if self.begun else UsageError.exit_code

    def message_for(self, target: str) -> str:
        """Why the job on `target` was not done."""
        if not self.begun:
            return f"{target}: {self.how} while it was imported{self.location}"
        ran = " while it ran" if self.sudden else ""
        return f"{self.how}{ran}{self.location}{f' ({self.doing})' if self.doing else ''}"


Outcome = Done | Refused | Broken | Lost


@final
class Attempt:
    """A context for a job in this process: its `outcome` is set inside, or made from the exception raised there."""

    outcome: Outcome

    def __enter__(self) -> "Attempt":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Make an outcome of what was raised, except for an interrupt of the command."""
        if error is None or isinstance(error, Interrupted):
            return False
        if isinstance(error, LostDeviceError):
            error = error.error
        if isinstance(error, GradcliError) and error.exit_code != _FAULT:
            self.outcome = Refused(message=explained(error), exit_code=error.exit_code)
        else:
            self.outcome = Broken(trace="".join(traceback.format_exception(kind, error, trace)))
        return True


def explained(error: GradcliError) -> str:
    """The message of an error, with a hint and the user's part of the traceback where there is one."""
    message = str(error)
    if isinstance(error, UserCodeError) and error.__cause__ is not None:
        from gradcli.spec.hints import explain_exception

        hint = explain_exception(error.__cause__)
        message += "" if hint is None else f"\n  hint: {hint}"
    if isinstance(error, TargetImportError | UserCodeError) and error.user_traceback:
        return f"{message}\n{error.user_traceback}"
    return message


def _portable(spec: InputSpec) -> InputSpec:
    """The input, with the repr of its value if that is of a class of the user's."""
    return spec if _is_plain(spec.value) else replace(spec, value=repr(spec.value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(part) for part in value)
    if isinstance(value, dict):
        return all(_is_plain(part) for item in value.items() for part in item)
    return type(value) in _PLAIN or isinstance(value, FrameworkObject)
