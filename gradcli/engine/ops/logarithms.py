"""Functions made of logarithms that are right where a product or a difference of them is not: at 0, 1 and infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import Operand, applied, floating, operand, pair, refuse_kinds
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class LogitBackward0(Node):
    """d logit(x) = dx / (x (1 - x)); NaN outside of [0, 1], and 0 where x was clamped."""

    _saved_names = ("self",)
    eps: float | None

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        low = 0.0 if self.eps is None else self.eps
        outside = ~((x >= low) & (x <= 1 - low))
        return (g / (x * (1 - x))).masked_fill(outside, np.nan if self.eps is None else 0.0)


class LogaddexpBackward0(Node):
    """d log(exp(x) + exp(y)) = dx / (1 + exp(y - x)) + dy / (1 + exp(x - y))."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        by_x = g / ((y - x).exp() + 1) if self._needs(0) else None
        return by_x, g / ((x - y).exp() + 1) if self._needs(1) else None


class XlogyBackward0(Node):
    """d(x log y) = log y dx + x / y dy; the first is 0 where x is 0 and y not positive."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        by_x = g * y.log().masked_fill((x == 0) & (y <= 0), 0) if self._needs(0) else None
        return by_x, g * (x / y) if self._needs(1) else None


class SpecialXlog1PyBackward0(Node):
    """d(x log(1 + y)) = log(1 + y) dx + x / (1 + y) dy; the first is 0 where x is 0 and y not above -1."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        by_x = g * y.log1p().masked_fill((x == 0) & (y <= -1), 0) if self._needs(0) else None
        return by_x, g * (x / (y + 1)) if self._needs(1) else None


class SpecialEntrBackward0(Node):
    """d(-x log x) = -(log x + 1) dx: inf at 0, NaN below."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return g * (-x.log() - 1)


@np.errstate(all="ignore")
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), with x clamped to [eps, 1 - eps] first if eps is given."""
    refuse_kinds("logit", input._data, "c")
    x = floating(input._data)
    inside = x if eps is None else np.clip(x, eps, 1 - eps)
    array = np.asarray(np.log(inside) - np.log1p(-inside), dtype=x.dtype)
    return record(LogitBackward0, array, (input,), (input,), eps=eps)


@np.errstate(all="ignore")
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Return log(exp(input) + exp(other)) without overflow."""
    x, y = pair(input, other)
    array = applied("logaddexp", np.logaddexp, floating(x), floating(y))
    return record(LogaddexpBackward0, array, (input, other), (input, other))


@np.errstate(all="ignore")
def _weighted(kind: type[Node], function: Callable[[Array], Array], input: Tensor, other: Operand) -> Tensor:
    x, y = (floating(np.asarray(array)) for array in pair(input, operand(other)))
    second = other if isinstance(other, Tensor) else from_array(y)
    array = np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * function(y))
    return record(kind, array, (input, second), (input, second))


def xlogy(input: Tensor, other: Operand) -> Tensor:
    """Return input * log(other), and 0 where input is 0 unless other is NaN."""
    return _weighted(XlogyBackward0, np.log, input, other)


def xlog1py(input: Tensor, other: Operand) -> Tensor:
    """Return input * log(1 + other), and 0 where input is 0 unless other is NaN."""
    return _weighted(SpecialXlog1PyBackward0, np.log1p, input, other)


@np.errstate(all="ignore")
def entr(input: Tensor) -> Tensor:
    """Return -x log(x), the entropy: 0 at 0, -inf for negative x."""
    x = floating(input._data)
    array = np.where(x < 0, x.dtype.type(-np.inf), np.where(x == 0, 0, -x * np.log(x)))
    return record(SpecialEntrBackward0, array.astype(x.dtype, copy=False), (input,), (input,))
