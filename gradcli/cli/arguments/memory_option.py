"""`--memory [BUDGET]`: an option whose value may be left out, and sizes as people write them."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from gradcli.errors import UsageError

if TYPE_CHECKING:
    from typer._click import Context

NAME = "--memory"
_EXPECTED = "expected a size such as 500MB, 1.5GiB or a number of bytes"
_Misplaced: Any = typer.BadParameter.__base__  # what Typer raises for words that it cannot place; it has no public name
_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30,
          "ti": 2**40}  # fmt: skip
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d*)?(?:e\d+)?)\s*(?P<unit>[kmgt]i?)?b?", re.IGNORECASE)


class Command(TyperCommand):
    """A command that says of a wrong value what it was."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse; Typer's error names the option and what a value has to be."""
        given = list(args)
        try:
            return list(super().parse_args(ctx, args))
        except typer.BadParameter as error:
            value = _value_of(given, error.param.opts if error.param is not None else ())
            if value is not None and repr(value) not in error.message:
                error.message = f"{error.message}, got {value!r}"
            raise


def _value_of(words: list[str], names: Sequence[str]) -> str | None:
    """What the last of the options called `names` was given on a command line; None where it is none of these words."""
    found = None
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in names:
            found = value if equals else "".join(words[place + 1 : place + 2])
    return found


class CommandWithBudget(Command):
    """A command whose option --memory takes the argument after it only where that begins with a digit."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse, an option without a value as one with an empty value."""
        joined = [
            f"{NAME}=" if arg == NAME and not "".join(args[place : place + 1])[:1].isdigit() else arg
            for place, arg in enumerate(args, start=1)
        ]
        try:
            return super().parse_args(ctx, joined)
        except typer.BadParameter:
            raise
        except _Misplaced as error:
            word = next((after for arg, after in pairwise(args) if arg == NAME), None)
            if word is not None and error.message.endswith(f"({word})"):  # an argument too many, where a size is meant
                error.message = f"{NAME} {word}: {_EXPECTED}"
            raise


def budget_from(text: str | None) -> int | None:
    """The bytes of `500MB`, `1.5GiB`, `64k` or `1000000`; None where no budget was given.

    Raises:
        UsageError: the text is not a number of bytes.
    """
    if not text:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{NAME} {text}: {_EXPECTED}")
    return int(float(found["number"]) * _UNITS[(found["unit"] or "").lower()])
