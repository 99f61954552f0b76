"""What the whole numbers of an argument stand for: indices, permutations, lengths, labels, pointers to rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.inputs.hints.argument_names import (
    BLANK_NAMES,
    LENGTH_NAMES,
    PAIR_NAMES,
    PERMUTATION_NAMES,
    POINTER_NAMES,
)
from gradcli.inputs.search.candidates import DIFFERENT, Skeleton, Slot

_Shape = tuple[int, ...]


def domain_of_whole_numbers(
    slots: Sequence[Slot], skeleton: Skeleton, shapes: Mapping[int, _Shape], high: int, index: int
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """The domain of the whole numbers in slot `index`, where indices are below `high`."""
    if _are_pointers(slots[index], shapes[index]):
        return "pointers", (("high", _pointed_at(slots, skeleton, shapes, index)),)
    if shapes[index] and _are_different(slots[index]):
        has_others = slots[index].said == DIFFERENT and high > shapes[index][-1]
        return "permutation", (("high", high),) * has_others
    if len(shapes[index]) == 2 and shapes[index][-1] == 2 <= high and PAIR_NAMES.fullmatch(_word(slots[index])):
        return "permutation", (("high", high),)
    if slots[index].said == "binary":
        return "indices", (("high", 2),)
    if (documented := _documented(slots, skeleton, shapes, index)) is not None:
        return "indices", tuple((key, end) for key, end in zip(("low", "high"), documented, strict=True) if end)
    low = int(LENGTH_NAMES.fullmatch(_word(slots[index])) is not None or _first_is_blank(slots, skeleton))
    return "indices", (*((("low", low),) * low), ("high", high + low))


def _documented(
    slots: Sequence[Slot], skeleton: Skeleton, shapes: Mapping[int, _Shape], index: int
) -> tuple[int, int] | None:
    """The ends of the range that documentation gives, by the size of an axis or a number; None if it is empty."""
    within = slots[index].within
    owner = next((n for n, slot in enumerate(slots) if within is not None and slot.name == within.owner), None)
    if within is None or owner is None:
        return None
    shape, value = shapes.get(owner, ()), skeleton[owner].value
    if within.axis is not None:
        value = shape[within.axis] if within.axis < len(shape) else None
    if type(value) is not int or value + within.more <= within.low + 1:
        return None
    return within.low, value + within.more


def _word(slot: Slot) -> str:
    return slot.name.lower().strip("_")


def _are_different(slot: Slot) -> bool:
    return slot.said in ("permutation", DIFFERENT) or PERMUTATION_NAMES.fullmatch(_word(slot)) is not None


def _are_pointers(slot: Slot, shape: _Shape) -> bool:
    return len(shape) == 1 and shape[0] > 1 and POINTER_NAMES.fullmatch(_word(slot)) is not None


def _pointed_at(slots: Sequence[Slot], skeleton: Skeleton, shapes: Mapping[int, _Shape], index: int) -> int:
    """How many entries the pointers share out: as many as there are indices beside them, or rows of the first tensor.

    In the CSR format the columns of all entries lie one after another, as their values do, and a pointer tells where
    each row begins.
    """
    beside = [slot for slot, shape in shapes.items() if shape and not _are_pointers(slots[slot], shape)]
    beside.sort(key=lambda slot: skeleton[slot].kind != "index")
    return shapes[beside[0]][0] if beside else shapes[index][0]


def _first_is_blank(slots: Sequence[Slot], skeleton: Skeleton) -> bool:
    """Whether class 0 is the blank of a CTC loss, which no label may be."""
    values = [
        slot.parameter.default if choice.kind == "omitted" else choice.value
        for slot, choice in zip(slots, skeleton, strict=True)
        if BLANK_NAMES.fullmatch(slot.name.lower())
    ]
    return any(type(value) is int and value == 0 for value in values)
