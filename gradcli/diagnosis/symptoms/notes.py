"""What a reader of a trace should know although nothing is wrong."""

from collections.abc import Iterator

from gradcli.diagnosis.symptoms.effects import listed
from gradcli.errors import counted
from gradcli.traces import SourceSite, TraceGraph


def notes(graph: TraceGraph) -> Iterator[str]:
    """What the graph does not show."""
    if graph.filled_inside:
        where = "" if graph.pass_site is None else f" at {graph.pass_site}"
        yield (
            f"the .grad of {listed(list(graph.filled_inside))} was filled by another backward pass, which ran inside "
            f"the one{where}, as in a reentrant checkpoint; the graph above does not show that pass"
        )
    yield from _changed(graph)
    counts = graph.node_check
    if counts is not None and not graph.wrong_nodes and not counts.stale:
        undecided = f", {len(counts.undecided)} without a verdict" if counts.undecided else ""
        passed = f"the backward of {counted(counts.passed, 'call')} is right"
        yield f"--check: {passed if counts.passed or undecided else 'there was no call to check'}{undecided}"


def _changed(graph: TraceGraph) -> Iterator[str]:
    """The leaves whose .grad is not what backward left, by what changed it."""
    found: dict[tuple[SourceSite | None, str], list[str]] = {}
    for fate in graph.tensors:
        if fate.changed_by is not None:
            found.setdefault((fate.changed_at, fate.changed_by), []).append(fate.name)
    for (site, changed_by), names in found.items():
        by = f", by {changed_by}" if changed_by else ""
        where = "" if site is None else f" at {site}"
        yield f"the .grad of {listed(names)} was changed after backward had filled it{by}{where}"
