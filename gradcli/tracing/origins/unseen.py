"""Writes to the result of an operation that autograd does not record: through a tensor that shares its memory alone."""

from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.traces import UnseenWrite
from gradcli.tracing.operations import OperationLog
from gradcli.tracing.reading import Lens


def unseen_writes(lens: Lens, log: OperationLog, results: Sequence[tuple[Any, str]]) -> Iterator[UnseenWrite]:
    """The first such write to each result of an operation, given with its name, before a later tracked operation.

    Where recording was off, as under no_grad or in a Function's own code, the program says that autograd is not to
    record the write.
    """
    writes = [(n, o) for n, o in enumerate(log.operations) if o.memory and o.mode is None and not any(o.tracked_out)]
    last = max((n for n, o in enumerate(log.operations) if any(o.tracked_out)), default=-1)
    for tensor, name in results if writes else ():
        own, (memory, size) = set(log.values(tensor)), lens.storage(tensor)
        made = next((n for n, o in enumerate(log.operations) if not own.isdisjoint(o.outputs)), last)
        for number, write in writes:
            through_it = own.isdisjoint(write.outputs) and memory in write.memory
            if size and made < number < last and through_it:
                yield UnseenWrite(name=name, made_at=log.operations[made].site, by=write.name, at=write.site)
                break
