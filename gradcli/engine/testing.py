"""The namespace `testing`: comparing tensors in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.dtypes import promote_types
from gradcli.engine.tensor import Tensor, from_array

__all__ = ["assert_close"]

# Relative and absolute tolerances by element type, PyTorch's.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol |expected|, element by element.

    Args:
        actual: a tensor, a number, an array, or nested sequences and dicts of them.
        expected: what it should be.
        allow_subclasses: let the classes differ as long as one is a subclass of the other.
        rtol: the relative tolerance; by the element type unless given, together with
        atol: the absolute tolerance.
        equal_nan: NaN equals NaN.
        check_device: has no effect.
        check_dtype: the element types must be the same.
        check_layout: has no effect.
        check_stride: has no effect.
        msg: the message, or a function of the one that would be given.

    Raises:
        ValueError: only one of the tolerances is given.
    """
    del allow_subclasses, check_device, check_layout, check_stride
    if (rtol is None) != (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be left out, but got rtol={rtol}, atol={atol}")
    for path, one, other in _pairs(actual, expected, ""):
        text = _difference(one, other, rtol, atol, equal_nan, check_dtype)
        if text:
            text += f"\n\nThe failure occurred for item {path}" if path else ""
            raise AssertionError(text if msg is None else msg if isinstance(msg, str) else msg(text))


def _pairs(actual: Any, expected: Any, path: str) -> list[tuple[str, Any, Any]]:
    if isinstance(actual, dict) and isinstance(expected, dict):
        if actual.keys() != expected.keys():
            raise AssertionError(
                f"The keys of the mappings do not match: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
            )
        return [pair for key in actual for pair in _pairs(actual[key], expected[key], f"{path}[{key!r}]")]
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        both = zip(actual, expected, strict=True)
        return [pair for place, (a, b) in enumerate(both) for pair in _pairs(a, b, f"{path}[{place}]")]
    return [(path, actual, expected)]


def _difference(
    actual: Any, expected: Any, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool
) -> str:
    """Say how two tensors differ; nothing where they are close."""
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    first, second = (
        value if isinstance(value, Tensor) else from_array(np.asarray(value)) for value in (actual, expected)
    )
    x, y = first._data, second._data
    if x.shape != y.shape:
        return f"The values for attribute 'shape' do not match: {first.shape} != {second.shape}."
    if check_dtype and x.dtype != y.dtype and not numbers:
        return f"The values for attribute 'dtype' do not match: {first.dtype} != {second.dtype}."
    kinds = [_TOLERANCES.get(kind.name, (0.0, 0.0)) for kind in (x.dtype, y.dtype)]
    relative = max(kind[0] for kind in kinds) if rtol is None else rtol
    absolute = max(kind[1] for kind in kinds) if atol is None else atol
    kind = promote_types(x.dtype, y.dtype)
    x, y = x.astype(kind), y.astype(kind)
    close = np.isclose(x, y, rtol=relative, atol=absolute, equal_nan=equal_nan)
    if close.all():
        return ""
    wrong = int((~close).sum())
    head = "Scalars are not close!" if numbers else "Tensor-likes are not close!"
    with np.errstate(all="ignore"):
        apart = np.where(close, 0, np.abs(x.astype(np.complex128) - y.astype(np.complex128)))
        place = tuple(int(entry) for entry in np.unravel_index(np.argmax(apart), apart.shape))
        ratio = np.where(close, 0, apart / np.abs(y))
    if not x.ndim:
        gap = f"Absolute difference: {apart.item()} (up to {absolute} allowed)"
        return f"{head}\n\nExpected {y.item()} but got {x.item()}.\n{gap}"
    return (
        f"{head}\n\nMismatched elements: {wrong} / {x.size} ({wrong / x.size:.1%})\n"
        f"Greatest absolute difference: {apart[place]} at index {place} (up to {absolute} allowed)\n"
        f"Greatest relative difference: {ratio.max()} (up to {relative} allowed)"
    )
