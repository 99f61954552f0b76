"""The values that the settings of a run may have, refused before any user code is imported."""

import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from gradcli.cases import DTYPES
from gradcli.errors import UsageError
from gradcli.runner.kernels import MODES
from gradcli.settings import HIGHEST_ORDER, MOST_SAMPLES, Settings

Spelling = Callable[[str], str]


def as_option(name: str) -> str:
    """A setting as the command line spells it."""
    return "--" + name.replace("_", "-")


def require_settings(settings: Settings, spelled: Spelling = str) -> Settings:
    """The settings, where every value is one that a run can have.

    Raises:
        UsageError: one is not; `spelled` gives it the name under which the caller knows it.
    """
    floating = tuple(dtype for dtype in DTYPES if "float" in dtype or "complex" in dtype)
    if settings.dtype not in floating:
        raise UsageError(
            f"{spelled('dtype')} {settings.dtype}: {unknown('floating dtype', str(settings.dtype), floating)}"
        )
    if settings.triton not in MODES:
        raise UsageError(f"{spelled('triton')} {settings.triton}: expected {', '.join(MODES[:-1])} or {MODES[-1]}")
    if not isinstance(settings.order, int) or not 1 <= settings.order <= HIGHEST_ORDER:
        raise UsageError(f"{spelled('order')} {settings.order!r}: expected a whole number from 1 to {HIGHEST_ORDER}")
    if not isinstance(settings.samples, int) or not 1 <= settings.samples <= MOST_SAMPLES:
        raise UsageError(f"{spelled('samples')} {settings.samples!r}: expected a whole number from 1 to {MOST_SAMPLES}")
    if not isinstance(settings.seed, int) or settings.seed < 0:
        raise UsageError(f"{spelled('seed')} {settings.seed!r}: expected a whole number of at least 0")
    for name, value in (
        ("require_resolution", settings.require_resolution),
        ("timeout", settings.timeout),
        ("budget", settings.budget),
        ("significance", settings.significance),
    ):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise UsageError(f"{spelled(name)} {value:g}: expected a number above 0")
    return settings


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """The message that a name is unknown, with the closest known name and all known names."""
    close = get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"unknown {what}{hint} available: {', '.join(known)}"
