"""Why the `.grad` of a tensor is None or zero: one sentence, and the symptom where something looks wrong."""

import re
from dataclasses import replace
from math import prod

from gradcli.diagnosis.symptoms.flow import HOOK_NODE, Flow, nothing, who
from gradcli.diagnosis.symptoms.names import Symptom
from gradcli.traces import GraphCut, TensorFate, TraceGraph, TraceNode

_CONVERSIONS = ("ToCopyBackward0", "CopyBackwards", "CloneBackward0", "ToBackward0")
_COPY = "CopyBackwards"
_UNWRITTEN = {_COPY: "a copy", "CloneBackward0": ".clone()"}
_FEW = 3
_TARGET = "the target itself"
_KEPT = "a non-leaf tensor keeps its gradient only after retain_grad()"
_NO_VARIABLE = "no variable refers to the leaf behind it, so the leaf's gradient cannot be read"
_FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_CONVERSION_CALL = re.compile(
    r"\.(to|double|float|half|bfloat16|cuda|cpu|type|clone|contiguous)\([^()]*(?:\([^()]*\))?[^()]*\)"
)
_BACKWARD_SUFFIX = re.compile(r"Backwards?\d*$")


def explained(flow: Flow, fate: TensorFate) -> TensorFate:
    """The fate with its cause, where `.grad` is None or zero."""
    graph = flow.graph
    if fate.grad is not None:
        zero = fate.is_leaf and fate.grad.norm == 0 and fate.grad.shape.count(0) == 0 and graph.fills_grad
        return _with_reason(fate, *_zero(flow, fate)) if zero else fate
    if not fate.floating:
        return fate
    if fate.retains_grad:
        return _with_reason(fate, *_retained(flow, fate))
    if not fate.requires_grad or _is_refused(graph, fate):
        return _with_reason(fate, *_not_required(graph, fate))
    if not fate.is_leaf:
        return _with_reason(fate, *_not_a_leaf(graph, fate))
    return _with_reason(fate, *_empty_leaf(flow, fate))


def _with_reason(fate: TensorFate, why: str | None, symptom: Symptom | None) -> TensorFate:
    return replace(fate, why=why, symptom=None if symptom is None else symptom.value)


def _retained(flow: Flow, fate: TensorFate) -> tuple[str | None, Symptom | None]:
    """Why a non-leaf tensor with retain_grad() has no gradient."""
    if fate.retained_late:
        where = "" if fate.retained_at is None else f" at {fate.retained_at}"
        return f"retain_grad() was called only after backward{where}; call it before backward", Symptom.RETAINED_LATE
    return _empty_leaf(flow, fate)


def _is_refused(graph: TraceGraph, fate: TensorFate) -> bool:
    return fate.is_leaf and fate.node is not None and graph.nodes[fate.node].refused


def _refused(fate: TensorFate) -> str:
    where = "" if fate.switched_off_at is None else f" at {fate.switched_off_at}"
    return (
        f"its requires_grad was set to False{where}, after the graph had been made: the gradient arrived, and backward "
        "adds none to .grad of a tensor that does not require one; set it after backward, or before forward"
    )


def _not_required(graph: TraceGraph, fate: TensorFate) -> tuple[str | None, Symptom | None]:
    if _is_refused(graph, fate):
        return _refused(fate), None
    if fate.stray_attribute is not None:
        return (
            f"requires_grad is False, but {fate.name} has an attribute {fate.stray_attribute}: "
            "did you mean requires_grad?",
            Symptom.MISSPELT_FLAG,
        )
    if fate.unregistered_in is not None and fate.origins == () and fate.is_leaf and fate.role == "attribute":
        held = f"{fate.unregistered_in} holds it as a plain tensor, not as an nn.Parameter"
        return f"requires_grad is False: {held}, so it is not registered and not trained", None
    return ("requires_grad is False", None) if fate.role in ("input", "parameter") else (None, None)


