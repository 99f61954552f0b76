"""What hooks did to the gradients of leaves: one sentence for the leaves that the same hooks changed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import final

from gradcli.diagnosis.symptoms.flow import Flow, who
from gradcli.frozen import dataclass
from gradcli.traces import HookCall, TraceGraph, TraceNode

_FORWARD_KINDS = ("module-forward", "module-forward-pre", "pack", "unpack", "multi-grad")
_LISTED = 6
_FEW_HOOKS = 50
_TIMES = {2: "twice", 3: "three times"}


@final
@dataclass(frozen=True, slots=True)
class Change:
    """One call of a hook as it concerns one leaf: whether the leaf's `whole` gradient passed through it, or a part."""

    call: HookCall
    whole: bool


def effects_of_hooks(flow: Flow) -> Iterator[str]:
    """One sentence for each set of leaves that the same hooks changed: by which factor, and why."""
    graph = flow.graph
    calls = [c for c in graph.hooks if c.changed_slots and c.kind not in _FORWARD_KINDS]
    changes: dict[int, list[Change]] = {}
    for call in [call for call in calls if call.node is not None][:_FEW_HOOKS]:
        for whole, leaves in zip((True, False), flow.leaves_behind(call), strict=True):
            for leaf in leaves:
                changes.setdefault(leaf.id, []).append(Change(call, whole))
    groups: dict[tuple[tuple[int, bool], ...], list[int]] = {}
    for leaf_id, found in changes.items():
        groups.setdefault(tuple((change.call.number, change.whole) for change in found), []).append(leaf_id)
    for leaves_of_group in groups.values():
        names = _names([graph.nodes[leaf_id] for leaf_id in leaves_of_group])
        yield _sentence(graph, names, changes[leaves_of_group[0]])


def _sentence(graph: TraceGraph, names: str, changes: Sequence[Change]) -> str:
    what = f"grad of {names}" if graph.passes < 2 else f"what the last backward pass added to the grad of {names}"
    if len(changes) == 1 and not changes[0].whole:
        what = f"a part of the gradient of {names}"
    exact = len(changes) == 1 or all(change.whole for change in changes)
    factors = [change.call.factor for change in changes]
    known = [factor for factor in factors if factor is not None]
    changed = (
        _is_now(prod(known))
        if exact and len(known) == len(factors)
        else "differs from the gradient that autograd computed"
    )
    return f"{what} {changed} because {_reasons(changes)}"


def _is_now(factor: float) -> str:
    return "is 0" if factor == 0 else f"is scaled by {factor:.6g}"


def _reasons(changes: Sequence[Change]) -> str:
    """Each hook and what it did; its factor if there are several hooks, and how often it fired if more than once."""
    if len(changes) == 1:
        return f"{who(changes[0].call)} {_did(changes[0].call)}"
    parts = [_reason(change) for change in changes]
    counts = Counter(parts)
    effects = [f"{name} {_often(counts[name, did])}{did}" for name, did in dict.fromkeys(parts)]
    return effects[0] if len(effects) == 1 else " and ".join([", ".join(effects[:-1]), effects[-1]])


def _reason(change: Change) -> tuple[str, str]:
    call = change.call
    factor = "" if call.factor is None else f" ({call.factor:.6g}x)"
    return who(call), f"{_did(call)}{factor}{'' if change.whole else ' (on some of the paths to it)'}"


def _did(call: HookCall) -> str:
    return call.effect.split(":")[0]


def _often(count: int) -> str:
    return "" if count == 1 else f"fired {_TIMES.get(count, f'{count} times')} and each time "


def _names(leaves: list[TraceNode]) -> str:
    named = [leaf.variable for leaf in leaves if leaf.variable is not None]
    rest = len(leaves) - len(named)
    return listed(named, [f"{rest} leaf without a name" if rest == 1 else f"{rest} leaves without a name"] * bool(rest))


def listed(names: list[str], others: Sequence[str] = ()) -> str:
    """Names in words, the first six of them."""
    words = names[:_LISTED] + ([f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []) + list(others)
    return words[0] if len(words) == 1 else " and ".join([", ".join(words[:-1]), words[-1]]) if words else ""
