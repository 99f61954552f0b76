"""What switches the recording of gradients off, and where: a block, a decorated function, a call, code at import."""

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from dataclasses import field
from types import FrameType, FunctionType, ModuleType
from typing import Any, final

from gradcli.frozen import dataclass
from gradcli.sources import tree_of
from gradcli.traces import SourceSite
from gradcli.tracing.attributes import Patches, users_modules
from gradcli.tracing.sites import of_user, site_of_frame, site_of_function, site_of_line, users_frame

_CALL = "set_grad_enabled"
_KINDS = ("no_grad", "inference_mode", _CALL)
_SHOWN = {_CALL: f"{_CALL}(False)"}


@final
@dataclass(frozen=True, slots=True)
class Mode:
    """What switched recording off, at which line; `at_import` if it was off before the target was called."""

    name: str
    site: SourceSite | None = None
    at_import: bool = False


@final
@dataclass(slots=True)
class ModeWatch:
    """The blocks that the program is in, and the calls of `set_grad_enabled(False)` before them."""

    namespace: ModuleType
    _blocks: list[Mode] = field(default_factory=list)
    _calls: list[Mode] = field(default_factory=list)

    def install(self, patches: Patches) -> None:
        """Record from now on what switches recording off; if it is off already, find out what did that."""
        space = self.namespace
        if not space.is_grad_enabled():
            self._calls.append(_at_import(space))
        for name in _KINDS:
            self._watch(getattr(space, name), patches)

    def now(self) -> Mode | None:
        """What has switched recording off, None while it is on. Frameworks do it without a block in a Function."""
        if self.namespace.is_grad_enabled():
            return None
        return (self._blocks or self._calls or [Mode("no_grad")])[-1]

    def _watch(self, kind: Any, patches: Patches) -> None:
        blocks, calls, called = self._blocks, self._calls, kind.__name__ == _CALL
        shown = _SHOWN.get(kind.__name__, kind.__name__)
        enter, leave, make = kind.__enter__, kind.__exit__, kind.__init__

        @functools.wraps(enter)
        def entered(context: Any) -> Any:
            if called and calls and not self.namespace.is_grad_enabled():
                calls.pop()  # that of this context, which has switched the mode already and restores it at the end
            blocks.append(Mode(shown, _site_of_mode(sys._getframe(1))))
            return enter(context)

        @functools.wraps(leave)
        def left(context: Any, *args: Any) -> Any:
            if blocks:
                blocks.pop()
            return leave(context, *args)

        @functools.wraps(make)
        def made(context: Any, *args: Any, **keywords: Any) -> None:
            make(context, *args, **keywords)
            if not self.namespace.is_grad_enabled():
                calls.append(Mode(shown, _site_of_mode(sys._getframe(1))))

        patches.attribute(kind, "__enter__", entered)
        patches.attribute(kind, "__exit__", left)
        if called:
            patches.attribute(kind, "__init__", made)


def _site_of_mode(frame: FrameType) -> SourceSite | None:
    """The user's line that switches a mode, or the function of theirs that a mode decorates."""
    if of_user(frame.f_code.co_filename):
        return site_of_frame(frame)
    functions = [value for value in frame.f_locals.values() if isinstance(value, FunctionType)]
    decorated = next((f for f in functions if of_user(f.__code__.co_filename)), None)
    return site_of_frame(users_frame(frame)) if decorated is None else site_of_function(decorated)


def _at_import(space: ModuleType) -> Mode:
    """The mode that was on before the target was called, with the one line of the user's modules that can be its cause.

    Nothing was watched at import. If several lines switch a mode there, any of them may be the cause.
    """
    likely = "inference_mode" if space.is_inference_mode_enabled() else _CALL
    found = [mode for module in users_modules() for mode in _switched_by(vars(module).get("__file__") or "")]
    shown = _SHOWN.get(likely, likely)
    named = [mode for mode in found if mode.name == shown] or ([] if likely != _CALL else found)
    return named[0] if len(named) == 1 else Mode(shown, at_import=True)


def _switched_by(file: str) -> Iterator[Mode]:
    """What statements outside of functions, classes and blocks switch off."""
    text = "".join(linecache.getlines(file))
    if not any(name in text for name in _KINDS):
        return
    tree = tree_of(text)
    for statement in [] if tree is None else tree.body:
        if not isinstance(statement, ast.Expr | ast.Assign):
            continue
        for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
            name = _switched_off(call)
            if name is not None:
                yield Mode(_SHOWN.get(name, name), site_of_line(file, call.lineno), at_import=True)


def _switched_off(call: ast.Call) -> str | None:
    """The kind of mode that a call switches off: `set_grad_enabled(False)`, or `no_grad().__enter__()`."""
    name = _last_name(call.func)
    if name == _CALL:
        off = call.args[:1] + [keyword.value for keyword in call.keywords]
        return name if any(isinstance(value, ast.Constant) and value.value is False for value in off) else None
    if name != "__enter__" or not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Call):
        return None
    kind = _last_name(call.func.value.func)
    return kind if kind in _KINDS and kind != _CALL else None


def _last_name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