def _not_a_leaf(graph: TraceGraph, fate: TensorFate) -> tuple[str, Symptom | None]:
    if fate.made_by == HOOK_NODE and fate.origins:
        origins = ", ".join(origin or "a tensor without a name" for origin in fate.origins)
        state = f"; {_state_of(graph, fate.origins[0])}" if len(fate.origins) == 1 and fate.origins[0] else ""
        return (
            f"{fate.name} is not a leaf: it is a copy of {origins}, made by a module with a full backward hook (called "
            f"at {fate.site}), which copies all its inputs{state}",
            None,
        )
    made = f"{fate.name} is not a leaf: {_creation_of(fate)}"
    if fate.operations and all(operation in _CONVERSIONS for operation in fate.operations):
        origin = fate.origins[0]
        if origin:
            return f"{made}; {_state_of(graph, origin)}", None if _is_parameter(graph, origin) else Symptom.MOVED_LEAF
        return f"{made}; {_NO_VARIABLE}", Symptom.HIDDEN_LEAF
    if fate.operations and fate.origins == ("",) and fate.role not in ("attribute", "result"):
        return f"{made}; {_NO_VARIABLE}", Symptom.HIDDEN_LEAF
    kept = f"{made}; {_KEPT}"
    lone = fate.origins[0] if len(fate.origins) == 1 and fate.operations else ""
    return f"{kept}; {_state_of(graph, lone)}" if lone else kept, None


def as_result(fate: TensorFate) -> TensorFate:
    """The fate of a non-leaf tensor, described as that of any result."""
    return _with_reason(fate, f"{fate.name} is not a leaf: {_creation_of(fate)}; {_KEPT}", None)


def plain_results(flow: Flow) -> tuple[str, ...]:
    """For each local variable and returned tensor that is a non-leaf and not the loss: how it was computed."""
    return tuple(
        _creation_in_short(fate)
        for fate in flow.graph.tensors
        if fate.role in ("local", "result") and not fate.is_leaf and fate.grad is None and fate.floating
        and not fate.retains_grad and not _is_copy(fate) and fate.origins != ("",)
        and not _is_loss(flow, fate)
    )  # fmt: skip


def _is_loss(flow: Flow, fate: TensorFate) -> bool:
    if fate.node is None or flow.consumers[fate.node]:
        return False
    arrived = flow.graph.nodes[fate.node].gradients_in
    return bool(arrived) and arrived[0] is not None and prod(arrived[0].shape) == 1


def _is_copy(fate: TensorFate) -> bool:
    return bool(fate.operations) and all(operation in _CONVERSIONS for operation in fate.operations)


def _creation_in_short(fate: TensorFate) -> str:
    named = [origin for origin in fate.origins if origin]
    shown = ", ".join(named[:_FEW]) + (", …" if len(named) > _FEW or len(named) < len(fate.origins) else "")
    where = "" if fate.site is None else f"{fate.site}, "
    return f"{fate.name} ({where}{_operation(fate)}{f' from {shown}' if shown else ''})"


def _creation_of(fate: TensorFate) -> str:
    where = "an operation" if fate.site is None else str(fate.site)
    origins = [origin or "a tensor without a name" for origin in fate.origins]
    shown = ", ".join(origins[:4]) + (f" and {len(origins) - 4} more" if len(origins) > 4 else "")
    return f"{where} computes it with {_operation(fate)}" + (f" from {shown}" if shown else "")


def _operation(fate: TensorFate) -> str:
    """How the operation is written: the call in the source line for conversions, else the operation's name."""
    call = _CONVERSION_CALL.search(fate.made_with or "")
    if fate.made_by == _COPY and "copy_(" in (fate.made_with or ""):
        return ".copy_()"
    if fate.made_by in _CONVERSIONS:
        return call.group() if call and fate.made_by != _COPY else _UNWRITTEN.get(fate.made_by or "", ".to()")
    stem = _BACKWARD_SUFFIX.sub("", fate.made_by or "")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower() or "an operation"


def _state_of(graph: TraceGraph, name: str) -> str:
    origin = next((other for other in graph.tensors if other.name == name), None)
    if origin is None:
        return f"the gradient went to {name}"
    return f"{name}.grad is filled" if origin.grad is not None else f"{name}.grad is None too"


def _is_parameter(graph: TraceGraph, name: str) -> bool:
    return any(other.name == name and other.role == "parameter" for other in graph.tensors)


def _empty_leaf(flow: Flow, fate: TensorFate) -> tuple[str, Symptom | None]:
    graph = flow.graph
    if not graph.passes or fate.node is None:
        return _not_reached(graph, fate) if graph.passes else _no_pass(graph, fate)
    if graph.error is not None and graph.error_phase == "backward":
        return f"backward raised before it reached this tensor: {graph.error}", Symptom.BACKWARD_RAISED
    if not graph.fills_grad:
        where = "" if graph.pass_site is None else f", at {graph.pass_site}"
        return f"only autograd.grad was called{where}: it returns gradients and fills no .grad", None
    return _passed_by(flow, fate, fate.node)


