"""The difference of two traces as text: nodes, gradients, hooks and symptoms, in the order in which one asks."""

from collections.abc import Iterator

from gradcli.reporters.escaping import lines_of
from gradcli.reporters.graph.wording import amount
from gradcli.traces.difference import GradientChange, NodeChange, TraceDifference

_LISTED = 20


def difference_text(found: TraceDifference) -> str:
    """The whole text."""
    return "\n".join(lines_of("\n".join(_lines(found)))) + "\n"


def _lines(found: TraceDifference) -> Iterator[str]:
    yield f"from {found.first} ({found.nodes[0]} nodes) to {found.second} ({found.nodes[1]} nodes)"
    if found.is_empty:
        yield "no recorded differences: nodes, gradients (up to rounding), hooks and symptoms are the same"
        return
    yield from _nodes("gone", "-", found.gone)
    yield from _nodes("added", "+", found.added)
    if found.root is not None:
        yield f"the gradients differ already where backward begins: {_values(found.root)}"
    yield from _listed(
        "gradients differ first at", [f"{_node(g.node)}: {g.what}: {_values(g)}" for g in found.parted if g.node]
    )
    yield from _listed("gradients of leaves that differ", [f"{g.what}: {_values(g)}" for g in found.leaves])
    yield from _listed(
        "hooks that behaved differently",
        [
            f"{h.hook}: {'did not fire' if h.first is None else h.first} → "
            f"{'did not fire' if h.second is None else h.second}"
            for h in found.hooks
        ],
    )
    yield from _listed("symptoms gone", list(found.symptoms_gone))
    yield from _listed("symptoms added", list(found.symptoms_added))
    if found.saved_bytes[0] != found.saved_bytes[1]:
        yield f"saved for backward: {amount(found.saved_bytes[0])} → {amount(found.saved_bytes[1])}"


def _nodes(head: str, sign: str, nodes: tuple[NodeChange, ...]) -> Iterator[str]:
    total = len(nodes)
    yield from _listed(f"{total} node{'s' * (total != 1)} {head}", [f"{sign} {_node(node)}" for node in nodes])


def _listed(head: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield head
    yield from (f"  {row}" for row in rows[:_LISTED])
    if len(rows) > _LISTED:
        yield f"  … {len(rows) - _LISTED} more (--format json)"


def _node(node: NodeChange) -> str:
    numbers = [f"#{number}" for number in (node.first, node.second) if number is not None]
    where = f" at {node.place}" if node.place else ""
    inside = f" in {node.module}" if node.module else ""
    return f"{node.name} {'/'.join(dict.fromkeys(numbers))}{where}{inside}"


def _values(change: GradientChange) -> str:
    gap = "" if change.gap is None else f" (relative difference {change.gap:.2g})"
    return f"{change.first} → {change.second}{gap}"
