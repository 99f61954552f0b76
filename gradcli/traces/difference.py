"""The differences between two traces, as frozen values."""

from typing import Any

from gradcli.frozen import dataclass
from gradcli.traces.summaries import number_in_document

DIFFERENCE_SCHEMA = "gradcli.trace-difference/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """A node that only one of two traces has, or both: its numbers in them, its name, line and module."""

    name: str
    first: int | None
    second: int | None
    place: str = ""
    module: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the document."""
        return {
            "name": self.name,
            "first": self.first,
            "second": self.second,
            "place": self.place,
            "module": self.module,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientChange:
    """Gradients that differ: `what` they are, both as text, and the relative gap (None: another shape, or None)."""

    what: str
    first: str
    second: str
    gap: float | None
    node: NodeChange | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the document."""
        return {
            "what": self.what,
            "first": self.first,
            "second": self.second,
            "gap": number_in_document(self.gap),
            "node": None if self.node is None else self.node.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HookChange:
    """A call of a hook that only one trace has (`first` or `second` is None), or whose effect is another."""

    hook: str
    first: str | None
    second: str | None

    def to_dict(self) -> dict[str, Any]:
        """As in the document."""
        return {"hook": self.hook, "first": self.first, "second": self.second}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDifference:
    """The difference between two traces, from the `first` to the `second`.

    `parted` is where gradients first differ, in backward order: nodes of both traces that received equal gradients and
    returned different ones, or received different gradients from nodes that returned equal ones. `root` is set if the
    pass began with different gradients. `leaves` are all `.grad` that differ.
    """

    first: str
    second: str
    nodes: tuple[int, int]
    gone: tuple[NodeChange, ...] = ()
    added: tuple[NodeChange, ...] = ()
    root: GradientChange | None = None
    parted: tuple[GradientChange, ...] = ()
    leaves: tuple[GradientChange, ...] = ()
    hooks: tuple[HookChange, ...] = ()
    symptoms_gone: tuple[str, ...] = ()
    symptoms_added: tuple[str, ...] = ()
    saved_bytes: tuple[int, int] = (0, 0)

    @property
    def is_empty(self) -> bool:
        """Whether nothing that was recorded differs."""
        changes = (self.gone, self.added, self.parted, self.leaves, self.hooks, self.symptoms_gone, self.symptoms_added)
        return not any(changes) and self.root is None

    def to_dict(self) -> dict[str, Any]:
        """The document of `trace --diff --format json`."""
        return {
            "schema": DIFFERENCE_SCHEMA,
            "first": self.first,
            "second": self.second,
            "nodes": list(self.nodes),
            "gone": [node.to_dict() for node in self.gone],
            "added": [node.to_dict() for node in self.added],
            "root": None if self.root is None else self.root.to_dict(),
            "parted": [gradient.to_dict() for gradient in self.parted],
            "leaves": [gradient.to_dict() for gradient in self.leaves],
            "hooks": [hook.to_dict() for hook in self.hooks],
            "symptoms_gone": list(self.symptoms_gone),
            "symptoms_added": list(self.symptoms_added),
            "saved_bytes": list(self.saved_bytes),
        }
