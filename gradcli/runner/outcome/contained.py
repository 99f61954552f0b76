"""Errors of gradcli's own explanations, which must not end a run whose verdict is known."""

import os
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar

from gradcli.backends.attribution import is_users_own
from gradcli.errors import GradcliError

RAISE = "GRADCLI_RAISE_INTERNAL_ERRORS"
"""With this environment variable nothing is contained, so that the tests of gradcli see every error of it."""
_PACKAGE = Path(__file__).resolve().parents[2]
_T = TypeVar("_T")


def contained(what: str, run: Callable[[], _T], otherwise: Callable[[], _T], notes: list[str]) -> _T:
    """The result of `run`; if gradcli itself fails in it, that of `otherwise`, and a note in `notes`.

    What the user's code raises is raised, as is what gradcli raises on purpose.

    Args:
        what: what is being done, for the note.
        run: part of an explanation.
        otherwise: what stands in for it.
        notes: the note is appended here.
    """
    try:
        return run()
    except (GradcliError, MemoryError):
        raise
    except Exception as error:
        if is_users_own(error) or os.environ.get(RAISE):
            raise
        own = [f for f in extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(_PACKAGE)]
        place = f" at {Path(own[-1].filename).relative_to(_PACKAGE.parent)}:{own[-1].lineno}" if own else ""
        notes.append(
            f"an internal error in gradcli while {what}{place} ({type(error).__name__}: {error}): the verdict does not "
            "depend on it, but the explanation may be incomplete; please report it to the project"
        )
        return otherwise()
