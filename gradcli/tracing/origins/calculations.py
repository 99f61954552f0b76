"""How a non-finite entry of a result was calculated: the operation with its operands' values at that entry."""

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.frozen import dataclass
from gradcli.tracing.reading import Lens

_ROWWISE = frozenset({"softmax", "log_softmax", "logsumexp", "cross_entropy", "softmin"})
_STATISTICS = frozenset({"std", "var", "std_mean", "var_mean"})
_WRITTEN = {"div": "/", "true_divide": "/", "mul": "·", "add": "+", "sub": "-", "pow": "**", "div_": "/", "mul_": "·",
            "add_": "+", "sub_": "-", "rmul": "·", "radd": "+"}  # fmt: skip
_SWAPPED = {"rdiv": "/", "rpow": "**", "rsub": "-"}


@final
@dataclass(frozen=True, slots=True)
class Calculation:
    """The first entry of a result that is NaN (or else infinite), and the operands there as text.

    `given` says that an infinite number was an argument, or in the data. `from_nan` and `from_inf` say whether the
    operands held NaN or infinity.
    """

    name: str
    entry: tuple[int, ...]
    value: float
    operands: tuple[str, ...]
    text: str = ""
    given: bool = False
    from_nan: bool = False
    from_inf: bool = False

    @property
    def is_source(self) -> bool:
        """Whether all operands were finite."""
        return not (self.from_nan or self.from_inf)


def calculation(
    lens: Lens, name: str, args: tuple[Any, ...], keywords: dict[str, Any], bad: Any, overwritten: Any
) -> Calculation | None:
    """The calculation behind the first entry of `bad` that is not finite; None where values cannot be read."""
    found = lens.non_finite_entry(bad)
    if found is None:
        return None
    entry, value = found
    shape = tuple(bad.shape)
    tensors = [v for v in lens.tensors_in([list(args), list(keywords.values())], depth=4) if v is not overwritten]
    arrays = [array for array in map(lens.array, tensors) if array is not None and array.dtype.kind in "fc"]
    operands = tuple(
        _operand(lens, v, entry, shape) if v is not overwritten else "its former value"
        for v in args
        if _counts(lens, v)
    )
    text = _reason(name, arrays, tensors, entry, shape, keywords, args) or _written(name, operands, value)
    return Calculation(
        name=name,
        entry=entry,
        value=value,
        operands=operands,
        text=text,
        given=_asked_for(args, keywords, [*tensors, overwritten], value),
        from_nan=any(bool(np.isnan(array).any()) for array in arrays),
        from_inf=any(bool(np.isinf(array).any()) for array in arrays),
    )


def _counts(lens: Lens, value: Any) -> bool:
    return lens.is_tensor(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _operand(lens: Lens, value: Any, entry: tuple[int, ...], shape: tuple[int, ...]) -> str:
    if not lens.is_tensor(value):
        return f"{value:.6g}"
    array = lens.array(value)
    if array is None:
        return "a tensor"
    try:
        there = np.broadcast_to(array, shape)[entry]
    except ValueError:
        return f"a tensor of shape {list(array.shape)}{_range(array)}"
    return f"{there:.6g}" if there.dtype.kind in "fc" else str(there)


def _range(array: NDArray[Any]) -> str:
    if not array.size or array.dtype.kind not in "f":
        return ""
    finite = array[np.isfinite(array)]
    if finite.size < array.size:
        return f" with {array.size - finite.size} entries not finite"
    return f" between {finite.min():.6g} and {finite.max():.6g}"


def _written(name: str, operands: tuple[str, ...], value: float) -> str:
    """The calculation as a formula: log(0) = -inf, 0/0 = nan, 0 ** -1 = inf."""
    result = f"{value:g}"
    if len(operands) == 2 and all(" " not in operand for operand in operands):
        sign, pair = _WRITTEN.get(name), operands
        if name in _SWAPPED:
            sign, pair = _SWAPPED[name], operands[::-1]
        if sign is not None:
            first = f"({pair[0]})" if sign == "**" and pair[0].startswith("-") else pair[0]
            second = f"({pair[1]})" if pair[1].startswith("-") else pair[1]
            return f"{first} {sign} {second} = {result}"
    return f"{name.strip('_')}({', '.join(operands)}) = {result}"


def _reason(
    name: str,
    arrays: Sequence[NDArray[Any]],
    tensors: Sequence[Any],
    entry: tuple[int, ...],
    shape: tuple[int, ...],
    keywords: dict[str, Any],
    args: tuple[Any, ...],
) -> str | None:
    """An explanation that the formula of one entry would not show."""
    del entry, tensors
    if not arrays:
        return None
    first = arrays[0]
    if name in _STATISTICS and first.size and np.isfinite(first).all():
        count = first.size // max(1, math.prod(shape))
        if count == 1:
            return f"{name} of one entry is 0/0, because it divides by n - 1 = 0"
    if name in ("mean", "nanmean") and not first.size:
        return f"{name} of an empty tensor is 0/0"
    if name in _ROWWISE and first.ndim:
        axis = next((v for v in (keywords.get("dim"), *args[1:]) if type(v) is int), -1)
        if not -first.ndim <= axis < first.ndim:
            axis = -1
        if np.isneginf(first).all(axis=axis).any():
            return f"{name} of a row that holds only -inf is 0/0"
    return None


def _asked_for(args: tuple[Any, ...], keywords: dict[str, Any], tensors: Sequence[Any], value: float) -> bool:
    """Whether NaN or infinity was an argument, or nothing was calculated: data. NaN of an infinity is calculated."""
    if not any(tensor is not None for tensor in tensors) and not math.isnan(value):
        return True
    numbers = [v for v in (*args, *keywords.values()) if isinstance(v, float)]
    return any(math.isnan(v) if math.isnan(value) else not math.isfinite(v) for v in numbers)
