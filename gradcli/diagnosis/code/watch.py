"""Which line writes into a tensor that its function does not own, found by checking the tensors after every line."""

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.diagnosis.code.traced import array_of, traced
from gradcli.findings import FindingKind


def watched_write(subject: Subject, kind: FindingKind, function: Callable[..., Any] | None) -> int | None:
    """The line of forward or backward that first changes a tensor given to it or kept by it; None if none is found.

    In forward these are its arguments; in backward grad_output, or what is saved or an attribute of ctx.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    in_backward = function is subject.info.backward
    watch = _Watch(code, kept=in_backward and kind is not FindingKind.MUTATES_GRAD_OUTPUT)
    traced(subject, watch.follow, forward=not in_backward)
    return watch.line


class _Watch:
    """A trace function that compares tensors' values after every line."""

    def __init__(self, code: CodeType, *, kept: bool) -> None:
        self.line: int | None = None
        self._code = code
        self._kept = kept
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
        if self._kept:
            saved = getattr(values[0], "saved_tensors", ()) if values else ()
            attributes = getattr(values[0], "__dict__", {}).values() if values else ()
            return [t for t in (*saved, *attributes) if array_of(t) is not None]
        rest = [v for name in self._code.co_varnames for v in [frame.f_locals.get(name)] if isinstance(v, tuple)]
        return [v for v in [*values, *(item for group in rest for item in group)] if array_of(v) is not None]

    def _snapshot(self) -> list[NDArray[Any]]:
        return [np.array(array_of(tensor)) for tensor in self._tensors]

    def _changed(self) -> bool:
        return any(
            not np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")
            for before, after in zip(self._values, self._snapshot(), strict=True)
        )
