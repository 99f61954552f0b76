"""The module name that printed forms carry.

Tensors, dtypes and errors print as they do in the programs that this engine runs unchanged, so that recorded
outputs and doctests agree and a message leads to the same search results.
"""

from collections.abc import Callable
from typing import Any

PRINTED_MODULE = "torch"


def printed_as(name: str) -> Callable[[type[Any]], type[Any]]:
    """Let a class of named tuples print as PyTorch's results of a function do: one field a line."""

    def text(self: Any) -> str:
        fields = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"{PRINTED_MODULE}.return_types.{name}(\n{fields})"

    def decorated(kind: type[Any]) -> type[Any]:
        kind.__repr__ = text  # type: ignore[assignment]  # a class made by NamedTuple takes it
        return kind

    return decorated