def _passed_by(flow: Flow, fate: TensorFate, leaf: int) -> tuple[str, Symptom | None]:
    lost = flow.lost_at(leaf)
    if fate.left_out or (lost is None and not flow.graph.nodes[leaf].executed):
        return "this backward pass was restricted to other tensors (inputs=...)", None
    if lost is not None:
        return f"{_node(lost[0])} returned None for its operand {lost[1]}{_rule(lost[0])}", Symptom.RETURNED_NONE
    where = "" if fate.cleared_at is None else f" at {fate.cleared_at}"
    return f"backward filled .grad, and .grad was set to None again{where}; read .grad before that", None


def _no_pass(graph: TraceGraph, fate: TensorFate) -> tuple[str, Symptom | None]:
    if graph.error is not None:
        return f"{graph.error_phase} raised, and no backward pass ran: {graph.error}", Symptom.BACKWARD_RAISED
    if graph.result is None:
        return (
            "no backward pass ran: nothing called backward, and the traced function returned no tensor; "
            "return the loss",
            Symptom.BACKWARD_NOT_RUN,
        )
    return _lost(graph, fate) or ("no backward pass ran: the result does not require grad", Symptom.BACKWARD_NOT_RUN)


def _not_reached(graph: TraceGraph, fate: TensorFate) -> tuple[str, Symptom | None]:
    if fate.asked_at is not None:
        asked = f"only autograd.grad, at {fate.asked_at}, ran back to it: it returns gradients and fills no .grad"
        if graph.fills_grad and fate.asked_with_graph:
            asked = f"the backward pass ran {_from_where(graph)}, which does not depend on {fate.name}; {asked}"
        lost_there = graph.fills_grad and any(fate.name in cut.leaves for cut in graph.cuts if cut.of_gradients)
        return (_lost(graph, fate) if lost_there else None) or (asked, None)
    if fate.in_result:
        return (
            f"the backward pass ran {_from_where(graph)}, which does not depend on {fate.name}; only the returned "
            "result does, and backward was not called on that",
            Symptom.NOT_REACHED,
        )
    if fate.cleared_at is not None:
        return (
            f"an earlier backward pass filled .grad, and {fate.cleared_at} set it to None again; the last pass does "
            f"not reach {fate.name}",
            None,
        )
    missing = f"no path leads from the result to {fate.name}"
    return _lost(graph, fate) or (f"{missing}: {_unused(fate)}", Symptom.NOT_REACHED)


def _from_where(graph: TraceGraph) -> str:
    where = "" if graph.pass_site is None else f" at {graph.pass_site}"
    return f"from {graph.pass_root or 'another tensor'}{where}"


def _unused(fate: TensorFate) -> str:
    if fate.replaced_at is not None:
        return f"{fate.replaced_at} replaces this parameter of the module by another one, which is then used"
    if fate.used_at is None and fate.same_memory is not None:
        return (
            f"the program used {fate.same_memory} in its place, a different leaf that shares its memory (as "
            f"nn.Parameter(t) does); the gradient is in {fate.same_memory}.grad"
        )
    if fate.used_at is None:
        return "no traced operation used it"
    return f"{fate.used_at} uses it, but no traced operation leads from that line to the result"


def _lost(graph: TraceGraph, fate: TensorFate) -> tuple[str, Symptom] | None:
    """The operation at which the gradient of a leaf was lost, if one is known."""
    cut = next((cut for cut in graph.cuts if fate.name in cut.leaves), None)
    if cut is None:
        return None
    symptom = Symptom.NO_GRAD if cut.by_mode or cut.captured else Symptom.DETACHED
    perhaps = "" if cut.certain else ", which may be the cause"
    there = f"; the gradient is in {fate.same_memory}.grad" if cut.new_leaf and fate.same_memory else ""
    return f"no path leads from the result to {fate.name}: {_what_cut(cut)}{perhaps}{there}", symptom


