"""The values of a function along a line, each output divided by its scale. No point is evaluated twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradcli.numerics.maps.floats import Vector

GRID_BITS = 44
"""Parameters t have this many binary digits after the point. With x rounded to multiples of 2^-44 of the scale and
directions of 8 bits, x + t v is then a multiple of 2^-52 of the scale, which a float64 holds exactly."""
GRID = 2.0**-GRID_BITS
"""Parameters t are multiples of this."""
HALVINGS = 30
"""After this many halvings an interval is 1e-9 times as long. A smooth change of value has fallen by that factor, and
one over a millionth of the interval by a thousand; a jump is unchanged."""

_FRACTION = (1 << 52) - 1
"""The bits of a float64 below its exponent."""

Function = Callable[[Vector], Vector]


def power_of_two_above(magnitudes: Vector) -> Vector:
    """The smallest power of two that is at least each magnitude; 2^-1022 for zeros and subnormal numbers."""
    powers = round_up_to_power_of_two(np.maximum(magnitudes, 2.0**-1022))
    return np.minimum(powers, 2.0**1023, out=powers)


def round_up_to_power_of_two(magnitudes: Vector) -> Vector:
    """Do the same in place, for numbers between 2^-1022 and 2^1023."""
    # Adding ones in all bits below the exponent carries into it, unless the number is a power of two already.
    bits = magnitudes.view(np.int64)
    bits += _FRACTION
    bits &= ~_FRACTION
    return magnitudes


def on_grid(t: float) -> float:
    """Round a parameter t to the grid on which x + t v is exact."""
    return round(t / GRID) * GRID


class Bracket(NamedTuple):
    """An interval of parameters, with the values at both ends."""

    low: float
    high: float
    below: float
    above: float

    @property
    def change(self) -> float:
        """The absolute difference of the values at both ends."""
        return abs(self.above - self.below)


def narrowed(at: Callable[[float], float], low: float, high: float, halvings: int = HALVINGS) -> Iterator[Bracket]:
    """Halve an interval repeatedly, and keep the half with the larger change of value. It closes in on a jump.

    Args:
        at: gives one value at a parameter.
        low: one end.
        high: the other end, which may be smaller.
        halvings: how often the interval is halved.

    Yields:
        The given interval, and that after every halving.
    """
    bracket = Bracket(low, high, at(low), at(high))
    yield bracket
    for _ in range(halvings):
        low, high, below, above = bracket
        middle = on_grid(0.5 * (low + high))
        between = at(middle)
        upper = abs(between - below) <= abs(above - between)
        bracket = Bracket(middle, high, between, above) if upper else Bracket(low, middle, below, between)
        yield bracket


def point_along(x: Vector, v: Vector, t: float) -> Vector:
    """Compute x + t v with a single new vector: a second one takes as long as the sum."""
    point = v * t
    point += x
    return point


class Line:
    """Values f(x + t v) / S, where S is a power of two close to |f(x)| for each output.

    An output that is zero at x takes the S of the largest output. Where f raises, or gives another number of outputs,
    all outputs are NaN: the point is outside the domain.
    """

    def __init__(self, f: Function, x: Vector, v: Vector, f0: Vector | None) -> None:
        self.f, self.x, self.v = f, x, v
        self.evaluations = 0
        if f0 is None:
            f0 = np.asarray(f(x), dtype=np.float64)
            self.evaluations += 1
        self.outputs = f0.size
        self._values: dict[float, Vector] = {}
        self.scale = np.ones(self.outputs)
        self.centre = f0
        self._rescale(f0)

    def _rescale(self, f0: Vector) -> None:
        size = np.where(np.isfinite(f0), np.abs(f0), 0.0)
        largest = float(size.max(initial=0.0))
        if largest == 0.0:
            nearby = self.at(on_grid(2.0**-10))
            size = np.where(np.isfinite(nearby), np.abs(nearby), 0.0)
            largest = float(size.max(initial=0.0)) or 1.0
        self.scale = power_of_two_above(np.where(size > 0, size, largest))
        self.centre = f0 / self.scale
        self._values = {t: y / self.scale for t, y in self._values.items()}

    def at(self, t: float) -> Vector:
        """The scaled outputs at the parameter t, evaluated at most once."""
        known = self._values.get(t)
        if known is None:
            self.evaluations += 1
            with np.errstate(all="ignore"):
                try:
                    known = np.asarray(self.f(point_along(self.x, self.v, t)), dtype=np.float64) / self.scale
                except Exception:  # anything that the user's function raises away from x: outside the domain
                    known = np.full(self.outputs, np.nan)
            if known.shape != (self.outputs,):
                known = np.full(self.outputs, np.nan)
            self._values[t] = known
        return known

    def finite(self, t: float) -> bool:
        """Whether every output that is finite at x is finite at t."""
        return bool(np.isfinite(self.at(t)[np.isfinite(self.centre)]).all())

    def variation(self, above: float) -> tuple[npt.NDArray[np.bool_], Vector]:
        """Which outputs differ from f(x) on both sides at evaluated |t| >= above; and their smallest nonzero change."""
        nodes = sorted(t for t in self._values if abs(t) >= above)
        values = np.array([self.centre, *(self._values[t] for t in nodes)])
        with np.errstate(all="ignore"):
            gaps = np.abs(np.diff(np.sort(values, axis=0), axis=0))
            quantum = np.where(gaps > 0, gaps, np.inf).min(axis=0, initial=np.inf)
            sides = [np.array([self._values[t] for t in nodes if (t > 0) == positive]) for positive in (True, False)]
            moves = [(side != self.centre).any(axis=0) if len(side) else np.zeros(self.outputs, bool) for side in sides]
        both: npt.NDArray[np.bool_] = moves[0] & moves[1]
        return both, quantum
