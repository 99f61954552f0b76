"""Where values came from: how a leaf's value leads to a result, and at which operation its gradient was lost."""

from collections.abc import Iterable, Sequence
from typing import Any, final

from gradcli.frozen import dataclass
from gradcli.tracing.operations import DATA_SET, ESCAPES, Operation, OperationLog

_ATTRIBUTES = ("data", "T", "mT", "H", "mH", "real", "imag")
_SIGNS = {"gt": "`>`", "ge": "`>=`", "lt": "`<`", "le": "`<=`", "eq": "`==`", "ne": "`!=`"}
_DETACHING = frozenset({"detach", "detach_", DATA_SET, *ESCAPES})


@final
@dataclass(frozen=True, slots=True)
class Loss:
    """The operation at which the gradient of a leaf was lost; `certain` where the result is computed from what it gave.

    It is uncertain where Python or NumPy computed with numbers in between.
    """

    operation: Operation
    certain: bool


@final
class Provenance:
    """The operations of a trace as a graph of values."""

    def __init__(self, log: OperationLog, roots: Iterable[Any]) -> None:
        self.log = log
        self.operations = log.operations
        self.roots = [log.value(root) for root in roots]
        self._proven, self._last = self._behind(self.roots, len(self.operations))
        escaped = [
            value
            for number, operation in enumerate(self.operations)
            if number < self._last and operation.name in ESCAPES
            for value in operation.inputs
        ]
        self._possible = self._behind([*self.roots, *escaped], self._last)[0]

    def _behind(self, roots: Iterable[int], end: int) -> tuple[set[int], int]:
        """The values that the roots were computed from by operations before `end`, and the end of those operations."""
        values, last = set(roots), 0
        for number in range(min(end, len(self.operations)) - 1, -1, -1):
            operation = self.operations[number]
            if any(value in values for value in operation.outputs):
                values.update(operation.inputs)
                last = max(last, number + 1)
        return values, last

    def losses(self, leaves: Sequence[Any]) -> list[Loss | None]:
        """For each leaf the first operation on the way to the roots that no gradient passes, None where none is."""
        certain = self._first_losses(leaves, self._proven)
        missing = [leaf for leaf, found in zip(leaves, certain, strict=True) if found is None]
        possible = dict(zip(map(id, missing), self._first_losses(missing, self._possible), strict=True))
        return [
            Loss(found, True)
            if found is not None
            else (None if (other := possible[id(leaf)]) is None else Loss(other, False))
            for leaf, found in zip(leaves, certain, strict=True)
        ]

    def _first_losses(self, leaves: Sequence[Any], wanted: set[int]) -> list[Operation | None]:
        """One pass over all operations; which leaves a value comes from is a bit for each leaf."""
        bits: dict[int, int] = {}
        for place, leaf in enumerate(leaves):
            first = self.log.first_value(leaf)
            if first is not None:
                bits[first] = bits.get(first, 0) | 1 << place
        found: dict[int, Operation] = {}
        lost = 0
        for operation in self.operations:
            flags = 0
            followed = 0
            for value, tracked in zip(operation.inputs, operation.tracked, strict=True):
                flags |= bits.get(value, 0)
                followed |= bits.get(value, 0) if tracked else 0
            if not flags:
                continue
            for value in operation.outputs:
                bits[value] = flags
            leading = [place for place, value in enumerate(operation.outputs) if value in wanted]
            ends = not (follows_any(operation, leading) if leading else any(operation.tracked_out))
            leads = bool(leading) or (operation.name in ESCAPES and any(v in wanted for v in operation.inputs))
            new = followed & ~lost if ends and leads else 0
            while new:
                place = (new & -new).bit_length() - 1
                found[place] = operation
                lost |= 1 << place
                new &= new - 1
        return [found.get(place) for place in range(len(leaves))]

    def uses(self, leaf: Any) -> list[Operation]:
        """The operations that used a leaf itself."""
        first = self.log.first_value(leaf)
        return [] if first is None else [operation for operation in self.operations if first in operation.inputs]


def follows_any(operation: Operation, outputs: Sequence[int]) -> bool:
    """Whether gradients follow any of these outputs: of a sort they follow the values, and not the indices."""
    return any(operation.tracked_out[place : place + 1] == (True,) for place in outputs)


def how_lost(operation: Operation) -> str:
    """What was called, as reports name it."""
    name = operation.name
    if by_mode(operation) and operation.mode is not None:
        return operation.mode[0]
    if operation.function is not None:
        return f"{name}.apply()"
    if name in _ATTRIBUTES:
        return f".{name}"
    if name == DATA_SET or name in _SIGNS:
        return _SIGNS.get(name, name)
    if name == "__array__":
        return "numpy()"
    name = name.strip("_") if name in ESCAPES else name
    return f"{name}({operation.dtype})" if name in ("to", "type") else f"{name}()"


def by_mode(operation: Operation) -> bool:
    """Whether gradients were lost because recording was off, not by what the operation is."""
    carries = operation.dtype.startswith(("float", "bfloat", "complex"))
    return operation.mode is not None and carries and operation.name not in _DETACHING
