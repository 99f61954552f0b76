"""Modified Bessel functions of whole orders, also scaled by exp(-|x|)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import floating, refuse_kinds
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor

_SERIES_UNTIL = 30.0
"""Up to here the power series is used: its terms are positive, so that nothing cancels. Beyond, the least term of the
asymptotic series is about exp(-2 x), far below the rounding of float64."""
_TERMS = 90
"""The last term of the power series at 30 is 15^180 / (90!)^2, below 1e-60 of a sum of 8e11."""
_LATE_TERMS = 26


def _scaled(order: int, x: Array) -> Array:
    """Return exp(-|x|) I_n(x) in float64: I_n(x) = sum_k (x / 2)^(2k + n) / (k! (k + n)!)."""
    size = np.abs(x)
    half = np.minimum(size, _SERIES_UNTIL) / 2
    term = np.ones_like(half)
    for k in range(1, order + 1):
        term = term * half / k
    total = term
    for k in range(1, _TERMS):
        term = term * half * half / (k * (k + order))
        total = total + term
    early = total * np.exp(-np.minimum(size, _SERIES_UNTIL))
    far = np.maximum(size, _SERIES_UNTIL)
    piece = np.ones_like(far)
    late = piece
    for k in range(1, _LATE_TERMS):
        piece = -piece * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * far)
        late = late + piece
    result = np.where(size > _SERIES_UNTIL, late / np.sqrt(2 * np.pi * far), early)
    signed: Array = np.where(np.isnan(x), x, result * (np.sign(x) if order % 2 else 1.0))
    return signed


class BesselBackward(Node):
    """d I_n(x) = (I_(n-1)(x) + I_(n+1)(x)) / 2 dx, where I_(-1) is I_1."""

    _saved_names = ("self",)
    order: int

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return g * (_bessel(abs(self.order - 1), x) + _bessel(self.order + 1, x)) / 2


class I0Backward0(BesselBackward):
    """Of `i0`: d I_0(x) = I_1(x) dx."""

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return g * _bessel(1, x)


class SpecialI1Backward0(BesselBackward):
    """Of `special.i1`."""


class ScaledBesselBackward(Node):
    """d exp(-|x|) I_n(x) = exp(-|x|) ((I_(n-1)(x) + I_(n+1)(x)) / 2 - sign(x) I_n(x)) dx."""

    _saved_names = ("self", "result")
    order: int

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        slope = (_scaled_bessel(abs(self.order - 1), x) + _scaled_bessel(self.order + 1, x)) / 2
        return g * (slope - x.sgn() * y)


class SpecialI0EBackward0(ScaledBesselBackward):
    """Of `special.i0e`."""


class SpecialI1EBackward0(ScaledBesselBackward):
    """Of `special.i1e`."""


_KINDS: dict[int, type[Node]] = {0: I0Backward0, 1: SpecialI1Backward0}
_SCALED_KINDS: dict[int, type[Node]] = {0: SpecialI0EBackward0, 1: SpecialI1EBackward0}


def _bessel(order: int, input: Tensor) -> Tensor:
    refuse_kinds("i0" if order == 0 else "i1", input._data, "c")
    x = floating(input._data)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        array = (_scaled(order, wide) * np.exp(np.abs(wide))).astype(x.dtype)
    return record(_KINDS.get(order, BesselBackward), array, (input,), (input,), order=order)


def _scaled_bessel(order: int, input: Tensor) -> Tensor:
    refuse_kinds("i0e" if order == 0 else "i1e", input._data, "c")
    x = floating(input._data)
    array = _scaled(order, x.astype(np.float64)).astype(x.dtype)
    return record(_SCALED_KINDS.get(order, ScaledBesselBackward), array, (input,), (input,), keep=True, order=order)


def i0(input: Tensor) -> Tensor:
    """Return the modified Bessel function of order 0."""
    return _bessel(0, input)


def i1(input: Tensor) -> Tensor:
    """Return the modified Bessel function of order 1."""
    return _bessel(1, input)


def i0e(input: Tensor) -> Tensor:
    """Return exp(-|x|) times the modified Bessel function of order 0."""
    return _scaled_bessel(0, input)


def i1e(input: Tensor) -> Tensor:
    """Return exp(-|x|) times the modified Bessel function of order 1."""
    return _scaled_bessel(1, input)
