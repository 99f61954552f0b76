"""The line that created each node, by anomaly mode without its check for NaN, outside of backward passes only."""

import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any, final

from gradcli.tracing.attributes import Patches
from gradcli.tracing.sites import MODULE_ENTRY, PACKED_ENTRY, called_by_user, users_frame


@final
@dataclass(slots=True)
class LineRecorder:
    """Turns anomaly mode on during forward. If the user sets the mode, the user's setting counts.

    `packing` says whether tensors are saved through hooks at the moment; `taken_over` that the user has set the mode.
    """

    namespace: ModuleType
    running_module: Callable[[], str | None]
    packing: Callable[[], bool]
    taken_over: bool = False
    _setting: Any = None
    _pausing: bool = False

    @contextmanager
    def recorded(self, patches: Patches) -> Iterator[None]:
        """Record lines inside; the mode is as before afterwards."""
        if self._on_already():
            self.taken_over = True
            yield
            return
        autograd = self.namespace.autograd
        for kind in (autograd.set_detect_anomaly, autograd.detect_anomaly):
            patches.attribute(kind, "__init__", self._yielding(kind.__init__))
        patches.attribute(traceback, "extract_stack", self._short_stack(traceback.extract_stack))
        self._setting = autograd.set_detect_anomaly(True, check_nan=False)
        try:
            yield
        finally:
            self._give_back()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A context without recording: in anomaly mode an error of backward would cause a warning."""
        if self._setting is None:
            yield
            return
        self._pausing = True
        try:
            with self.namespace.autograd.set_detect_anomaly(False):
                yield
        finally:
            self._pausing = False

    def _short_stack(self, extract: Callable[..., traceback.StackSummary]) -> Callable[..., traceback.StackSummary]:
        """Pass only the user's line to the framework, which would store the whole stack with every node."""
        own = os.path.dirname(self.namespace.__file__ or "")

        @functools.wraps(extract)
        def short(f: FrameType | None = None, limit: int | None = None) -> traceback.StackSummary:
            caller = sys._getframe(1)
            if f is not None or not caller.f_code.co_filename.startswith(own):
                return extract(caller if f is None else f, limit)
            module, user = self.running_module(), users_frame(caller)
            inside = [] if module is None else [_entry(MODULE_ENTRY, 0, module)]
            inside += [_entry(PACKED_ENTRY, 0, "")] if self.packing() else []
            users = [] if user is None else [_summary(user)]
            return traceback.StackSummary.from_list([*inside, *users, _summary(caller)])

        return short

    def _on_already(self) -> bool:
        with self.namespace.inference_mode(mode=False), self.namespace.enable_grad():
            probe = self.namespace.ones(1, requires_grad=True) * 1
        return "traceback_" in probe.grad_fn.metadata

    def _give_back(self) -> None:
        if self._setting is not None:
            self._setting.__exit__(None, None, None)
            self._setting = None

    def _yielding(self, make: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(make)
        def watched(setting: Any, *args: Any, **keywords: Any) -> None:
            if called_by_user(1) is not None and not self._pausing:
                self.taken_over = True
                self._give_back()
            make(setting, *args, **keywords)

        return watched


def _summary(frame: FrameType) -> traceback.FrameSummary:
    return _entry(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def _entry(file: str, line: int, name: str) -> traceback.FrameSummary:
    return traceback.FrameSummary(file, line, name, lookup_line=False, line="")
