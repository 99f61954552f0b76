"""Making tensors: from data, from numbers, at random."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array, get_default_dtype, numpy_dtype, require_cpu
from gradcli.engine.generator import Generator, random_source
from gradcli.engine.in_place import FlatBackward
from gradcli.engine.ops.operands import sizes
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

FLAG_OF_INTEGERS = "Only Tensors of floating point and complex dtype can require gradients"


def _finish(array: Array, requires_grad: bool, device: Any = None) -> Tensor:
    require_cpu(device)
    result = from_array(array)
    if requires_grad:
        if array.dtype.kind not in "fc":
            raise RuntimeError(FLAG_OF_INTEGERS)
        result._requires_grad = True
    return result


def _convertible(array: Array) -> Array:
    """Return an array whose element type a tensor can have.

    Raises:
        TypeError: it has another.
    """
    if array.dtype not in BY_NUMPY:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: "
            "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint8, and bool."
        )
    return array


def _kind(dtype: Any) -> np.dtype[Any]:
    return get_default_dtype().numpy if dtype is None else numpy_dtype(dtype)


def _plain(data: Any) -> Any:
    """Return nested lists without tensors in them."""
    if isinstance(data, Tensor):
        return data._data.tolist()
    if isinstance(data, (list, tuple)):
        return [_plain(entry) for entry in data]
    return data


def _refuse(data: Any) -> None:
    """Raise, in PyTorch's words, for nested lists that hold anything but numbers, or are of different lengths.

    Raises:
        TypeError: a text, or a list where others have a number.
        RuntimeError: any other value that is not a number.
        ValueError: lists of different lengths, or a list that starts with a text.
    """
    lengths, first = [], data
    while isinstance(first, list):
        lengths.append(len(first))
        first = first[0] if first else None
    if isinstance(first, str) and lengths:
        raise ValueError("too many dimensions 'str'")
    _refuse_entries(data)
    _refuse_lengths(data, lengths, 0)
    raise TypeError(f"new(): invalid data type '{type(data).__name__}'")


def _refuse_entries(data: Any) -> None:
    if isinstance(data, list):
        for entry in data:
            _refuse_entries(entry)
    elif isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    elif not isinstance(data, (int, float, complex, np.ndarray, np.generic)):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _refuse_lengths(data: Any, lengths: list[int], depth: int) -> None:
    if depth == len(lengths):
        if isinstance(data, list):
            raise TypeError("'list' object cannot be interpreted as an integer")
        return
    if not isinstance(data, list):
        raise TypeError("not a sequence")
    if len(data) != lengths[depth]:
        raise ValueError(f"expected sequence of length {lengths[depth]} at dim {depth} (got {len(data)})")
    for entry in data:
        _refuse_lengths(entry, lengths, depth + 1)


def _from_data(data: Any, dtype: Any) -> Array:
    if isinstance(data, Tensor):
        data = data._data
    if isinstance(data, (np.ndarray, np.generic)):
        return _convertible(np.array(data, dtype=None if dtype is None else numpy_dtype(dtype)))
    plain = _plain(data)
    try:
        array = np.array(plain)
    except ValueError:
        _refuse(plain)
        raise
    if array.dtype.kind not in "biufc":
        _refuse(plain)
    if dtype is not None:
        return array.astype(numpy_dtype(dtype))
    if array.dtype.kind == "f":
        return array.astype(get_default_dtype().numpy)
    if array.dtype.kind == "c":
        return array.astype(np.complex64 if get_default_dtype().itemsize <= 4 else np.complex128)
    return array


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a new leaf with a copy of the data.

    Args:
        data: a number, nested lists, an array or a tensor. Python floats become the default dtype.
        dtype: the element type; that of the data unless given.
        device: the CPU.
        requires_grad: record what is computed from it.
    """
    return _finish(_from_data(data, dtype), requires_grad, device)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the data as a tensor, on the same memory where that is possible."""
    require_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype=dtype)
    if isinstance(data, np.ndarray) and (dtype is None or numpy_dtype(dtype) == data.dtype):
        return from_array(_convertible(data))
    return tensor(data, dtype=dtype)


def from_numpy(ndarray: Array) -> Tensor:
    """Return a tensor on the memory of an array."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return from_array(_convertible(ndarray))


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **named: Any) -> Tensor:
    """Return zeros of a shape."""
    return _finish(np.zeros(_shape(size, named), dtype=_kind(dtype)), requires_grad, device)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **named: Any) -> Tensor:
    """Return ones of a shape."""
    return _finish(np.ones(_shape(size, named), dtype=_kind(dtype)), requires_grad, device)


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **named: Any) -> Tensor:
    """Return uninitialised memory of a shape."""
    return _finish(np.empty(_shape(size, named), dtype=_kind(dtype)), requires_grad, device)


