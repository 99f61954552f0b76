"""Where tracked tensors leave the graph: detach, .data, item, tolist, numpy and no_grad blocks, with their lines."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from gradcli.backends.trace_lens import Lens
from gradcli.backends.trace_patches import Patches
from gradcli.backends.trace_sites import called_by_user, site_of_frame
from gradcli.traces import SourceSite

_METHODS = ("detach", "detach_", "item", "tolist", "numpy", "__array__")
_FEW_SITES = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RawCut:
    """A cut with the tensor's place in the graph: its node, or itself where it is a leaf."""

    how: str
    site: SourceSite | None
    node: Any
    leaf: Any


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
        self._watch_data(kind)
        self._watch_no_grad(self.lens.namespace.no_grad)

    def _watched(self, method: Callable[..., Any], how: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def watched(tensor: Any, *args: Any, **keywords: Any) -> Any:
            self._note(tensor, how)
            return method(tensor, *args, **keywords)

        return watched

    def _watch_data(self, kind: type) -> None:
        plain: Any = inspect.getattr_static(kind, "data")

        def get(tensor: Any) -> Any:
            self._note(tensor, ".data")
            return plain.__get__(tensor, kind)

        def put(tensor: Any, value: Any) -> None:
            plain.__set__(tensor, value)

        self.patches.attribute(kind, "data", property(get, put))

    def _watch_no_grad(self, kind: Any) -> None:
        enter = kind.__enter__

        @functools.wraps(enter)
        def watched(context: Any) -> Any:
            site = site_of_frame(called_by_user(1))
            if site is not None and len(self.found) < _FEW_SITES:
                self.found[("no_grad", site)] = RawCut(how="no_grad", site=site, node=None, leaf=None)
            return enter(context)

        self.patches.attribute(kind, "__enter__", watched)

    def _note(self, tensor: Any, how: str) -> None:
        frame = called_by_user(2)
        if frame is None or not tensor.requires_grad or len(self.found) >= _FEW_SITES:
            return
        site = site_of_frame(frame)
        node = tensor.grad_fn
        self.found[(how, site)] = RawCut(how=how, site=site, node=node, leaf=tensor if node is None else None)
