"""What hooks did to the gradients of leaves: one sentence for the leaves that the same hooks changed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import final

from gradcli.diagnosis.symptoms.flow import Flow, who
from gradcli.diagnosis.symptoms.scaling import Scale, Scaling, is_in_place
from gradcli.frozen import dataclass
from gradcli.traces import HookCall, TraceGraph, TraceNode

_FORWARD_KINDS = ("module-forward", "module-forward-pre", "pack", "unpack")
_LISTED = 6
_TIMES = {2: "twice", 3: "three times"}
_DIFFERS = "from the gradient that autograd computed"


@final
@dataclass(frozen=True, slots=True)
class Change:
    """One call of a hook as it concerns one leaf: whether the leaf's `whole` gradient passed through it, or a part.

    `shared` says that the hook was given another gradient, and changed the memory of this one.
    """

    call: HookCall
    whole: bool
    shared: bool


@final
@dataclass(frozen=True, slots=True)
class _Effect:
    """What the hooks did to one leaf: equal for leaves that share a sentence."""

    changes: tuple[Change, ...]
    scale: Scale
    held: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What tells effects apart. NaN is not equal to itself."""
        calls = tuple((change.call.number, change.whole, change.shared) for change in self.changes)
        return calls, repr(self.scale.factor), self.scale.rules, self.scale.divided_in, self.held


def effects_of_hooks(flow: Flow) -> Iterator[str]:
    """One sentence for each set of leaves that the same hooks changed: by which factor, and why.

    For an earlier pass, only hooks that changed nothing in the last one are included.
    """
    graph = flow.graph
    last = {_hook(call) for call in _changing(graph) if call.node is not None or call.inside is not None}
    for earlier in graph.earlier:
        what = f"what backward pass {earlier.passes} of {graph.passes}"
        what += "" if earlier.pass_site is None else f", at {earlier.pass_site},"
        for effect, leaves in _effects(Flow.of(earlier)):
            if any(_hook(change.call) not in last for change in effect.changes):
                names = _names(leaves)
                yield _sentence(earlier, f"{what} added to the grad of {names}", names, effect)
    for effect, leaves in _effects(flow):
        names = _names(leaves)
        added = f"what {'the last backward pass' if graph.passes > 1 else 'backward'} added to the grad of {names}"
        yield _sentence(graph, added if effect.held or graph.passes > 1 else f"grad of {names}", names, effect)


def _hook(call: HookCall) -> tuple[object, ...]:
    """What is the same for all calls of a hook, also if a result is another tensor in each pass."""
    return call.kind, call.function, call.site, call.registered_at


def _changing(graph: TraceGraph) -> list[HookCall]:
    return [call for call in graph.hooks if call.changed_slots and call.kind not in _FORWARD_KINDS]


def _effects(flow: Flow) -> list[tuple[_Effect, list[TraceNode]]]:
    """What hooks did in a pass, each with the leaves to which they did the same."""
    graph, calls = flow.graph, _changing(flow.graph)
    if not calls:
        return []
    groups: dict[tuple[object, ...], tuple[_Effect, list[TraceNode]]] = {}
    for leaf, scale in Scaling.of(flow, calls).leaves.items():
        node = graph.nodes[leaf]
        if scale.some:
            effect = _Effect(tuple(_changes(calls, scale)), scale, node.filled_before)
            groups.setdefault(effect.key, (effect, []))[1].append(node)
    return sorted(groups.values(), key=lambda group: group[0].changes[0].call.number)


def _changes(calls: Sequence[HookCall], scale: Scale) -> Iterator[Change]:
    for place, call in enumerate(calls):
        if scale.some >> place & 1:
            whole = bool(scale.every >> place & 1)
            yield Change(call, whole, shared=scale.shared and not whole and is_in_place(call))


def _sentence(graph: TraceGraph, what: str, names: str, effect: _Effect) -> str:
    changes, scale = effect.changes, effect.scale
    because = f"because {_reasons(changes)}"
    if scale.is_known:
        every = "" if all(change.whole for change in changes) else " on every path"
        return f"{what} {_is_now(scale.factor)}{every} {because}{_presumed(graph, scale)}{_held(effect)}"
    if scale.divided_in is not None:
        node = graph.nodes[scale.divided_in]
        return (
            f"{what} may differ {_DIFFERS} {because}: {_node(node)} may give each of its operands only a part of what "
            "it received"
        )
    alone = changes[0] if len(changes) == 1 else None
    if alone is not None and not alone.whole and not alone.shared:
        now = f"differs {_DIFFERS}" if alone.call.factor is None else _is_now(alone.call.factor)
        return f"a part of the gradient of {names} {now} {because}"
    return f"{what} differs {_DIFFERS} {because}{_held(effect)}"


def _held(effect: _Effect) -> str:
    """What hooks that change `.grad` itself did to what it held before the pass."""
    calls = [change.call for change in effect.changes if change.call.kind == "post-accumulate"]
    if not calls or not effect.held:
        return ""
    factors = [call.factor for call in calls if call.factor is not None]
    done = f"scaled by {prod(factors):.6g}" if len(factors) == len(calls) else "changed"
    return f"; what it held before is {done} as well"


def _presumed(graph: TraceGraph, scale: Scale) -> str:
    """What a factor presumes of users' own backwards, unless `--check` has found them right."""
    checked = graph.node_check is not None and not (graph.wrong_nodes or graph.node_check.undecided)
    if not scale.rules or checked:
        return ""
    rules = dict.fromkeys(_node(graph.nodes[number]) for number in sorted(scale.rules))
    return f", provided that the backward of {listed(list(rules))} is linear"


def _node(node: TraceNode) -> str:
    site = node.rule or node.site
    return node.name + ("" if site is None else f" at {site}")


def _is_now(factor: float) -> str:
    return "is 0" if factor == 0 else f"is scaled by {factor:.6g}"


def _reasons(changes: Sequence[Change]) -> str:
    """Each hook and what it did; its factor if there are several hooks, and how often it fired if more than once."""
    if len(changes) == 1:
        return f"{who(changes[0].call)} {_did(changes[0].call)}{_shared(changes[0])}"
    parts = [_reason(change) for change in changes]
    counts = Counter(parts)
    effects = [f"{name} {_often(counts[name, did])}{did}" for name, did in dict.fromkeys(parts)]
    return listed(effects)


def _reason(change: Change) -> tuple[str, str]:
    call = change.call
    factor = "" if call.factor is None else f" ({call.factor:.6g}x)"
    partly = "" if change.whole or change.shared else " (on some of the paths to it)"
    return who(call), f"{_did(call)}{factor}{partly}{_shared(change)}"


def _shared(change: Change) -> str:
    return f" of {change.call.owner}, which is this gradient's memory as well" if change.shared else ""


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