_WITHOUT_EFFECT = ("layout", "memory_format", "pin_memory")  # there is one layout, and one kind of memory


def _shape(size: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, ...]:
    unknown = set(named) - {"size", *_WITHOUT_EFFECT}
    if unknown:
        raise TypeError(f"unexpected keyword argument '{sorted(unknown)[0]}'")
    return _lengths(sizes((named["size"],) if "size" in named else size))


def _lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(length < 0 for length in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a shape full of one number."""
    value = fill_value._data.item() if isinstance(fill_value, Tensor) else fill_value
    kind = numpy_dtype(dtype) if dtype is not None else _from_data(value, None).dtype
    return _finish(np.full(_lengths(sizes((size,))), value, dtype=kind), requires_grad, device)


def zeros_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Return zeros in the shape and type of a tensor."""
    del memory_format
    return _finish(np.zeros(input._data.shape, dtype=_like(input, dtype)), requires_grad, device)


def ones_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Return ones in the shape and type of a tensor."""
    del memory_format
    return _finish(np.ones(input._data.shape, dtype=_like(input, dtype)), requires_grad, device)


def empty_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Return uninitialised memory in the shape and type of a tensor."""
    del memory_format
    return _finish(np.empty(input._data.shape, dtype=_like(input, dtype)), requires_grad, device)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return one number in the shape and type of a tensor."""
    return _finish(np.full(input._data.shape, fill_value, dtype=_like(input, dtype)), requires_grad, device)


def _like(input: Tensor, dtype: Any) -> np.dtype[Any]:
    return input._data.dtype if dtype is None else numpy_dtype(dtype)


def arange(*bounds: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **named: Any) -> Tensor:
    """Return start, start + step, ... below end."""
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}.get(len(bounds), (0, None, 1))
    start, end, step = named.get("start", start), named.get("end", end), named.get("step", step)
    floats = any(isinstance(value, (float, np.floating)) for value in (start, end, step))
    kind = numpy_dtype(dtype) if dtype is not None else get_default_dtype().numpy if floats else np.dtype(np.int64)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.ceil((end - start) / step)
    return _finish((start + step * np.arange(count)).astype(kind), requires_grad, device)


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return numbers at equal distances from start to end, both among them."""
    _require_steps(steps)
    return _finish(np.linspace(start, end, steps).astype(_kind(dtype)), requires_grad, device)


def _require_steps(steps: int) -> None:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: Any = None) -> Tensor:
    """Return powers of a base whose exponents are at equal distances."""
    _require_steps(steps)
    return _finish((base ** np.linspace(start, end, steps)).astype(_kind(dtype)), False)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return the identity matrix."""
    for name, length in (("n", n), ("m", m)):
        if length is not None and length < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {length}")
    return _finish(np.eye(n, m, dtype=_kind(dtype)), requires_grad, device)


def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Return random numbers, uniform in [0, 1)."""
    return _finish(random_source(generator).random(_shape(size, named)).astype(_kind(dtype)), requires_grad, device)


