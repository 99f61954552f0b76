"""States in which axes in corresponding places are equal."""

from collections.abc import Collection, Mapping, Sequence

from gradcli.inputs.search.named_axes import State

Axes = Sequence[tuple[int, int]]
"""For each axis the number of its tensor's argument, and its place in the tensor."""


def equal_as_in_broadcasting(state: State, axes: Axes, ranks: Mapping[int, int]) -> State:
    """The state with the axes equal that are aligned by broadcasting."""
    first: dict[int, int] = {}
    for index, (slot, axis) in enumerate(axes):
        same = first.setdefault(axis - ranks[slot], index)
        state = state.with_equal(state.partition[same], state.partition[index])
    return state


def equal_in_groups(state: State, axes: Axes, ranks: Mapping[int, int], groups: Sequence[Collection[int]]) -> State:
    """The state with the axes equal that stand in one place in tensors of one rank and one group."""
    first: dict[tuple[int, int, int], int] = {}
    for index, (slot, axis) in enumerate(axes):
        group = next((number for number, each in enumerate(groups) if slot in each), None)
        if group is not None:
            same = first.setdefault((group, ranks[slot], axis), index)
            state = state.with_equal(state.partition[same], state.partition[index])
    return state
