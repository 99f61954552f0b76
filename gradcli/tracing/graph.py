"""The graph of one backward pass: its nodes in order, and what flows through each while it runs."""

import functools
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, final

from gradcli.frozen import dataclass
from gradcli.traces import ArraySummary, Edge, SourceSite, TraceNode
from gradcli.tracing.attributes import Patches
from gradcli.tracing.hooks import HookLog
from gradcli.tracing.memory.history import PastPass
from gradcli.tracing.memory.saved import LedgerWatch
from gradcli.tracing.operations import Operation, OperationLog
from gradcli.tracing.reading import Lens, as_tuple, value_at
from gradcli.tracing.sites import is_packed, module_of_stack, site_of_function, site_of_stack

LEAF_NODE = "AccumulateGrad"
_AGAIN = "Trying to backward through the graph a second time"


@final
@dataclass(slots=True)
class NodeRecord:
    """One node while the trace runs: the framework's object, and what was recorded of it.

    What it saved is not read if hooks `packed` it: reading calls the hook that unpacks.
    """

    node: Any
    name: str
    edges: tuple[Edge, ...]
    site: SourceSite | None
    module: str | None
    rule: SourceSite | None
    output: ArraySummary | None
    saved_bytes: int
    packed: bool
    gradients_in: tuple[ArraySummary | None, ...] = ()
    gradients_out: tuple[ArraySummary | None, ...] = ()
    executed: bool = False
    filled_before: bool = False
    refused: bool = False

    @property
    def variable(self) -> Any:
        """The leaf that an accumulating node fills, None for other nodes."""
        return self.node.variable if self.name == LEAF_NODE else None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BadGradient:
    """The first gradient that was not finite: the node that returned it, or (`given`) that it was an argument.

    `incoming` is the gradient that the node received at the same entry, `saved` what it had saved, as text,
    `hook_calls` the number of hook calls before it, `inside` the first operation in a user's own backward whose result
    was not finite.
    """

    node: int
    entry: tuple[int, ...] = ()
    value: float = 0.0
    incoming: float | None = None
    saved: tuple[tuple[str, str], ...] = ()
    hook_calls: int = 0
    given: bool = False
    inside: Operation | None = None


