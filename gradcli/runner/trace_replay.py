"""Whether nodes returned the gradients of what their forward was given: saved tensors may have been changed since."""

from collections.abc import Iterator
from typing import Any

from gradcli.backends.tensor.framework import Framework
from gradcli.traces import ArraySummary, TraceGraph, TraceNode
from gradcli.tracing.captures import Capture, Captures, copied
from gradcli.tracing.reading import Lens, as_tuple, maker_of

_MATTERS = 5e-3
"""Tensors may be saved in bfloat16 on purpose, which changes gradients by up to twice 2^-9."""
_CHANGING = ("node-post", "module-full", "module-legacy")


def stale_nodes(graph: TraceGraph, captures: Captures, framework: Framework) -> Iterator[str]:
    """The calls whose node returned other gradients than the same call, repeated with copies of its arguments."""
    lens = Lens(framework.namespace)
    nodes = {node.sequence: node for node in graph.nodes if node.sequence is not None and node.executed}
    hooked = {call.node for call in graph.hooks if call.kind in _CHANGING and call.changed_slots}
    for capture in captures.found:
        node = nodes.get(capture.sequence)
        if node is not None and node.id not in hooked and _is_stale(lens, capture, captures, node):
            yield f"{capture.name}{'' if capture.site is None else f' at {capture.site}'}"


def _is_stale(lens: Lens, capture: Capture, captures: Captures, node: TraceNode) -> bool:
    received = captures.received.get(capture.sequence)
    if received is None:
        return False
    again = _repeated(lens, capture, node, received)
    if again is None or len(again) != len(node.gradients_out):
        return False
    return any(map(_are_apart, again, node.gradients_out))


def _repeated(
    lens: Lens, capture: Capture, node: TraceNode, received: tuple[Any, ...]
) -> tuple[ArraySummary | None, ...] | None:
    """The gradients of the repeated call; None if it does not compute what the call computed, as a random one."""
    try:
        with lens.namespace.enable_grad():
            values = [copied(lens, value) for value in capture.args]
            result = capture.call(*values, **copied(lens, capture.keywords))
        made = list(lens.tensors_in(result))
        if len(made) != len(capture.outputs) or any(map(_are_apart, lens.summarise_each(made), capture.outputs)):
            return None
        maker = next((found for tensor in made if (found := maker_of(tensor)) is not None), None)
        if maker is None or type(maker).__name__ != node.name:
            return None
        roots = [t for t in made if maker_of(t) is maker and received[t.output_nr] is not None]
        returned: list[Any] = []
        maker.register_hook(lambda given, _: returned.append(given))
        lens.namespace.autograd.backward(as_tuple(roots), as_tuple([received[root.output_nr] for root in roots]))
        return lens.summarise_each(as_tuple(returned[0]))
    except Exception:  # the user's own code, called once more than they expect
        return None


def _are_apart(first: ArraySummary | None, second: ArraySummary | None) -> bool:
    """Whether two tensors differ by more than matters, in shape, in size or in their entries."""
    if first is None or second is None:
        held = first or second
        return held is not None and held.norm != 0
    if first.shape != second.shape or first.norm is None or second.norm is None:
        return first.shape != second.shape
    if first.values is not None and second.values is not None:
        most = max(map(abs, (*first.values, *second.values)), default=0.0)
        return any(abs(a - b) > _MATTERS * most for a, b in zip(first.values, second.values, strict=True))
    largest = max(first.norm, second.norm)
    probes = abs((first.probe or 0.0) - (second.probe or 0.0))
    return abs(first.norm - second.norm) > _MATTERS * largest or probes > _MATTERS * largest
