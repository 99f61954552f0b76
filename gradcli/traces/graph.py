"""Everything one trace recorded, and its document."""

from typing import Any

from gradcli._version import __version__
from gradcli.display import Displayed
from gradcli.frozen import dataclass
from gradcli.traces.fates import GraphCut, TensorFate
from gradcli.traces.faults import NodeCheck, NonFinite, UnseenWrite, VersionConflict, WrongNode
from gradcli.traces.hooks import HookCall, HookRegistration
from gradcli.traces.memory import MemoryLedger
from gradcli.traces.nodes import Edge, TraceNode
from gradcli.traces.summaries import ArraySummary, SourceSite

SCHEMA = "gradcli.trace/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceGraph(Displayed):
    """Everything one trace recorded.

    `passes` counts the backward passes recorded; nodes and gradients are those of the last one. `earlier` are the
    last of the earlier passes in which hooks changed gradients. `fills_grad` is false if only `autograd.grad` ran,
    which returns gradients and fills no `.grad`. `filled_inside` are the leaves that a pass inside the recorded one
    filled. `pass_site` is the line that started the last pass, `pass_root` the tensor it ran from, `pass_result`
    its value where that is not the result, `starts` the nodes (and outputs) at which it began; `result_in_pass` is
    false if the program returned a different one. `unregistered` are attributes of modules that hold parameters or
    modules in a plain list or dict; `results` says for each plain non-leaf among the locals how it was computed:
    none of them keeps a gradient. `freed_at` is the line of an earlier pass that freed what this one needed.
    `notes` are facts that the graph does not show. `memory` is the ledger of the last pass, if requested.
    """

    target: str
    backend: str
    nodes: tuple[TraceNode, ...]
    hooks: tuple[HookCall, ...] = ()
    tensors: tuple[TensorFate, ...] = ()
    lints: tuple[str, ...] = ()
    result: ArraySummary | None = None
    root_name: str | None = None
    inputs_from: str | None = None
    flags: tuple[str, ...] = ()
    error: str | None = None
    error_phase: str | None = None
    error_traceback: str | None = None
    error_hint: str | None = None
    effects: tuple[str, ...] = ()
    registrations: tuple[HookRegistration, ...] = ()
    cuts: tuple[GraphCut, ...] = ()
    earlier: "tuple[TraceGraph, ...]" = ()
    passes: int = 0
    pass_site: SourceSite | None = None
    pass_root: str | None = None
    pass_result: ArraySummary | None = None
    starts: tuple[Edge, ...] = ()
    result_in_pass: bool = True
    fills_grad: bool = True
    filled_inside: tuple[str, ...] = ()
    result_requires_grad: bool = False
    graph_symptoms: tuple[str, ...] = ()
    unregistered: tuple[str, ...] = ()
    non_finite: NonFinite | None = None
    version_conflict: VersionConflict | None = None
    freed_at: SourceSite | None = None
    unseen_writes: tuple[UnseenWrite, ...] = ()
    wrong_nodes: tuple[WrongNode, ...] = ()
    node_check: NodeCheck | None = None
    results: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    memory: MemoryLedger | None = None

    @property
    def symptoms(self) -> tuple[str, ...]:
        """The names of the symptoms: `--check` exits 1 if there are any."""
        return tuple(fate.symptom for fate in self.tensors if fate.symptom is not None) + self.graph_symptoms

    @property
    def saved_bytes(self) -> int:
        """Bytes of the tensors that the nodes saved, each node's own counted."""
        return sum(node.saved_bytes for node in self.nodes)

    def to_dict(self) -> dict[str, Any]:
        """The document of `trace --format json`, schema gradcli.trace/1."""
        return {
            "schema": SCHEMA,
            "gradcli": __version__,
            "target": self.target,
            "backend": self.backend,
            "root": self.root_name,
            "result": None if self.result is None else self.result.to_dict(),
            "inputs_from": self.inputs_from,
            "flags": list(self.flags),
            "nodes": [node.to_dict() for node in self.nodes],
            "hooks": [call.to_dict() for call in self.hooks],
            "tensors": [fate.to_dict() for fate in self.tensors],
            "lints": list(self.lints),
            "effects": list(self.effects),
            "non_finite": None if self.non_finite is None else self.non_finite.to_dict(),
            "results": list(self.results),
            "notes": list(self.notes),
            "wrong_nodes": [wrong.to_dict() for wrong in self.wrong_nodes],
            "registrations": [registration.to_dict() for registration in self.registrations],
            "cuts": [cut.to_dict() for cut in self.cuts],
            "symptoms": list(self.symptoms),
            "passes": self.passes,
            "pass_site": None if self.pass_site is None else self.pass_site.to_dict(),
            "pass_root": self.pass_root,
            "result_in_pass": self.result_in_pass,
            "fills_grad": self.fills_grad,
            "saved_bytes": self.saved_bytes,
            "memory": None if self.memory is None else self.memory.to_dict(self.nodes),
            "error": self.error,
            "error_phase": self.error_phase,
            "error_traceback": self.error_traceback,
            "error_hint": self.error_hint,
        }
