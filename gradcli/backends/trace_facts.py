"""From what a trace watched to plain values: nodes, hook calls, cuts, and the facts about every named tensor."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

from gradcli.backends.trace_cuts import RawCut
from gradcli.backends.trace_graph import LEAF_NODE, GraphPass, backward_order, frozen_nodes
from gradcli.backends.trace_hooks import HookLog, HookStandIn, RawCall
from gradcli.backends.trace_lens import Lens
from gradcli.backends.trace_names import Named, NameTable
from gradcli.backends.trace_registration import HookWatch
from gradcli.backends.trace_sites import site_of_stack, source_line
from gradcli.traces import ArraySummary, GraphCut, HookCall, HookRegistration, TensorFate, TraceNode

_FLAG = "requires_grad"
_LONG = 8


@final
@dataclass(slots=True)
class Facts:
    """The objects of a finished trace, read for the last time."""

    lens: Lens
    names: NameTable
    log: HookLog
    graph: GraphPass | None
    hooks: HookWatch
    _table: list[Named] = field(init=False)
    _label: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        self._table = self.names.table()
        self._label = {id(entry.tensor): entry.name for entry in self._table}

    def nodes(self) -> tuple[TraceNode, ...]:
        """The nodes of the last pass."""
        return () if self.graph is None else frozen_nodes(self.graph.records, self._label)

    def result(self, value: object) -> ArraySummary | None:
        """The first tensor of the result."""
        first = next(self.lens.tensors_in(value), None)
        return None if first is None else self.lens.summarise(first)

    def root_name(self, value: object) -> str | None:
        """What the result is called, None where it has no name."""
        first = next(self.lens.tensors_in(value), None)
        return self._label.get(id(first))

    # --- hooks
    def hook_calls(self) -> tuple[HookCall, ...]:
        """Every call, numbered from 1."""
        return tuple(self._hook_call(number, raw) for number, raw in enumerate(self.log.calls, start=1))

    def _hook_call(self, number: int, raw: RawCall) -> HookCall:
        return HookCall(
            number=number,
            kind=raw.hook.kind,
            owner=self._owner(raw.hook),
            function=raw.hook.function,
            site=raw.hook.site,
            before=raw.before,
            after=raw.after,
            grad_output=raw.grad_output,
            returned=raw.returned,
            effect=raw.effect,
            node=raw.node if raw.pass_number == self.log.pass_number else None,
            factor=raw.factor,
            changed_slots=raw.changed_slots,
            problem=raw.problem,
            last_node=raw.last_node,
        )

    def _owner(self, hook: HookStandIn) -> str:
        if hook.kind.startswith("module"):
            return hook.owner_class
        if hook.kind in ("pack", "unpack"):
            return "saved tensors"
        if hook.kind == "multi-grad":
            return "several tensors"
        label = self._label.get(id(hook.owner)) if hook.owner is not None else None
        if label is not None or hook.kind.startswith("node"):
            return label or hook.node_name or "node"
        return f"result of {hook.node_name}" if hook.node_name else "leaf"

    def registrations(self) -> tuple[HookRegistration, ...]:
        """Hooks on tensors and nodes that were found; modules have their own account."""
        own = [h for h in self.log.stand_ins if not h.kind.startswith("module") and h.kind not in ("pack", "unpack")]
        return tuple(
            HookRegistration(
                kind=h.kind,
                owner=self._owner(h),
                function=h.function,
                site=h.site,
                calls=h.calls,
                after_backward=0 < self.log.pass_number <= h.born_after and not h.born_during,
                during_backward=h.born_during,
                removed=h.removed,
                removed_at=h.removed_at,
                in_graph=self.log.is_in_graph(h),
            )
            for h in own
        )

    # --- tensors
    def cuts(self, found: Iterable[RawCut]) -> tuple[GraphCut, ...]:
        """Where tensors left the graph, with the leaves they came from."""
        return tuple(GraphCut(how=cut.how, site=cut.site, leaves=self._leaves_of_cut(cut)) for cut in found)

    def _leaves_of_cut(self, cut: RawCut) -> tuple[str, ...]:
        found = [self._label.get(id(leaf), "") for leaf in cut.leaves]
        used = [entry.tensor for entry in self._table if not cut.names.isdisjoint({entry.name, *entry.aliases})]
        found += [self._label[id(tensor)] for tensor in used if tensor.grad_fn is None]
        for node in [*cut.nodes, *(tensor.grad_fn for tensor in used if tensor.grad_fn is not None)]:
            found += self._origins(node)
        return tuple(dict.fromkeys(filter(None, found)))

    def _origins(self, node: Any) -> tuple[str, ...]:
        """The leaves below a node, "" for one without a name."""
        leaves = [n.variable for n in backward_order([node]) if type(n).__name__ == LEAF_NODE]
        return tuple(dict.fromkeys(self._label.get(id(leaf), "") for leaf in leaves))

    def fates(self) -> tuple[TensorFate, ...]:
        """The facts about every named tensor that could carry a gradient."""
        return tuple(self._fate(entry) for entry in self._table)

    def _fate(self, entry: Named) -> TensorFate:
        tensor = entry.tensor
        node = tensor.grad_fn
        readable = node is None or tensor.retains_grad
        gradient = tensor.grad if readable else None
        retained_late, retained_at = self.hooks.late(tensor)
        site = None if node is None else site_of_stack(node.metadata.get("traceback_", ()))
        return TensorFate(
            name=entry.name,
            aliases=tuple(entry.aliases),
            role=entry.role,
            is_leaf=node is None,
            requires_grad=bool(tensor.requires_grad),
            retains_grad=bool(node is not None and tensor.retains_grad),
            retained_late=retained_late,
            retained_at=retained_at,
            floating=bool(tensor.is_floating_point() or tensor.is_complex()),
            grad=None if gradient is None else self.lens.summarise(gradient),
            site=site,
            node=self._node_of(tensor),
            made_by=None if node is None else type(node).__name__,
            made_with=source_line(site),
            origins=() if node is None else self._origins(node),
            operations=() if node is None else _chain(node),
            stray_attribute=_stray(tensor),
        )

    def _node_of(self, tensor: Any) -> int | None:
        if self.graph is None:
            return None
        if tensor.grad_fn is not None:
            return self.graph.numbers.get(tensor.grad_fn)
        return next((n for n, r in enumerate(self.graph.records) if r.variable is tensor), None)


def _chain(node: Any) -> tuple[str, ...]:
    """The operations from a result down to the one leaf it was made from; empty where that is no short chain."""
    names: list[str] = []
    while len(names) < _LONG:
        if type(node).__name__ == LEAF_NODE:
            return tuple(names)
        names.append(type(node).__name__)
        targets = [target for target, _ in node.next_functions if target is not None]
        if len(targets) != 1:
            return ()
        node = targets[0]
    return ()


def _stray(tensor: Any) -> str | None:
    """An attribute of the user's that looks like a misspelt requires_grad."""
    if tensor.requires_grad:
        return None
    own = [name for name in getattr(tensor, "__dict__", {}) if not name.startswith("_") and name != _FLAG]
    return next(iter(difflib.get_close_matches(_FLAG, own, n=1, cutoff=0.8)), None)
