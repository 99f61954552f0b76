"""Converts what a trace recorded to plain values: nodes, hook calls, cuts, and the facts about every named tensor."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from gradcli.traces import (
    ArraySummary,
    GraphCut,
    HookCall,
    HookRegistration,
    MemoryLedger,
    NonFinite,
    SourceSite,
    TensorFate,
    TraceGraph,
    TraceNode,
    UnseenWrite,
    VersionConflict,
)
from gradcli.tracing.gradients import GradientLog, stray_flag
from gradcli.tracing.graph import LEAF_NODE, GraphPass, backward_order, frozen_nodes
from gradcli.tracing.hooks import HookLog, HookStandIn, RawCall
from gradcli.tracing.memory.history import PastPass
from gradcli.tracing.modules import ModuleWatch
from gradcli.tracing.names import Named, NameTable
from gradcli.tracing.operations import GRADIENTS, NEW_LEAVES, OperationLog
from gradcli.tracing.origins.nonfinite import Origins
from gradcli.tracing.origins.overwritten import Overwritten
from gradcli.tracing.origins.provenance import Loss, Provenance, by_mode, how_lost, only_written_to
from gradcli.tracing.origins.unseen import unseen_writes
from gradcli.tracing.reading import Lens, maker_of, requires_grad
from gradcli.tracing.registration import HookWatch
from gradcli.tracing.sites import is_users_function, site_of_function, site_of_stack, source_line

_LONG = 8
_CHANGED = re.compile(
    r"modified by an inplace operation: \[\S+ \[(?P<shape>.*?)\]\].*expected version (?P<then>\d+)", re.S
)


@final
@dataclass(slots=True)
class Facts:
    """The objects of a finished trace, converted to plain values."""

    lens: Lens
    names: NameTable
    log: HookLog
    graph: GraphPass | None
    hooks: HookWatch
    operations: OperationLog
    gradients: GradientLog
    modules: ModuleWatch
    asked: Mapping[int, tuple[Any, SourceSite | None, bool]]
    sought: Sequence[Any] = ()
    returned: Sequence[Any] = ()
    roots: Sequence[Any] = ()
    restricted_to: Sequence[Any] | None = None
    filled_inside: Sequence[Any] = ()
    _below_result: set[int] = field(default_factory=set)
    _made: Counter[tuple[str, SourceSite | None]] | None = None
    _table: list[Named] = field(init=False)
    _label: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        self._table = self.names.table()
        self._label = {id(entry.tensor): entry.name for entry in self._table}
        if not self.result_in_pass():
            nodes = backward_order(node for tensor in self.returned if (node := maker_of(tensor)) is not None)
            self._below_result = {id(n.variable) for n in nodes if type(n).__name__ == LEAF_NODE}

    def result_in_pass(self) -> bool:
        """Whether the last pass ran from what the program returned, or from a part of it."""
        if self.graph is None or not self.returned:
            return True
        began = set(map(id, self.roots))  # a leaf has no node where nothing but itself leads to it
        return any(id(tensor) in began or self._node_of(tensor) is not None for tensor in self.returned)

    def pass_root(self) -> str | None:
        """The name of the tensor that the last pass ran from."""
        return self._label.get(id(self.roots[0])) if self.roots else None

    def pass_result(self, value: object) -> ArraySummary | None:
        """The tensor that the last pass ran from, if it is not the result."""
        first = next(self.lens.tensors_in(value), None)
        if not self.roots or first is None or any(first is root for root in self.roots):
            return None
        return self.lens.summarise(self.roots[0])

    def names_of(self, tensors: Sequence[Any]) -> tuple[str, ...]:
        """The names of tensors, each once; those without a name are left out."""
        return tuple(dict.fromkeys(self._label[id(tensor)] for tensor in tensors if id(tensor) in self._label))

    def nodes(self) -> tuple[TraceNode, ...]:
        """The nodes of the last pass."""
        inside = set(map(id, self.filled_inside))
        return () if self.graph is None else frozen_nodes(self.graph.records, self._label, inside)

    def result(self, value: object) -> ArraySummary | None:
        """The first tensor of the result."""
        first = next(self.lens.tensors_in(value), None)
        return None if first is None else self.lens.summarise(first)

    def root_name(self, value: object) -> str | None:
        """The name of the result, None if it has none."""
        first = next(self.lens.tensors_in(value), None)
        return self._label.get(id(first))

    def ledger(self) -> MemoryLedger | None:
        """The memory of the last pass, None if it was not requested."""
        watch = None if self.graph is None else self.graph.ledger
        if watch is None:
            return None
        leaves = [entry for entry in self._table if maker_of(entry.tensor) is None]
        return watch.frozen({self.lens.storage(entry.tensor)[0]: entry.name for entry in reversed(leaves)})

    # --- what went wrong
    def non_finite(self, result: object) -> NonFinite | None:
        """What produced the first NaN or Inf, None if there is none or its origin is unknown."""
        origins = Origins(self.operations, self._label_of_value)
        bad = [tensor for tensor in self.lens.tensors_in(result) if self.lens.is_not_finite(tensor)]
        found = origins.of_results(bad)
        if found is not None or bad or self.graph is None:
            return found
        return origins.of_backward(self.graph, self.log)

    def _label_of_value(self, value: int) -> str | None:
        return next((e.name for e in self._table if value in self.operations.values(e.tensor)[:1]), None)

    def version_conflict(self, error: str | None) -> VersionConflict | None:
        """The operation that saved a tensor and the one that changed it, if backward raised because of that."""
        matched = _CHANGED.search(error or "")
        if matched is None or self.graph is None or self.graph.failed is None:
            return None
        record = self.graph.records[self.graph.failed]
        then, shape = int(matched["then"]), tuple(int(size) for size in re.findall(r"\d+", matched["shape"]))
        changed = Overwritten(self.lens, self.operations, record.node._sequence_nr()).first(then, shape)
        return VersionConflict(
            node=record.name,
            saved_at=record.site,
            changed_by=None if changed is None else changed.name,
            changed_at=None if changed is None else changed.site,
        )

    def unseen_writes(self) -> tuple[UnseenWrite, ...]:
        """The writes to named results in the last pass that autograd did not record."""
        results = [
            (e.tensor, e.name)
            for e in self._table
            if maker_of(e.tensor) is not None and self._node_of(e.tensor) is not None
        ]
        return tuple(unseen_writes(self.lens, self.operations, results))

    # --- hooks
    def hook_calls(self) -> tuple[HookCall, ...]:
        """Every call, numbered from 1."""
        last = self.log.pass_number
        return tuple(self._hook_call(number, raw, last) for number, raw in enumerate(self.log.calls, start=1))

    def earlier(self, target: str, backend: str) -> tuple[TraceGraph, ...]:
        """The earlier passes in which hooks changed gradients, each with its own calls."""
        return tuple(self._earlier(past, target, backend) for past in self.log.history.changed)

    def _earlier(self, past: PastPass, target: str, backend: str) -> TraceGraph:
        calls = [(n, raw) for n, raw in enumerate(self.log.calls, start=1) if raw.pass_number == past.number]
        names = {number: self._label.get(id(leaf())) for number, leaf in past.leaves.items()}
        return TraceGraph(
            target=target,
            backend=backend,
            nodes=tuple(replace(node, variable=names.get(node.id)) for node in past.nodes),
            hooks=tuple(self._hook_call(number, raw, past.number) for number, raw in calls),
            passes=past.number,
            pass_site=past.site,
            starts=past.starts,
        )

    def _hook_call(self, number: int, raw: RawCall, recorded: int) -> HookCall:
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
            node=raw.node if raw.pass_number == recorded else None,
            output=raw.hook.output,
            registered_at=raw.hook.registered_at if self._is_one_of_several(raw.hook) else None,
            inside=raw.inside if raw.pass_number == recorded else None,
            factor=raw.factor,
            changed_slots=raw.changed_slots,
            problem=raw.problem,
            last_node=raw.last_node,
        )

    def _is_one_of_several(self, hook: HookStandIn) -> bool:
        """Whether hooks of the same name, made by one line of code, were registered at several lines."""
        if self._made is None:
            lines = {(h.function, h.site, id(h.hook)): h.registered_at for h in self.log.stand_ins}
            pairs = {(function, site, line) for (function, site, _), line in lines.items() if line is not None}
            self._made = Counter((function, site) for function, site, _ in pairs)
        return self._made[hook.function, hook.site] > 1

    def _owner(self, hook: HookStandIn) -> str:
        if hook.kind.startswith("module"):
            return hook.owner_class if hook.owner is None else self.names.module_name(hook.owner)
        if hook.kind in ("pack", "unpack"):
            return "saved tensors"
        if hook.kind == "multi-grad":
            return "several tensors"
        label = self._label.get(id(hook.owner)) if hook.owner is not None else None
        if label is not None or hook.kind.startswith("node"):
            return label or hook.node_name or "node"
        return f"result of {hook.node_name}" if hook.node_name else "leaf"

    def registrations(self) -> tuple[HookRegistration, ...]:
        """The hooks registered on tensors and nodes; those on modules are listed by ModuleWatch."""
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
    def cuts(self, result: object) -> tuple[GraphCut, ...]:
        """Where the gradients of leaves that the pass did not reach were lost, each place once.

        The gradient of a tensor that autograd.grad was asked for is not lost there, as the program has it, unless the
        result needs a second derivative.
        """
        leaves = [entry for entry in self._table if self._is_awaited(entry.tensor)]
        roots = list(self.roots) or list(self.lens.tensors_in(result))
        if not leaves or not roots:
            return ()
        provenance = Provenance(self.operations, roots)
        losses = provenance.losses([entry.tensor for entry in leaves])
        found: dict[GraphCut, list[str]] = {}
        for entry, loss in zip(leaves, losses, strict=True):
            if loss is None or (loss.captured and entry.tensor.grad is not None):
                continue
            own = loss.operation.name == GRADIENTS and any(entry.tensor is tensor for tensor in self.sought)
            if not own or provenance.needs_second_derivative(entry.tensor, loss.operation):
                found.setdefault(_cut(loss), []).append(entry.name)
        return tuple(replace(cut, leaves=tuple(names)) for cut, names in found.items())

    def _is_missed(self, tensor: Any) -> bool:
        return requires_grad(tensor) and tensor.grad_fn is None and self._node_of(tensor) is None

    def _is_awaited(self, tensor: Any) -> bool:
        """Whether the pass did not reach a tensor whose `.grad` it would have filled."""
        retains = requires_grad(tensor) and tensor.grad_fn is not None and tensor.retains_grad
        return self._is_missed(tensor) or (retains and self._node_of(tensor) is None)

    def _origins(self, node: Any) -> tuple[str, ...]:
        """The leaves below a node, "" for one without a name."""
        number = None if self.graph is None else self.graph.numbers.get(node)
        if self.graph is not None and number is not None:
            leaves = self.graph.leaves_below(number)
        else:
            leaves = [n.variable for n in backward_order([node]) if type(n).__name__ == LEAF_NODE]
        return tuple(dict.fromkeys(self._label.get(id(leaf), "") for leaf in leaves))

    def fates(self) -> tuple[TensorFate, ...]:
        """The facts about every named tensor that could carry a gradient."""
        return tuple(self._fate(entry) for entry in self._table)

    def _fate(self, entry: Named) -> TensorFate:
        tensor = entry.tensor
        node = maker_of(tensor)
        readable = node is None or tensor.retains_grad
        gradient = tensor.grad if readable else None
        retained_late, retained_at = self.hooks.late(tensor)
        taken_at = self.gradients.taken_at(tensor) if readable and self.graph is not None else None
        zeroed = self.gradients.zeroed(tensor)
        changed = self.gradients.changed(tensor) if gradient is not None else None
        site = None if node is None else site_of_stack(node.metadata.get("traceback_", ()))
        return TensorFate(
            name=entry.name,
            aliases=tuple(entry.aliases),
            role=entry.role,
            is_leaf=node is None,
            requires_grad=requires_grad(tensor),
            retains_grad=bool(node is not None and tensor.retains_grad),
            retained_late=retained_late,
            retained_at=retained_at,
            cleared_at=taken_at if zeroed is None else zeroed[0],
            zeroed_by=None if zeroed is None else zeroed[1],
            changed_at=None if changed is None else changed[0],
            changed_by=None if changed is None else changed[1],
            replaced_at=self.modules.replaced_at(tensor),
            used_at=self._used_at(tensor),
            left_out=self.restricted_to is not None and not any(tensor is other for other in self.restricted_to),
            asked_at=self.asked.get(id(tensor), (None, None))[1],
            asked_with_graph=self.asked.get(id(tensor), (None, None, False))[2],
            in_result=id(tensor) in self._below_result,
            unregistered_in=self.names.unregistered.get(id(tensor)),
            switched_off_at=self.gradients.switched_off_at(tensor),
            floating=bool(tensor.is_floating_point() or tensor.is_complex()),
            grad=None if gradient is None else self.lens.summarise(gradient),
            site=site,
            node=self._node_of(tensor),
            made_by=None if node is None else type(node).__name__,
            made_with=source_line(site),
            origins=() if node is None else self._origins(node),
            operations=() if node is None else _chain(node),
            stray_attribute=stray_flag(tensor),
            same_memory=self._same_memory(tensor),
        )

    def _same_memory(self, tensor: Any) -> str | None:
        """The leaf of the graph that shares memory with a tensor that the pass did not reach."""
        if self.graph is None or not self._is_missed(tensor):
            return None
        key = self.lens.storage(tensor)
        leaves = (record.variable for record in self.graph.records if record.name == LEAF_NODE)
        found = (self._label.get(id(leaf)) for leaf in leaves if key[1] and self.lens.storage(leaf) == key)
        return next((name for name in found if name is not None), None)

    def _used_at(self, tensor: Any) -> SourceSite | None:
        if not self._is_awaited(tensor):
            return None
        own = dict.fromkeys(self.operations.values(tensor), 1)
        reads = [o for o in self.operations.operations if any(value in own for value in o.inputs)]
        # A conversion such as `.double()` reads the tensor only to write it again: that is not counted as a use.
        rewriting = only_written_to(self.operations.operations, own) if reads and len(own) > 1 else {}
        for operation in reads:
            written = [value in own or rewriting.get(value, 0) == 1 for value in operation.outputs]
            if not (written and all(written)):
                return operation.site
        return None

    def _node_of(self, tensor: Any) -> int | None:
        if self.graph is None:
            return None
        node = maker_of(tensor)
        if node is not None:
            return self.graph.numbers.get(node)
        number = self.log.leaf_nodes.get(id(tensor))
        return number if number is not None and self.graph.records[number].variable is tensor else None


def _cut(loss: Loss) -> GraphCut:
    operation = loss.operation
    mode = operation.mode if by_mode(operation) else None
    function = None if operation.function is None else operation.function.forward
    rule = site_of_function(function) if function is not None and is_users_function(function) else None
    return GraphCut(
        how=operation.name if loss.captured else how_lost(operation),
        site=(None if mode is None else mode.site) or operation.site,
        used_at=operation.site,
        certain=loss.certain,
        by_mode=mode is not None,
        at_import=mode is not None and mode.at_import,
        gives=operation.dtype or "number",
        other_result=any(operation.tracked_out),
        before_flag=loss.before_flag,
        new_leaf=operation.name in NEW_LEAVES,
        of_gradients=operation.name == GRADIENTS,
        captured=loss.captured,
        without_graph=not any(operation.tracked),
        forward=rule,
    )


def _chain(node: Any) -> tuple[str, ...]:
    """The operations from a result to the one leaf it was computed from; empty if that is not a short chain."""
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
