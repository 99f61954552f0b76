"""Functions for backward rules that take tensors and bare arrays alike.

A rule written with operators and these functions may set `_on_arrays`. The backward pass then runs it on tensors when
it has to be recorded (`create_graph=True`), and else on arrays, which is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.ops.kernels import cleared, laid_out
from gradcli.engine.ops.operands import conj
from gradcli.engine.tensor import Tensor, from_array

__all__ = [
    "conj",
    "cos",
    "cosh",
    "elementwise",
    "exp",
    "over",
    "power",
    "product",
    "reciprocal",
    "restored",
    "rsqrt",
    "sin",
    "sinh",
    "total",
    "transposed",
    "values",
    "without",
]


def values(x: Any) -> Any:
    """Return the array of a tensor; an array is returned as it is."""
    return x._data if isinstance(x, Tensor) else x


def elementwise(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that calls the method `name` of a tensor, or `function` on an array."""

    def either(x: Any) -> Any:
        return getattr(x, name)() if isinstance(x, Tensor) else function(x)

    return either


@np.errstate(all="ignore")
def _quotient(x: Any, y: Any) -> Any:
    return x / y


@np.errstate(all="ignore")
def _inverse_root(x: Any) -> Any:
    return 1 / np.sqrt(x)


exp = elementwise("exp", np.errstate(all="ignore")(np.exp))
sin = elementwise("sin", np.errstate(all="ignore")(np.sin))
cos = elementwise("cos", np.errstate(all="ignore")(np.cos))
sinh = elementwise("sinh", np.errstate(all="ignore")(np.sinh))
cosh = elementwise("cosh", np.errstate(all="ignore")(np.cosh))
rsqrt = elementwise("rsqrt", _inverse_root)
reciprocal = elementwise("reciprocal", lambda x: _quotient(1, x))


def over(x: Any, y: Any) -> Any:
    """Return x / y."""
    return x / y if isinstance(x, Tensor) or isinstance(y, Tensor) else _quotient(x, y)


@np.errstate(all="ignore")
def _powered(x: Any, n: Any) -> Any:
    if n == 2:
        return x * x
    if abs(n) == 0.5 and x.dtype.kind == "f":  # roots differ from powers at -0 and -inf
        return np.sqrt(x) if n > 0 else _inverse_root(x)
    return np.power(x, x.dtype.type(n))


def power(x: Any, n: Any) -> Any:
    """Return x to the power of a number."""
    return x**n if isinstance(x, Tensor) else _powered(x, n)


def transposed(matrix: Any) -> Any:
    """Return the conjugate transpose of a matrix."""
    return conj(matrix.t() if isinstance(matrix, Tensor) else matrix.T)


def product(first: Any, second: Any) -> Any:
    """Return the product of two matrices, or of two batches of them [N, m, n]."""
    if not isinstance(first, Tensor):
        return first @ second
    return first.mm(second) if first._data.ndim == 2 else first.bmm(second)


def total(g: Any, dim: int) -> Any:
    """Return the sum along an axis, which is kept with length 1."""
    return g.sum(dim, keepdim=True) if isinstance(g, Tensor) else np.add.reduce(g, axis=dim, keepdims=True)


def restored(g: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Return the cotangent of a reduction over `dims`, expanded to the shape before the reduction."""
    if g.ndim and g.ndim != len(shape):
        g = g.reshape([1 if place in dims else size for place, size in enumerate(shape)])
    return g.expand(shape) if isinstance(g, Tensor) else laid_out(np.asarray(g), shape)


def without(g: Any, mask: Any) -> Any:
    """Return a cotangent with zeros where a mask is True, also in place of NaN and infinities.

    Args:
        g: a tensor, or an array.
        mask: an array of booleans, of the shape of g.
    """
    return g.masked_fill(from_array(mask), 0) if isinstance(g, Tensor) else cleared(np.asarray(g), mask)
