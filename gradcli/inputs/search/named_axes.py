"""Which axes are equal, and which ones documentation or an einsum gives one name."""

import heapq
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import final

from gradcli.frozen import dataclass
from gradcli.inputs.hints.documented_order import Order
from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.prose.formulas import is_formula, names_in, size_of
from gradcli.inputs.search.candidates import Skeleton, Slot

Place = tuple[int, int]
"""A slot, and the number of one of its axes."""
SIZES = (3, 4, 5, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
OTHER_NAMES = 1.0
"""Added for two equal axes that have different names: other sizes are tried before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Which axes are equal (`partition`, one representative for each), and sizes that are settled."""

    partition: tuple[int, ...]
    pinned: tuple[tuple[int, int], ...] = ()
    descending: bool = False

    def merged(self, one: int, other: int) -> "State":
        """The axes of `one` and `other` made equal; a settled size wins over a free one."""
        settled = [axis for axis in (one, other) if axis in dict(self.pinned)]
        kept = settled[0] if settled else min(one, other)
        gone = other if kept == one else one
        return State(
            partition=tuple(kept if each == gone else each for each in self.partition),
            pinned=tuple((axis, size) for axis, size in self.pinned if axis != gone),
            descending=self.descending,
        )

    def allows_equal(self, one: int, other: int) -> bool:
        """Whether the axes of `one` and `other` are not one, and no two different sizes are settled for them."""
        pinned = dict(self.pinned)
        return one != other and not (one in pinned and other in pinned and pinned[one] != pinned[other])

    def with_equal(self, one: int, other: int) -> "State":
        """The same with the axes of `one` and `other` equal, unless two different sizes are settled for them."""
        return self.merged(one, other) if self.allows_equal(one, other) else self

    def with_size(self, axis: int, size: int) -> "State":
        """The same with the size of `axis` settled."""
        pinned = dict(self.pinned)
        if pinned.get(axis) == size:
            return self
        pinned[axis] = size
        return State(partition=self.partition, pinned=tuple(sorted(pinned.items())), descending=self.descending)


Lazy = Callable[[], State]
"""Most states that are queued are never tried: they are made when their turn comes."""
Queued = tuple[float, int, int, Lazy]
"""What a state costs, its place among equal costs, how many changes led to it, and the state."""


def next_new(queue: list[Queued], seen: Collection[State]) -> tuple[int, State | None]:
    """The depth and state of the cheapest in a heap that was not tried; None where there is none."""
    while queue:
        _, _, depth, make = heapq.heappop(queue)
        if (state := make()) not in seen:
            return depth, state
    return 0, None


def distance(ranks: Mapping[int, int], one: Place, other: Place) -> float:
    """How unlikely it is that two axes are equal, from where they are in tensors of these ranks."""
    if one[0] == other[0]:
        return 0.9
    if ranks[one[0]] - one[1] == ranks[other[0]] - other[1]:
        return 0.5
    return 0.6 if one[1] == other[1] else 0.8


@final
class NamedAxes:
    """The names of the axes of one skeleton."""

    def __init__(
        self, axes: Mapping[str, tuple[Axis, ...]], slots: Sequence[Slot], skeleton: Skeleton, places: Sequence[Place],
        square: Collection[str] = (), order: Order = (),
    ) -> None:  # fmt: skip
        """The names that `axes` gives for arguments of as many axes; `places` are all axes of the skeleton.

        Arguments in `square` are square matrices. In each pair of `order` the first name has the larger size.
        """
        self._order = order
        self._places = tuple(places)
        self._names: dict[Place, Axis] = {}
        self._square = [
            (index - 1, index)
            for index, (slot, axis) in enumerate(places)
            if slots[slot].name in square and skeleton[slot].kind == "float" and 1 <= axis == skeleton[slot].rank - 1
        ]
        for slot, axis in places:
            named = _name_of(axes.get(slots[slot].name, ()), axis, skeleton[slot].rank)
            if named is not None:
                self._names[slot, axis] = named
        pairs = list(zip(slots, skeleton, strict=True))
        values = {slot.name: slot.parameter.default for slot, choice in pairs if choice.kind == "omitted"}
        values |= {slot.name: choice.value for slot, choice in pairs if choice.kind != "omitted"}
        self._numbers = {name: value for name, value in values.items() if type(value) is int and value > 0}

    def cost_of_equal(self, one: Sequence[Place], other: Sequence[Place]) -> float:
        """What is added for making two sets of axes equal that are named, but not alike."""
        named = [{self._names[place] for place in places if place in self._names} for places in (one, other)]
        return OTHER_NAMES if all(named) and not named[0] & named[1] else 0.0

    def applied(self, state: State, sizes_of: Callable[[State], Mapping[int, int]]) -> State:
        """`state` with those axes equal that have one name.

        Constant sizes are settled, also those that a number given as an argument of that name states; so are the sizes
        in sums and products of names, and what these come to.

        Args:
            state: to start from.
            sizes_of: the sizes that a state stands for.
        """
        first: dict[Axis, int] = {}
        for index, place in enumerate(self._places):
            if place in self._names:
                same = first.setdefault(self._names[place], index)
                state = state.with_equal(state.partition[same], state.partition[index])
        for one, other in self._square:
            state = state.with_equal(state.partition[one], state.partition[other])
        for axis, index in first.items():
            size = axis if isinstance(axis, int) else self._numbers.get(axis)
            if size is not None and state.partition[index] not in dict(state.pinned):
                state = state.with_size(state.partition[index], size)
        others: dict[str, int] = {}
        for axis, index in first.items():
            if isinstance(axis, str) and is_formula(axis):
                state = self._composed(state, axis, index, first, sizes_of(state), others)
        for larger, smaller in self._order:
            if larger in first and smaller in first:
                state = _in_order(state, state.partition[first[larger]], state.partition[first[smaller]], sizes_of)
            elif larger in first:
                state = self._long_enough(state, larger, smaller, first, sizes_of(state))
        return state

    def _long_enough(
        self, state: State, axis: str, least: str, first: Mapping[Axis, int], sizes: Mapping[int, int]
    ) -> State:
        """`state` with the size of an axis at least the value of a formula, whose free sizes become small."""
        places = {name: state.partition[first[name]] for name in names_in(least) if name in first}
        pinned, place = dict(state.pinned), state.partition[first[axis]]
        if place in pinned or (size_of(least, self._known(places, sizes)) or 0) <= sizes[place]:
            return state
        for free in [each for each in places.values() if each not in pinned]:
            smaller = next((size for size in sorted(SIZES) if size not in {*pinned.values(), *sizes.values()}), None)
            if smaller is not None and smaller < sizes[free]:
                sizes = {**sizes, free: smaller}
            state = state.with_size(free, sizes[free])
        value = size_of(least, self._known(places, sizes)) or 0
        taken = {*dict(state.pinned).values(), *(sizes[each] for each in places.values())}
        return state.with_size(place, next((size for size in SIZES if size >= value and size not in taken), value))

    def _known(self, places: Mapping[str, int], sizes: Mapping[int, int]) -> dict[str, int]:
        return {**self._numbers, **{name: sizes[place] for name, place in places.items()}}

    def _composed(
        self, state: State, axis: str, index: int, first: Mapping[Axis, int], sizes: Mapping[int, int],
        others: dict[str, int],
    ) -> State:  # fmt: skip
        """`state` with the size of an axis that is a sum or product of named sizes; `others` are those of no axis."""
        places = {name: state.partition[first[name]] for name in names_in(axis) if name in first}
        pinned = dict(state.pinned)
        known = {**others, **self._numbers, **{name: sizes[place] for name, place in places.items()}}
        for name in names_in(axis):
            if name not in known:
                apart = {*others.values(), *(self._numbers[each] for each in names_in(axis) if each in self._numbers)}
                candidates = [size for size in sorted(SIZES) if size not in apart]
                fresh = (size for size in candidates if size_of(axis, {**known, name: size}) not in pinned.values())
                known[name] = others[name] = next(fresh, candidates[0])
        size = size_of(axis, known)
        if state.partition[index] in pinned:
            return state
        free = [name for name, place in places.items() if place not in pinned and name not in self._numbers]
        if free and (size in (None, 1) or not _is_exact(axis, known)):
            taken = {each for place, each in sizes.items() if place not in (places[free[0]], state.partition[index])}
            for other in (each for each in sorted(SIZES) if each not in taken):
                larger = size_of(axis, {**known, free[0]: other})
                if larger is not None and larger > 1 and _is_exact(axis, {**known, free[0]: other}):
                    sizes, size = {**sizes, places[free[0]]: other}, larger
                    break
        if size is None:
            return state
        for place in places.values():
            state = state.with_size(place, sizes[place])
        return state.with_size(state.partition[index], size)


def _name_of(axes: Sequence[Axis], axis: int, rank: int) -> Axis | None:
    """The name of an axis of a tensor of some rank; None where it is among others, for which `...` stands."""
    if len(axes) == rank and axes[-1] != "...":
        return axes[axis]
    if "..." not in axes or len(axes) - 1 > rank:
        return None
    rest = axes.index("...")
    if axis < rest:
        return axes[axis]
    return axes[axis - rank] if rank - axis < len(axes) - rest else None


def _in_order(state: State, larger: int, smaller: int, sizes_of: Callable[[State], Mapping[int, int]]) -> State:
    """`state` with the sizes of two axes exchanged where the first is not the larger one, unless one is settled."""
    sizes = sizes_of(state)
    if sizes[larger] >= sizes[smaller] or not {larger, smaller}.isdisjoint(dict(state.pinned)):
        return state
    return state.with_size(larger, sizes[smaller]).with_size(smaller, sizes[larger])


def _is_exact(axis: str, sizes: Mapping[str, int]) -> bool:
    """Whether an axis that is a quotient, such as `D // 2`, has no remainder; others such as `L // 2 + 1` may."""
    match = re.fullmatch(r"(\w+|\([^()]*\))\s*//\s*(\w+|\([^()]*\))", axis)
    size, divisor = (size_of(match[1], sizes), size_of(match[2], sizes)) if match is not None else (None, None)
    return size is None or divisor is None or size % divisor == 0
