"""What programs ask of the library itself: its threads, its modes, the limits of element types, legacy constructors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NAME, BY_NUMPY, Size, dtype, get_default_dtype, numpy_dtype
from gradcli.engine.grad_mode import STATE
from gradcli.engine.in_place import CATEGORY
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.tensor import Tensor, from_array

__all__ = [
    "LEGACY_TENSORS",
    "are_deterministic_algorithms_enabled",
    "broadcast_shapes",
    "can_cast",
    "contiguous_format",
    "finfo",
    "get_num_threads",
    "iinfo",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "preserve_format",
    "set_num_threads",
    "strided",
    "use_deterministic_algorithms",
]


class finfo:  # noqa: N801  (the name programs use)
    """The limits of a floating point type.

    Args:
        type: the element type; the default one unless given.

    Raises:
        TypeError: the type is not a floating point or complex type.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        kind = get_default_dtype().numpy if type is None else numpy_dtype(type)
        if kind.kind not in "fc":
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{kind}'")
        limits = np.finfo(kind)
        self.bits = int(limits.bits)
        self.dtype = limits.dtype.name
        self.eps, self.max, self.min = float(limits.eps), float(limits.max), float(limits.min)
        self.tiny = self.smallest_normal = float(limits.tiny)
        self.resolution = float(f"1e-{limits.precision}")

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny", "dtype")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in names[:-1])}, dtype={self.dtype})"


class iinfo:  # noqa: N801  (the name programs use)
    """The limits of a type of whole numbers.

    Args:
        type: the element type.

    Raises:
        TypeError: the type is not one of whole numbers.
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype) -> None:
        kind = numpy_dtype(type)
        if kind.kind not in "iu":
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{kind}'")
        limits = np.iinfo(kind)
        self.bits, self.min, self.max = int(limits.bits), int(limits.min), int(limits.max)
        self.dtype = kind.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape that shapes broadcast to.

    Raises:
        RuntimeError: they do not.
    """
    try:
        return Size(np.broadcast_shapes(*shapes))
    except ValueError as error:
        raise RuntimeError(f"Shape mismatch: objects cannot be broadcast to a single shape: {error}") from None


def get_num_threads() -> int:
    """Return 1: the engine itself runs in the thread that calls it."""
    return 1


def set_num_threads(num: int) -> None:
    """Do nothing: how many threads a product of matrices takes is NumPy's affair."""
    del num


def are_deterministic_algorithms_enabled() -> bool:
    """Return True: the engine has no others."""
    return True


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: the engine has no other algorithms."""
    del mode, warn_only


def is_anomaly_enabled() -> bool:
    """Tell whether errors in backward are traced to the forward call."""
    return STATE.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Tell whether anomaly mode raises for NaN."""
    return STATE.check_nan


class Layout:
    """How elements lie in memory, as programs name it.

    Args:
        name: the name.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{PRINTED_MODULE}.{self.name}"


strided = Layout("strided")
contiguous_format, preserve_format = Layout("contiguous_format"), Layout("preserve_format")


def can_cast(from_: dtype, to: dtype) -> bool:
    """Tell whether an element type may be written to a tensor of another: not to a lower category."""
    return CATEGORY[from_.numpy.kind] <= CATEGORY[to.numpy.kind] and not (
        from_.numpy.kind in "iu" and to.numpy.kind == "b"
    )


def layout(self: Tensor) -> Layout:
    """Return how the elements lie: strided."""
    del self
    return strided


def never(self: Tensor) -> bool:
    """Return False: there are no tensors of that kind."""
    del self
    return False


def itself(self: Tensor) -> Tensor:
    """Return the tensor: conjugates and negatives are computed at once."""
    return self


def get_device(self: Tensor) -> int:
    """Return -1, which stands for the CPU."""
    del self
    return -1


class _Legacy(type):
    """The class of `FloatTensor` and the like: a tensor of that element type is an instance."""

    kind: dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance._data.dtype == cls.kind.numpy

    def __call__(cls, *sizes: Any) -> Any:
        """Return a tensor of a shape, or of the data, in the type of the class."""
        return legacy(cls.kind, *sizes)


def legacy(kind: dtype, *sizes: Any) -> Tensor:
    """Return a tensor by the rules of the legacy constructors: uninitialised for sizes, a copy for data.

    Args:
        kind: the element type.
        sizes: the length of each axis, or one thing to copy: lists, an array or a tensor.
    """
    if len(sizes) == 1 and not isinstance(sizes[0], (int, Size)):
        return from_array(np.array(sizes[0]._data if isinstance(sizes[0], Tensor) else sizes[0], dtype=kind.numpy))
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Size) else sizes or (0,)
    return from_array(np.zeros(shape, dtype=kind.numpy))


def new(input: Tensor, *sizes: Any, device: Any = None) -> Tensor:
    """Return a tensor of the same type by the rules of the legacy constructors; see `legacy`."""
    del device
    return legacy(BY_NUMPY[input._data.dtype], *sizes)


_LETTERS = "float16 float32 float64 uint8 int8 int16 int32 int64 bool"
LEGACY_TENSORS: dict[str, Any] = {
    f"{BY_NAME[name].letter}Tensor": _Legacy(f"{BY_NAME[name].letter}Tensor", (), {"kind": BY_NAME[name]})
    for name in _LETTERS.split()
}
