"""A trace's graph for Graphviz and for Mermaid: text that those programs lay out, none of which is needed here."""

from collections.abc import Iterator

from gradcli.reporters.graph.wording import LEAF_NODES, flow, headline, output_kind, place
from gradcli.traces import TraceGraph, TraceNode

_MERMAID_EDGES, _MERMAID_TEXT = 500, 50_000
"""What Mermaid refuses more of, by its documented defaults of maxEdges and maxTextSize."""


def dot(graph: TraceGraph, *, max_nodes: int | None = None) -> str:
    """The graph in Graphviz's language; edges run the way gradients flow."""
    drawn = _drawn(graph, max_nodes)
    lines = ["digraph trace {", "  rankdir=TB;", f"  label={_quoted(chr(10).join(headline(graph)))};"]
    lines.append('  node [shape=box, fontname="monospace"];')
    for node in drawn:
        style = ", style=filled, fillcolor=lightblue" if node.name in LEAF_NODES else ""
        lines.append(f"  n{node.id} [label={_quoted(chr(10).join(_label(graph, node)))}{style}];")
    lines += [f"  n{start} -> n{end};" for start, end in _edges(drawn)]
    return "\n".join([*lines, *_rest(graph, drawn, "  // {}"), "}"]) + "\n"


def mermaid(graph: TraceGraph, *, max_nodes: int | None = None) -> str:
    """The graph in Mermaid's language, as code hosts show it in Markdown."""
    drawn = _drawn(graph, max_nodes)
    lines = ["flowchart TD"]
    for node in drawn:
        text = "<br/>".join(_entities(part) for part in _label(graph, node))
        opening, closing = ("([", "])") if node.name in LEAF_NODES else ("[", "]")
        lines.append(f'  n{node.id}{opening}"{text}"{closing}')
    edges = [f"  n{start} --> n{end}" for start, end in _edges(drawn)]
    text = "\n".join([*lines, *edges, *_rest(graph, drawn, "  %% {}")]) + "\n"
    if len(edges) > _MERMAID_EDGES or len(text) > _MERMAID_TEXT:
        text += (
            f"  %% Mermaid draws at most {_MERMAID_EDGES} edges and {_MERMAID_TEXT:,} characters unless configured "
            "otherwise (maxEdges, maxTextSize): use --max-nodes, or --format html\n"
        )
    return text


def _drawn(graph: TraceGraph, max_nodes: int | None) -> tuple[TraceNode, ...]:
    return graph.nodes if max_nodes is None else graph.nodes[:max_nodes]


def _edges(drawn: tuple[TraceNode, ...]) -> Iterator[tuple[int, int]]:
    for node in drawn:
        for edge in node.edges:
            if edge.target is not None and edge.target < len(drawn):
                yield node.id, edge.target


def _rest(graph: TraceGraph, drawn: tuple[TraceNode, ...], comment: str) -> list[str]:
    left = len(graph.nodes) - len(drawn)
    return [comment.format(f"{left} more nodes (--max-nodes)")] if left else []


def _label(graph: TraceGraph, node: TraceNode) -> list[str]:
    return [part for part in (node.name, place(node), output_kind(node), flow(graph, node)) if part]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    """Text that Mermaid takes for no markup: its own escape is an entity with # in place of &."""
    special = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\n": " "}
    return "".join(special.get(letter, letter) for letter in text)
