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

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
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
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One call of a user's hook, in the order in which they ran.

    `kind` is one of: tensor, post-accumulate, node-pre, node-post, multi-grad, module-forward-pre, module-forward,
    module-backward-pre, module-full, module-legacy, pack, unpack.
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
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFate:
    """A named tensor after backward: its `.grad`, or why there is none."""

    name: str
    is_leaf: bool
    requires_grad: bool
    grad: ArraySummary | None
    why: str | None = None
    symptom: str | None = None
    site: SourceSite | None = None

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
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceGraph:
    """Everything one trace recorded."""

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

    @property
    def symptoms(self) -> tuple[str, ...]:
        """The names of what looks wrong: `--check` exits 1 when there are any."""
        return tuple(fate.symptom for fate in self.tensors if fate.symptom is not None)

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
            "error": self.error,
        }


def _number(value: complex | None) -> Any:
    if value is None:
        return None
    if isinstance(value, complex):
        return [_number(value.real), _number(value.imag)] if value.imag else _number(value.real)
    number = float(value)
    return number if abs(number) < float("inf") else str(number)
