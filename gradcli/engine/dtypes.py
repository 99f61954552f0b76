"""Element types, devices and shapes, and the rules by which element types combine."""

from __future__ import annotations

from typing import Any, Final, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from gradcli.engine.module_name import PRINTED_MODULE

Array = NDArray[Any]
Number = bool | int | float | complex


class dtype:  # noqa: N801  (the name programs use)
    """An element type, printed as `torch.float64` is.

    Args:
        name: the public name.
        numpy: the NumPy type that stores it.
        letter: the name of the tensor class that old programs know it by ("Double").
        in_c: the name of the element type in C++, which errors mention.
    """

    __slots__ = ("in_c", "letter", "name", "numpy")

    def __init__(self, name: str, numpy: Any, letter: str, in_c: str) -> None:
        self.name = name
        self.numpy: np.dtype[Any] = np.dtype(numpy)
        self.letter = letter
        self.in_c = in_c

    @property
    def is_floating_point(self) -> bool:
        """Tell whether values are real floating point numbers."""
        return self.numpy.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Tell whether values are complex numbers."""
        return self.numpy.kind == "c"

    @property
    def is_signed(self) -> bool:
        """Tell whether values can be negative."""
        return self.numpy.kind in "ifc"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize

    def __repr__(self) -> str:
        return f"{PRINTED_MODULE}.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_named, (self.name,)


float16: Final = dtype("float16", np.float16, "Half", "c10::Half")
float32: Final = dtype("float32", np.float32, "Float", "float")
float64: Final = dtype("float64", np.float64, "Double", "double")
complex64: Final = dtype("complex64", np.complex64, "ComplexFloat", "c10::complex<float>")
complex128: Final = dtype("complex128", np.complex128, "ComplexDouble", "c10::complex<double>")
uint8: Final = dtype("uint8", np.uint8, "Byte", "unsigned char")
int8: Final = dtype("int8", np.int8, "Char", "signed char")
int16: Final = dtype("int16", np.int16, "Short", "short int")
int32: Final = dtype("int32", np.int32, "Int", "int")
int64: Final = dtype("int64", np.int64, "Long", "long int")
bool_: Final = dtype("bool", np.bool_, "Bool", "bool")
ALL_DTYPES: Final = (
    float16, float32, float64, complex64, complex128, uint8, int8, int16, int32, int64, bool_,
)  # fmt: skip
BY_NUMPY: Final[dict[np.dtype[Any], dtype]] = {entry.numpy: entry for entry in ALL_DTYPES}
BY_NAME: Final[dict[str, dtype]] = {entry.name: entry for entry in ALL_DTYPES}
_COMPLEX_OF: Final = {np.dtype(np.float16): np.dtype(np.complex64), np.dtype(np.float32): np.dtype(np.complex64)}
_RANK: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_default = [float32]


def dtype_named(name: str) -> dtype:
    """Return the element type of this public name."""
    return BY_NAME[name]


def get_default_dtype() -> dtype:
    """Return the element type that Python floats become (float32 until changed)."""
    return _default[0]


def set_default_dtype(kind: dtype) -> None:
    """Choose the element type that Python floats become.

    Raises:
        TypeError: the type is not a floating point type.
    """
    if not isinstance(kind, dtype) or not kind.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {kind!r}")
    _default[0] = kind


def numpy_dtype(kind: Any) -> np.dtype[Any]:
    """Return the NumPy type for an engine type, or a Python type (`float`, `int`, `bool`, `complex`).

    Raises:
        TypeError: it is neither, such as the name of a type.
    """
    if isinstance(kind, dtype):
        return kind.numpy
    if not (isinstance(kind, type) and kind in (float, int, bool, complex)):
        raise TypeError(f"argument 'dtype' must be {PRINTED_MODULE}.dtype, not {type(kind).__name__}")
    found: np.dtype[Any] = np.dtype(kind)
    return found


def complex_of(kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the complex type whose parts have this real type."""
    return _COMPLEX_OF.get(kind, np.dtype(np.complex128)) if kind.kind != "c" else kind


def real_of(kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the real type of the parts of a complex type; a real type is returned unchanged."""
    if kind.kind != "c":
        return kind
    return np.dtype(np.float32) if kind.itemsize == 8 else np.dtype(np.float64)


def promote_types(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that holds both: the higher category wins, then the wider type."""
    if first == second:
        return first
    low, high = sorted((first, second), key=lambda kind: _RANK[kind.kind])
    if _RANK[low.kind] == _RANK[high.kind]:
        return np.promote_types(low, high)
    if high.kind == "c" and low.kind == "f":
        return np.promote_types(high, complex_of(low))
    return high


def number_dtype(value: Number) -> np.dtype[Any]:
    """Return the type that a bare Python number stands for."""
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    if isinstance(value, int):
        return np.dtype(np.int64)
    default = _default[0].numpy
    return default if isinstance(value, float) else complex_of(default)


def combine(higher: np.dtype[Any] | None, lower: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """Return the type when `higher` has priority (a tensor with axes over one without, over a bare number)."""
    if higher is None or lower is None:
        return higher if lower is None else lower
    if higher.kind == "c":
        return higher
    if higher.kind == "f":
        return complex_of(higher) if lower.kind == "c" else higher
    if higher.kind == "b" or lower.kind in "fc":
        return promote_types(higher, lower)
    return higher


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that prints as `torch.Size([2, 3])`; sums and parts of it are shapes too."""

    __slots__ = ()

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]  # no shape holds anything but integers
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        return Size(tuple.__add__(other, self))

    def __mul__(self, other: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__

    @overload
    def __getitem__(self, place: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Size: ...
    def __getitem__(self, place: Any) -> Any:
        """Return a length, or a part as a shape."""
        found = tuple.__getitem__(self, place)
        return Size(found) if isinstance(place, slice) else found

    def numel(self) -> int:
        """Return the number of elements of this shape."""
        return int(np.prod(self, dtype=np.int64))

    def __repr__(self) -> str:
        return f"{PRINTED_MODULE}.Size([{', '.join(map(str, self))}])"


class device:  # noqa: N801  (the name programs use)
    """Where a tensor lives. Only the CPU exists here; other names can be written down but not used.

    Args:
        name: "cpu", "cpu:0", "cuda:1"...
        index: the number of the device, when not part of the name.
    """

    __slots__ = ("index", "type")

    def __init__(self, name: str | device, index: int | None = None) -> None:
        kind, _, number = str(name).partition(":")
        self.type = kind
        self.index = int(number) if number else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type={self.type!r}{'' if self.index is None else f', index={self.index}'})"


CPU: Final = device("cpu")


def require_cpu(wanted: device | str | int | None) -> None:
    """Raise RuntimeError if another device than the CPU is wanted."""
    if wanted is not None and not str(wanted).startswith("cpu"):
        raise RuntimeError(f"no device {wanted!r}: gradcli.engine computes on the CPU only; use device='cpu'")


def accepted(value: object) -> bool:
    """Tell whether a value is a bare number (NumPy's scalars included)."""
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))
