"""Warnings under a trace: attributed to the line that they would have without it."""

import functools
import sys
import warnings
from typing import Any

from gradcli.tracing.attributes import Patches
from gradcli.tracing.sites import OWN_FOLDER

_HANDS_OVER = "handle_torch_function"


def keep_attribution(patches: Patches) -> None:
    """Let `stacklevel` skip the frames of the trace, which lie between those of the user and of the framework.

    The line of a warning decides whether a filter shows it, and whether it was shown before.
    """
    warn = warnings.warn

    @functools.wraps(warn)
    def outside(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **further: Any) -> None:
        warn(message, category, _level(stacklevel) + 1, source, **further)

    patches.attribute(warnings, "warn", outside)


def _level(stacklevel: int) -> int:
    """The stack level, seen from the caller's caller, at which that many frames are not the trace's.

    A function of PyTorch in Python that finds a mode hands its call over, and the trace calls it again: the first call
    and the handing over are not there without the trace.
    """
    frame, level, counted, skipped, own = sys._getframe(2), 0, 0, 0, False
    while frame is not None and counted < stacklevel:
        level += 1
        handing = own and frame.f_code.co_name == _HANDS_OVER
        own = frame.f_code.co_filename.startswith(OWN_FOLDER)
        if handing:
            skipped = 1
        elif not own and skipped:
            skipped -= 1
        else:
            counted += not own
        if frame.f_back is None:
            break
        frame = frame.f_back
    return level
