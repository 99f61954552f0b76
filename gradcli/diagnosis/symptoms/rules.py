"""What a trace means: why a `.grad` is None or zero, what hooks did to it, and which hooks cannot work as meant."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradcli.diagnosis.symptoms.effects import effects_of_hooks
from gradcli.diagnosis.symptoms.fates import as_result, explained, plain_results
from gradcli.diagnosis.symptoms.flow import Flow, who
from gradcli.diagnosis.symptoms.names import Symptom
from gradcli.diagnosis.symptoms.nonfinite import non_finite_sentence
from gradcli.diagnosis.symptoms.notes import notes
from gradcli.diagnosis.symptoms.wrong_nodes import wrong_nodes
from gradcli.traces import HookCall, HookRegistration, TensorFate, TraceGraph, TraceNode

__all__ = ["Symptom", "error_hint", "explain_trace"]

_VIEW_OF_A_HOOK = re.compile(r"Output \d+ of BackwardHookFunction\w* is a view")
_MAKES_VIEWS = ("module-full", "module-backward-pre")


def explain_trace(graph: TraceGraph) -> TraceGraph:
    """The trace with its explanation: causes and symptoms of each tensor, effects of hooks, lints, and a hint."""
    flow = Flow.of(graph)
    sick = non_finite_sentence(graph)
    return replace(
        graph,
        tensors=_without_results(flow, [explained(flow, fate) for fate in graph.tensors]),
        results=plain_results(flow),
        hooks=tuple(replace(call, warning=_warning(call)) for call in graph.hooks),
        effects=tuple(effects_of_hooks(flow)),
        notes=tuple(notes(graph)),
        lints=tuple(dict.fromkeys([*wrong_nodes(graph), *_lints(graph), *([] if sick is None else [sick])])),
        graph_symptoms=tuple(
            symptom.value
            for symptom, found in (
                (Symptom.NON_FINITE, sick),
                (Symptom.WRONG_NODE, graph.wrong_nodes or (graph.node_check is not None and graph.node_check.stale)),
                (Symptom.OVER_BUDGET, graph.memory is not None and graph.memory.over_budget),
            )
            if found
        ),
        error_hint=error_hint(graph),
    )


def _without_results(flow: Flow, fates: Sequence[TensorFate]) -> tuple[TensorFate, ...]:
    """The fates; a tensor that was computed from a hidden leaf's first named result is treated as a plain result."""
    hidden = {fate.node for fate in fates if fate.symptom == Symptom.HIDDEN_LEAF.value}
    return tuple(
        as_result(fate)
        if fate.symptom == Symptom.HIDDEN_LEAF.value and fate.node is not None and len(hidden) > 1
        and (not flow.consumers[fate.node] or flow.under(fate.node) & hidden)
        else fate
        for fate in fates
    )  # fmt: skip


def _warning(call: HookCall) -> str | None:
    """What to know about a hook that seems to have worked."""
    if call.kind == "module-legacy" and call.last_node is not None:
        return (
            f"legacy module hook: grad_input is that of the last operation only ({call.last_node}), "
            f"not of {call.owner}; register_full_backward_hook gives the module's own"
        )
    if call.kind == "module-full" and call.before and all(gradient is None for gradient in call.before):
        shown = "(None,)" if len(call.before) == 1 else f"({', '.join(['None'] * len(call.before))})"
        return f"full backward hook: grad_input is {shown} because no input of {call.owner} requires grad"
    return None


def _lints(graph: TraceGraph) -> Iterator[str]:
    if not graph.result_in_pass:
        where = "" if graph.pass_site is None else f" at {graph.pass_site}"
        yield (
            f"the graph above is that of the backward pass from {graph.pass_root or 'another tensor'}{where}, "
            f"not of the returned {graph.root_name or 'result'}"
        )
    known = None if graph.version_conflict is None else graph.version_conflict.changed_at
    for write in (each for each in graph.unseen_writes if each.at is None or each.at != known):
        made = "" if write.made_at is None else f" ({write.made_at})"
        yield (
            f"{write.at or 'the program'} writes to the memory of {write.name}{made} with {write.by}, through a tensor "
            "without a graph, as detach() or .data gives it: autograd does not record this, so gradients through "
            f"{write.name} may not be those of the values that were computed; write to a copy"
        )
    for held in graph.unregistered:
        yield (
            f"{held}: parameters(), to() and state_dict() leave its tensors out, so an optimizer made from "
            "parameters() does not train them"
        )
    for call in graph.hooks:
        warning = _warning(call)
        if warning is not None:
            yield f"{who(call)} on {call.owner}: {warning}"
    for registration in graph.registrations:
        silent = _why_silent(graph, registration)
        if silent is not None:
            yield f"{_registered(registration)} on {registration.owner} {silent}"


