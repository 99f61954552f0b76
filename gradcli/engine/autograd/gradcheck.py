"""The module that programs import `gradcheck` and `GradcheckError` from; they live above the engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    GradcheckError: type[RuntimeError]
    gradcheck: Callable[..., bool]
    gradgradcheck: Callable[..., bool]

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def __getattr__(name: str) -> Any:
    """Fetch a check from where it lives."""
    if name in __all__:
        return vars(importlib.import_module("gradcli.tolerance.as_torch"))[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
