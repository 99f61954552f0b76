"""Which line of backward writes into a tensor that it does not own, found by checking the tensors after every line."""

import sys
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.findings import FindingKind


def watched_write(subject: Subject, kind: FindingKind) -> int | None:
    """The line that first changes grad_output or a saved tensor; None if no line is found."""
    code = getattr(subject.info.backward, "__code__", None)
    if not isinstance(code, CodeType) or sys.gettrace() is not None:
        return None
    watch = _Watch(code, saved=kind is not FindingKind.MUTATES_GRAD_OUTPUT)
    cotangents = [np.ones(b.shape, dtype=b.dtype) for b in subject.codomain.blocks]
    sys.settrace(watch.follow)
    try:
        subject.raw_backward(cotangents)
    finally:
        sys.settrace(None)
    return watch.line


class _Watch:
    """A trace function that compares tensors' values after every line."""

    def __init__(self, code: CodeType, *, saved: bool) -> None:
        self.line: int | None = None
        self._code = code
        self._saved = saved
        self._tensors: list[Any] = []
        self._values: list[NDArray[Any]] = []
        self._previous: int | None = None

    def follow(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not self._code:
            return None
        if event == "call":
            self._tensors = self._watched(frame)
            self._values = self._snapshot()
        elif self.line is None and self._previous is not None and self._changed():
            self.line = self._previous
        self._previous = frame.f_lineno if event == "line" else self._previous
        return self.follow

    def _watched(self, frame: FrameType) -> list[Any]:
        names = self._code.co_varnames[: self._code.co_argcount]
        values = [frame.f_locals[name] for name in names if name in frame.f_locals]
        if self._saved:
            return [t for t in values[0].saved_tensors if t is not None] if values else []
        rest = [v for name in self._code.co_varnames for v in [frame.f_locals.get(name)] if isinstance(v, tuple)]
        return [v for v in [*values[1:], *(item for group in rest for item in group)] if v is not None]

    def _snapshot(self) -> list[NDArray[Any]]:
        return [np.array(tensor.detach().numpy()) for tensor in self._tensors]

    def _changed(self) -> bool:
        return any(
            not np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")
            for before, after in zip(self._values, self._snapshot(), strict=True)
        )
