"""The worker's side of a run in several processes: cases in on standard input, results out on standard output."""

import faulthandler
import os
import pickle
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from gradcli.cases import InputSpec
from gradcli.errors import UsageError
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.descriptors import keep_stdout
from gradcli.runner.plan import CheckCase
from gradcli.spec.resolve import resolve

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A case to run, and where a failure is saved."""

    case: CheckCase
    failures: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The target has been imported; from now on the case's time runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The case is not as its target says: a usage error, found only now."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """gradcli itself failed."""

    trace: str


def serve() -> int:
    """Run cases until standard input ends; what a target prints goes to standard error."""
    faulthandler.enable()
    tasks = os.fdopen(os.dup(0), "rb")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    with tasks, os.fdopen(keep_stdout(), "wb") as replies:
        while True:
            try:
                task: Task = pickle.load(tasks)  # noqa: S301 - written by the process that started this one
            except EOFError:
                return 0
            _send(replies, _outcome(task, replies))


def _outcome(task: Task, replies: BinaryIO) -> CheckResult | Refused | Broken:
    try:
        target = resolve(task.case.spec.target).object
        _send(replies, Begun())
        return _portable(check_object(target, task.case, failures=task.failures))
    except UsageError as error:
        return Refused(message=str(error))
    except Exception:
        return Broken(trace=traceback.format_exc())


def _send(replies: BinaryIO, message: object) -> None:
    pickle.dump(message, replies)
    replies.flush()
    sys.stderr.flush()


def _portable(result: CheckResult) -> CheckResult:
    """The result without arrays, and with text in place of values that may belong to the user's own classes."""
    return replace(result, arguments=(), inputs=tuple(_portable_input(spec) for spec in result.inputs))


def _portable_input(spec: InputSpec) -> InputSpec:
    return spec if _is_plain(spec.value) else replace(spec, value=repr(spec.value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(part) for part in value)
    return type(value) in _PLAIN
