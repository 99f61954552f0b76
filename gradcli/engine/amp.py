"""The namespace `amp`: an autocast that can only be off, and what custom Functions say about it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast:  # noqa: N801  (the name programs use)
    """A context and decorator that does nothing, since it can only be used with `enabled=False`.

    Args:
        device_type: has no effect.
        dtype: has no effect.
        enabled: must be False.
        cache_enabled: has no effect.

    Raises:
        NotImplementedError: it is enabled.
    """

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        del device_type, dtype, cache_enabled
        if enabled:
            raise NotImplementedError(
                "autocast: gradcli.engine computes in the types of the tensors; use enabled=False, or cast by hand"
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the context."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as it is."""
        return function


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str = "cpu", cast_inputs: Any = None
) -> Callable[..., Any]:
    """Mark the `forward` of a Function for mixed precision, which is never on: `cast_inputs` has no effect then.

    Args:
        fwd: the forward; without it, a decorator is returned.
        device_type: has no effect.
        cast_inputs: what floating point inputs would be cast to in a region of mixed precision.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    return fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cpu") -> Callable[..., Any]:
    """Mark the `backward` of a Function whose forward has `custom_fwd`.

    Args:
        bwd: the backward; without it, a decorator is returned.
        device_type: has no effect.
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    return bwd
