"""The nodes of a backward graph and the edges between them."""

from dataclasses import dataclass  # generated code: a trace makes tens of thousands of these
from typing import Any

from gradcli.frozen import quickly_pickled
from gradcli.traces.summaries import ArraySummary, SourceSite


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """From a node to the node that gets its gradient number `slot` (None: no gradient needed there)."""

    target: int | None
    slot: int


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNode:
    """One node of the backward graph; `id` numbers nodes in backward order from 0 at the root.

    `filled_before` says of a leaf that its `.grad` held something when the pass began, `filled_inside` that a pass
    inside this one filled it as well, `refused` that its requires_grad was False when the gradient arrived.
    """

    id: int
    name: str
    edges: tuple[Edge, ...]
    site: SourceSite | None = None
    module: str | None = None
    variable: str | None = None
    output: ArraySummary | None = None
    gradients_in: tuple[ArraySummary | None, ...] = ()
    gradients_out: tuple[ArraySummary | None, ...] = ()
    saved_bytes: int = 0
    executed: bool = False
    rule: SourceSite | None = None
    sequence: int | None = None
    filled_before: bool = False
    filled_inside: bool = False
    refused: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document; `rule` is where a user's own backward is written."""
        return {
            "id": self.id,
            "name": self.name,
            "edges": [{"target": e.target, "slot": e.slot} for e in self.edges],
            "site": None if self.site is None else self.site.to_dict(),
            "module": self.module,
            "variable": self.variable,
            "output": None if self.output is None else self.output.to_dict(),
            "gradients_in": [None if g is None else g.to_dict() for g in self.gradients_in],
            "gradients_out": [None if g is None else g.to_dict() for g in self.gradients_out],
            "saved_bytes": self.saved_bytes,
            "executed": self.executed,
            "rule": None if self.rule is None else self.rule.to_dict(),
        }
