"""Which operation wrote to a tensor that a node had saved for backward."""

from typing import final

from gradcli.tracing.operations import Operation, OperationLog
from gradcli.tracing.reading import Lens


@final
class Overwritten:
    """The writes to the tensors of the operation that made a node; `sequence` is the node's number."""

    def __init__(self, lens: Lens, log: OperationLog, sequence: int) -> None:
        first = next((n for n, o in enumerate(log.operations) if o.last_node >= sequence), len(log.operations))
        self._later = [o for o in log.operations[first + 1 :] if o.memory]
        own = {v for o in log.operations[first : first + 1] for v in (*o.inputs, *o.outputs, *o.inner)}
        self._own, self._before, self._memory = own, dict[int, int](), set[object]()
        for held, numbers in log.histories():
            self._before.update(zip(numbers[1:], numbers, strict=False))
            if held is not None and not own.isdisjoint(numbers):
                self._memory.add(lens.storage(held)[0])

    def first(self, version: int, shape: tuple[int, ...]) -> Operation | None:
        """The first write after the node was made; None if it cannot be told.

        A write to the tensor itself is known by its values, one through a view by the memory. Only a node that saved
        something else, as a custom Function may, is left to the version and shape that the error states, which other
        tensors may have as well: then the write counts if it is the only one.

        Args:
            version: of the tensor when it was saved, as the error states it.
            shape: of the tensor.
        """
        itself = [o for o in self._later if any(self._before.get(n) in self._own for n in o.outputs)]
        shared = [o for o in self._later if not self._memory.isdisjoint(o.memory)]
        next_version = [o for o in (*itself, *shared) if o.version == version + 1]
        if found := [*next_version, *itself]:
            return found[0]
        alike = [o for o in self._later if o.version == version + 1 and o.shape == shape]
        return alike[0] if len(alike) == 1 else None