def _what_cut(cut: GraphCut) -> str:
    if cut.of_gradients:
        return (
            f"autograd.grad, at {cut.site}, was called without create_graph=True, so its result carries no graph and "
            "no gradient flows back through it; pass create_graph=True there, or, if the result is meant to be a "
            "constant, detach it"
        )
    if cut.captured:
        return _captured(cut)
    if cut.before_flag:
        return f"{cut.used_at} used it when its requires_grad was still False; set requires_grad earlier"
    if cut.by_mode:
        return f"{cut.used_at or _TARGET} computes under {cut.how}{_turned_on(cut)}"
    if cut.new_leaf:
        return f"{cut.site or _TARGET} turns it into a new leaf with {cut.how}, and gradients end there"
    return _taken_out(cut, f"{cut.site or _TARGET} takes it out of the graph with {cut.how}")


def _captured(cut: GraphCut) -> str:
    """A Function's forward runs under no_grad: gradients of what it takes from elsewhere are its backward's task."""
    called = f"{cut.site or _TARGET} uses it in the forward of {cut.how}"
    if cut.forward is not None:
        return (
            f"{called}, at {cut.forward}, which runs under no_grad, and does not pass it to apply(): backward returns "
            "gradients for the arguments of apply() only"
        )
    if cut.how != "CheckpointFunction":
        return f"{called}, which runs under no_grad"
    none = ", and none of the inputs of the checkpoint requires grad" if cut.without_graph else ""
    return f"{called} (a reentrant checkpoint), which runs under no_grad{none}; pass use_reentrant=False"


def _turned_on(cut: GraphCut) -> str:
    """Where the mode was switched, unless that is the line of the operation itself."""
    if cut.site in (None, cut.used_at):
        return ", which was on before the target was called: code that runs at import turned it on" * cut.at_import
    return f", which {cut.site} turned on{' at import' * cut.at_import}"


def _taken_out(cut: GraphCut, took: str) -> str:
    if cut.forward is not None:
        marked = "marks this output as not differentiable" if cut.gives in _FLOATING else f"gives {cut.gives} numbers"
        return f"{took}: its forward, at {cut.forward}, {marked}"
    if cut.other_result:
        return (
            f"{took}: the result was computed only from the indices or the mask that this gives, which have no gradient"
        )
    if cut.gives == "bool":
        return f"{took}: True and False have no gradient"
    return took


def _zero(flow: Flow, fate: TensorFate) -> tuple[str | None, Symptom | None]:
    if fate.zeroed_by is not None:
        return f"backward filled .grad, and {_what_zeroed(fate)}; read .grad before that", None
    if fate.node is None or not flow.graph.passes:
        return None, None
    for call in flow.graph.hooks:
        if call.node is not None and call.factor == 0 and fate.node in flow.below(call):
            did = "made it zero" if call.kind == "post-accumulate" else "returned zeros"
            return f"the hook {who(call)} {did}", Symptom.ZERO_GRADIENT
    lost = flow.lost_at(fate.node)
    if lost is None:
        arrived = flow.graph.nodes[fate.node].gradients_in
        if any(map(nothing, arrived)):
            return _cancelled(flow, fate.node), None
        return "what the last backward pass added to .grad and what .grad held before it cancel", None
    return f"{_node(lost[0])} returns zeros for its operand {lost[1]}{_rule(lost[0])}", Symptom.ZERO_GRADIENT


def _what_zeroed(fate: TensorFate) -> str:
    line = "the program" if fate.cleared_at is None else str(fate.cleared_at)
    if fate.zeroed_by == ".grad =":
        return f"{line} put a tensor of zeros in its place"
    if fate.zeroed_by in ("", "zero_", "_foreach_zero_", "fill_"):
        return f"{line} zeroed it again"
    return f"{line} made it zero with {fate.zeroed_by}()"


def _cancelled(flow: Flow, leaf: int) -> str:
    parts = list(dict.fromkeys(map(_node, flow.meeting_at(leaf))))
    if not parts:
        return "the gradient that backward began with is zero"
    shown = ", ".join(parts[:_FEW]) + (f" and {len(parts) - _FEW} more" if len(parts) > _FEW else "")
    return f"the gradients from {shown} cancel"


def _node(node: TraceNode) -> str:
    return node.name + ("" if node.site is None else f" ({node.site})")


def _rule(node: TraceNode) -> str:
    return "" if node.rule is None else f"; its backward is at {node.rule}"
