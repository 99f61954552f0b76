"""What the program did to `.grad` after backward had filled it: it was set, or written to."""

import difflib
import weakref
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from types import FrameType
from typing import Any, final

import numpy as np

from gradcli.frozen import dataclass
from gradcli.traces import ArraySummary, SourceSite
from gradcli.tracing.operations import Operation, OperationLog
from gradcli.tracing.reading import Lens, maker_of
from gradcli.tracing.sites import site_of_frame, users_frame

FLAG = "requires_grad"
_ZEROING = ("zero_", "_foreach_zero_")


@final
@dataclass(slots=True)
class _State:
    """The `.grad` of a tensor when something was done to it: before that many operations, at a line of the program."""

    reference: Callable[[], Any]
    moment: int
    site: SourceSite | None
    zero: bool
    summary: ArraySummary | None = None


@final
@dataclass(slots=True)
class GradientLog:
    """The state of each `.grad` after the last pass that reached it, and after the program last set it."""

    lens: Lens
    log: OperationLog
    _filled: dict[int, _State] = field(default_factory=dict)
    _assigned: dict[int, _State] = field(default_factory=dict)
    _switched_off: dict[int, _State] = field(default_factory=dict)

    def begin(self, leaves: Iterable[Any]) -> None:
        """Note that a pass that fills `.grad` begins: what was set before does not matter any more."""
        for leaf in leaves:
            self._assigned.pop(id(leaf), None)

    def filled(self, leaves: Iterable[Any]) -> None:
        """Note that a pass that fills `.grad` has ended. What a hook set in it was set after `.grad` was filled."""
        for leaf in leaves:
            state = self._state(leaf, leaf.grad, None)
            if leaf.grad is not None:
                state = replace(state, summary=self.lens.summarise(leaf.grad))
            self._filled[id(leaf)] = state

    def assigned(self, tensor: Any, gradient: Any, frame: FrameType | None) -> None:
        """Note that the program sets `.grad`, to None or to a tensor; to take away nothing is nothing.

        During a pass, when a framework sets `.grad` itself, only None is noted, which a hook sets.
        """
        if not self.log.listening and gradient is not None:
            return
        if gradient is not None or maker_of(tensor) is not None or tensor.grad is not None:
            self._assigned[id(tensor)] = self._state(tensor, gradient, site_of_frame(users_frame(frame)))

    def flagged(self, tensor: Any, requires_grad: bool = True, *, frame: FrameType | None) -> None:
        """Note that the program sets `requires_grad` of a tensor."""
        if requires_grad:
            self._switched_off.pop(id(tensor), None)
        elif tensor.requires_grad:
            self._switched_off[id(tensor)] = self._state(tensor, None, site_of_frame(users_frame(frame)))

    def switched_off_at(self, tensor: Any) -> SourceSite | None:
        """Where the program last set `requires_grad` of a tensor to False that had been True."""
        state = _of(self._switched_off, tensor)
        return None if state is None else state.site

    def _state(self, tensor: Any, gradient: Any, site: SourceSite | None) -> _State:
        return _State(weakref.ref(tensor), len(self.log.operations), site, self._is_zero(gradient))

    def _is_zero(self, gradient: Any) -> bool:
        array = self.lens.array(gradient) if self.lens.is_tensor(gradient) else None
        return array is not None and not np.any(array)

    def taken_at(self, tensor: Any) -> SourceSite | None:
        """Where the program set a `.grad` to None that is None now."""
        state = _of(self._assigned, tensor)
        return None if state is None or tensor.grad is not None else state.site

    def zeroed(self, tensor: Any) -> tuple[SourceSite | None, str] | None:
        """Where and with what the program made a `.grad` zero that was not zero when backward had filled it."""
        filled, assigned = _of(self._filled, tensor), _of(self._assigned, tensor)
        if filled is None or filled.zero or tensor.grad is None or not self._is_zero(tensor.grad):
            return None
        if assigned is not None and assigned.zero:
            return assigned.site, ".grad ="
        writes = self._writes(tensor.grad, (assigned or filled).moment)
        last = next((write for write in reversed(writes) if write.name in _ZEROING), writes[-1] if writes else None)
        return (None, "") if last is None else (last.site, last.name)

    def changed(self, tensor: Any) -> tuple[SourceSite | None, str] | None:
        """Where and with what the program changed a `.grad`, other than to zeros, after backward had filled it."""
        filled, assigned = _of(self._filled, tensor), _of(self._assigned, tensor)
        if filled is None or filled.summary is None or tensor.grad is None or self._is_zero(tensor.grad):
            return None
        if repr(self.lens.summarise(tensor.grad)) == repr(filled.summary):  # NaN differs from itself
            return None
        writes = self._writes(tensor.grad, (assigned or filled).moment)
        if writes:
            return writes[-1].site, f"{writes[-1].name}()"
        return (None, "") if assigned is None else (assigned.site, ".grad =")

    def _writes(self, gradient: Any, begin: int) -> list[Operation]:
        """The operations in place on the memory of a gradient that was there before them, `.grad.data` among them."""
        memory = self.lens.storage(gradient)[0]
        return [operation for operation in self.log.operations[begin:] if memory in operation.memory]

    def clear(self) -> None:
        """Release everything."""
        self._filled, self._assigned, self._switched_off = {}, {}, {}


def _of(states: dict[int, _State], tensor: Any) -> _State | None:
    state = states.get(id(tensor))
    return state if state is not None and state.reference() is tensor else None


def stray_flag(tensor: Any) -> str | None:
    """An attribute that the user set and that looks like a misspelt requires_grad."""
    if tensor.requires_grad:
        return None
    own = [name for name in getattr(tensor, "__dict__", {}) if not name.startswith("_") and name != FLAG]
    return next(iter(difflib.get_close_matches(FLAG, own, n=1, cutoff=0.8)), None)
