"""How gradients flow in a recorded graph: what feeds a node, where gradients are lost, what a hook's change reaches."""

from typing import final

from gradcli.frozen import dataclass
from gradcli.traces import ArraySummary, Edge, HookCall, TraceGraph, TraceNode

LEAF_NODE = "AccumulateGrad"
HOOK_NODE = "BackwardHookFunctionBackward"
"""Node that a module with backward hooks puts before and after itself; it passes each gradient on separately."""
_Point = tuple[int, int | None]
"""A node, and for a `HOOK_NODE` the number of one of its gradients; None for all."""
_OF_MODULES = ("module-full", "module-backward-pre")
_ON_EDGES = ("node-post", "module-legacy", *_OF_MODULES)


@final
@dataclass(frozen=True, slots=True)
class Flow:
    """The graph, with its edges reversed: for each node, the nodes with an edge to it, each with that edge's number."""

    graph: TraceGraph
    consumers: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, graph: TraceGraph) -> "Flow":
        """The flow of a graph."""
        consumers: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
        for node in graph.nodes:
            for place, edge in enumerate(node.edges):
                if edge.target is not None:
                    consumers[edge.target].append((node.id, place))
        return cls(graph, tuple(map(tuple, consumers)))

    def lost_at(self, leaf: int) -> tuple[TraceNode, int] | None:
        """The node, and its operand, at which the gradient of a leaf became None or zero, nearest to the result."""
        waiting: list[_Point] = [(leaf, None)]
        seen = set(waiting)
        while waiting:
            number, slot = waiting.pop()
            for consumer, place in self.consumers[number]:
                node = self.graph.nodes[consumer]
                if slot is not None and node.edges[place].slot != slot:
                    continue
                given = node.gradients_out[place] if place < len(node.gradients_out) else None
                if not node.executed or not nothing(given):
                    continue
                own = place if node.name == HOOK_NODE else None
                if not all(map(nothing, node.gradients_in if own is None else node.gradients_in[own : own + 1])):
                    return node, place
                if (consumer, own) not in seen:
                    seen.add((consumer, own))
                    waiting.append((consumer, own))
        return None

    def meeting_at(self, leaf: int) -> list[TraceNode]:
        """The nodes whose nonzero gradients cancel at a leaf or on the path to it; none if there is no such place."""
        waiting: list[_Point] = [(leaf, None)]
        seen = set(waiting)
        while waiting:
            number, slot = waiting.pop()
            parts = [
                (node, place)
                for consumer, place in self.consumers[number]
                if (node := self.graph.nodes[consumer]).executed and slot in (None, node.edges[place].slot)
            ]
            sent = [node for node, place in parts if not nothing(node.gradients_out[place])]
            if sent:
                return sent
            above = {(node.id, place if node.name == HOOK_NODE else None) for node, place in parts} - seen
            seen |= above
            waiting.extend(above)
        return []

    def starts(self) -> tuple[tuple[int, int], ...]:
        """Where the pass began: nodes, each with the number of the output whose gradient was given."""
        known = tuple((edge.target, edge.slot) for edge in self.graph.starts if edge.target is not None)
        return known or tuple((node.id, 0) for node in self.graph.nodes if not self.consumers[node.id])

    def places(self, call: HookCall) -> tuple[int | None, ...]:
        """For each gradient that a hook was given, the number of the output or operand of its node to which it belongs.

        A module's hook has an entry for each argument, and its node an edge for each tensor among them. If the numbers
        differ, the gradients that are not None leave in order by the edges that need one, if there are as many.
        """
        if call.kind == "tensor":
            return (call.output,)
        edges = () if call.node is None else self.graph.nodes[call.node].edges
        if call.kind not in _OF_MODULES or len(call.before) == len(edges):
            return tuple(range(len(call.before)))
        given = [slot for slot, gradient in enumerate(call.before) if gradient is not None]
        needed = [place for place, edge in enumerate(edges) if edge.target is not None]
        known = dict(zip(given, needed, strict=True)) if len(given) == len(needed) else {}
        return tuple(known.get(slot) for slot in range(len(call.before)))

    def places_changed(self, call: HookCall) -> list[int]:
        """The places of the gradients that a hook changed, as far as they are known."""
        found = self.places(call)
        return [place for slot in call.changed_slots if slot < len(found) and (place := found[slot]) is not None]

    def below(self, call: HookCall) -> set[int]:
        """Every node into which gradients changed by a hook flow."""
        return self._reachable(self._starts(call))

    def under(self, number: int) -> set[int]:
        """Every node into which gradients of node `number` flow, without that node."""
        return self._reachable({self._end(edge) for edge in self.graph.nodes[number].edges if edge.target is not None})

    def _starts(self, call: HookCall) -> set[_Point]:
        """Where the gradients that a hook changed go to first."""
        if call.node is None:
            return set()
        node = self.graph.nodes[call.node]
        if call.kind in _ON_EDGES:
            edges = [node.edges[place] for place in self.places_changed(call) if place < len(node.edges)]
            return {self._end(edge) for edge in edges if edge.target is not None}
        return {(node.id, place if node.name == HOOK_NODE else None) for place in self.places_changed(call)}

    def _end(self, edge: Edge) -> _Point:
        """The node that an edge leads to; with the slot if it is a `HOOK_NODE`, which passes each gradient on alone."""
        target = edge.target or 0
        return target, edge.slot if self.graph.nodes[target].name == HOOK_NODE else None

    def _reachable(self, start: set[_Point]) -> set[int]:
        seen = set(start)
        waiting = list(seen)
        while waiting:
            number, slot = waiting.pop()
            for place, edge in enumerate(self.graph.nodes[number].edges):
                if edge.target is None or slot not in (None, place):
                    continue
                point = self._end(edge)
                if point not in seen:
                    seen.add(point)
                    waiting.append(point)
        return {number for number, _ in seen}


def nothing(gradient: ArraySummary | None) -> bool:
    """Whether a gradient is absent, or zero in every entry."""
    return gradient is None or gradient.norm == 0


def who(call: HookCall) -> str:
    """A hook as sentences name it: `double` at train.py:41."""
    made = "" if call.site is None else f" at {call.site}"
    return f"`{call.function}`{made}" + ("" if call.registered_at is None else f" (registered at {call.registered_at})")
