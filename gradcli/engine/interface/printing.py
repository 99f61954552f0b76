"""The printed form of tensors: four digits, columns aligned, large tensors shortened."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array, get_default_dtype
from gradcli.engine.tensor import Tensor

OPTIONS: dict[str, Any] = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(*, profile: str | None = None, **options: Any) -> None:
    """Change how tensors print: precision, threshold, edgeitems, linewidth, sci_mode.

    Args:
        profile: "default", "short" or "full": values for all options but sci_mode, which the others go over.
        options: values of single options.

    Raises:
        TypeError: an option is unknown.
        KeyError: the profile is unknown.
    """
    if profile is not None:
        OPTIONS.update(_PROFILES[profile])
        OPTIONS["sci_mode"] = None
    for name, value in options.items():
        if name not in OPTIONS:
            raise TypeError(
                f"set_printoptions() got an unexpected keyword argument '{name}'; options are {list(OPTIONS)}"
            )
        if value is not None or name == "sci_mode":
            OPTIONS[name] = value


class Formatter:
    """How the elements of one tensor are written: all alike, in columns of one width.

    Args:
        values: the elements that will be shown.
    """

    def __init__(self, values: Array) -> None:
        self.kind = values.dtype.kind
        self.scientific, self.whole = False, self.kind == "f"
        flat = values.reshape(-1)
        if self.kind == "f":
            flat = flat[np.isfinite(flat) & (flat != 0)].astype(np.float64)
            if flat.size:
                self._choose(flat)
        self.width = max((len(self._bare(entry)) for entry in flat), default=1)

    def _choose(self, finite: Array) -> None:
        size = np.abs(finite)
        largest, smallest = float(size.max()), float(size.min())
        self.whole = bool((finite == np.ceil(finite)).all())
        wide = largest / smallest > 1000.0 or largest > 1e8
        self.scientific = wide if self.whole else wide or smallest < 1e-4
        if OPTIONS["sci_mode"] is not None:
            self.scientific = bool(OPTIONS["sci_mode"])

    def _bare(self, entry: Any) -> str:
        if self.kind != "f":
            return str(entry)
        value = float(entry)
        if not math.isfinite(value):
            return str(value)
        digits = OPTIONS["precision"]
        if self.scientific:
            return f"{value:.{digits}e}"
        return f"{value:.0f}." if self.whole else f"{value:.{digits}f}"

    def write(self, entry: Any) -> str:
        """Return one element, filled up to the width of the column."""
        return self._bare(entry).rjust(self.width)


class ComplexFormatter:
    """As Formatter, for complex numbers.

    Args:
        values: the elements that will be shown.
    """

    def __init__(self, values: Array) -> None:
        self.real, self.imag = Formatter(values.real), Formatter(values.imag)
        self.width = self.real.width + self.imag.width + 2

    def write(self, entry: Any) -> str:
        """Return one element, its real part filled up to the width of the column."""
        imaginary = self.imag.write(entry.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{self.real.write(entry.real)}{sign}{imaginary}j"


def _shown(values: Array) -> Array:
    """Return the elements that a shortened print shows."""
    edge = OPTIONS["edgeitems"]
    if values.ndim == 0 or values.size <= OPTIONS["threshold"]:
        return values
    for place in range(values.ndim):
        if values.shape[place] > 2 * edge:
            keep = [*range(edge), *range(values.shape[place] - edge, values.shape[place])]
            values = np.take(values, keep, axis=place)
    return values


def _body(values: Array, indent: int, formatter: Formatter | ComplexFormatter, shorten: bool) -> str:
    if values.ndim == 0:
        return formatter.write(values[()])
    edge = OPTIONS["edgeitems"]
    rows: list[Any] = list(values)
    if shorten and len(rows) > 2 * edge:
        rows = [*rows[:edge], None, *rows[-edge:]]
    if values.ndim == 1:
        per_line = max(1, (OPTIONS["linewidth"] - indent) // (formatter.width + 2))
        words = [" ..." if row is None else formatter.write(row) for row in rows]
        lines = [", ".join(words[start : start + per_line]) for start in range(0, len(words), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = ["..." if row is None else _body(row, indent + 1, formatter, shorten) for row in rows]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def elements(values: Array, indent: int) -> str:
    """Return the elements of an array in brackets."""
    shown = _shown(values)
    formatter = ComplexFormatter(shown) if values.dtype.kind == "c" else Formatter(shown)
    return _body(values, indent, formatter, values.size > OPTIONS["threshold"])


def _suffixes(input: Tensor) -> list[str]:
    kind = BY_NUMPY[input._data.dtype]
    default = get_default_dtype()
    silent = {"bool", "int64", default.name, "complex64" if default.itemsize <= 4 else "complex128"}
    words = []
    if input._data.size == 0 and input._data.shape != (0,):
        words.append(f"size={tuple(input._data.shape)}")
    if kind.name not in silent or (input._data.size == 0 and kind.name != default.name):
        words.append(f"dtype={kind!r}")
    try:
        node = input.grad_fn
    except RuntimeError:  # the base of a view changed in a way that leaves the view without a history
        words.append("grad_fn=<Invalid>")
        return words
    if node is not None:
        words.append(f"grad_fn=<{node.name().rpartition('::')[2]}>")
    elif input.requires_grad:
        words.append("requires_grad=True")
    return words


def text(input: Tensor) -> str:
    """Return the printed form of a tensor: elements, and what is not the default about it."""
    prefix = "tensor("
    body = "[]" if input._data.size == 0 else elements(input._data, len(prefix))
    result = prefix + body
    last = len(result) - result.rfind("\n") + 1
    for word in _suffixes(input):
        if last + len(word) + 2 > OPTIONS["linewidth"]:
            result += ",\n" + " " * len(prefix) + word
            last = len(prefix) + len(word)
        else:
            result += ", " + word
            last += len(word) + 2
    return result + ")"


def formatted(input: Tensor, specification: str) -> str:
    """Return a tensor without axes formatted as its number; any other as it prints."""
    if input._data.ndim == 0:
        return format(input._data.item(), specification)
    if specification:
        raise TypeError(f"unsupported format string passed to {type(input).__name__}.__format__")
    return text(input)
