"""Tensors and places in short, as every record of a trace shows them."""

from typing import Any

from gradcli.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySummary:
    """A tensor in short: shape, dtype, norm, and its values where there are few (flat, at most 16).

    `probe` is its inner product with fixed weights, where there are more: tensors of one norm differ in it.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSite:
    """Where in the user's code something was made or defined."""

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