@final
@dataclass(slots=True)
class GraphPass:
    """One backward pass. Hooks on every node record the gradients; the nodes' own rules run undisturbed.

    `packed` says that tensors were saved through hooks, and that it is not known by which nodes.
    """

    lens: Lens
    log: HookLog
    operations: OperationLog
    site: SourceSite | None
    retained: bool
    records: list[NodeRecord] = field(default_factory=list)
    numbers: dict[Any, int] = field(default_factory=dict)
    ledger: LedgerWatch | None = None
    packed: bool = False
    starts: tuple[Edge, ...] = ()
    first_bad: BadGradient | None = None
    failed: int | None = None
    finished: bool = True
    _begun_at: int = 0
    _handles: list[Any] = field(default_factory=list)
    _patches: Patches = field(default_factory=Patches)

    def begin(self, roots: Sequence[Any], data: Iterable[Any] = ()) -> None:
        """Walk the graph below the roots and watch every node; `data` are named tensors that are no results."""
        for stand_in in self.log.stand_ins:
            stand_in.note_absence()
        self.log.pass_number += 1
        self.log.running = True
        order = backward_order(root.grad_fn for root in roots if root.grad_fn is not None)
        self.numbers = {node: number for number, node in enumerate(order)}
        kinds: dict[type, tuple[str, ...]] = {}
        for node in order:
            self.records.append(self._record(node, kinds))
        self.log.by_sequence = {r.node._sequence_nr(): n for n, r in enumerate(self.records) if r.name != LEAF_NODE}
        self.log.leaf_nodes = {id(r.variable): n for n, r in enumerate(self.records) if r.name == LEAF_NODE}
        self.starts = tuple(self._start(root) for root in roots)
        if self.ledger is not None:
            leaves = {n: r.variable for n, r in enumerate(self.records) if r.name == LEAF_NODE}
            self.ledger.begin(leaves, data)
        for number, record in enumerate(self.records):
            self._watch(number, record)

    def _start(self, root: Any) -> Edge:
        """Where a root's gradient goes; nowhere for a leaf that no other root leads to."""
        if root.grad_fn is not None:
            return Edge(target=self.numbers[root.grad_fn], slot=root.output_nr)
        return Edge(target=self.log.leaf_nodes.get(id(root)), slot=0)

    def end(self) -> None:
        """Take the hooks off the nodes, and put the user's own back."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo_entries()
        self.operations.forget_pass()
        current = self.log.current
        if current is not None and not self.finished:
            self.failed = current
        self.log.current = None
        self.log.running = False

    def leaves_below(self, number: int) -> list[Any]:
        """The leaves that a node of this pass sends gradients to, in the order of their nodes."""
        reached = bytearray(len(self.records))
        reached[number] = True
        for record, is_reached in zip(self.records[number:], memoryview(reached)[number:], strict=True):
            if is_reached:
                for edge in record.edges:
                    if edge.target is not None:
                        reached[edge.target] = True
        return [
            r.variable
            for r, is_reached in zip(self.records, reached, strict=True)
            if is_reached and r.name == LEAF_NODE
        ]

    def freed_at(self, error: str) -> SourceSite | None:
        """The line of the earlier pass that freed what the node had saved at which this one raised, if it did so."""
        if _AGAIN not in error or self.failed is None:
            return None
        number = self.records[self.failed].node._sequence_nr()
        return self.log.history.freed_by(number)

    def _past(self) -> PastPass:
        leaves = {n: weakref.ref(r.variable) for n, r in enumerate(self.records) if r.name == LEAF_NODE}
        nodes, number = frozen_nodes(self.records, {}), self.log.pass_number
        return PastPass(number=number, site=self.site, nodes=nodes, starts=self.starts, leaves=leaves)

    def release(self) -> None:
        """Release the nodes, each before those it feeds.

        Released in the other order, or together with its root, a chain of 100,000 nodes overflows the stack of a
        framework whose nodes own their Python objects (PyTorch 2.13 does so without a trace, too).
        """
        if not self.retained:
            ran = frozenset(r.node._sequence_nr() for r in self.records if r.executed and r.name != LEAF_NODE)
            self.log.history.add_freed(self.site, ran)
        if self.log.changed_in(self.log.pass_number):
            self.log.history.add_changed(self._past())
        waiting = [record.node for record in reversed(self.records)]
        self.records, self.numbers = [], {}
        while waiting:
            waiting.pop()

    def _record(self, node: Any, kinds: dict[type, tuple[str, ...]]) -> NodeRecord:
        kind = type(node)
        if kind not in kinds:
            kinds[kind] = saved_names(node)
        name = kind.__name__
        stack = node.metadata.get("traceback_", ())
        packed = self.packed or is_packed(stack)
        rule = getattr(getattr(kind, "_forward_cls", None), "backward", None)
        if packed and self.ledger is not None:
            self.ledger.uncounted += name != LEAF_NODE
        return NodeRecord(
            node=node,
            name=name,
            edges=tuple(
                Edge(target=None if target is None else self.numbers[target], slot=slot)
                for target, slot in node.next_functions
            ),
            site=None if name == LEAF_NODE else site_of_stack(stack),
            module=module_of_stack(stack),
            rule=None if rule is None else site_of_function(rule),
            output=self._leaf(node) if name == LEAF_NODE else None,
            saved_bytes=0 if packed else self._saved_bytes(node, kinds[kind]),
            packed=packed,
            filled_before=name == LEAF_NODE and self._holds(node.variable.grad),
        )

    def _saved_bytes(self, node: Any, names: Sequence[str]) -> int:
        saved = named_tensors(self.lens, node, names)
        if self.ledger is not None:
            number = self.numbers[node]
            for name, tensor in saved:
                self.ledger.add_saved(number, shown_name(name), tensor)
            for name, value in vars(node).items() if "_forward_cls" in dir(type(node)) else ():
                for tensor in self.lens.tensors_in(value) if not name.startswith("_") else ():
                    self.ledger.add_saved(number, f"ctx.{name}", tensor, on_ctx=True)
        return sum(self.lens.nbytes(tensor) for _, tensor in saved)

    def _holds(self, gradient: Any) -> bool:
        return gradient is not None and self.lens.summarise(gradient).norm != 0

    def _leaf(self, node: Any) -> ArraySummary:
        return self.lens.summarise(node.variable)

    def _watch(self, number: int, record: NodeRecord) -> None:
        before = record.node.register_prehook(functools.partial(self._before, number))
        after = record.node.register_hook(functools.partial(self._after, number))
        self._handles += [before, after]
        for handle, kind in ((before, "node-pre"), (after, "node-post")):
            entries = handle.hooks_dict_ref()
            if len(entries) > 1:
                self._stand_in(entries, kind, number, record)

    def _stand_in(self, entries: Any, kind: str, number: int, record: NodeRecord) -> None:
        own = (self._before, self._after)
        for key, hook in list(entries.items()):
            if isinstance(hook, functools.partial) and hook.func in own:
                continue
            made = self.log.stand_in(hook, kind, record.node)
            if made is not None:
                made.sequence, made.node_name = -1 - number, record.name
                self.log.by_sequence[-1 - number] = number
                self._patches.entry(entries, key, made)

    def _before(self, number: int, grad_outputs: Any) -> None:
        self.log.current = number
        record = self.records[number]
        record.executed = True
        record.refused = record.name == LEAF_NODE and not record.variable.requires_grad
        if record.rule is not None:
            self.operations.resume()
            self._begun_at = len(self.operations.operations)
        record.gradients_in = self.lens.summarise_each(grad_outputs)
        if self.operations.captures is not None:
            self.operations.captures.keep_received(self.lens, record.node._sequence_nr(), as_tuple(grad_outputs))
        if self.ledger is not None:
            self.ledger.before(number, as_tuple(grad_outputs))
        self.finished = False
        if self.first_bad is None and number == 0 and _bad(record.gradients_in):
            self.first_bad = BadGradient(node=number, given=True, hook_calls=len(self.log.calls))

    def _after(self, number: int, grad_inputs: Any, grad_outputs: Any) -> None:
        record = self.records[number]
        record.gradients_out = self.lens.summarise_each(grad_inputs)
        if self.ledger is not None:
            self.ledger.after(number, as_tuple(grad_inputs), record.edges)
        self.finished = True
        self.operations.pause()
        if self.first_bad is None and _bad(record.gradients_out) and not _bad(record.gradients_in):
            self.first_bad = self._bad_gradient(number, grad_inputs, grad_outputs)

    def _bad_gradient(self, number: int, grad_inputs: Any, grad_outputs: Any) -> BadGradient | None:
        left = [t for t in as_tuple(grad_inputs) if self.lens.is_tensor(t)]
        found = next((entry for entry in map(self.lens.non_finite_entry, left) if entry is not None), None)
        if found is None:
            return None
        came = [t for t in as_tuple(grad_outputs) if self.lens.is_tensor(t)]
        incoming = value_at(self.lens, came[0], found[0]) if len(came) == 1 else None
        return BadGradient(
            node=number,
            entry=found[0],
            value=found[1],
            incoming=incoming,
            saved=() if self.records[number].packed else self._saved_there(number, found[0]),
            hook_calls=len(self.log.calls),
            inside=self._inside(number),
        )

    def _inside(self, number: int) -> Operation | None:
        if self.records[number].rule is None:
            return None
        ran = self.operations.operations[self._begun_at :]
        return next((o for o in ran if o.calculation is not None and o.calculation.is_source), None)

    def _saved_there(self, number: int, entry: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
        """The entries of the tensors that a node saved, by their names."""
        node, found = self.records[number].node, []
        for name in saved_names(node):
            for _, value in named_tensors(self.lens, node, [name]):
                number_there = value_at(self.lens, value, entry)
                if number_there is not None:
                    found.append((shown_name(name), f"{number_there:.6g}"))
        return tuple(found)


def _bad(summaries: Sequence[ArraySummary | None]) -> bool:
    return any(summary is not None and summary.non_finite for summary in summaries)


def backward_order(starts: Iterable[Any]) -> list[Any]:
    """Every node below the starts, each before the nodes it feeds: depth first, without recursion.

    A node's first operand is followed first, so that a plain chain reads from the result to its inputs.
    """
    finished: list[Any] = []
    seen: set[Any] = set()
    for start in reversed(list(starts)):
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, _targets(start))]
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, _targets(target)))
                    break
            else:
                finished.append(node)
                stack.pop()
    return finished[::-1]


def _targets(node: Any) -> Iterator[Any]:
    return iter([target for target, _ in reversed(node.next_functions) if target is not None])


def saved_names(node: Any) -> tuple[str, ...]:
    """The attributes by which a kind of node gives the tensors it saved."""
    listed = [name for name in dir(node) if name.startswith("_saved_") and name != "_saved_names"]
    declared = [f"_saved_{name}" for name in getattr(type(node), "_saved_names", ())]
    custom = (
        ["saved_tensors"]
        if isinstance(getattr(type(node), "saved_tensors", None), property) or hasattr(type(node), "_forward_cls")
        else []
    )
    return tuple(dict.fromkeys([*listed, *declared, *custom]))


def named_tensors(lens: Lens, node: Any, names: Sequence[str]) -> list[tuple[str, Any]]:
    """The tensors a node saved with their attribute's name, each once; those that cannot be read are left out."""
    found: dict[int, tuple[str, Any]] = {}
    for name in names:
        try:
            value = getattr(node, name)
        except (RuntimeError, AttributeError):  # freed, or changed in place since: backward itself will say so
            continue
        for tensor in lens.tensors_in(value, depth=1):
            found.setdefault(id(tensor), (name, tensor))
    return list(found.values())


def shown_name(attribute: str) -> str:
    """The user's name for what a node saved in this attribute."""
    return attribute.removeprefix("_saved_").replace("saved_tensors", "ctx.saved_tensors")


def frozen_nodes(
    records: Sequence[NodeRecord], names: Mapping[int, str], filled_inside: Collection[int] = ()
) -> tuple[TraceNode, ...]:
    """The nodes as plain values; `names` gives the names of leaves, `filled_inside` are leaves, both by identity."""
    return tuple(
        TraceNode(
            id=number,
            name=record.name,
            edges=record.edges,
            site=record.site,
            module=record.module,
            variable=names.get(id(record.variable)) if record.name == LEAF_NODE else None,
            output=record.output,
            gradients_in=record.gradients_in,
            gradients_out=record.gradients_out,
            saved_bytes=record.saved_bytes,
            executed=record.executed,
            rule=record.rule,
            sequence=None if record.name == LEAF_NODE else record.node._sequence_nr(),
            filled_before=record.filled_before,
            refused=record.refused,
            filled_inside=record.name == LEAF_NODE and id(record.variable) in filled_inside,
        )
        for number, record in enumerate(records)
    )
