"""Why a gradient is zero in a framework without a tape, read from the graph of the function's vjp."""

from collections.abc import Iterator
from dataclasses import replace

from gradcli.diagnosis.symptoms.flow import Flow, nothing
from gradcli.diagnosis.symptoms.names import Symptom
from gradcli.diagnosis.symptoms.nonfinite import non_finite_sentence
from gradcli.diagnosis.symptoms.wrong_nodes import wrong_nodes
from gradcli.traces import TensorFate, TraceGraph, TraceNode

_FLAT = {
    "floor": "its derivative is 0 everywhere",
    "ceil": "its derivative is 0 everywhere",
    "round": "its derivative is 0 everywhere",
    "sign": "its derivative is 0 everywhere",
    "select_n": "it selects another operand at every entry",
}
_COMPARISONS = ("gt", "ge", "lt", "le", "eq", "ne", "is_finite", "and", "or", "not", "xor")


def explain_functional(graph: TraceGraph) -> TraceGraph:
    """The same trace with the cause of every gradient that is zero, and of the first NaN or Inf."""
    flow = Flow.of(graph)
    sick = non_finite_sentence(graph)
    return replace(
        graph,
        tensors=tuple(_explained(flow, fate) for fate in graph.tensors),
        lints=(*wrong_nodes(graph), *(() if sick is None else (sick,))),
        graph_symptoms=(
            *(() if sick is None else (Symptom.NON_FINITE.value,)),
            *((Symptom.WRONG_NODE.value,) if graph.wrong_nodes else ()),
        ),
    )


def _explained(flow: Flow, fate: TensorFate) -> TensorFate:
    if fate.grad is None or fate.grad.norm != 0 or 0 in fate.grad.shape:
        return fate
    why, symptom = _unreached(flow.graph, fate) if fate.node is None else _zero(flow, fate.node)
    return replace(fate, why=why, symptom=None if symptom is None else symptom.value)


def _unreached(graph: TraceGraph, fate: TensorFate) -> tuple[str, Symptom]:
    cut = next((cut for cut in graph.cuts if fate.name in cut.leaves), None)
    if cut is not None:
        where = f" at {cut.site}" if cut.site is not None else ""
        if cut.how in _COMPARISONS:
            return f"{cut.how}{where} compares it, and True and False have no gradient", Symptom.DETACHED
        if cut.other_result:
            return f"the result was computed only from the indices that {cut.how}{where} gives", Symptom.DETACHED
        return f"{cut.how}{where} turns it into {cut.gives} numbers, which have no gradient", Symptom.DETACHED
    if fate.used_at is not None:
        return (
            f"it is used at {fate.used_at}, but the result does not depend on what was computed there"
        ), Symptom.NOT_REACHED
    return "the result was not computed from it: nothing used it", Symptom.NOT_REACHED


def _zero(flow: Flow, leaf: int) -> tuple[str, Symptom | None]:
    """Every place at which a part of the gradient became zero."""
    places = list(_lost(flow, leaf))
    if not places:
        return (
            "the contributions to its gradient cancel, or the gradient that the backward pass began with is zero",
            None,
        )
    said = [_loss_of(node, operand) for node, operand in places]
    symptom = Symptom.DETACHED if all(n.name == "stop_gradient" for n, _ in places) else Symptom.ZERO_GRADIENT
    return "; and ".join(dict.fromkeys(said)), symptom


def _lost(flow: Flow, leaf: int) -> Iterator[tuple[TraceNode, int]]:
    waiting, seen = [leaf], {leaf}
    while waiting:
        for consumer, place in flow.consumers[waiting.pop()]:
            node = flow.graph.nodes[consumer]
            if not nothing(node.gradients_out[place]):
                continue
            if not all(map(nothing, node.gradients_in)):
                yield node, place
            elif consumer not in seen:
                seen.add(consumer)
                waiting.append(consumer)


def _loss_of(node: TraceNode, operand: int) -> str:
    if node.name == "stop_gradient":
        return f"stop_gradient{_at(node)} takes it out of the derivative"
    if node.name in _FLAT:
        return f"{node.name}{_at(node)}: {_FLAT[node.name]}"
    if node.name.startswith("custom_"):
        rule = "" if node.rule is None else f"; the rule is at {node.rule}"
        return f"the rule of {node.name}{_at(node)} gives zeros for operand {operand}{rule}"
    return f"{node.name}{_at(node)} gives zeros to its operand {operand}"


def _at(node: TraceNode) -> str:
    return "" if node.site is None else f" at {node.site}"
