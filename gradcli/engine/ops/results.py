"""How named results are printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.module_name import PRINTED_MODULE


def printed_as(name: str) -> Callable[[type[Any]], type[Any]]:
    """Let a class of named tuples print as PyTorch's results of a function do: one field a line."""

    def text(self: Any) -> str:
        fields = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"{PRINTED_MODULE}.return_types.{name}(\n{fields})"

    def decorated(kind: type[Any]) -> type[Any]:
        kind.__repr__ = text  # type: ignore[assignment]  # a class made by NamedTuple takes it
        return kind

    return decorated
