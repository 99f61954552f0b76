"""What is kept of earlier backward passes: which nodes they freed, and those in which hooks changed gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from gradcli.traces import Edge, SourceSite, TraceNode

_FREED = 16
_CHANGED = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PastPass:
    """An earlier pass in which hooks changed gradients; `leaves` refers weakly to the leaves of its nodes."""

    number: int
    site: SourceSite | None
    nodes: tuple[TraceNode, ...]
    starts: tuple[Edge, ...]
    leaves: Mapping[int, Callable[[], Any]]


@final
@dataclass(slots=True)
class History:
    """The last passes: of those that freed their graph, the line and the nodes; of those that hooks changed, all."""

    freed: list[tuple[SourceSite | None, frozenset[int]]] = field(default_factory=list)
    changed: list[PastPass] = field(default_factory=list)

    def add_freed(self, site: SourceSite | None, nodes: frozenset[int]) -> None:
        """Note that a pass freed what these nodes had saved."""
        self.freed = [*self.freed[1 - _FREED :], (site, nodes)]

    def add_changed(self, past: PastPass) -> None:
        """Keep a pass."""
        self.changed = [*self.changed[1 - _CHANGED :], past]

    def freed_by(self, node: int) -> SourceSite | None:
        """The line of the last pass that freed what a node had saved."""
        return next((site for site, nodes in reversed(self.freed) if node in nodes), None)
