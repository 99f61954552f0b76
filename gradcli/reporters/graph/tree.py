"""A trace as indented text: the graph from the result to its leaves, the hooks in order, and what they mean."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from enum import Enum

from gradcli.frozen import dataclass
from gradcli.reporters.escaping import markup
from gradcli.reporters.graph.memory import memory_lines
from gradcli.reporters.graph.wording import (
    LEAF_NODES,
    flow,
    headline,
    hook_site,
    in_tuple,
    output_kind,
    place,
    several,
)
from gradcli.traces import HookCall, TensorFate, TraceGraph, TraceNode

_NESTED = 12
_LISTED = 6
_BY_TUPLE = ("module-full", "module-legacy", "module-backward-pre", "node-post", "node-pre")


class Tone(Enum):
    """What a line is, for whoever colours it."""

    RESULT = "result"
    NODE = "node"
    LEAF = "leaf"
    HOOK = "hook"
    HEADING = "heading"
    WARNING = "warning"
    WHY = "why"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line of text and what it is."""

    text: str
    tone: Tone


def tree(graph: TraceGraph, *, max_nodes: int = 200, width: int | None = None) -> str:
    """The whole trace as text; lines are cut or folded to `width` columns where it is given."""
    return "\n".join(line.text for line in tree_lines(graph, max_nodes=max_nodes, width=width)) + "\n"


def tree_lines(graph: TraceGraph, *, max_nodes: int = 200, width: int | None = None) -> list[TreeLine]:
    """The lines of `tree`."""
    lines = [*_graph_lines(graph, max_nodes), *explanation(graph, max_nodes)]
    return [shown for line in lines for shown in _fitted(line, width)]


def fragment(graph: TraceGraph) -> str:
    """The trace as preformatted text, for a notebook's cell."""
    return f"<pre>{markup(tree(graph))}</pre>"


def explanation(graph: TraceGraph, most: int | None = None) -> Iterator[TreeLine]:
    """What stands below the graph: the hooks in order (the first `most` calls), their effects, causes, and lints."""
    yield from _hook_lines(graph, most)
    yield from _memory(graph)
    yield from meaning(graph)


def _memory(graph: TraceGraph) -> Iterator[TreeLine]:
    for number, text in enumerate(memory_lines(graph)):
        yield TreeLine(text, Tone.HOOK if number else Tone.HEADING)


def _fitted(line: TreeLine, width: int | None) -> Iterator[TreeLine]:
    if width is None or len(line.text) <= width:
        yield line
    elif line.tone in (Tone.NODE, Tone.LEAF, Tone.RESULT):
        yield TreeLine(line.text[: width - 1] + "…", line.tone)
    else:
        indent = " " * (len(line.text) - len(line.text.lstrip()) + 2)
        for part in textwrap.wrap(line.text, width, subsequent_indent=indent, drop_whitespace=True):
            yield TreeLine(part, line.tone)


# --- the graph
def _graph_lines(graph: TraceGraph, max_nodes: int) -> Iterator[TreeLine]:
    first, facts = headline(graph)
    yield TreeLine(f"{first}   {facts}" if graph.nodes else first, Tone.RESULT)
    rows = list(_rows(graph, max_nodes))
    widths = [max((len(row[column]) for row, _ in rows), default=0) for column in range(3)]
    for row, node in rows:
        cells = [cell.ljust(wide) for cell, wide in zip(row, widths, strict=False)]
        tone = Tone.LEAF if node is not None and node.name in LEAF_NODES else Tone.NODE
        yield TreeLine("   ".join([*cells, row[3]]).rstrip(), tone)


def _rows(graph: TraceGraph, max_nodes: int) -> Iterator[tuple[tuple[str, str, str, str], TraceNode | None]]:
    """One row a node, each node written out once and referred to after that."""
    feeds = Counter(edge.target for node in graph.nodes for edge in node.edges)
    roots = [node.id for node in graph.nodes if not feeds[node.id]]
    waiting = [(number, "", n == len(roots) - 1, 0) for n, number in enumerate(roots)][::-1]
    shown: set[int] = set()
    while waiting:
        number, prefix, last, depth = waiting.pop()
        node = graph.nodes[number]
        label = f"{prefix}{'└─ ' if last else '├─ '}{node.name}"
        if number in shown:
            mark = place(node) if node.name in LEAF_NODES else f"#{number}"
            yield (label, f"{mark} (above)", "", ""), node
            continue
        if len(shown) >= max_nodes:
            yield ((f"{prefix}└─ … {len(graph.nodes) - len(shown)} more nodes (--max-nodes)", "", "", ""), None)
            return
        shown.add(number)
        if feeds[number] > 1 and node.name not in LEAF_NODES:
            label += f" #{number}"
        yield (label, place(node), output_kind(node), flow(graph, node)), node
        children = [edge.target for edge in node.edges if edge.target is not None]
        if depth < _NESTED or len(children) > 1:
            prefix += "   " if last else "│  "
        below = [(child, prefix, n == len(children) - 1, depth + 1) for n, child in enumerate(children)]
        waiting.extend(reversed(below))


