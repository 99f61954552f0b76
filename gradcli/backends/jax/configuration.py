"""Settings of JAX that are changed while the user's code runs, and restored."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager


@contextlib.contextmanager
def whole_tracebacks() -> Iterator[None]:
    """A context in which JAX leaves its own frames in tracebacks.

    JAX removes its frames by comparing the paths of all frames, which takes 20 ms for each exception. The search for
    inputs raises hundreds of exceptions. gradcli does not need this: it recognises the user's frames by their files.
    """
    import jax

    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        yield
    finally:
        jax.config.update("jax_traceback_filtering", before)


def in_64_bits() -> AbstractContextManager[None]:
    """A context with 64-bit numbers for this thread alone; the user's own setting is untouched."""
    import jax

    if "enable_x64" in dir(jax):  # from 0.8 on; before, in jax.experimental
        return jax.enable_x64(True)  # type: ignore[no-any-return]  # JAX is not followed by the type checker
    import jax.experimental

    return jax.experimental.enable_x64()  # type: ignore[no-any-return]  # as above
