"""Rules that say which entries are wrong: by value, by place, by neither."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


def fitting_rule(wrong: Mask, values: NDArray[Any], name: str) -> str | None:
    """The first rule that holds exactly for the wrong entries, None where none does.

    Args:
        wrong: which entries are wrong, in the input's shape; some are and some are not.
        values: the input's values, of the same shape.
        name: the input's name, for the sentence.
    """
    if wrong.all() or not wrong.any() or wrong.ndim == 0:
        return None
    rules = _by_place(wrong.shape) if wrong.sum() == 1 else [*_by_value(values, name), *_by_place(wrong.shape)]
    for text, mask in rules:
        if np.array_equal(mask, wrong):
            return text
    return _by_threshold(wrong, values, name)


def _by_value(values: NDArray[Any], name: str) -> Iterator[tuple[str, Mask]]:
    if values.dtype.kind == "c":
        return
    yield f"{name} < 0", values < 0
    yield f"{name} > 0", values > 0
    yield f"{name} = 0", values == 0
    yield f"|{name}| > 1", np.abs(values) > 1
    yield f"|{name}| < 1", np.abs(values) < 1
    yield f"{name} is largest", values == values.max()
    yield f"{name} is smallest", values == values.min()
    for axis in range(values.ndim):
        if values.ndim > 1:
            yield f"{name} is largest along axis {axis}", values == values.max(axis=axis, keepdims=True)


def _by_place(shape: tuple[int, ...]) -> Iterator[tuple[str, Mask]]:
    places = np.indices(shape)
    for axis, size in enumerate(shape):
        what = {0: "row", 1: "column"}.get(axis, "slice") if len(shape) == 2 else f"index along axis {axis}"
        if size > 1:
            yield f"the last {what}", places[axis] == size - 1
            yield f"the first {what}", places[axis] == 0
            for step in range(1, size - 1):
                yield f"index {step} along axis {axis}" if len(shape) != 2 else f"{what} {step}", places[axis] == step
    if len(shape) >= 2:
        row, column = places[-2], places[-1]
        yield "the diagonal", row == column
        yield "off the diagonal", row != column
        yield "above the diagonal", row < column
        yield "below the diagonal", row > column
        yield "on and above the diagonal", row <= column
        yield "on and below the diagonal", row >= column
    flat = np.arange(int(np.prod(shape))).reshape(shape)
    if flat.size > 3:
        yield "even indices", flat % 2 == 0
        yield "odd indices", flat % 2 == 1
    for width in (4, 8, 16, 32):
        if width < flat.size:
            yield f"the tail after the last full block of {width}", flat >= flat.size // width * width


def _by_threshold(wrong: Mask, values: NDArray[Any], name: str) -> str | None:
    """A threshold on the value or its magnitude, with at least two entries on each side."""
    if values.dtype.kind == "c" or wrong.sum() < 2 or (~wrong).sum() < 2:
        return None
    for text, measure in ((name, values), (f"|{name}|", np.abs(values))):
        bad, good = measure[wrong], measure[~wrong]
        if bad.min() > good.max():
            return f"{text} > {_between(good.max(), bad.min()):.4g}"
        if bad.max() < good.min():
            return f"{text} < {_between(bad.max(), good.min()):.4g}"
    return None


def _between(low: float, high: float) -> float:
    """The roundest number between two: a threshold in code is rarely 0.7313."""
    for digits in range(-1, 6):
        candidate = round((low + high) / 2, digits)
        if low < candidate < high:
            return float(candidate)
    return float((low + high) / 2)