def _why_silent(graph: TraceGraph, hook: HookRegistration) -> str | None:
    if hook.calls or not hook.kind.startswith(("module", "tensor", "post", "multi", "node")):
        return None
    reason = _why_it_could_not(hook)
    if reason is None and graph.error is None and graph.passes:
        reason = _why_no_gradient_came(hook)
    return None if reason is None else f"did not fire: {reason}"


def _why_it_could_not(hook: HookRegistration) -> str | None:
    if hook.removed:
        return f"it was removed{'' if hook.removed_at is None else f' at {hook.removed_at}'} before it could fire"
    if hook.forward_called_directly_at is not None:
        where = hook.forward_called_directly_at
        return f"{where} calls {hook.owner}.forward directly, which skips hooks; call the module itself"
    if hook.after_forward:
        return "it was registered after forward; module hooks take effect from the next forward on"
    return None if hook.owner_called else f"this {hook.owner} was not called"


def _why_no_gradient_came(hook: HookRegistration) -> str:
    if hook.during_backward:
        return "it was registered during backward, after the gradient had passed; register it before backward"
    if hook.after_backward:
        return "it was registered after backward had run; register it before backward"
    if not hook.in_graph:
        return f"{hook.owner} is not part of the graph that backward ran through"
    return f"no gradient reached {hook.owner} in this backward pass"


def error_hint(graph: TraceGraph) -> str | None:
    """What is behind an error: a hook, what it returned and what was expected of it, or an in-place operation."""
    conflict = graph.version_conflict
    if conflict is not None:
        changed = "an in-place operation" if conflict.changed_by is None else conflict.changed_by
        where = "" if conflict.changed_at is None else f" at {conflict.changed_at}"
        saved = "" if conflict.saved_at is None else f" at {conflict.saved_at}"
        return (
            f"{conflict.node}{saved} saved the tensor for backward, and {changed}{where} changed it afterwards; "
            "change a copy instead, or use an out-of-place operation"
        )
    if graph.freed_at is not None:
        return (
            f"the backward pass at {graph.freed_at} freed what this graph had saved; pass retain_graph=True there, or "
            "compute the result again"
        )
    if graph.error is not None and _VIEW_OF_A_HOOK.search(graph.error):
        return _made_views(graph)
    if graph.error is None or graph.error_phase != "backward" or not graph.hooks:
        return None
    last = graph.hooks[-1]
    if last.problem is None:
        return None
    where = "" if last.node is None else f" (at {_node_text(graph.nodes[last.node])})"
    return f"{last.kind} hook {who(last)} on {last.owner} {last.problem}{where}"


def _made_views(graph: TraceGraph) -> str | None:
    """The hooks that made views of what goes into and comes out of their modules, one of which was written to."""
    there = [hook for hook in graph.registrations if hook.owner_called and not hook.removed]
    hooks = [f"{_registered(hook)} on {hook.owner}" for hook in there if hook.kind in _MAKES_VIEWS]
    if not hooks:
        return None
    return (
        f"{' or '.join(dict.fromkeys(hooks))}: such a hook makes the inputs and outputs of its module views, which no "
        "in-place operation may change; use an out-of-place one there, such as ReLU(inplace=False), or change a clone"
    )


def _registered(hook: HookRegistration) -> str:
    return f"{hook.kind} hook `{hook.function}`{'' if hook.site is None else f' at {hook.site}'}"


def _node_text(node: TraceNode) -> str:
    return node.name + ("" if node.site is None else f", {node.site}")
