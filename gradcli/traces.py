"""What one forward and backward pass did: the graph, the hook calls and the symptoms, as frozen values."""

from dataclasses import dataclass
from typing import Any

from gradcli._version import __version__

SCHEMA = "gradcli.trace/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySummary:
    """A tensor in short: shape, dtype, norm, and its values where there are few (flat, at most 16)."""

    shape: tuple[int, ...]
    dtype: str
    norm: float | None
    values: tuple[complex, ...] | None
    non_finite: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "norm": _number(self.norm),
            "values": None if self.values is None else [_number(v) for v in self.values],
            "non_finite": self.non_finite,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSite:
    """Where in the user's code something was made or defined."""

    file: str
    line: int
    function: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {"file": self.file, "line": self.line, "function": self.function}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """From a node to the node (None: no gradient needed there) that gets its gradient number `slot`."""

    target: int | None
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNode:
    """One node of the backward graph; `id` numbers nodes in backward order from 0 at the root."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One call of a user's hook, in the order in which they ran.

    `kind` is one of: tensor, post-accumulate, node-pre, node-post, multi-grad, module-forward-pre, module-forward,
    module-backward-pre, module-full, module-legacy, pack, unpack. `node` is the graph node whose gradients it saw,
    `factor` the one number it multiplied them by (where there is one), `problem` what is wrong with what it returned,
    `last_node` the operation that a legacy module hook hangs on, where the module did more than that.
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
            "factor": _number(self.factor),
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRegistration:
    """A user's hook as it was found registered: whose it is, and how often it fired.

    `after_backward` says that no backward pass began after it was registered, `during_backward` that it was registered
    while one ran, `removed` that it was removed before it could fire (at `removed_at`), `in_graph` that its owner is
    part of the graph that the last pass ran through.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCut:
    """An operation whose result gradients do not follow though they follow its input, and the leaves lost there.

    `how` is what was called: "detach()", ".data", "item()", "gt()", "long()", "Sign.apply()", or, `by_mode`, what had
    switched recording off: "no_grad", "inference_mode", "set_grad_enabled(False)", with `site` the line of that and
    `used_at` the line of the operation. `gives` is the dtype of the result, or "number"; `forward` where the forward
    of a custom Function is written. `certain` says that the traced result was computed from what came out, without
    arithmetic of Python or NumPy in between.
    """

    how: str
    site: SourceSite | None
    leaves: tuple[str, ...] = ()
    used_at: SourceSite | None = None
    certain: bool = True
    by_mode: bool = False
    gives: str = "float64"
    forward: SourceSite | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "how": self.how,
            "site": None if self.site is None else self.site.to_dict(),
            "leaves": list(self.leaves),
            "certain": self.certain,
        }


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
            "value": _number(self.value),
            "calculation": self.text,
            "cause": None if self.cause is None else self.cause.to_dict(),
            "became": None if self.became is None else self.became.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionConflict:
    """A tensor that a node had saved and that was changed in place before the node ran: the two operations."""

    node: str
    saved_at: SourceSite | None
    changed_by: str | None = None
    changed_at: SourceSite | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFate:
    """A named tensor after backward: its `.grad`, or why there is none.

    `role` is "input", "parameter", "local" or "attribute". `node` is the graph node that holds or made it. For a
    result: `made_by` its operation, `made_at` and `made_with` the line, `origins` the leaves it was computed from
    ("" for one that has no name), `operations` the chain of operations where it is a chain from one leaf;
    `retained_late` says that retain_grad() was called only after backward, at `retained_at`; `cleared_at` is where the
    program took its gradient away last, `replaced_at` where it gave a module another parameter in place of this one,
    `used_at` the first operation that used it. `in_result` says that a graph leads to it from what the program
    returned; `unregistered_in` is the class of the module that holds it as a plain tensor.
    """

    name: str
    is_leaf: bool
    requires_grad: bool
    grad: ArraySummary | None
    why: str | None = None
    symptom: str | None = None
    site: SourceSite | None = None
    role: str = "input"
    aliases: tuple[str, ...] = ()
    node: int | None = None
    made_by: str | None = None
    made_with: str | None = None
    origins: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    retains_grad: bool = False
    retained_late: bool = False
    retained_at: SourceSite | None = None
    cleared_at: SourceSite | None = None
    replaced_at: SourceSite | None = None
    used_at: SourceSite | None = None
    in_result: bool = False
    unregistered_in: str | None = None
    floating: bool = True
    stray_attribute: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "name": self.name,
            "is_leaf": self.is_leaf,
            "requires_grad": self.requires_grad,
            "grad": None if self.grad is None else self.grad.to_dict(),
            "why": self.why,
            "symptom": self.symptom,
            "site": None if self.site is None else self.site.to_dict(),
            "role": self.role,
            "aliases": list(self.aliases),
            "node": self.node,
            "made_by": self.made_by,
            "made_with": self.made_with,
            "origins": list(self.origins),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceGraph:
    """Everything one trace recorded.

    `passes` counts the backward passes seen; nodes and gradients are those of the last one. `fills_grad` is false
    where only `autograd.grad` ran, which returns gradients and fills no `.grad`. `pass_site` is where the program
    called for the last pass, `pass_root` what that ran from; `result_in_pass` is false where it returned another.
    `unregistered` are attributes of modules that hold parameters or modules in a plain list or dict; `results` says
    briefly of each plain result among the locals how it was made: none of them keeps a gradient.
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
    passes: int = 0
    pass_site: SourceSite | None = None
    pass_root: str | None = None
    result_in_pass: bool = True
    fills_grad: bool = True
    result_requires_grad: bool = False
    graph_symptoms: tuple[str, ...] = ()
    unregistered: tuple[str, ...] = ()
    non_finite: NonFinite | None = None
    version_conflict: VersionConflict | None = None
    results: tuple[str, ...] = ()

    @property
    def symptoms(self) -> tuple[str, ...]:
        """The names of what looks wrong: `--check` exits 1 when there are any."""
        return tuple(fate.symptom for fate in self.tensors if fate.symptom is not None) + self.graph_symptoms

    @property
    def saved_bytes(self) -> int:
        """Bytes of the tensors that the nodes saved, each node's own counted."""
        return sum(node.saved_bytes for node in self.nodes)

    def _repr_html_(self) -> str:
        """What a notebook shows: the trace as text."""
        from gradcli.reporters.graph_tree import fragment

        return fragment(self)

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
            "registrations": [registration.to_dict() for registration in self.registrations],
            "cuts": [cut.to_dict() for cut in self.cuts],
            "symptoms": list(self.symptoms),
            "passes": self.passes,
            "pass_site": None if self.pass_site is None else self.pass_site.to_dict(),
            "pass_root": self.pass_root,
            "result_in_pass": self.result_in_pass,
            "fills_grad": self.fills_grad,
            "saved_bytes": self.saved_bytes,
            "error": self.error,
            "error_phase": self.error_phase,
            "error_traceback": self.error_traceback,
            "error_hint": self.error_hint,
        }


def _number(value: complex | None) -> Any:
    if value is None:
        return None
    if isinstance(value, complex):
        return [_number(value.real), _number(value.imag)] if value.imag else _number(value.real)
    number = float(value)
    return number if abs(number) < float("inf") else str(number)
