"""Calls of hooks, and hooks that were registered."""

from typing import Any

from gradcli.frozen import dataclass
from gradcli.traces.summaries import ArraySummary, SourceSite, number_in_document


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One call of a user's hook, in the order in which they ran.

    `kind` is one of: tensor, post-accumulate, node-pre, node-post, multi-grad, module-forward-pre, module-forward,
    module-backward-pre, module-full, module-legacy, pack, unpack. `node` is the graph node whose gradients it saw,
    `output` the output of it that the tensor is, `inside` the node during which a pass inside the recorded one
    called it, `factor` the one number it multiplied them by (where there is one), `problem` what is wrong with what
    it returned, `registered_at` the line that registered it, if several were made by one line of code, `last_node`
    the operation that a legacy module hook hangs on, where the module did more than that.
    """

    number: int
    kind: str
    owner: str
    function: str
    site: SourceSite | None
    before: tuple[ArraySummary | None, ...] = ()
    after: tuple[ArraySummary | None, ...] = ()
    grad_output: tuple[ArraySummary | None, ...] = ()
    returned: bool = False
    effect: str = "unchanged"
    warning: str | None = None
    node: int | None = None
    output: int = 0
    inside: int | None = None
    registered_at: SourceSite | None = None
    factor: float | None = None
    changed_slots: tuple[int, ...] = ()
    problem: str | None = None
    last_node: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "number": self.number,
            "kind": self.kind,
            "owner": self.owner,
            "function": self.function,
            "site": None if self.site is None else self.site.to_dict(),
            "before": [None if g is None else g.to_dict() for g in self.before],
            "after": [None if g is None else g.to_dict() for g in self.after],
            "grad_output": [None if g is None else g.to_dict() for g in self.grad_output],
            "returned": self.returned,
            "effect": self.effect,
            "warning": self.warning,
            "node": self.node,
            "factor": number_in_document(self.factor),
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRegistration:
    """A user's hook that was registered: on what, and how often it fired.

    `after_backward` says that no backward pass began after it was registered, `during_backward` that it was registered
    while one ran, `removed` that it was removed before it could fire (at `removed_at`), `in_graph` that the last pass
    ran through its owner.
    """

    kind: str
    owner: str
    function: str
    site: SourceSite | None
    calls: int
    after_forward: bool = False
    owner_called: bool = True
    forward_called_directly_at: SourceSite | None = None
    after_backward: bool = False
    during_backward: bool = False
    removed: bool = False
    removed_at: SourceSite | None = None
    in_graph: bool = True

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        direct = self.forward_called_directly_at
        return {
            "kind": self.kind,
            "owner": self.owner,
            "function": self.function,
            "site": None if self.site is None else self.site.to_dict(),
            "calls": self.calls,
            "after_forward": self.after_forward,
            "owner_called": self.owner_called,
            "forward_called_directly_at": None if direct is None else direct.to_dict(),
            "after_backward": self.after_backward,
            "removed": self.removed,
            "removed_at": None if self.removed_at is None else self.removed_at.to_dict(),
        }
