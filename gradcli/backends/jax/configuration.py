"""Settings of JAX that are changed while the user's code runs, and restored."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextlib.contextmanager
def whole_tracebacks() -> Iterator[None]:
    """A context in which JAX leaves its own frames in tracebacks.

    JAX removes its frames by comparing the paths of all frames, which takes 20 ms for each exception. The search for
    inputs raises hundreds of exceptions. gradcli does not need this: it recognises the user's frames by their files.
    Even where the setting is off, JAX first reads the source of every frame on the stack, in each function of its own
    that an exception leaves, to see whether a caller will filter it: a third of the search's time.
    """
    import jax

    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        with _replaced("_is_under_reraiser", lambda _: _always):
            yield
    finally:
        jax.config.update("jax_traceback_filtering", before)


def known_files() -> AbstractContextManager[None]:
    """A context in which JAX decides once for each file whether the file is JAX's own.

    Where JAX refuses what a rule returned, it takes its own frames out of the traceback of the operation, whatever the
    setting above. For every frame it compares paths and asks the file system, 0.1 s for each refusal, and a rule is
    refused at most of the shapes that the search tries.
    """
    return _replaced("include_filename", _once_for_each_file)


@contextlib.contextmanager
def _replaced(name: str, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """A context in which a function with which JAX filters tracebacks is another; JAX as it is where it has none."""
    filters: Any = sys.modules.get("jax._src.traceback_util")
    function = getattr(filters, name, None)
    if function is None:  # another version of JAX
        yield
        return
    setattr(filters, name, by(function))
    try:
        yield
    finally:
        setattr(filters, name, function)


def _always(_: object) -> bool:
    return True


@functools.cache
def _once_for_each_file(decides: Callable[[str], bool]) -> Callable[[str], bool]:
    return functools.lru_cache(maxsize=4096)(decides)


def in_64_bits() -> AbstractContextManager[None]:
    """A context with 64-bit numbers for this thread alone; the user's own setting is untouched."""
    import jax

    if "enable_x64" in dir(jax):  # from 0.8 on; before, in jax.experimental
        return jax.enable_x64(True)  # type: ignore[no-any-return]  # JAX is not followed by the type checker
    import jax.experimental

    return jax.experimental.enable_x64()  # type: ignore[no-any-return]  # as above


def keys_from(array: NDArray[Any], *, typed: bool) -> Any:
    """Random keys of pairs of 32-bit numbers; typed ones are of JAX's default generator."""
    import jax

    with jax.ensure_compile_time_eval():
        numbers = jax.numpy.asarray(array.astype(np.uint32))
        return jax.random.wrap_key_data(numbers, impl="threefry2x32") if typed else numbers
