"""The namespace `nn.utils.parametrizations`: ready-made parametrizations."""

from typing import Any

from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.nn.utils.weight_norm import parametrized_weight_norm as weight_norm

__all__ = ["weight_norm"]


def __getattr__(name: str) -> Any:
    """Raise AttributeError for a name that is not here."""
    raise refusal(".nn.utils.parametrizations", name, globals())
