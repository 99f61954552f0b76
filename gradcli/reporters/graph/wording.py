"""Gradients, nodes and hooks of a trace in a few words, for every picture of a graph."""

from collections.abc import Sequence

from gradcli.traces import ArraySummary, HookCall, TraceGraph, TraceNode

LEAF_NODES = ("AccumulateGrad", "input")
"""What a path of the graph ends at: the node that fills a leaf's .grad, or an input of a function."""
_SHORT = (("complex", "c"), ("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"))


def number(value: complex) -> str:
    """A number in at most 6 digits: 0.25, -1e-09, 1+2j."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, complex):
        return f"{value.real:.6g}{value.imag:+.6g}j" if value.imag else f"{value.real:.6g}"
    return f"{value:.6g}"


def values(summary: ArraySummary | None) -> str:
    """A gradient: its numbers where there are few, its norm where there are many, None for none."""
    if summary is None:
        return "None"
    if summary.values is None:
        bad = f", {summary.non_finite} not finite" if summary.non_finite else ""
        return f"{kind(summary)} norm {'unknown' if summary.norm is None else number(summary.norm)}{bad}"
    return _nested([number(value) for value in summary.values], summary.shape)


def _nested(numbers: list[str], shape: tuple[int, ...]) -> str:
    """The numbers in brackets, one pair for each axis."""
    if not shape:
        return numbers[0]
    if len(shape) == 1:
        return f"[{' '.join(numbers)}]"
    size = len(numbers) // shape[0] if shape[0] else 0
    rows = [_nested(numbers[row * size : (row + 1) * size], shape[1:]) for row in range(shape[0])]
    return f"[{' '.join(rows)}]"


def several(summaries: Sequence[ArraySummary | None]) -> str:
    """Gradients side by side, in brackets where there is not exactly one."""
    return values(summaries[0]) if len(summaries) == 1 else f"({', '.join(values(s) for s in summaries)})"


def in_tuple(summaries: Sequence[ArraySummary | None]) -> str:
    """Gradients as the tuple that a hook is given."""
    return f"({', '.join(values(s) for s in summaries)}{',' if len(summaries) == 1 else ''})"


def kind(summary: ArraySummary | None) -> str:
    """Element type and shape, as in f64[3×4]."""
    if summary is None:
        return ""
    short = summary.dtype
    for long, letter in _SHORT:
        if short.startswith(long):
            short = letter + short.removeprefix(long)
            break
    return f"{short}[{'×'.join(map(str, summary.shape))}]"


def output_kind(node: TraceNode) -> str:
    """Element type and shape of what the node made in forward, as far as it is known."""
    known = node.output or next((g for g in node.gradients_in if g is not None), None)
    return kind(known)


def place(node: TraceNode) -> str:
    """The line that made the node (or that of its own backward), or the name of the leaf that it fills."""
    if node.name in LEAF_NODES:
        return node.variable or "(a leaf without a name)"
    site = node.site or node.rule
    return "" if site is None else str(site)


def flow(graph: TraceGraph, node: TraceNode) -> str:
    """What came into a node and what left it; for a leaf, its `.grad`."""
    if not node.executed:
        return "not run"
    if node.name in LEAF_NODES:
        fate = next((fate for fate in graph.tensors if fate.node == node.id and fate.is_leaf), None)
        if not graph.fills_grad or fate is None or fate.grad is None:
            return f"grad {several(node.gradients_in)}"
        return f".grad = {values(fate.grad)}"
    left = several(node.gradients_out) if node.gradients_out else "did not finish"
    return f"grad {several(node.gradients_in)} → {left}"


def hook_site(call: HookCall) -> str:
    """Where the hook is written."""
    made = "(built in)" if call.site is None else str(call.site)
    return made if call.registered_at is None else f"{made}, registered at {call.registered_at}"


def amount(count: int) -> str:
    """A number of bytes: 88 B, 1.2 kB, 3.4 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def _root(graph: TraceGraph) -> str:
    """What the pass ran from: its name, or how and where it was made."""
    if graph.pass_root is not None or not graph.starts or graph.starts[0].target is None:
        return graph.pass_root or "a tensor without a name"
    node = graph.nodes[graph.starts[0].target]
    return f"result of {node.name}" + (f" at {node.site}" if node.site is not None else "")


def headline(graph: TraceGraph) -> tuple[str, str]:
    """What stands at the root of the graph, the result unless the pass ran from another, and how large the graph is."""
    if graph.pass_result is not None:
        first = f"{_root(graph)} = {values(graph.pass_result)}"
    elif graph.result is not None:
        first = f"{graph.root_name or 'result'} = {values(graph.result)}"
    else:
        first = f"{graph.target} returned no tensor"
    forward = sum(1 for node in graph.nodes if node.name not in LEAF_NODES)
    facts = [f"forward {forward} nodes", f"backward {sum(node.executed for node in graph.nodes)} nodes"]
    facts.append(f"saved {amount(graph.saved_bytes)}")
    if graph.passes > 1:
        facts.append(f"{graph.passes} backward passes, this is the last")
    return first, " · ".join(facts)
