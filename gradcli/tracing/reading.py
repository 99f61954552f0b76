"""Reads tensors without changing them: their values, a summary, and the tensors that a value contains."""

import functools
import math
from collections.abc import Hashable, Iterator, Mapping
from types import ModuleType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.frozen import dataclass
from gradcli.traces import ArraySummary
from gradcli.traces.arrays import summary_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A tensor's values at one moment, copied."""

    summary: ArraySummary
    array: NDArray[Any] | None


@final
class Lens:
    """Access to a framework's tensors through the names that all frameworks with PyTorch's interface have."""

    def __init__(self, namespace: ModuleType) -> None:
        self.namespace = namespace
        self.tensor_type: type[Any] = namespace.Tensor
        self.parameter_type: type[Any] = namespace.nn.Parameter
        self.module_type: type[Any] = namespace.nn.Module

    def is_tensor(self, value: object) -> bool:
        """Whether `value` is a tensor."""
        return isinstance(value, self.tensor_type)

    def array(self, tensor: Any) -> NDArray[Any] | None:
        """The values as an array, sharing memory if possible; None if the framework cannot return them."""
        try:
            plain = tensor.detach()
            if dtype_name(plain.dtype) == "bfloat16":
                plain = plain.float()
            if plain.dtype.is_complex:  # a lazy conjugate has no array of its own
                return np.array(plain.tolist(), dtype=dtype_name(plain.dtype))
            return np.asarray(plain.cpu().numpy() if plain.device.type != "cpu" else plain.numpy())
        except (RuntimeError, TypeError, ValueError):  # sparse, meta and vmapped tensors have no array
            return None

    def snapshot(self, tensor: Any) -> Snapshot:
        """A copy of the present values."""
        array = self.array(tensor)
        copied = None if array is None else array.copy()
        return Snapshot(summary=self._summary(tensor, copied), array=copied)

    def summarise(self, tensor: Any) -> ArraySummary:
        """Shape, dtype and norm, and the values where there are at most 16."""
        return self._summary(tensor, self.array(tensor))

    def summarise_each(self, tensors: Any) -> tuple[ArraySummary | None, ...]:
        """One summary for each entry, None for what is not a tensor."""
        return tuple(self.summarise(t) if self.is_tensor(t) else None for t in as_tuple(tensors))

    def _summary(self, tensor: Any, array: NDArray[Any] | None) -> ArraySummary:
        dtype = dtype_name(tensor.dtype)
        if array is None:
            return ArraySummary(shape=tuple(map(int, tensor.shape)), dtype=dtype, norm=None, values=None)
        return summary_of(array, dtype)

    def tensors_in(self, value: object, depth: int = 3) -> Iterator[Any]:
        """The tensors in a value: itself, or those in its tuples, lists and dicts."""
        if self.is_tensor(value):
            yield value
        elif depth and isinstance(value, tuple | list | set):
            for entry in value:
                yield from self.tensors_in(entry, depth - 1)
        elif depth and isinstance(value, Mapping):
            for entry in value.values():
                yield from self.tensors_in(entry, depth - 1)

    def differentiable(self, value: object) -> list[Any]:
        """The tensors in a value that a backward pass can start from."""
        return [t for t in self.tensors_in(value) if requires_grad(t)]

    def is_not_finite(self, tensor: Any) -> bool:
        """Whether any entry is NaN or infinite; False if the values cannot be read."""
        if not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
            return False
        device = tensor.device.type
        if device == "meta":
            return False
        if device != "cpu":
            return not bool(self.namespace.isfinite(tensor.detach()).all())
        array = self.array(tensor)
        return array is not None and not np.isfinite(array).all()

    def non_finite_entry(self, tensor: Any) -> tuple[tuple[int, ...], float] | None:
        """The first entry that is NaN, or else the first infinite one, with its value; None where all are finite."""
        array = self.array(tensor)
        if array is None or array.dtype.kind not in "fc" or np.isfinite(array).all():
            return None
        bad = np.isnan(array) if np.isnan(array).any() else ~np.isfinite(array)
        entry = tuple(int(place) for place in np.unravel_index(int(np.argmax(bad)), array.shape))
        return entry, float(np.real(array[entry]))

    def storage(self, tensor: Any) -> tuple[tuple[str, int], int]:
        """The memory of a tensor, by device and address, and its size: views share it."""
        try:
            held = tensor.untyped_storage()
            address = int(held.data_ptr())
        except (RuntimeError, NotImplementedError):  # sparse and wrapped tensors show none
            return ("object", id(tensor)), self.nbytes(tensor)
        except ValueError:  # the parameter of a lazy module has none yet
            return ("object", id(tensor)), 0
        if not address:  # a meta tensor has no memory
            return ("object", id(tensor)), 0
        return (str(tensor.device), address), int(held.nbytes())

    def nbytes(self, tensor: Any) -> int:
        """How many bytes the values of a tensor need."""
        return int(tensor.numel()) * int(tensor.element_size())


def maker_of(tensor: Any) -> Any:
    """The node that created a tensor; None for a leaf.

    PyTorch raises for a view that was created without recording and then written to: no gradient flows through it.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def requires_grad(tensor: Any) -> bool:
    """Whether gradients flow to or through a tensor: not for a view of a leaf that was created without recording."""
    try:
        base = tensor._base
        return bool(tensor.requires_grad and (tensor.grad_fn is not None or base is None or not base.requires_grad))
    except RuntimeError:  # as in `maker_of`
        return False


def value_at(lens: Lens, tensor: Any, entry: tuple[int, ...]) -> float | None:
    """One number of a tensor, at an entry of a tensor that it broadcasts with; None if it does not."""
    array = lens.array(tensor)
    if array is None or array.dtype.kind not in "fiub" or array.ndim > len(entry):
        return None
    places = entry[len(entry) - array.ndim :]
    if any(size != 1 and place >= size for place, size in zip(places, array.shape, strict=True)):
        return None
    return float(array[tuple(0 if size == 1 else place for place, size in zip(places, array.shape, strict=True))])


@functools.lru_cache(maxsize=64)
def dtype_name(dtype: Hashable) -> str:
    """A dtype without the framework's name: "float64"."""
    return str(dtype).rsplit(".", 1)[-1]


def as_tuple(value: object) -> tuple[Any, ...]:
    """A hook's gradients as a tuple, whether it was given one or several."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def common_factor(before: NDArray[Any], after: NDArray[Any]) -> float | None:
    """The number c with after = c · before, up to rounding; None where there is none."""
    if before.shape != after.shape or not before.size or not np.any(before):
        return None
    if not (np.all(np.isfinite(before)) and np.all(np.isfinite(after))):
        return None
    place = np.unravel_index(int(np.argmax(np.abs(before))), before.shape)
    factor = after[place] / before[place]
    kinds = [a.dtype for a in (before, after) if a.dtype.kind in "fc"]
    slack = 8 * max((float(np.finfo(kind).eps) for kind in kinds), default=0.0)
    if not np.all(np.abs(after - factor * before) <= slack * np.abs(factor * before)) or np.iscomplex(factor):
        return None
    return float(np.real(factor))


def _finite(value: Any) -> bool:
    return math.isfinite(value.real) and math.isfinite(value.imag)
