"""No compiled file is left behind for a source that was written just before it was imported."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path

# Seconds. Python compares whole seconds: one for the rounding, one for the time between the import and this check.
_YOUNG = 2.0


@contextmanager
def no_bytecode_of_young_sources() -> Iterator[None]:
    """Remove the compiled files of the modules imported in the body whose source is younger than two seconds.

    Python takes a compiled file for current if the size of the source and its modification time in whole seconds are
    those recorded (PEP 552): a source changed twice in a second, from `+` to `-`, would be checked as it was before.
    """
    known = set(sys.modules)
    try:
        yield
    finally:
        oldest = time.time() - _YOUNG
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and file.endswith(".py"):
                with suppress(OSError, NotImplementedError):
                    if os.stat(file).st_mtime > oldest:
                        Path(cache_from_source(file)).unlink(missing_ok=True)
