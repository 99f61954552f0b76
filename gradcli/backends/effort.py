"""How many lines of the user's code a call runs: what tells an iteration that stops early here and late there."""

import functools
import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from gradcli.backends.guard import is_users_file

_is_users_file = functools.cache(is_users_file)


def lines_run(call: Callable[[], object]) -> int:
    """Run `call` and count the lines of the user's own code, and of libraries beside the frameworks, that it goes over.

    A tracer that is set already, such as a debugger's, is put back afterwards and sees nothing of the call.
    """
    count = 0

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
        return line if _is_users_file(frame.f_code.co_filename) else None

    before, collecting = sys.gettrace(), gc.isenabled()
    gc.disable()  # a collection may call Python code of anybody's
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
        if collecting:
            gc.enable()
    return count
