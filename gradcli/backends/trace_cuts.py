"""Where tracked tensors leave the graph, with their lines: detach, .data, item, copies, casts, no_grad blocks."""

import functools
import inspect
import itertools
import linecache
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType
from typing import Any, final

from gradcli.backends.trace_lens import Lens
from gradcli.backends.trace_patches import Patches
from gradcli.backends.trace_sites import called_by_user, of_user, site_of_frame, site_of_function
from gradcli.traces import SourceSite

_METHODS = ("detach", "detach_", "item", "tolist", "numpy", "__array__")
_WHOLE = ("to", "type", "long", "int", "short", "char", "byte", "bool", "argmax", "argmin", "argsort")
"""Methods that take a tensor out of the graph where they give whole numbers."""
_CASTS = ("to", "type")
_FUNCTIONS = ("tensor", "argmax", "argmin", "argsort")
_FEW_SITES = 64
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RawCut:
    """A cut with the tensors it took out: the tensor itself, or what a function or block without gradients used.

    A block is known by the names in its source.
    """

    how: str
    site: SourceSite | None
    nodes: tuple[Any, ...] = ()
    leaves: tuple[Any, ...] = ()
    names: frozenset[str] = frozenset()


@final
@dataclass(slots=True)
class CutWatch:
    """Notes each line on which the user takes a tracked tensor out of the graph, once a line."""

    lens: Lens
    patches: Patches
    found: dict[tuple[str, SourceSite | None], RawCut] = field(default_factory=dict)

    def install(self) -> None:
        """Start watching."""
        kind = self.lens.tensor_type
        for name in _METHODS:
            method = getattr(kind, name, None)
            if method is not None:
                self.patches.attribute(
                    kind, name, self._watched(method, "numpy()" if name == "__array__" else f"{name}()")
                )
        for owner, names in ((kind, _WHOLE), (self.lens.namespace, _FUNCTIONS)):
            for name in names:
                function = getattr(owner, name, None)
                if function is not None:
                    self.patches.attribute(owner, name, self._watched_result(function, name))
        self._watch_data(kind)
        for mode in (self.lens.namespace.no_grad, self.lens.namespace.inference_mode):
            self._watch_mode(mode)

    def _watched(self, method: Callable[..., Any], how: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def watched(tensor: Any, *args: Any, **keywords: Any) -> Any:
            self._note([tensor], how)
            return method(tensor, *args, **keywords)

        return watched

    def _watched_result(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """The function, noted where it makes of a tracked tensor a copy without history, or whole numbers."""

        @functools.wraps(function)
        def watched(*args: Any, **keywords: Any) -> Any:
            result = function(*args, **keywords)
            given = self.lens.differentiable(args[:1]) if name == "tensor" or _is_whole(result) else []
            if given:
                self._note(given, f"to({result.dtype})" if name in _CASTS else f"{name}()")
            return result

        return watched

    def _watch_data(self, kind: type) -> None:
        plain: Any = inspect.getattr_static(kind, "data")

        def get(tensor: Any) -> Any:
            self._note([tensor], ".data")
            return plain.__get__(tensor, kind)

        def put(tensor: Any, value: Any) -> None:
            plain.__set__(tensor, value)

        self.patches.attribute(kind, "data", property(get, put))

    def _watch_mode(self, kind: Any) -> None:
        enter = kind.__enter__
        name = kind.__name__

        @functools.wraps(enter)
        def watched(context: Any) -> Any:
            self._note_mode(name, sys._getframe(1))
            return enter(context)

        self.patches.attribute(kind, "__enter__", watched)

    def _note_mode(self, name: str, caller: FrameType) -> None:
        """A block of the user's, or a function of theirs that a mode decorates, with the tensors it is given."""
        given: list[Any] = []
        site = site_of_frame(caller) if of_user(caller.f_code.co_filename) else None
        names = _names_in_block(caller) if site is not None else frozenset()
        if site is None:
            values = list(caller.f_locals.values())
            functions = [value for value in values if isinstance(value, FunctionType)]
            site = next((site_of_function(f) for f in functions if of_user(f.__code__.co_filename)), None)
            given = self.lens.differentiable(values)
        if site is not None and len(self.found) < _FEW_SITES:
            nodes = tuple(tensor.grad_fn for tensor in given if tensor.grad_fn is not None)
            leaves = tuple(tensor for tensor in given if tensor.grad_fn is None)
            self.found[(name, site)] = RawCut(how=name, site=site, nodes=nodes, leaves=leaves, names=names)

    def _note(self, tensors: Sequence[Any], how: str) -> None:
        frame = called_by_user(2)
        tracked = [tensor for tensor in tensors if tensor.requires_grad]
        if frame is None or not tracked or len(self.found) >= _FEW_SITES:
            return
        site = site_of_frame(frame)
        nodes = tuple(tensor.grad_fn for tensor in tracked if tensor.grad_fn is not None)
        leaves = tuple(tensor for tensor in tracked if tensor.grad_fn is None)
        self.found[(how, site)] = RawCut(how=how, site=site, nodes=nodes, leaves=leaves)


def _is_whole(value: Any) -> bool:
    """Whether a value is a tensor of numbers that no gradient can belong to."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and not (dtype.is_floating_point or dtype.is_complex)


def _names_in_block(caller: FrameType) -> frozenset[str]:
    """The identifiers in the lines below the caller's that are indented deeper than it."""
    lines = linecache.getlines(caller.f_code.co_filename)[caller.f_lineno - 1 :]
    depth = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    block = itertools.takewhile(lambda line: not line.strip() or len(line) - len(line.lstrip()) > depth, lines[1:])
    return frozenset(_IDENTIFIER.findall("".join(block)))
