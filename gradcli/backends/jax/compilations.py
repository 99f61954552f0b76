"""Programs that JAX compiled for one call of the user's code, kept for the next."""

import atexit
import contextlib
import functools
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def compilations_reused() -> Iterator[None]:
    """Look programs up by what they compute before they are compiled, in a folder that ends with the process.

    JAX finds a compiled program by the function object that it was compiled for. A function that defines a loop's body,
    or makes a solver, is given new ones by every call, and 90 % of its time goes into compiling the same programs again
    (measured on the projections of jaxopt, 0.3 to 4 s a call). JAX's own cache on disk finds them by their contents;
    the calls themselves stay as they are. A user who has set such a cache keeps it.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    folder = _folder()
    if folder is None or jax.config.jax_compilation_cache_dir is not None:
        yield
        return
    wanted = {
        "jax_compilation_cache_dir": folder,
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,  # none is too small
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    try:
        for name, value in wanted.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()  # what the user sets later counts


@functools.cache
def _folder() -> str | None:
    """The folder of this process; None where none can be made, and everything is compiled anew."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="gradcli-jax-", ignore_cleanup_errors=True)
    except OSError:
        return None
    atexit.register(folder.cleanup)
    return folder.name
