"""A trace's nodes as a table of plain columns, one line a node, in backward order."""

from gradcli.reporters.graph.tree import explanation
from gradcli.reporters.graph.wording import flow, headline, output_kind, place
from gradcli.traces import TraceGraph

_HEADINGS = ("id", "node", "feeds", "from", "module", "type", "saved", "gradients")


def table(graph: TraceGraph, *, max_nodes: int | None = None) -> str:
    """The nodes, all or the first `max_nodes`, then the hooks and explanations of the tree."""
    shown = len(graph.nodes) if max_nodes is None else min(max_nodes, len(graph.nodes))
    rows = [_HEADINGS, *(_row(graph, number) for number in range(shown))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS) - 1)]
    lines = ["   ".join(headline(graph))]
    for row in rows:
        cells = [cell.ljust(wide) for cell, wide in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    if shown < len(graph.nodes):
        lines.append(f"{len(graph.nodes) - shown} more nodes (--max-nodes)")
    lines += [line.text for line in explanation(graph, max_nodes)]
    return "\n".join(lines) + "\n"


def _row(graph: TraceGraph, number: int) -> tuple[str, ...]:
    node = graph.nodes[number]
    feeds = ",".join("-" if edge.target is None else str(edge.target) for edge in node.edges)
    saved = str(node.saved_bytes) if node.saved_bytes else ""
    return str(node.id), node.name, feeds, place(node), node.module or "", output_kind(node), saved, flow(graph, node)
