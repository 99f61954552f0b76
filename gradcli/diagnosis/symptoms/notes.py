"""What a reader of a trace should know although nothing is wrong."""

from collections.abc import Iterator

from gradcli.diagnosis.symptoms.effects import listed
from gradcli.traces import TraceGraph


def notes(graph: TraceGraph) -> Iterator[str]:
    """What the graph does not show."""
    if graph.filled_inside:
        where = "" if graph.pass_site is None else f" at {graph.pass_site}"
        yield (
            f"the .grad of {listed(list(graph.filled_inside))} was filled by another backward pass, which ran inside "
            f"the one{where}, as in a reentrant checkpoint; the graph above does not show that pass"
        )
