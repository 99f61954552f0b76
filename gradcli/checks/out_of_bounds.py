"""Accesses of kernels outside of their tensors: whether a result depends on what lies there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.backends.tensor.call_records import CallResult
from gradcli.backends.torch.interpreter import contained_kernels, kernel_memory
from gradcli.cases import Argument
from gradcli.checks.base import Check, Situation
from gradcli.checks.batch.resizing import Batch
from gradcli.checks.seeding import signed_cotangents
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

if TYPE_CHECKING:
    from gradcli.backends.torch.kernel_memory import Found, KernelMemory

_FILLINGS = (977.0, -977.0)
"""What else may lie outside, beside zeros: large numbers of either sign, so that no maximum or ReLU hides both."""


def outside_memory(check: Check, situation: Situation) -> Iterator[Evidence]:
    """A failure where results at the inputs depend on memory outside of a kernel's tensors, a note where none does."""
    memory = kernel_memory()
    if memory is None:
        return
    subject = situation.subject
    with memory.filled_with(0.0) as found:
        result = subject.call_at(subject.arguments, signed_cotangents)
    if not found:
        return
    sentence = "; ".join(dict.fromkeys(map(str, found.values())))
    depends = _dependence(memory, subject, subject.arguments, result)
    if depends is None:
        yield check.passed(
            f"{sentence}; this is reported only as a note, because no result depends on what is read there, but on a "
            "GPU such a read can crash the program (illegal memory access): mask it"
        )
        return
    kind, what = depends
    yield _failed(check, kind, f"{what} on memory outside of the kernel's tensors: {sentence}", found)


def _dependence(
    memory: "KernelMemory", subject: Subject, arguments: Sequence[Argument], result: CallResult
) -> tuple[FindingKind, str] | None:
    """Whether outputs or gradients change with what lies outside of the tensors; None where none does."""
    for filling in _FILLINGS:
        try:
            with memory.filled_with(filling, dropping=True):
                other = subject.call_at(arguments, signed_cotangents)
        except UserCodeError:
            return FindingKind.NONDETERMINISTIC_FORWARD, "a result depends"
        if not _are_same(result.outputs, other.outputs):
            return FindingKind.NONDETERMINISTIC_FORWARD, "forward's result depends"
        if not _are_same(result.gradients or (), other.gradients or ()):
            return FindingKind.NONDETERMINISTIC_BACKWARD, "a gradient depends"
    return None


def _are_same(one: Sequence[NDArray[Any] | None], other: Sequence[NDArray[Any] | None]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(a is b or (a is not None and b is not None and np.array_equal(a, b, equal_nan=True)) for a, b in pairs)


def _failed(check: Check, kind: FindingKind, message: str, found: "Found") -> Evidence:
    """The failure, at the line of the kernel's first access."""
    first = next(iter(found.values()))
    raised = UserCodeError(str(first), phase="forward", file=first.file, line=first.line)
    return check.failed(kind, message, hint="mask the access, as in mask=offsets < n", raised=raised)


@final
@dataclass(slots=True, kw_only=True)
class Accesses:
    """What kernels accessed outside of their tensors in a call with another size of the batch."""

    situation: Situation
    batch: Batch
    size: int
    found: "Found" = field(default_factory=dict)

    def problem(self, check: Check) -> Evidence | None:
        """A failure where that is the kernel's own fault, and a result depends on it or memory is overwritten.

        Where a tensor was accessed that is as long as an argument that kept its size, the sizes may not fit each other,
        which forward need not notice.
        """
        memory, subject = kernel_memory(), self.situation.subject
        if memory is None or not self.found:
            return None
        kept = {a.value.size for a in subject.arguments if a.is_tensor and not self.batch.is_in(subject, a)}
        own = {key: each for key, each in self.found.items() if each.extent.entries not in kept}
        if len(own) < len(self.found):
            return None
        if not any(each.writes for each in own.values()) and not self._changes(memory):
            return None
        sentence = "; ".join(dict.fromkeys(map(str, own.values())))
        where = f"when the leading axis of {self.batch.name} has size {self.size}, not {self.batch.size}"
        return _failed(check, FindingKind.BATCH_SIZE, f"{where}, {sentence}", own)

    def _changes(self, memory: "KernelMemory") -> bool:
        """Whether a result depends on memory outside of the tensors."""
        subject = self.situation.subject
        arguments = self.batch.resized(subject, self.size)
        try:
            with contained_kernels():
                result = subject.call_at(arguments, signed_cotangents)
        except UserCodeError:
            return False
        return _dependence(memory, subject, arguments, result) is not None


@contextmanager
def accesses_at(situation: Situation, batch: Batch, size: int) -> Iterator[Accesses]:
    """A context that records what kernels access outside of their tensors with another size of the batch."""
    accesses = Accesses(situation=situation, batch=batch, size=size)
    with contained_kernels() as found:
        yield accesses
    accesses.found = found