def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Return random numbers of the standard normal distribution."""
    return _finish(_normal(_shape(size, named), _kind(dtype), generator), requires_grad, device)


def _normal(shape: tuple[int, ...], kind: np.dtype[Any], generator: Generator | None) -> Array:
    source = random_source(generator)
    if kind.kind == "c":
        pair = source.standard_normal(shape), source.standard_normal(shape)
        return np.asarray((pair[0] + 1j * pair[1]) / math.sqrt(2)).astype(kind)
    return np.asarray(source.standard_normal(shape)).astype(kind)


def randint(
    *bounds: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Return random whole numbers from `low` (0) up to, not including, `high`: `randint(low, high, size)`."""
    given = list(bounds)
    size = named.pop("size") if "size" in named else given.pop()
    high = named.pop("high") if "high" in named else given.pop()
    low = named.pop("low") if "low" in named else given.pop() if given else 0
    if named or given:
        raise TypeError(f"randint() takes low, high and size, but got {len(bounds)} positional arguments and {named}")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    kind = np.dtype(np.int64) if dtype is None else numpy_dtype(dtype)
    return _finish(
        random_source(generator).integers(low, high, _lengths(sizes((size,)))).astype(kind), requires_grad, device
    )


def randperm(n: int, *, generator: Generator | None = None, device: Any = None) -> Tensor:
    """Return the numbers below n in random order."""
    return _finish(
        random_source(generator).permutation(*_lengths((operator.index(n),))).astype(np.int64), False, device
    )


def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return uniform random numbers in the shape and type of a tensor."""
    return _finish(random_source(None).random(input._data.shape).astype(_like(input, dtype)), requires_grad)


def randn_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return normal random numbers in the shape and type of a tensor."""
    return _finish(_normal(input._data.shape, _like(input, dtype), None), requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None) -> Tensor:
    """Return normal random numbers with a mean and a standard deviation, numbers or tensors.

    Raises:
        RuntimeError: a standard deviation is negative.
    """
    if bool((np.asarray(std._data if isinstance(std, Tensor) else std) < 0).any()):
        raise RuntimeError(
            "normal expects all elements of std >= 0.0"
            if isinstance(std, Tensor)
            else f"normal expects std >= 0.0, but found std {std:g}"
        )
    if size is None:
        shape = np.broadcast_shapes(*(v._data.shape for v in (mean, std) if isinstance(v, Tensor)))
    else:
        shape = sizes((size,))
    spread: Tensor = randn(*shape, generator=generator) * std
    result: Tensor = spread + mean
    return result


class BernoulliBackward0(FlatBackward):
    """The probabilities get zeros."""


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Return ones with the probabilities given, zeros otherwise; the gradient of the probabilities is 0.

    Raises:
        RuntimeError: a number lies outside [0, 1].
    """
    if not bool(((input._data >= 0) & (input._data <= 1)).all()):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    drawn = random_source(generator).random(input._data.shape) < input._data
    return record(BernoulliBackward0, drawn.astype(input._data.dtype), (input,))


def scalar_tensor(value: Any, *, dtype: Any = None) -> Tensor:
    """Return one number as a tensor without axes."""
    return tensor(value, dtype=get_default_dtype() if dtype is None else dtype)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return random indices of a vector, or of each row, with probabilities in proportion to its elements.

    Raises:
        RuntimeError: probabilities are negative, or there are too few that are not zero.
    """
    rows = input._data.reshape(-1, input._data.shape[-1]).astype(np.float64)
    if (rows < 0).any() or not np.isfinite(rows).all() or not rows.sum(axis=1).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0, or sums to 0")
    if not replacement and num_samples > np.count_nonzero(rows, axis=1).min():
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    source = random_source(generator)
    drawn = [source.choice(len(row), num_samples, replace=replacement, p=row / row.sum()) for row in rows]
    return from_array(np.array(drawn, dtype=np.int64).reshape((*input._data.shape[:-1], num_samples)))