# --- the hooks
def hook_lines(graph: TraceGraph, most: int = 40) -> Iterator[str]:
    """The hook calls of a trace in order, the first `most` of them, each with what it changed."""
    yield from (line.text for line in _hook_lines(graph, most))


def _hook_lines(graph: TraceGraph, most: int | None) -> Iterator[TreeLine]:
    if not graph.hooks:
        return
    yield TreeLine("hooks, in the order they fired", Tone.HEADING)
    rows = [
        (call, (str(call.number), call.kind, f"{call.function} on {call.owner}", hook_site(call)))
        for call in graph.hooks[:most]
    ]
    widths = [max(len(row[column]) for _, row in rows) for column in range(4)]
    for call, row in rows:
        cells = [row[0].rjust(widths[0]), *(cell.ljust(wide) for cell, wide in zip(row[1:], widths[1:], strict=True))]
        yield TreeLine(f"  {'  '.join(cells)}  {change(call)}   {call.effect}", Tone.HOOK)
        if call.warning is not None:
            yield TreeLine(f"{' ' * (widths[0] + 4)}! {call.warning}", Tone.WARNING)
    if len(rows) < len(graph.hooks):
        yield TreeLine(f"  … {len(graph.hooks) - len(rows)} more calls (--max-nodes)", Tone.HOOK)
    for effect in dict.fromkeys(graph.effects):
        yield TreeLine(f"  {effect}", Tone.HOOK)


def change(call: HookCall) -> str:
    """What a hook was given, and what it made of it."""
    write = in_tuple if call.kind in _BY_TUPLE else several
    unchanged = call.effect in ("unchanged", "cut the graph") or (call.problem is not None and not call.changed_slots)
    arrow = "" if unchanged else f" → {write(call.after)}"
    if call.grad_output:
        return f"grad_input {write(call.before)}{arrow}  grad_output {in_tuple(call.grad_output)}"
    return f"{write(call.before)}{arrow}"


# --- what it means
def meaning(graph: TraceGraph) -> Iterator[TreeLine]:
    """What went wrong, why a gradient is missing, and what to know about hooks."""
    if graph.error is not None:
        yield TreeLine(f"{raised_in(graph)} raised {graph.error.strip()}", Tone.ERROR)
    if graph.error_hint is not None:
        yield TreeLine(f"  {graph.error_hint}", Tone.ERROR)
    yield from (TreeLine(text, Tone.WHY) for text in _answers(graph))
    said = [call.warning for call in graph.hooks if call.warning is not None]
    for lint in graph.lints:
        if not any(lint.endswith(warning) for warning in said):
            yield TreeLine(f"! {lint}", Tone.WARNING)
    yield from (TreeLine(note, Tone.WHY) for note in graph.notes)
    if graph.flags:
        yield TreeLine(f"inputs {graph.inputs_from}: {' '.join(graph.flags)}", Tone.HEADING)


def raised_in(graph: TraceGraph) -> str:
    """What raised: forward, backward, or the rest of the program after a backward pass."""
    return "after backward, the program" if graph.error_phase == "forward" and graph.passes else str(graph.error_phase)


def _answers(graph: TraceGraph) -> Iterator[str]:
    """One line for each cause, with all tensors that it holds for."""
    causes: dict[tuple[str, str | None], list[str]] = {}
    for fate in worth_telling(graph):
        causes.setdefault(("None" if fate.grad is None else "zero", fate.why), []).append(question_name(fate))
    for (state, why), names in causes.items():
        if graph.backend == "jax":
            yield f"why is the gradient of {', '.join(names[:_LISTED])} {state}?   {why}"
        elif len(names) == 1:
            yield f"why is {names[0]}.grad {state}?   {why}"
        else:
            rest = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield f"why are {', '.join(f'{name}.grad' for name in names[:_LISTED])}{rest} {state}?   {why}"
    if graph.results:
        rest = f" and {len(graph.results) - _LISTED} more" if len(graph.results) > _LISTED else ""
        yield f"non-leaf tensors keep no .grad without retain_grad(): {', '.join(graph.results[:_LISTED])}{rest}"


def worth_telling(graph: TraceGraph) -> list[TensorFate]:
    """The tensors whose `.grad` a reader may wonder about: not the intermediate results among the locals."""
    quiet = ("local", "result")
    return [
        f for f in graph.tensors if f.why is not None and (f.symptom is not None or f.role not in quiet or f.is_leaf)
    ]


def question_name(fate: TensorFate) -> str:
    """The tensor's name, with its other names."""
    return fate.name if not fate.aliases else f"{fate.name} (also {', '.join(fate.aliases)})"
