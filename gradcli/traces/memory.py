"""The memory of a backward pass: what its nodes saved, what stays afterwards, and the peak."""

from collections.abc import Iterable, Sequence
from typing import Any

from gradcli.frozen import dataclass
from gradcli.traces.nodes import TraceNode
from gradcli.traces.summaries import SourceSite

ACTIVATION, PARAMETER, DATA = "activation", "parameter", "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTensor:
    """One tensor that a node saved: its name, its size, and the number of its storage in `storages`.

    `on_ctx` says that a custom Function set it as an attribute of ctx, so it is not freed after backward.
    """

    node: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    storage: int
    on_ctx: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "node": self.node,
            "name": self.name,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "bytes": self.bytes,
            "storage": self.storage,
            "on_ctx": self.on_ctx,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Memory that saved tensors and their views share: counted once.

    `kind` is "parameter" (of a leaf), "data" (of a named tensor that no recorded operation created) or "activation".
    `nodes` are the nodes that saved it, in the order of forward: it counts for the first one. `contents` is equal for
    storages whose saved tensors hold the same values (None: not compared).
    """

    bytes: int
    kind: str
    label: str | None
    nodes: tuple[int, ...]
    contents: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {"bytes": self.bytes, "kind": self.kind, "label": self.label, "nodes": list(self.nodes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Saved memory that is still in use after backward: which storages, and what keeps them.

    `by` is "graph" (the pass ran with retain_graph), "ctx" (attributes of ctx), or "name" (variables and attributes).
    """

    by: str
    holder: str
    storages: tuple[int, ...]
    bytes: int
    site: SourceSite | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "by": self.by,
            "holder": self.holder,
            "storages": list(self.storages),
            "bytes": self.bytes,
            "site": None if self.site is None else self.site.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeak:
    """The most bytes of tensors at one time of the backward pass, and the node that ran then.

    `fixed` are parameters and data, `saved` what nodes had saved and not yet freed, `gradients` those passed to nodes
    that have not run yet, `accumulated` those in `.grad`. Temporary memory of operations is not included.
    """

    node: int | None
    fixed: int
    saved: int
    gradients: int
    accumulated: int

    @property
    def bytes(self) -> int:
        """The sum of the four parts."""
        return self.fixed + self.saved + self.gradients + self.accumulated

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "bytes": self.bytes,
            "node": self.node,
            "fixed": self.fixed,
            "saved": self.saved,
            "gradients": self.gradients,
            "accumulated": self.accumulated,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLedger:
    """The memory of the last backward pass of a trace. `uncounted` is the number of nodes that saved through hooks."""

    saved: tuple[SavedTensor, ...] = ()
    storages: tuple[Storage, ...] = ()
    held: tuple[Held, ...] = ()
    peak: MemoryPeak | None = None
    budget: int | None = None
    uncounted: int = 0

    @property
    def over_budget(self) -> bool:
        """Whether the peak is above the budget."""
        return self.budget is not None and self.peak is not None and self.peak.bytes > self.budget

    def total(self, *kinds: str) -> int:
        """The bytes of all storages of these kinds, each counted once."""
        return sum(storage.bytes for storage in self.storages if storage.kind in kinds)

    def by_node(self) -> dict[int, int]:
        """Bytes of activations by node; each storage counts for the node that saved it first."""
        return _sums((storage.nodes[0], storage.bytes) for storage in self.storages if storage.kind == ACTIVATION)

    def by_module(self, nodes: Sequence[TraceNode]) -> dict[str, int]:
        """The same by module path, without submodules; "" is outside of all modules."""
        return _sums((nodes[number].module or "", count) for number, count in self.by_node().items())

    def shared(self) -> tuple[int, ...]:
        """The storages that several nodes saved, which are stored once."""
        return tuple(place for place, storage in enumerate(self.storages) if len(storage.nodes) > 1)

    def copies(self) -> tuple[tuple[int, ...], ...]:
        """Groups of storages that hold the same values: the same data saved in separate memory."""
        groups: dict[str, list[int]] = {}
        for place, storage in enumerate(self.storages):
            if storage.contents is not None:
                groups.setdefault(storage.contents, []).append(place)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def to_dict(self, nodes: Sequence[TraceNode]) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "activation_bytes": self.total(ACTIVATION),
            "parameter_bytes": self.total(PARAMETER),
            "data_bytes": self.total(DATA),
            "nodes": [{"node": node, "bytes": count} for node, count in self.by_node().items()],
            "modules": [{"module": name or None, "bytes": count} for name, count in self.by_module(nodes).items()],
            "saved": [saved.to_dict() for saved in self.saved],
            "storages": [storage.to_dict() for storage in self.storages],
            "shared": list(self.shared()),
            "copies": [list(group) for group in self.copies()],
            "held": [held.to_dict() for held in self.held],
            "peak": None if self.peak is None else self.peak.to_dict(),
            "budget": self.budget,
            "over_budget": self.over_budget,
            "uncounted": self.uncounted,
        }


def _sums(entries: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """The sum for each key, the largest first."""
    found: dict[Any, int] = {}
    for key, count in entries:
        found[key] = found.get(key, 0) + count
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))
