"""Inputs other than those given: larger, smaller, special and equal values, within each input's domain."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument
from gradcli.checks.other_points.bounds import Bounds
from gradcli.checks.other_points.changes import Change, Values
from gradcli.inputs.drawing import in_order

Arguments = tuple[Argument, ...]
FEW = 7
"""With fewer entries, half of them cannot hold all four of the large values."""
_HALVED = 12
"""In an input with fewer entries half of them change at a time, in a larger one a third."""
_MANY = 15
"""From so many entries in all inputs on, one call tries several changes, each on a part of the entries."""
_SPREAD, _MOST_CALLS = 16, 3
"""Inputs of fewer entries are scaled in several calls, at most so many. With one call no entry lies in a window such as
(4, 8) or (-8, -4) in 70 % of the draws of 4 entries and 10 % of those of 12; with three and two calls, 15 % and 2 %."""


_ORDERS = (Change.ASCENDING, Change.DESCENDING)
TOGETHER = (Change.SCALED, Change.SPECIAL, Change.SMALL)
"""Changes that seldom make a forward overflow, so one call may try them together."""


def combined_point(
    arguments: Sequence[Argument], all_bounds: Mapping[int, Bounds], generator: np.random.Generator
) -> Arguments | None:
    """The arguments with a third of the entries changed in each way of `TOGETHER`; None where there are few."""
    sizes = [arguments[i].value.size for i in all_bounds]
    if sum(sizes) < _MANY or min(sizes) < len(TOGETHER):
        return None

    def moved(entries: NDArray[Any], bounds: Bounds) -> NDArray[Any]:
        found = entries.copy()
        parts = np.array_split(generator.permutation(entries.size), len(TOGETHER))
        for part, change in zip(parts, TOGETHER, strict=True):
            found[part] = _moved(entries[part], bounds, change, change.values[0], generator)
        return found

    return _changed(arguments, all_bounds, moved)


def other_points(
    arguments: Sequence[Argument],
    all_bounds: Mapping[int, Bounds],
    generator: np.random.Generator,
    left_out: Collection[Change] = (),
    between: Values = (),
    around: Values = (),
) -> Iterator[Iterator[Arguments]]:
    """The arguments changed in each way; for each, smaller changes to try if forward rejects the first.

    Args:
        arguments: as they were given or inferred.
        all_bounds: where the entries of each input that may change may lie, by position.
        generator: decides which entry gets which value.
        left_out: changes that were tried already.
        between: numbers between the constants of the source.
        around: numbers around constants that the source subtracts or compares with; tried in all inputs, or in one.
    """
    if not all_bounds:
        return
    few = max(arguments[i].value.size for i in all_bounds) < FEW
    unfit = {Change.LARGE} if few else {Change.THIRTIES, Change.HUNDREDS}
    scaled = _scaled_calls(min(arguments[i].value.size for i in all_bounds), is_tried=Change.SCALED in left_out)
    others = {Change.SCALED, Change.BETWEEN, Change.ALONE, *unfit, *left_out}
    once = [(change, (0, 1)) for change in Change if change not in others]
    for change, part in [*scaled[:1], *once, *scaled[1:]]:
        yield (
            _changed(
                arguments,
                all_bounds,
                partial(_moved, change=change, values=values, generator=generator, part=part),
            )
            for values in change.values
        )
    for values in _in_turn(between, max(arguments[i].value.size for i in all_bounds)):
        moved = partial(_moved, change=Change.BETWEEN, values=values, generator=generator)
        yield iter((_changed(arguments, all_bounds, moved),))
    for values in _in_turn(around, max(arguments[i].value.size for i in all_bounds)):
        moved = partial(_moved, change=Change.BETWEEN, values=values, generator=generator)
        each = ({place: bounds} for place, bounds in all_bounds.items())
        yield (
            _changed(arguments, chosen, moved) for chosen in chain((all_bounds,), each if len(all_bounds) > 1 else ())
        )
    if Change.ALONE not in left_out:
        yield from _one_alone(arguments, all_bounds)


def zero_points(arguments: Sequence[Argument], all_bounds: Mapping[int, Bounds]) -> Iterator[Iterator[Arguments]]:
    """The arguments with zeros throughout one input, the smallest inputs first; one row of zeros if that is rejected.

    A norm or a sum is zero there, which random numbers and single zeros never make so.
    """
    free = [i for i, b in all_bounds.items() if not (b.distinct or b.ordered) and b.low < 0 < b.high]
    for place in sorted(free, key=lambda i: arguments[i].value.size)[:_MOST_CALLS]:
        size = arguments[place].value.size
        if size > 1:
            yield (
                _changed(arguments, {place: all_bounds[place]}, partial(_with_zeros, count=count))
                for count in (size, (arguments[place].shape or (1,))[-1])
            )


def documented_points(arguments: Sequence[Argument], all_bounds: Mapping[int, Bounds]) -> Iterator[Iterator[Arguments]]:
    """The arguments with values that documentation allows inside an interval: in one entry, then in every other.

    A product of all entries has a derivative at one zero, and none at two. The ends of an interval are left out: only
    autodiff of forward's body could tell a guard there, as in log(max(x, 1e-6)), from a mistake.
    """
    inside = {i: [v for v in b.closed if b.low < v < b.high] for i, b in all_bounds.items() if not b.distinct}
    for place in [i for i, values in inside.items() if values][:_MOST_CALLS]:
        for step in dict.fromkeys((arguments[place].value.size, 2)):
            moved = partial(_with_values, values=inside[place], step=step)
            yield iter((_changed(arguments, {place: all_bounds[place]}, moved),))


def _with_values(entries: NDArray[Any], _bounds: Bounds, values: Sequence[float], step: int) -> NDArray[Any]:
    found = entries.copy()
    chosen = found[step // 2 :: step]
    chosen[:] = _repeated(values, chosen.size)
    return found


def _with_zeros(entries: NDArray[Any], _bounds: Bounds, count: int) -> NDArray[Any]:
    return np.where(np.arange(entries.size) < count, np.zeros((), entries.dtype), entries)


def _one_alone(arguments: Sequence[Argument], all_bounds: Mapping[int, Bounds]) -> Iterator[Iterator[Arguments]]:
    """The arguments with large entries in one input, the smallest inputs first: of alternating signs, then of one sign.

    A branch may be taken where a limit is larger, or more negative, than the norm of all entries of another input, or
    where each entry is: inside a box, all half extents are positive and larger than the coordinates. A single number
    gets one sign after the other.
    """
    free = [i for i, bounds in all_bounds.items() if not (bounds.distinct or bounds.ordered)]
    places = sorted(free, key=lambda i: arguments[i].value.size) if len(all_bounds) > 1 else []
    for place in places[:_MOST_CALLS]:
        alternating = () if arguments[place].value.size == 1 else (slice(None),)
        for chosen in (*alternating, slice(1), slice(1, None)):
            yield (
                _changed(arguments, {place: all_bounds[place]}, partial(_large, values=values[chosen]))
                for values in Change.ALONE.values
            )


def _large(entries: NDArray[Any], bounds: Bounds, values: Values) -> NDArray[Any]:
    """The values that fit into the bounds, in turn and up to a quarter larger, so that no two entries are equal.

    The entries themselves where none fits. They do not grow evenly: a matrix of evenly spaced numbers is singular.
    """
    fitting = [value for value in values if bounds.low < value < bounds.high]
    unequal = np.random.default_rng(entries.size).uniform(1.0, 1.25, entries.size)
    return np.asarray(_repeated(fitting, entries.size) * unequal * _directions(entries)) if fitting else entries


def _in_turn(numbers: Values, size: int) -> Iterator[Values]:
    """The numbers in parts for several calls, so that an input of `size` entries gets all of them within a few."""
    calls = min(_MOST_CALLS, math.ceil(len(numbers) / size))
    for call in range(calls):
        yield numbers[call::calls]


def _scaled_calls(least: int, *, is_tried: bool) -> list[tuple[Change, tuple[int, int]]]:
    """The calls that scale inputs of at least `least` entries; `is_tried`: a third of the entries is scaled already."""
    enough = is_tried and least >= len(TOGETHER) * _SPREAD
    calls = 0 if enough else min(_MOST_CALLS, math.ceil(_SPREAD / least))
    return [(Change.SCALED, (call, calls)) for call in range(calls)]


def _changed(
    arguments: Sequence[Argument],
    all_bounds: Mapping[int, Bounds],
    moved: Callable[[NDArray[Any], Bounds], NDArray[Any]],
) -> Arguments:
    changed = list(arguments)
    for position, bounds in all_bounds.items():
        entries = arguments[position].value.reshape(-1)
        found = moved(entries, bounds)
        kept = np.where(bounds.holds(found) & np.isfinite(found), found, entries)
        value = kept.reshape(arguments[position].value.shape).astype(entries.dtype)
        value = in_order(value, arguments[position].domain)
        changed[position] = replace(arguments[position], value=value)
    return tuple(changed)


def _moved(
    entries: NDArray[Any],
    bounds: Bounds,
    change: Change,
    values: Values,
    generator: np.random.Generator,
    part: tuple[int, int] = (0, 1),
) -> NDArray[Any]:
    """The entries of one input, changed; the caller restores what falls outside its bounds.

    `part` is the number of this call and how many there are.
    """
    if change in _ORDERS and not bounds.ordered:
        ordered = np.sort(entries) if entries.dtype.kind == "f" else entries
        return np.asarray(ordered if change is Change.ASCENDING else ordered[::-1])
    size = entries.size
    if change is Change.SCALED:
        signed = min(values) < 0 and bounds.low < 0 < bounds.high
        return np.asarray(entries * _spreading(entries, max(values), generator, part, signed=signed))
    if change is Change.SMALL and not bounds.ordered:
        return _close_to_the_ends(entries, bounds, np.sign(values), generator)
    fitting = [v for v in values if bounds.low < v < bounds.high]
    fitting = bounds.special(values) if change is Change.SPECIAL else fitting
    if bounds.distinct or bounds.ordered or not fitting:
        return entries
    order = generator.permutation(size)
    if change is Change.BETWEEN:
        return np.asarray(_repeated(fitting, size)[order] * _directions(entries))
    count = math.ceil(size / 2) if size < _HALVED else math.ceil(size / 3)
    chosen, others = order[:count], order[count:]
    moved = entries.copy()
    if change is Change.SPECIAL and others.size > 1:
        equal = others[: max(1, size // 4)]
        moved[equal] = entries[others[-1]]
    moved[chosen] = _repeated(fitting, count) * _directions(entries[chosen])
    return moved


def _spreading(
    entries: NDArray[Any], largest: float, generator: np.random.Generator, part: tuple[int, int], *, signed: bool
) -> NDArray[np.float64]:
    """A factor for each entry, after which a third of the sizes are below the median as it was and the others above.

    Backward may be wrong in a range of sizes alone, such as beyond a threshold of 4. Random factors leave such a range
    out more often than not if the input has few entries; here no range is left out: the new sizes are spread evenly by
    their logarithms, in the order of the old ones (so that no factor is extreme), with alternating signs if `signed`.
    """
    sizes = np.abs(entries)
    filled = np.sort(sizes[sizes > 0])
    if not filled.size:
        return np.ones(entries.shape)
    count, (call, calls) = entries.size, part
    order = np.argsort(sizes, kind="stable")
    quantiles = (np.arange(count) + (call + generator.uniform(size=count)) / calls) / count
    median = (filled[(filled.size - 1) // 2] + filled[filled.size // 2]) / 2  # np.median imports numpy.ma
    wanted = median * 2.0 ** np.interp(quantiles, [0, 1 / 3, 1], [-3, 0, math.log2(largest)])
    factors = np.ones(count)
    factors[order] = np.clip(wanted / np.where(sizes > 0, sizes, np.inf)[order], 1 / largest, largest)
    if signed:
        turned = np.where((np.arange(count) + call) % 2 == 0, 1.0, -1.0)
        factors[order] *= turned * np.where(entries.real < 0, -1.0, 1.0)[order]
    return factors


def _close_to_the_ends(
    entries: NDArray[Any], bounds: Bounds, signs: NDArray[np.float64], generator: np.random.Generator
) -> NDArray[Any]:
    """Entries about 1e-3 away from zero or from an end of their interval, each by a different amount."""
    size = entries.size
    steps = 1e-3 * generator.uniform(0.5, 2.0, size) * min(1.0, bounds.high - bounds.low)
    anchors = [a for a in (0.0, bounds.low, bounds.high) if bounds.low <= a <= bounds.high and math.isfinite(a)]
    near = generator.permutation(_repeated(anchors or [0.0], size))
    inward = np.where(near <= bounds.low, 1.0, np.where(near >= bounds.high, -1.0, _repeated(signs, size)))
    return np.asarray(near + inward * steps * _directions(entries))


def _repeated(values: Sequence[float] | NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The values repeated cyclically; NumPy's own function is slow for a few."""
    return np.asarray(values, dtype=np.float64)[np.arange(count) % len(values)]


def _directions(entries: NDArray[Any]) -> NDArray[Any]:
    """The phases of complex entries, 1 for real ones and for zero."""
    if entries.dtype.kind != "c":
        return np.ones(entries.shape)
    sizes = np.abs(entries)
    return np.asarray(np.where(sizes > 0, entries / np.where(sizes > 0, sizes, 1.0), 1.0))
