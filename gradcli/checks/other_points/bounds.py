"""Where the entries of an input may lie: within the domain it was drawn from, or anywhere if it was given."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.cases import Argument
from gradcli.checks.other_points.changes import Values
from gradcli.checks.other_points.structure import has_structure
from gradcli.frozen import dataclass
from gradcli.inputs.domains import interval_of, parse_domain
from gradcli.inputs.drawing import ORDERS
from gradcli.numerics.maps.vector_map import VectorMap

_KEPT_AS_DRAWN = (
    "spd", "triangular", "diagonally-dominant", "orthogonal", "simplex", "unit-vectors", "one-hot", "signs", "binary",
    "indices", "permutation", "pointers", "boolean", "key", "typed-key",
)  # fmt: skip
_OF_ONE_SIZE = ("simplex", "unit-vectors")
_DRAWN_FREELY = ("normal", "uniform", "positive", "unit", "open-interval", "unit-ball", "distinct")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where the entries of an input may lie: in an open interval, all `distinct`, or `ordered` as they are.

    What is in `closed`, which are ends or values inside, belongs to it by what documentation says.
    """

    low: float
    high: float
    distinct: bool
    ordered: bool = False
    closed: tuple[float, ...] = ()

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the values lie inside, by their real parts."""
        inside: NDArray[np.bool_] = (values.real > self.low) & (values.real < self.high)
        for end in self.closed:
            inside |= values.real == end
        return inside

    def special(self, values: Values) -> list[float]:
        """The closed ends, and those of the values that lie inside."""
        return [*self.closed, *(v for v in values if self.low < v < self.high and v not in self.closed)]


def all_bounds_of(arguments: Sequence[Argument], active: Sequence[int]) -> dict[int, Bounds]:
    """Where the entries of each active input may go, without inputs whose structure a change of entries would break."""
    return {i: bounds for i in active if (bounds := bounds_of(arguments[i])) is not None and arguments[i].value.size}


def with_closed_ends(
    all_bounds: Mapping[int, Bounds], arguments: Sequence[Argument], closed: Mapping[str, tuple[float, ...]]
) -> dict[int, Bounds]:
    """The bounds with the values that documentation counts among those of an argument, by its name: ends, or zero."""
    found = dict(all_bounds)
    for place, bounds in all_bounds.items():
        ends = tuple(end for end in closed.get(arguments[place].name, ()) if bounds.low <= end <= bounds.high)
        found[place] = replace(bounds, closed=ends) if ends else bounds
    return found


def bounds_of_map(
    map_: VectorMap, arguments: Sequence[Argument], active: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The ends of the interval in which each coordinate of the map's inputs may lie; None if none is bounded.

    Args:
        map_: forward's map, or a derivative of it, whose first blocks are the active inputs.
        arguments: those of forward.
        active: the positions of the inputs that are differentiated.
    """
    limited = {n: b for n, i in enumerate(active) if (b := _interval(arguments[i])) != (-math.inf, math.inf)}
    ordered = {
        n: arguments[i]
        for n, i in enumerate(active)
        if _order_of(arguments[i]) is not None or _is_in_ball(arguments[i])
    }
    if not limited and not ordered:
        return None
    low, high = np.full(map_.domain.size, -math.inf), np.full(map_.domain.size, math.inf)
    for block, ends in limited.items():
        low[map_.domain.slices[block]], high[map_.domain.slices[block]] = ends
    for block, argument in ordered.items():
        below, above = (
            _within_ball(argument.value) if _is_in_ball(argument) else _halfway(argument.value, *_interval(argument))
        )
        low[map_.domain.slices[block]], high[map_.domain.slices[block]] = below.ravel(), above.ravel()
    return low, high


def _halfway(value: NDArray[Any], low: float, high: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """The ends of an interval around each entry of numbers in order, halfway to those beside it along the last axis."""
    if not value.ndim:
        return np.full(1, low), np.full(1, high)
    turned = value[..., 1:] < value[..., :-1]
    middle = (value[..., 1:] + value[..., :-1]) / 2
    edge = np.full((*value.shape[:-1], 1), np.nan)
    before, behind = np.concatenate([edge, middle], -1), np.concatenate([middle, edge], -1)
    down = bool(turned.all()) and turned.size > 0
    below, above = (behind, before) if down else (before, behind)
    return np.where(np.isnan(below), low, below), np.where(np.isnan(above), high, above)


def _is_in_ball(argument: Argument) -> bool:
    return argument.domain == "unit-ball" and argument.value.dtype.kind == "f" and argument.value.ndim > 0


def _within_ball(value: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The ends of an interval around each entry of vectors; changes of all entries within these leave no unit ball."""
    rest = 1 - np.sqrt((value * value).sum(-1, keepdims=True))
    reach = np.broadcast_to(np.maximum(rest, 0) / math.sqrt(value.shape[-1]), value.shape)
    return value - reach, value + reach


def any_given(subject: Subject) -> bool:
    """Whether the user gave the values of an active input, or some only make sense together, as probabilities do.

    The parameters of a module do not count.
    """
    held = {name for name, _ in subject.info.held}
    arguments = [subject.arguments[i] for i in subject.active]
    return any(a.name not in held and (a.domain in _OF_ONE_SIZE or not is_drawn(a)) for a in arguments)


def _interval(argument: Argument) -> tuple[float, float]:
    """The open interval of the domain that a real input was drawn from; infinite for what was given by value."""
    if argument.domain is None or argument.value.dtype.kind == "c":
        return -math.inf, math.inf
    return interval_of(argument.domain)


def _order_of(argument: Argument) -> str | None:
    """The domain of an input whose entries stay in order; None for any other."""
    name = (argument.domain or "").partition("(")[0]
    return name if name in ORDERS and argument.value.dtype.kind == "f" else None


def is_drawn(argument: Argument) -> bool:
    """Whether the values come from a random draw, not from the user."""
    return argument.domain is not None and parse_domain(argument.domain)[0].random


def bounds_of(argument: Argument) -> Bounds | None:
    """Where an input's entries may go; None if it has a structure that a change of entries would break.

    What was drawn stays in its domain. What was given by value may go anywhere, unless it is visibly a symmetric,
    triangular or orthogonal matrix, a mask, or probabilities.
    """
    name = None if argument.domain is None else parse_domain(argument.domain)[0].name
    if name in _DRAWN_FREELY or name in ORDERS:
        low, high = interval_of(str(argument.domain))
        return Bounds(low=low, high=high, distinct=name == "distinct", ordered=name in ORDERS)
    if name in _KEPT_AS_DRAWN or has_structure(argument.value):
        return None
    return Bounds(low=-math.inf, high=math.inf, distinct=False)
