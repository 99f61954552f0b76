"""Triton's interpreter, which runs kernels on the CPU, while a case is checked: its memory watched, its gaps filled."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.backends.torch.kernel_memory import Found, KernelMemory

_current: "ContextVar[KernelMemory | None]" = ContextVar("gradcli_kernels", default=None)


def kernel_memory() -> "KernelMemory | None":
    """What kernels do to their memory; None where none runs in Triton's interpreter."""
    return _current.get()


@contextmanager
def contained_kernels() -> "Iterator[Found]":
    """Let kernels read zeros outside of their tensors and write nothing there, inside; yields what was found."""
    memory = _current.get()
    if memory is None:
        yield {}
        return
    with memory.filled_with(0.0, dropping=True) as found:
        yield found


@contextmanager
def interpreted_kernels() -> "Iterator[KernelMemory | None]":
    """Watch the memory of kernels and fill the interpreter's gaps inside, where the interpreter has been imported."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if interpreter is None or _current.get() is not None:
        yield _current.get()
        return
    from gradcli.backends.torch.kernel_changes import fill, watch
    from gradcli.backends.torch.kernel_memory import KernelMemory

    memory = KernelMemory(interpreter=interpreter)
    token = _current.set(memory)
    try:
        with ExitStack() as undo:
            watch(interpreter, memory, undo)
            fill(interpreter, undo)
            yield memory
    finally:
        _current.reset(token)
