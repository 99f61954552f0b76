"""Standard output reserved for results, at the level of file descriptors."""

import os
import sys


def keep_stdout() -> int:
    """Reserve standard output for the caller, and send everything else that is printed to standard error.

    From here on `print`, C code that writes to descriptor 1, child processes and functions that run at exit all reach
    standard error. Not undone: what a target prints while the interpreter shuts down must not reach the report either.

    Returns:
        A descriptor, not inherited by child processes, that writes to the original standard output; one that writes
        nowhere if the process was started without a standard output.
    """
    try:
        kept = os.dup(1)
    except OSError:  # started with standard output closed
        kept = os.open(os.devnull, os.O_WRONLY)
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        os.dup2(2, 1)
    except OSError:  # started with standard error closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    sys.stdout = sys.stderr
    return kept
