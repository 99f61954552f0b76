"""The ledger of memory as text: what was saved, what for, what is left, and the most there was at one time."""

from collections.abc import Iterator

from gradcli.reporters.graph.wording import amount, kind, place
from gradcli.traces import ArraySummary, MemoryLedger, SavedTensor, TraceGraph
from gradcli.traces.memory import ACTIVATION, DATA, PARAMETER

_LISTED = 8
_COLUMN = 21


def memory_lines(graph: TraceGraph) -> Iterator[str]:
    """The lines below a headline of its own; nothing where the ledger was not asked for."""
    ledger = graph.memory
    if ledger is None:
        return
    yield "memory of this backward pass"
    for head, text in _facts(graph, ledger):
        yield f"  {head:<{_COLUMN}}{text}"


def _facts(graph: TraceGraph, ledger: MemoryLedger) -> Iterator[tuple[str, str]]:
    count = sum(storage.kind == ACTIVATION for storage in ledger.storages)
    given = ledger.total(PARAMETER, DATA)
    beside = f", in addition to {amount(given)} of parameters and data" if given else ""
    yield (
        "saved for backward",
        f"{amount(ledger.total(ACTIVATION))} of activations in {count} tensor{'s' * (count != 1)}{beside}",
    )
    if ledger.uncounted:
        nodes = f"{ledger.uncounted} node{'s' * (ledger.uncounted != 1)}"
        yield "not counted", f"what {nodes} saved through hooks (a checkpoint, save_on_cpu, saved_tensors_hooks)"
    yield from _peak(graph, ledger)
    yield from _by_module(graph, ledger)
    yield from _by_node(graph, ledger)
    yield from _twice(graph, ledger)
    yield from _held(ledger)


def _peak(graph: TraceGraph, ledger: MemoryLedger) -> Iterator[tuple[str, str]]:
    peak = ledger.peak
    if peak is None:
        return
    when = "before the first node ran" if peak.node is None else f"while {_node(graph, peak.node)} ran"
    parts = (
        (peak.fixed, "parameters and data"),
        (peak.saved, "saved"),
        (peak.gradients, "gradients in flight"),
        (peak.accumulated, ".grad"),
    )
    sums = " + ".join(f"{amount(count)} {what}" for count, what in parts if count)
    yield "peak", f"{amount(peak.bytes)} {when}: {sums or 'nothing'}"
    if ledger.budget is not None:
        gap = peak.bytes - ledger.budget
        text = (
            f"the peak is {amount(gap)} above the budget"
            if gap > 0
            else (f"the peak is {amount(-gap)} below the budget")
        )
        yield "budget", f"{amount(ledger.budget)}: {text}"


def _by_module(graph: TraceGraph, ledger: MemoryLedger) -> Iterator[tuple[str, str]]:
    modules = ledger.by_module(graph.nodes)
    if set(modules) <= {""}:
        return
    rows = [(count, name or "outside of modules") for name, count in modules.items()]
    yield from _listed("by module", rows, ledger.total(ACTIVATION))


def _by_node(graph: TraceGraph, ledger: MemoryLedger) -> Iterator[tuple[str, str]]:
    firsts: dict[int, list[SavedTensor]] = {}
    for saved in ledger.saved:
        storage = ledger.storages[saved.storage]
        if storage.kind == ACTIVATION and storage.nodes[0] == saved.node:
            firsts.setdefault(saved.node, []).append(saved)
    rows = [
        (count, f"{_node(graph, node)}: {', '.join(_saved(s) for s in firsts.get(node, ()))}")
        for node, count in ledger.by_node().items()
    ]
    yield from _listed("by node", rows, ledger.total(ACTIVATION))


def _listed(head: str, rows: list[tuple[int, str]], total: int) -> Iterator[tuple[str, str]]:
    for number, (count, text) in enumerate(rows[:_LISTED]):
        yield "" if number else head, f"{amount(count):>8} {count / total:4.0%}  {text}"
    if len(rows) > _LISTED:
        rest = sum(count for count, _ in rows[_LISTED:])
        yield "", f"{amount(rest):>8} {rest / total:4.0%}  {len(rows) - _LISTED} more (--format json)"


def _twice(graph: TraceGraph, ledger: MemoryLedger) -> Iterator[tuple[str, str]]:
    groups = ledger.copies()
    for number, group in enumerate(groups[:_LISTED]):
        spare = sum(ledger.storages[storage].bytes for storage in group[1:])
        holders = [next(saved for saved in ledger.saved if saved.storage == storage) for storage in group]
        names = [f"{saved.name} of {_node(graph, saved.node)}" for saved in holders]
        shown = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) <= _LISTED else f"{len(names)} tensors"
        yield "" if number else "saved twice", f"{amount(spare):>8}       {shown} hold the same values"
    if len(groups) > _LISTED:
        yield "", f"{len(groups) - _LISTED} more (--format json)"
    shared = [ledger.storages[storage] for storage in ledger.shared() if ledger.storages[storage].kind == ACTIVATION]
    if shared:
        total = amount(sum(storage.bytes for storage in shared))
        yield (
            "saved once, shared",
            f"{total:>8}       {len(shared)} tensors saved by several nodes",
        )


def _held(ledger: MemoryLedger) -> Iterator[tuple[str, str]]:
    if not ledger.held:
        yield "held after backward", "nothing"
    for number, held in enumerate(sorted(ledger.held, key=lambda each: -each.bytes)[:_LISTED]):
        where = "" if held.site is None else f" at {held.site}"
        advice = "; ctx.save_for_backward would free it" if held.by == "ctx" else ""
        yield "" if number else "held after backward", f"{amount(held.bytes):>8}       by {held.holder}{where}{advice}"
    if len(ledger.held) > _LISTED:
        yield "", f"{len(ledger.held) - _LISTED} more (--format json)"


def _node(graph: TraceGraph, number: int) -> str:
    node = graph.nodes[number]
    where = place(node)
    inside = f" in {node.module}" if node.module else ""
    return f"{node.name} #{number}{f' at {where}' if where else ''}{inside}"


def _saved(saved: SavedTensor) -> str:
    about = ArraySummary(shape=saved.shape, dtype=saved.dtype, norm=None, values=None)
    return f"{saved.name} {kind(about)}"
