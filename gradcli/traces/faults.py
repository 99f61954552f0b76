"""Numerical faults: the origin of NaN and Inf, nodes with a wrong backward, tensors changed after they were saved."""

from typing import Any

from gradcli.frozen import dataclass
from gradcli.traces.summaries import SourceSite, number_in_document


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite:
    """What made the first NaN or Inf, in forward or in backward.

    `kind` is "operation", "data" (a tensor held it before any operation), "node" (of the backward graph), "hook" or
    "cotangent" (it was given to backward). `text` is the calculation at `entry`: log(0) = -inf. For a node: `incoming`
    the gradient that came in at that entry, `saved` what it had saved there, `operation` the operation of forward, and
    `selected_at` the line of a `selected_by` (where or masked_fill) that takes another branch there. `cause` is where
    an operand that is not finite came from, `became` the operation that made NaN of Inf.
    """

    phase: str
    kind: str
    name: str
    site: SourceSite | None = None
    entry: tuple[int, ...] | None = None
    value: float | None = None
    text: str = ""
    dtype: str = ""
    incoming: float | None = None
    saved: tuple[tuple[str, str], ...] = ()
    operation: str | None = None
    selected_at: SourceSite | None = None
    selected_by: str = "where"
    cause: "NonFinite | None" = None
    became: "NonFinite | None" = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "phase": self.phase,
            "kind": self.kind,
            "name": self.name,
            "site": None if self.site is None else self.site.to_dict(),
            "entry": None if self.entry is None else list(self.entry),
            "value": number_in_document(self.value),
            "calculation": self.text,
            "cause": None if self.cause is None else self.cause.to_dict(),
            "became": None if self.became is None else self.became.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenWrite:
    """An operation `by` that wrote to the tensor called `name` through another one that shares its memory, unseen."""

    name: str
    made_at: SourceSite | None
    by: str
    at: SourceSite | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongNode:
    """A node whose backward is not the derivative of its own forward: the call, its module, and what is wrong.

    `node` is the graph's node, `finding` the name of the mistake, `at` the line of the backward where one is known.
    """

    name: str
    site: SourceSite | None
    module: str | None
    node: int | None
    finding: str
    message: str
    at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "name": self.name,
            "site": None if self.site is None else self.site.to_dict(),
            "module": self.module,
            "node": self.node,
            "finding": self.finding,
            "message": self.message,
            "at": self.at,
        }


MOST_CHECKED = 500
"""Nodes of a trace that are checked; further ones are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCheck:
    """Counts of a check of nodes: how many passed, and how many were left out.

    `undecided` are the names of those without a verdict, `reasons` why: one for each, "" where it is not known. `stale`
    are those that returned other gradients in the pass than their forward has at the values that it was given.
    """

    passed: int
    undecided: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    left_out: int = 0
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionConflict:
    """A tensor that a node had saved and that was changed in place before the node ran: the two operations."""

    node: str
    saved_at: SourceSite | None
    changed_by: str | None = None
    changed_at: SourceSite | None = None
