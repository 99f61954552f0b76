"""Checkpointed parts of a module find the tensors of their call again when backward computes them anew."""

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, final

from gradcli.backends.tensor.modules import exchanged


@final
class _Recomputation(AbstractContextManager[None]):
    """Entered once for each time that a part is computed again: the module then holds the tensors of the call."""

    def __init__(self, module: Any, tensors: dict[str, Any]) -> None:
        self._module = module
        self._tensors = tensors
        self._open: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        entered = exchanged(self._module, self._tensors)
        entered.__enter__()
        self._open.append(entered)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.pop().__exit__(kind, error, traceback)


@contextmanager
def recomputed_with(module: Any, tensors: dict[str, Any]) -> Iterator[None]:
    """While the module is called: what checkpoint keeps for backward is to be computed with these tensors.

    PyTorch's checkpoint takes a pair of contexts, for the call and for what backward computes again; this is the pair
    where the user gives none.
    """
    from torch.utils.checkpoint import checkpoint

    defaults: dict[str, Any] = getattr(inspect.unwrap(checkpoint), "__kwdefaults__", None) or {}
    kept = defaults.get("context_fn")
    if kept is None:  # before PyTorch 2.1
        yield
        return
    defaults["context_fn"] = lambda: (nullcontext(), _Recomputation(module, tensors))
    try:
        yield
    finally:
        defaults["context_fn"] = kept
