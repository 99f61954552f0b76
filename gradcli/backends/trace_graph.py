"""The graph of one backward pass: its nodes in order, and what flows through each while it runs."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from gradcli.backends.trace_hooks import HookLog
from gradcli.backends.trace_lens import Lens
from gradcli.backends.trace_patches import Patches
from gradcli.backends.trace_sites import module_of_stack, site_of_function, site_of_stack
from gradcli.traces import ArraySummary, Edge, SourceSite, TraceNode

LEAF_NODE = "AccumulateGrad"


@final
@dataclass(slots=True)
class NodeRecord:
    """One node while the trace runs: the framework's own object, and what was seen of it."""

    node: Any
    name: str
    edges: tuple[Edge, ...]
    site: SourceSite | None
    module: str | None
    rule: SourceSite | None
    output: ArraySummary | None
    saved_bytes: int
    gradients_in: tuple[ArraySummary | None, ...] = ()
    gradients_out: tuple[ArraySummary | None, ...] = ()
    executed: bool = False

    @property
    def variable(self) -> Any:
        """The leaf that a node at the end of a path fills, None for other nodes."""
        return self.node.variable if self.name == LEAF_NODE else None


@final
@dataclass(slots=True)
class GraphPass:
    """One backward pass. Hooks on every node record the gradients; the nodes' own rules run undisturbed."""

    lens: Lens
    log: HookLog
    records: list[NodeRecord] = field(default_factory=list)
    numbers: dict[Any, int] = field(default_factory=dict)
    _handles: list[Any] = field(default_factory=list)
    _patches: Patches = field(default_factory=Patches)

    def begin(self, roots: Sequence[Any]) -> None:
        """Walk the graph below the roots and watch every node."""
        for stand_in in self.log.stand_ins:
            stand_in.note_absence()
        self.log.pass_number += 1
        self.log.running = True
        order = backward_order(root.grad_fn for root in roots if root.grad_fn is not None)
        self.numbers = {node: number for number, node in enumerate(order)}
        packed = self._packed_by_user()
        kinds: dict[type, tuple[str, ...]] = {}
        for node in order:
            self.records.append(self._record(node, kinds, packed))
        self.log.by_sequence = {r.node._sequence_nr(): n for n, r in enumerate(self.records) if r.name != LEAF_NODE}
        self.log.leaf_nodes = {id(r.variable): n for n, r in enumerate(self.records) if r.name == LEAF_NODE}
        for number, record in enumerate(self.records):
            self._watch(number, record)

    def end(self) -> None:
        """Take the hooks off the nodes, and put the user's own back."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo_entries()
        self.log.current = None
        self.log.running = False

    def release(self) -> None:
        """Let go of the nodes, each before those it feeds.

        Freed the other way round, or together with its root, a chain of 100,000 nodes overflows the stack of a
        framework whose nodes own their Python objects (PyTorch 2.13 does so without a trace, too).
        """
        waiting = [record.node for record in reversed(self.records)]
        self.records, self.numbers = [], {}
        while waiting:
            waiting.pop()

    def _packed_by_user(self) -> bool:
        """Whether tensors were saved through the user's own hooks, which reading them would call again."""
        return any(stand_in.kind == "pack" for stand_in in self.log.stand_ins)

    def _record(self, node: Any, kinds: dict[type, tuple[str, ...]], packed: bool) -> NodeRecord:
        kind = type(node)
        if kind not in kinds:
            kinds[kind] = saved_names(node)
        name = kind.__name__
        stack = node.metadata.get("traceback_", ())
        rule = getattr(getattr(kind, "_forward_cls", None), "backward", None)
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
            saved_bytes=0 if packed else sum(map(self.lens.nbytes, saved_tensors(self.lens, node, kinds[kind]))),
        )

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
        record.gradients_in = self.lens.summarise_each(grad_outputs)

    def _after(self, number: int, grad_inputs: Any, _grad_outputs: Any) -> None:
        self.records[number].gradients_out = self.lens.summarise_each(grad_inputs)


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
    """The attributes under which a kind of node shows the tensors it saved."""
    listed = [name for name in dir(node) if name.startswith("_saved_") and name != "_saved_names"]
    declared = [f"_saved_{name}" for name in getattr(type(node), "_saved_names", ())]
    custom = (
        ["saved_tensors"]
        if isinstance(getattr(type(node), "saved_tensors", None), property) or hasattr(type(node), "_forward_cls")
        else []
    )
    return tuple(dict.fromkeys([*listed, *declared, *custom]))


def saved_tensors(lens: Lens, node: Any, names: Sequence[str]) -> list[Any]:
    """The tensors a node saved, each once; those that can no longer be read are left out."""
    found: dict[int, Any] = {}
    for name in names:
        try:
            value = getattr(node, name)
        except (RuntimeError, AttributeError):  # freed, or changed in place since: backward itself will say so
            continue
        found |= {id(tensor): tensor for tensor in lens.tensors_in(value, depth=1)}
    return list(found.values())


def frozen_nodes(records: Sequence[NodeRecord], names: dict[int, str]) -> tuple[TraceNode, ...]:
    """The nodes as plain values; `names` gives the names of leaves by identity."""
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
        )
        for number, record in enumerate(records)
    )
