"""How gradients flow in a recorded graph: who feeds a node, where a gradient was lost, what a hook's change reached."""

from collections.abc import Collection
from typing import final

from gradcli.frozen import dataclass
from gradcli.traces import ArraySummary, HookCall, TraceGraph, TraceNode

LEAF_NODE = "AccumulateGrad"
_ON_EDGES = ("node-post", "module-legacy", "module-full")


@final
@dataclass(frozen=True, slots=True)
class Flow:
    """The graph, with its edges turned round."""

    graph: TraceGraph
    consumers: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, graph: TraceGraph) -> "Flow":
        """The flow in a graph."""
        consumers: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
        for node in graph.nodes:
            for place, edge in enumerate(node.edges):
                if edge.target is not None:
                    consumers[edge.target].append((node.id, place))
        return cls(graph, tuple(map(tuple, consumers)))

    def lost_at(self, leaf: int) -> tuple[TraceNode, int] | None:
        """The node, and its operand, at which the gradient of a leaf became None or zero, nearest to the result."""
        waiting, seen = [leaf], {leaf}
        while waiting:
            number = waiting.pop()
            for consumer, place in self.consumers[number]:
                node = self.graph.nodes[consumer]
                given = node.gradients_out[place] if place < len(node.gradients_out) else None
                if not node.executed or not nothing(given):
                    continue
                if not all(map(nothing, node.gradients_in)):
                    return node, place
                if consumer not in seen:
                    seen.add(consumer)
                    waiting.append(consumer)
        return None

    def leaves_behind(self, call: HookCall) -> tuple[list[TraceNode], list[TraceNode]]:
        """The leaves whose whole gradient passed the hook, and those of which a part did."""
        if call.node is None:
            return [], []
        cut = self._edges_changed(call)
        start = {self._target(node, place) for node, place in cut} if cut else {call.node}
        below = self._reachable(start, ())
        roots = {node.id for node in self.graph.nodes if not self.consumers[node.id]}
        without = self._reachable(roots - (set() if cut else {call.node}), cut or self._edges_into(call.node))
        leaves = [node for node in self.graph.nodes if node.name == LEAF_NODE and node.id in below]
        return [n for n in leaves if n.id not in without], [n for n in leaves if n.id in without]

    def below(self, call: HookCall) -> set[int]:
        """Every node that the gradients a hook changed flow into."""
        cut = self._edges_changed(call)
        start = {self._target(node, place) for node, place in cut} if cut else {call.node}
        return self._reachable({n for n in start if n is not None}, ())

    def under(self, number: int) -> set[int]:
        """Every node that gradients of node `number` flow into, itself left out."""
        return self._reachable({edge.target for edge in self.graph.nodes[number].edges}, ())

    def _edges_changed(self, call: HookCall) -> list[tuple[int, int]]:
        if call.node is None or call.kind not in _ON_EDGES:
            return []
        node = self.graph.nodes[call.node]
        return [(node.id, p) for p in call.changed_slots if p < len(node.edges) and node.edges[p].target is not None]

    def _edges_into(self, number: int) -> Collection[tuple[int, int]]:
        return self.consumers[number]

    def _target(self, number: int, place: int) -> int | None:
        return self.graph.nodes[number].edges[place].target

    def _reachable(self, start: Collection[int | None], without: Collection[tuple[int, int]]) -> set[int]:
        closed = set(without)
        seen = {number for number in start if number is not None}
        waiting = list(seen)
        while waiting:
            node = self.graph.nodes[waiting.pop()]
            for place, edge in enumerate(node.edges):
                if edge.target is not None and edge.target not in seen and (node.id, place) not in closed:
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return seen


def nothing(gradient: ArraySummary | None) -> bool:
    """Whether a gradient is absent, or zero in every entry."""
    return gradient is None or gradient.norm == 0


def who(call: HookCall) -> str:
    """A hook as sentences name it: `double` at train.py:41."""
    return f"`{call.function}`" + ("" if call.site is None else f" at {call.site}")
