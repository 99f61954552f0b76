"""The memory of kernels in Triton's interpreter: each access is compared with the tensor that its pointer came from.

The interpreter reads and writes raw memory at the addresses that a kernel computes. An access outside of the tensor is
whatever lies there, or the end of the process; on a GPU it is as silent. A pointer's type travels with it through every
operation, so the tensor is noted there.
"""

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from types import FrameType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.frozen import dataclass
from gradcli.watchdog.case import current

_MARK = "_gradcli_extent"
_FLOAT_BITS = 8
"""Wider floating-point formats than this have a NumPy dtype of their own, or, bfloat16, the upper half of float32's."""


class OutsideMemoryError(Exception):
    """A kernel reads or writes outside of the tensors that it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The memory of one argument of a kernel: bytes from `start` to `stop`, `entries` of them of the tensor's dtype."""

    kernel: str
    argument: str
    start: int
    stop: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overreach:
    """An access outside of a kernel's argument, by the line of the kernel that makes it."""

    extent: Extent
    count: int
    first: int
    file: str
    line: int
    writes: bool = False

    def __str__(self) -> str:
        """What happened and where, as for a message."""
        extent, verb = self.extent, "writes" if self.writes else "reads"
        what = "1 entry" if self.count == 1 else f"{self.count} entries"
        where = "before the start of" if self.first < 0 else "past the end of"
        size = "1 entry" if extent.entries == 1 else f"{extent.entries} entries"
        return (
            f"kernel {extent.kernel} {verb} {what} {where} {extent.argument}, which has {size} "
            f"({Path(self.file).name}, line {self.line}; first at index {self.first})"
        )


Found = dict[tuple[str, str, int], Overreach]
"""Accesses by the kernel, its argument and its line: the first one at each."""


@final
@dataclass(slots=True, kw_only=True)
class KernelMemory:
    """What kernels do to their memory while this is in place.

    A read outside of a tensor gives `filling`; a write raises, and so does a read while inputs are searched for, whose
    shapes do not fit each other then. Both are kept in `found`. `launches` counts the kernels that were run.
    """

    interpreter: Any
    filling: float = 0.0
    launches: int = 0
    dropping: bool = False
    found: Found = field(default_factory=dict)
    _names: dict[int, tuple[str, str]] = field(default_factory=dict)

    @contextmanager
    def filled_with(self, number: float, *, dropping: bool = False) -> Iterator[Found]:
        """Give `number` for what is read outside of a tensor, inside, and drop what is written there if `dropping`.

        Yields what was found meanwhile.
        """
        before = self.filling, self.dropping, self.found
        self.filling, self.dropping, self.found = number, dropping, {}
        try:
            yield self.found
        finally:
            self.filling, self.dropping, self.found = before

    def launched(self, kernel: str, names: list[str], arguments: list[Any], keywords: dict[str, Any]) -> None:
        """A kernel is launched with these arguments: keep their names by identity, as they live until it ends."""
        self._names = {}
        self.launches += 1
        for name, value in [*zip(names, arguments, strict=False), *keywords.items()]:
            for tensor in _tensors_in(value):
                self._names[id(tensor)] = kernel, name

    def marked(self, argument: Any, pointer: Any) -> Any:
        """The pointer to a kernel's tensor, with its extent noted in its type."""
        if id(argument) not in self._names:
            return pointer
        tensor = self.interpreter._unwrap_tensor(argument)
        storage, (kernel, name) = tensor.untyped_storage(), self._names[id(argument)]
        start, size = storage.data_ptr(), storage.nbytes()
        extent = Extent(
            kernel=kernel, argument=name, start=start, stop=start + size, entries=size // tensor.element_size()
        )
        kind = copy.copy(pointer.handle.dtype)
        setattr(kind, _MARK, extent)
        return type(pointer)(self.interpreter.TensorHandle(pointer.handle.data, kind), kind)

    def outside(self, pointers: Any, mask: Any, *, writes: bool) -> NDArray[np.bool_] | None:
        """Which of the accesses lie outside of the tensor; None where all lie inside or the tensor is not known.

        Raises:
            OutsideMemoryError: some lie outside, and are not to be made up for.
        """
        extent: Extent | None = getattr(pointers.dtype, _MARK, None)
        if extent is None:
            return None
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        places, last = pointers.data, extent.stop - size
        within = (places >= np.uint64(extent.start)) & (places <= np.uint64(max(last, 0)))
        out: NDArray[np.bool_] = mask.data & ~within if last >= extent.start else np.asarray(mask.data)
        if not out.any():
            return None
        self._found(extent, (places[out].astype(np.int64) - extent.start) // size, writes=writes)
        return out

    def _found(self, extent: Extent, entries: NDArray[Any], *, writes: bool) -> None:
        file, line = _users_line(sys._getframe(2), Path(self.interpreter.__file__).parents[1])
        found = Overreach(
            extent=extent, count=entries.size, first=int(entries.flat[0]), file=file, line=line, writes=writes
        )
        self.found.setdefault((extent.kernel, extent.argument, line), found)
        watchdog = current()
        if (writes and not self.dropping) or (watchdog is not None and watchdog.phase.searching):
            raise OutsideMemoryError(str(found))

    def filled(self, out: NDArray[np.bool_], other: Any, kind: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
        """What is read: `other`, or zeros, for what is masked, and the filling outside of the tensor."""
        values = np.zeros(out.shape, dtype) if other is None else np.broadcast_to(other.data, out.shape)
        return np.where(out, _as_stored(self.filling, kind, dtype), values)


def _tensors_in(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _tensors_in(part)
    elif hasattr(value, "data_ptr"):
        yield value
    elif hasattr(value, "base") and hasattr(value, "block_shape"):
        yield from _tensors_in(value.base)


def _as_stored(number: float, kind: Any, dtype: np.dtype[Any]) -> Any:
    """A number as the interpreter keeps values of a Triton type: bfloat16 as its bits, whole numbers rounded."""
    if dtype.kind != "f" and kind.is_floating() and kind.primitive_bitwidth > _FLOAT_BITS:
        return np.asarray(np.asarray(number, np.float32).view(np.uint32) >> 16, dtype)
    return np.asarray(number if dtype.kind == "f" else round(number), dtype)


def _users_line(frame: FrameType | None, triton: Path) -> tuple[str, int]:
    """The innermost line of a kernel: of no file of Triton's, but for those of its language that are kernels."""
    own = str(Path(__file__).parent)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((str(triton), own)):
            return file, frame.f_lineno
        frame = frame.f_back
    return "<unknown>", 0
