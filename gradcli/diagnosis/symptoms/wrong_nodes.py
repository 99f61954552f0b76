"""The nodes whose backward is wrong, in words."""

from collections.abc import Iterator

from gradcli.traces import MOST_CHECKED, TraceGraph


def wrong_nodes(graph: TraceGraph) -> Iterator[str]:
    """Sentences on the nodes whose backward is wrong, undecided or not checked."""
    for wrong in graph.wrong_nodes:
        call = f"{wrong.name}{'' if wrong.site is None else f' at {wrong.site}'}"
        module = "" if wrong.module is None else f" in {wrong.module}"
        line = "" if wrong.at is None else f", {wrong.at}"
        yield f"the backward of {call}{module} is wrong [{wrong.finding}{line}]: {wrong.message}"
    counts = graph.node_check
    for call in () if counts is None else counts.stale:
        yield (
            f"{call} returned other gradients in this pass than those of its forward at the values that it was given: "
            "what it saved was changed since, by a write that autograd does not see (`.data`, NumPy) or by a hook on "
            "saved tensors"
        )
    if counts is not None:
        for reason in dict.fromkeys(counts.reasons):
            names = [name for name, why in zip(counts.undecided, counts.reasons, strict=True) if why == reason]
            told = reason or f"use gradcli check on {'it' if len(names) == 1 else 'each'} to see why"
            yield f"no verdict on the backward of {', '.join(names)}: {told}"
    if counts is not None and counts.left_out:
        yield (
            f"{counts.left_out} more nodes were not checked, because --check stops after {MOST_CHECKED} nodes: use "
            "gradcli check on their Functions"
        )
