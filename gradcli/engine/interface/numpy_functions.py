# ruff: noqa: PLW0108  (a lambda gives an operation NumPy's names for its arguments)
"""NumPy's functions on tensors: the engine's operation runs in their place, or what cannot be recorded is refused.

Arguments are NumPy's (`axis`, `keepdims`, `ddof`); results are tensors, so that `np.sum(t)` stays in the graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradcli.engine import creation
from gradcli.engine.dtypes import BY_NUMPY, dtype
from gradcli.engine.ops import (
    arithmetic,
    comparison,
    complex_numbers,
    contraction,
    copies,
    determinants,
    elementwise,
    factorisation,
    joining,
    linalg,
    logarithms,
    masks,
    parts,
    reduction,
    shape,
    statistics,
)
from gradcli.engine.ops.operands import operand
from gradcli.engine.recording import tracked
from gradcli.engine.tensor import Tensor, from_array

LEAVE = "use the tensor's own operation, or tensor.detach().numpy() to leave the graph"
_SAME_NAMES = """exp exp2 expm1 log log1p log2 log10 sqrt sin cos tan sinh cosh tanh sign floor ceil trunc"""
UFUNCS: dict[str, Callable[..., Any]] = {
    "add": arithmetic.add, "subtract": arithmetic.sub, "multiply": arithmetic.mul, "divide": arithmetic.div,
    "true_divide": arithmetic.div, "power": arithmetic.pow, "float_power": arithmetic.pow, "negative": arithmetic.neg,
    "floor_divide": arithmetic.floor_divide, "remainder": arithmetic.remainder, "fmod": arithmetic.fmod,
    "matmul": linalg.matmul, "maximum": comparison.maximum, "minimum": comparison.minimum, "square": arithmetic.square,
    "reciprocal": arithmetic.reciprocal, "absolute": elementwise.abs, "arcsin": elementwise.asin,
    "arccos": elementwise.acos, "arctan": elementwise.atan, "arctan2": elementwise.atan2,
    "conjugate": complex_numbers.conj,
    "arcsinh": elementwise.asinh, "arccosh": elementwise.acosh, "arctanh": elementwise.atanh,
    "equal": comparison.eq, "not_equal": comparison.ne, "less": comparison.lt, "less_equal": comparison.le,
    "greater": comparison.gt, "greater_equal": comparison.ge, "isnan": comparison.isnan, "isinf": comparison.isinf,
    "isfinite": comparison.isfinite, "logical_not": comparison.logical_not, "logical_and": comparison.logical_and,
    "logical_or": comparison.logical_or, "deg2rad": elementwise.deg2rad, "rad2deg": elementwise.rad2deg,
    "rint": elementwise.round, "logaddexp": logarithms.logaddexp, "hypot": elementwise.hypot,
    **{name: getattr(elementwise, name) for name in _SAME_NAMES.split()},
}  # fmt: skip


_OF_TENSORS = frozenset(("maximum", "minimum", "logaddexp", "hypot", "arctan2", "logical_and", "logical_or"))


def _tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) else creation.as_tensor(value)


def _reduced(operation: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return operation(a, axis, keepdims)

    return reduce


def _spread(operation: Callable[..., Any]) -> Callable[..., Any]:
    def spread(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
        return operation(a, axis, keepdim=keepdims, correction=ddof)

    return spread


def _prod(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return reduction.prod(a) if axis is None and not keepdims else reduction.prod(a, axis, keepdims)


def _joined(operation: Callable[..., Any]) -> Callable[..., Any]:
    def join(arrays: Iterable[Any], axis: int | None = 0) -> Any:
        tensors = [_tensor(entry) for entry in arrays]
        if axis is None:
            return operation([shape.ravel(entry) for entry in tensors], 0)
        return operation(tensors, axis)

    return join


def _stacked(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda arrays: operation([_tensor(entry) for entry in arrays])


def _running(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, axis=None: operation(shape.ravel(a) if axis is None else a, 0 if axis is None else axis)


def _dot(a: Any, b: Any) -> Any:
    x, y = _tensor(a), _tensor(b)
    if not x._data.ndim or not y._data.ndim:
        return arithmetic.mul(x, y)
    if x._data.ndim == 1 and y._data.ndim == 1:
        return linalg.dot(x, y)
    return contraction.tensordot(x, y, ([x._data.ndim - 1], [max(y._data.ndim - 2, 0)]))


def _where(condition: Any, *sides: Any) -> Any:
    return comparison.where(_tensor(condition), *(operand(side) for side in sides))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = min if a_min is None else a_min, max if a_max is None else a_max
    return comparison.clamp(_tensor(a), low, high)


def _reshape(a: Any, *sizes: Any, **named: Any) -> Any:
    return shape.reshape(a, *sizes, *(named[name] for name in ("shape", "newshape") if name in named))


def _transpose(a: Any, axes: Any = None) -> Any:
    return shape.reverse_axes(a) if axes is None else shape.permute(a, tuple(axes))


def _rolled(a: Any, shift: Any, axis: Any = None) -> Any:
    return copies.roll(a, shift) if axis is None else copies.roll(a, shift, axis)


def _flipped(a: Any, axis: Any = None) -> Any:
    return copies.flip(a, tuple(range(a._data.ndim)) if axis is None else axis)


def _like(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, dtype=None: operation(a, dtype=dtype)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is not None and x._data.ndim == 2 and axis is None:
        raise TypeError(f"numpy.linalg.norm of a matrix with ord={ord!r} is not differentiated on tensors: {LEAVE}")
    return statistics.vector_norm(x, 2.0 if ord is None else float(ord), axis, keepdims)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    size = ary._data.shape[axis]
    if isinstance(indices_or_sections, int):
        return list(parts.split(ary, size // indices_or_sections, axis))
    bounds = [0, *(int(entry) for entry in indices_or_sections), size]
    return list(parts.split(ary, [b - a for a, b in itertools.pairwise(bounds)], axis))


def _largest(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return reduction.amax(a, axis, keepdims)


def _smallest(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return reduction.amin(a, axis, keepdims)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _reduced(reduction.sum), np.mean: _reduced(reduction.mean), np.prod: _prod,
    np.max: _largest, np.amax: _largest, np.min: _smallest, np.amin: _smallest,
    np.std: _spread(statistics.std), np.var: _spread(statistics.var),
    np.all: _reduced(reduction.all), np.any: _reduced(reduction.any),
    np.argmax: _reduced(reduction.argmax), np.argmin: _reduced(reduction.argmin),
    np.cumsum: _running(statistics.cumsum), np.cumprod: _running(statistics.cumprod),
    np.concatenate: _joined(joining.cat), np.stack: _joined(joining.stack),
    np.vstack: _stacked(joining.vstack), np.hstack: _stacked(joining.hstack), np.split: _split,
    np.dot: _dot, np.outer: lambda a, b: linalg.outer(shape.ravel(_tensor(a)), shape.ravel(_tensor(b))),
    np.inner: lambda a, b: contraction.tensordot(_tensor(a), _tensor(b), ([-1], [-1])),
    np.tensordot: lambda a, b, axes=2: contraction.tensordot(_tensor(a), _tensor(b), axes),
    np.einsum: lambda equation, *operands: contraction.einsum(equation, *(_tensor(entry) for entry in operands)),
    np.trace: lambda a: linalg.trace(a), np.kron: lambda a, b: joining.kron(_tensor(a), _tensor(b)),
    np.where: _where, np.clip: _clip, np.reshape: _reshape, np.transpose: _transpose,
    np.ravel: lambda a: shape.ravel(a), np.squeeze: lambda a, axis=None: shape.squeeze(a, axis),
    np.expand_dims: lambda a, axis: shape.unsqueeze(a, axis),
    np.swapaxes: lambda a, axis1, axis2: shape.transpose(a, axis1, axis2),
    np.moveaxis: lambda a, source, destination: shape.movedim(a, source, destination),
    np.broadcast_to: lambda array, shape_: shape.expand(array, *shape_), np.roll: _rolled, np.flip: _flipped,
    np.tile: lambda A, reps: copies.tile(A, reps), np.diff: lambda a: joining.diff(a),
    np.diag: lambda v, k=0: joining.diag(v, k), np.tril: lambda m, k=0: masks.tril(m, k),
    np.triu: lambda m, k=0: masks.triu(m, k), np.copy: lambda a: copies.clone(a),
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: parts.diagonal(a, offset, axis1, axis2),
    np.sort: lambda a, axis=-1: joining.sort(a, axis)[0], np.argsort: lambda a, axis=-1: joining.argsort(a, axis),
    np.real: complex_numbers.real, np.imag: complex_numbers.imag, np.angle: complex_numbers.angle,
    np.sinc: elementwise.sinc,
    np.shape: lambda a: tuple(a._data.shape), np.ndim: lambda a: a._data.ndim, np.size: lambda a: a._data.size,
    np.zeros_like: _like(creation.zeros_like), np.ones_like: _like(creation.ones_like),
    np.full_like: lambda a, fill_value: creation.full_like(a, fill_value),
    np.linalg.norm: _norm, np.linalg.inv: linalg.inv, np.linalg.det: determinants.det, np.linalg.solve: linalg.solve,
    np.linalg.cholesky: linalg.cholesky, np.linalg.pinv: factorisation.pinv, np.linalg.slogdet: determinants.slogdet,
    np.linalg.eigh: linalg.eigh, np.linalg.qr: factorisation.qr,
}  # fmt: skip


def _refused(name: str) -> TypeError:
    return TypeError(f"numpy.{name} is not differentiated on tensors: {LEAVE}")


def _all_arrays(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values._data
    if isinstance(values, (tuple, list)):
        return type(values)(_all_arrays(entry) for entry in values)
    if isinstance(values, dict):
        return {key: _all_arrays(entry) for key, entry in values.items()}
    return values


def _some_tracked(values: Any) -> bool:
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, (tuple, list)):
        return any(_some_tracked(entry) for entry in values)
    return tracked(values)


def _as_tensors(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result)(_as_tensors(entry) for entry in result)
    return from_array(result) if isinstance(result, (np.ndarray, np.generic)) else result


def array_function(self: Tensor, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the engine's operation in place of a NumPy function that is not a ufunc.

    Raises:
        TypeError: the function, or an argument of it, is not differentiated, and a tensor is tracked.
    """
    del self, types
    operation = FUNCTIONS.get(function)
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    if not _some_tracked((args, kwargs)) and (operation is None or {"out", "where", "dtype"} & kwargs.keys()):
        return function(*_all_arrays(args), **_all_arrays(kwargs))
    if operation is None:
        raise _refused(name)
    if kwargs.get("out") is not None or "where" in kwargs:
        raise TypeError(f"numpy.{name} with out= or where= would leave the graph: {LEAVE}")
    named = {key: value for key, value in kwargs.items() if key != "out"}
    if named.get("dtype") is not None and not isinstance(named["dtype"], dtype):
        named["dtype"] = BY_NUMPY[np.dtype(named["dtype"])]
    try:
        return operation(*args, **named)
    except TypeError as error:
        if "unexpected keyword" not in str(error) and "positional argument" not in str(error):
            raise
        text = f"numpy.{name} with these arguments ({', '.join(kwargs) or 'positional'}) is not differentiated"
        raise TypeError(f"{text} on tensors: {LEAVE}") from None


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Run the engine's operation in place of a ufunc, so that it is recorded.

    Raises:
        TypeError: the ufunc, its method or its keyword is not differentiated, and a tensor is tracked.
    """
    operation = UFUNCS.get(ufunc.__name__)
    if method == "__call__" and not kwargs and operation is not None:
        given = [_tensor(entry) if isinstance(entry, np.ndarray) else entry for entry in inputs]
        if ufunc.__name__ in _OF_TENSORS:
            given = [entry if isinstance(entry, Tensor) else self.new_tensor(entry) for entry in given]
        return operation(*given)
    if _some_tracked((inputs, kwargs)):
        called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if kwargs and method == "__call__" and operation is not None:
            raise TypeError(f"numpy.{called} with {'=, '.join(kwargs)}= would leave the graph: {LEAVE}")
        raise _refused(called)
    out = kwargs.get("out")
    result = getattr(ufunc, method)(*_all_arrays(inputs), **_all_arrays(kwargs))
    for target in out or ():
        if isinstance(target, Tensor):
            target._shared_counter().value += 1
            return target
    return _as_tensors(result)
