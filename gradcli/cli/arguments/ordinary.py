"""Ordinary command lines of `gradcli check`, read without Typer.

Typer and what it stands on take longer to import than a small Function to check. Of `gradcli check` with options in
full, each followed by its value, the meaning is plain; whatever else is typed (help, other commands, clustered flags,
values that start with a dash or are none) is left to Typer, which also says what is wrong with it. A test holds the
table below to Typer's parameters, and compares the readings of both.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradcli.cli.arguments.request import CheckRequest, request_from
from gradcli.frozen import dataclass

_WHOLE, _POSITIVE = re.compile(r"[0-9]{1,18}"), re.compile(r"0*[1-9][0-9]{0,17}")
_DECIMAL = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?(e-?[0-9]{1,2})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option that takes a value: which parameter it sets, what a value looks like, and whether there may be more."""

    parameter: str
    pattern: re.Pattern[str] | None = None
    read: Callable[[str], Any] = str
    repeatable: bool = False


FLAGS = {
    "--in-process": "in_process",
    "--last-failed": "last_failed",
    "--failed-first": "failed_first",
    "--cache": "cache",
    "-x": "fail_fast",
    "--fail-fast": "fail_fast",
    "-q": "quiet",
    "--quiet": "quiet",
    "-v": "verbose",
    "--verbose": "verbose",
    "--allow-inconclusive": "allow_inconclusive",
}
_INPUT, _ARGUMENT = Option(parameter="inputs", repeatable=True), Option(parameter="arguments", repeatable=True)
_JOBS = Option(parameter="jobs", pattern=_POSITIVE, read=int)
OPTIONS: Mapping[str, Option] = {
    "-i": _INPUT,
    "--input": _INPUT,
    "-a": _ARGUMENT,
    "--arg": _ARGUMENT,
    "--order": Option(parameter="order", pattern=_POSITIVE, read=int),
    "--seed": Option(parameter="seed", pattern=_WHOLE, read=int),
    "--samples": Option(parameter="samples", pattern=_POSITIVE, read=int),
    "--dtype": Option(parameter="dtype"),
    "--device": Option(parameter="device"),
    "--triton": Option(parameter="triton"),
    "--only": Option(parameter="only", repeatable=True),
    "--skip": Option(parameter="skip", repeatable=True),
    "--require-resolution": Option(parameter="require_resolution", pattern=_DECIMAL, read=float),
    "--grad": Option(parameter="grad"),
    "--saved": Option(parameter="saved"),
    "--format": Option(parameter="form"),
    "--report": Option(parameter="report", repeatable=True),
    "-j": _JOBS,
    "--jobs": _JOBS,
    "--shard": Option(parameter="shard"),
    "--executor": Option(parameter="executor"),
    "--timeout": Option(parameter="timeout", pattern=_DECIMAL, read=float),
    "--budget": Option(parameter="budget", pattern=_DECIMAL, read=float),
    "-k": Option(parameter="keyword"),
    "--tag": Option(parameter="tag", repeatable=True),
}
UNSET: Mapping[str, Any] = {
    "targets": None,
    "dtype": "float64",
    **dict.fromkeys(FLAGS.values(), False),
    **{option.parameter: None for option in OPTIONS.values() if option.parameter != "dtype"},
}
"""What the parameters are where nothing is typed."""


def ordinary_request(words: Sequence[str]) -> CheckRequest | None:
    """What the words after `gradcli` ask for; None where Typer has to read them."""
    if words[:1] != ["check"]:
        return None
    given = dict(UNSET)
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            given["targets"] = [*(given["targets"] or ()), word]
        elif word in FLAGS:
            given[FLAGS[word]] = True
        elif (option := OPTIONS.get(word.partition("=")[0])) is None or not _take(option, word, rest, given):
            return None
    return request_from(given)


def _take(option: Option, word: str, rest: Iterator[str], given: dict[str, Any]) -> bool:
    """Take over the value of an option, whose word it is in or which it follows; False where Typer has to read it."""
    name, equals, value = word.partition("=")
    if equals and not name.startswith("--"):
        return False
    value = value if equals else next(rest, "")
    known = given[option.parameter]
    single = not option.repeatable and known != UNSET[option.parameter]
    if single or not value or value.startswith("-") or (option.pattern and not option.pattern.fullmatch(value)):
        return False
    given[option.parameter] = [*(known or ()), value] if option.repeatable else option.read(value)
    return True
