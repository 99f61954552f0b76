"""Short forms of tensors and places in the code, used in every record of a trace."""

from dataclasses import dataclass  # generated code: a trace makes tens of thousands of these
from typing import Any

from gradcli.frozen import quickly_pickled


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySummary:
    """A summary of a tensor: shape, dtype, norm, and its values if there are at most 16 (flat).

    `probe` is its inner product with fixed weights if there are more: it tells tensors with the same norm apart.
    """

    shape: tuple[int, ...]
    dtype: str
    norm: float | None
    values: tuple[complex, ...] | None
    non_finite: int = 0
    probe: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "norm": number_in_document(self.norm),
            "values": None if self.values is None else [number_in_document(v) for v in self.values],
            "non_finite": self.non_finite,
            "probe": number_in_document(self.probe),
        }


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSite:
    """A place in the user's code at which something was created or defined."""

    file: str
    line: int
    function: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {"file": self.file, "line": self.line, "function": self.function}


def number_in_document(value: complex | None) -> Any:
    """A number as JSON can hold it: infinities and NaN as text, complex ones as a pair."""
    if value is None:
        return None
    if isinstance(value, complex):
        return (
            [number_in_document(value.real), number_in_document(value.imag)]
            if value.imag
            else number_in_document(value.real)
        )
    number = float(value)
    return number if abs(number) < float("inf") else str(number)
