"""`--memory [BUDGET]`: an option whose value may be left out, and sizes as people write them."""

import re
from typing import TYPE_CHECKING

from typer.core import TyperCommand

from gradcli.errors import UsageError

if TYPE_CHECKING:
    from typer._click import Context

NAME = "--memory"
_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30,
          "ti": 2**40}  # fmt: skip
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d*)?(?:e\d+)?)\s*(?P<unit>[kmgt]i?)?b?", re.IGNORECASE)


class CommandWithBudget(TyperCommand):
    """A command whose option --memory takes the argument after it only where that begins with a digit."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse, an option without a value as one with an empty value."""
        joined = [
            f"{NAME}=" if arg == NAME and not "".join(args[place : place + 1])[:1].isdigit() else arg
            for place, arg in enumerate(args, start=1)
        ]
        return list(super().parse_args(ctx, joined))


def budget_from(text: str | None) -> int | None:
    """The bytes of `500MB`, `1.5GiB`, `64k` or `1000000`; None where no budget was given.

    Raises:
        UsageError: the text is not a number of bytes.
    """
    if not text:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{NAME} {text}: expected a size such as 500MB, 1.5GiB or a number of bytes")
    return int(float(found["number"]) * _UNITS[(found["unit"] or "").lower()])
