"""Compares two traces by their documents, one of which may be from an earlier version of the program."""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from gradcli.traces.difference import GradientChange, HookChange, NodeChange, TraceDifference

Document = Mapping[str, Any]
_LARGEST = 4_000_000
"""Pairs up to which what lies between equal beginnings and ends is aligned (about 1 s); beyond it is counted."""
_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "complex64": 2.0**-24}


def difference(first: Document, second: Document, names: tuple[str, str]) -> TraceDifference:
    """The differences from the first trace document to the second."""
    nodes = first["nodes"], second["nodes"]
    pairs = _aligned([_node_key(n) for n in nodes[0]], [_node_key(n) for n in nodes[1]])
    matched = ({a for a, _ in pairs}, {b for _, b in pairs})
    leaves = tuple(_leaves(first, second))
    root = _root(nodes, pairs)
    symptoms: tuple[Counter[str], Counter[str]] = Counter(first["symptoms"]), Counter(second["symptoms"])
    return TraceDifference(
        first=names[0],
        second=names[1],
        nodes=(len(nodes[0]), len(nodes[1])),
        gone=tuple(_node(n, None) for n in nodes[0] if n["id"] not in matched[0]),
        added=tuple(_node(None, n) for n in nodes[1] if n["id"] not in matched[1]),
        root=root,
        parted=() if root is not None else tuple(_parted(nodes, pairs)),
        leaves=leaves,
        hooks=tuple(_hooks(first["hooks"], second["hooks"], pairs)),
        symptoms_gone=tuple((symptoms[0] - symptoms[1]).elements()),
        symptoms_added=tuple((symptoms[1] - symptoms[0]).elements()),
        saved_bytes=(first["saved_bytes"], second["saved_bytes"]),
    )


# --- which belongs to which
def _aligned(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of equal entries in the same order: the common beginning and end, and a longest match between."""
    short = min(len(first), len(second))
    begin = next((n for n in range(short) if first[n] != second[n]), short)
    rest = short - begin
    end = next((n for n in range(rest) if first[-1 - n] != second[-1 - n]), rest)
    pairs = [(n, n) for n in range(begin)]
    middle = first[begin : len(first) - end], second[begin : len(second) - end]
    pairs += [(begin + a, begin + b) for a, b in _between(*middle)]
    return pairs + [(len(first) - n, len(second) - n) for n in range(end, 0, -1)]


def _between(first: Sequence[Hashable], second: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    if len(first) * len(second) <= _LARGEST:
        for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
            yield from ((block.a + n, block.b + n) for n in range(block.size))
        return
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(second):
        places.setdefault(key, []).append(place)
    waiting = {key: iter(found) for key, found in places.items()}
    for place, key in enumerate(first):
        other = next(waiting.get(key, iter(())), None)
        if other is not None:
            yield place, other


def _node_key(node: Document) -> Hashable:
    """What identifies a node, without its line and number."""
    return node["name"], node["module"], node["variable"]


def _node(first: Document | None, second: Document | None) -> NodeChange:
    known: Any = first or second
    site = known["site"] or known["rule"]
    place = known["variable"] or ("" if site is None else f"{site['file']}:{site['line']}")
    return NodeChange(
        name=known["name"],
        first=None if first is None else first["id"],
        second=None if second is None else second["id"],
        place=place,
        module=known["module"],
    )


# --- gradients
def _root(nodes: tuple[Any, Any], pairs: Sequence[tuple[int, int]]) -> GradientChange | None:
    """The gradient that the pass began with, if that differs."""
    if not pairs or pairs[0] != (0, 0):
        return None
    return next(_changes(nodes[0][0], nodes[1][0], "gradients_in", "the gradient that backward began with"), None)


def _parted(nodes: tuple[Any, Any], pairs: Sequence[tuple[int, int]]) -> Iterator[GradientChange]:
    """Where the gradients of the two traces differ first, in each part of the graph.

    That is a node that received equal gradients and returned different ones; or, if a hook is the cause, the edge from
    a node that returned equal gradients to the next one.
    """
    feeds: dict[int, list[int]] = {}
    for number, node in enumerate(nodes[0]):
        for edge in node["edges"]:
            if edge["target"] is not None:
                feeds.setdefault(edge["target"], []).append(number)
    agree = {a: not any(_changes(nodes[0][a], nodes[1][b], "gradients_out", "")) for a, b in pairs}
    for a, b in pairs:
        first, second = nodes[0][a], nodes[1][b]
        came = list(_changes(first, second, "gradients_in", "the gradient that came in"))
        if not came:
            yield from _changes(first, second, "gradients_out", "gradient to operand {}")
        elif a in feeds and all(agree.get(number, False) for number in feeds[a]):
            yield from came


def _changes(first: Document, second: Document, key: str, what: str) -> Iterator[GradientChange]:
    lists = first[key], second[key]
    node = _node(first, second)
    if len(lists[0]) != len(lists[1]):
        counts = tuple(f"{len(each)} gradients" for each in lists)
        yield GradientChange(what=what.format("…"), first=counts[0], second=counts[1], gap=None, node=node)
        return
    for slot, (one, other) in enumerate(zip(*lists, strict=True)):
        gap = _gap(one, other)
        if gap is not None:
            yield GradientChange(
                what=what.format(slot),
                first=shown(one),
                second=shown(other),
                gap=gap if math.isfinite(gap) else None,
                node=node,
            )


def _leaves(first: Document, second: Document) -> Iterator[GradientChange]:
    """Every differing `.grad` of leaves that have the same name in both traces."""
    others = {fate["name"]: fate for fate in second["tensors"] if fate["is_leaf"]}
    for fate in first["tensors"]:
        other = others.get(fate["name"])
        if not fate["is_leaf"] or other is None:
            continue
        gap = _gap(fate["grad"], other["grad"])
        if gap is not None:
            yield GradientChange(
                what=f"{fate['name']}.grad",
                first=shown(fate["grad"]),
                second=shown(other["grad"]),
                gap=gap if math.isfinite(gap) else None,
            )


def _gap(first: Document | None, second: Document | None) -> float | None:
    """The relative difference of two gradients; None if it may be rounding, infinite if they are not comparable.

    Rounding that the pass amplified up to the root of the precision counts as rounding.
    """
    if first is None or second is None:
        return None if first is second else math.inf
    if first["shape"] != second["shape"] or first["non_finite"] != second["non_finite"]:
        return math.inf
    norms = [_number(each["norm"]) for each in (first, second)]
    if not all(map(math.isfinite, norms)):
        return None if str(first["values"]) == str(second["values"]) else math.inf
    size = max(norms)
    if first["values"] is not None and second["values"] is not None:
        away = math.hypot(*(_distance(a, b) for a, b in zip(first["values"], second["values"], strict=True)))
    else:
        probes = [_number(each.get("probe")) for each in (first, second)]
        away = abs(norms[0] - norms[1])
        away = max(away, abs(probes[0] - probes[1])) if all(map(math.isfinite, probes)) else away
    roundoff = max(_ROUNDOFF.get(each["dtype"], 2.0**-53) for each in (first, second))
    gap = away / size if size else 0.0
    return gap if gap > math.sqrt(roundoff) else None


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _distance(first: Any, second: Any) -> float:
    """Between two numbers of a document, where complex ones are pairs."""
    pairs = [complex(*map(float, v)) if isinstance(v, list) else complex(float(v)) for v in (first, second)]
    return abs(pairs[0] - pairs[1])


def shown(gradient: Document | None) -> str:
    """A gradient of a document as text: its values if there are few, else its norm."""
    if gradient is None:
        return "None"
    if gradient["values"] is None:
        bad = f", {gradient['non_finite']} not finite" if gradient["non_finite"] else ""
        norm = "unknown" if gradient["norm"] is None else f"{_number(gradient['norm']):.6g}"
        return f"{gradient['dtype']}[{'×'.join(map(str, gradient['shape']))}] norm {norm}{bad}"
    texts = [f"{v[0]:.6g}{v[1]:+.6g}j" if isinstance(v, list) else f"{float(v):.6g}" for v in gradient["values"]]
    return f"[{' '.join(texts)}]" if gradient["shape"] else texts[0]


# --- hooks
def _hooks(
    first: Sequence[Document], second: Sequence[Document], nodes: Sequence[tuple[int, int]]
) -> Iterator[HookChange]:
    place = ({a: (a, b) for a, b in nodes}, {b: (a, b) for a, b in nodes})
    keys = [[_hook_key(call, found) for call in calls] for calls, found in zip((first, second), place, strict=True)]
    pairs = _aligned(*keys)
    alone = set(range(len(first))) - {a for a, _ in pairs}, set(range(len(second))) - {b for _, b in pairs}
    yield from (HookChange(hook=_hook(first[n]), first=first[n]["effect"], second=None) for n in sorted(alone[0]))
    yield from (HookChange(hook=_hook(second[n]), first=None, second=second[n]["effect"]) for n in sorted(alone[1]))
    for a, b in pairs:
        if first[a]["effect"] != second[b]["effect"]:
            yield HookChange(hook=_hook(first[a]), first=first[a]["effect"], second=second[b]["effect"])


def _hook_key(call: Document, places: Mapping[int, tuple[int, int]]) -> Hashable:
    """What identifies a hook call: the nodes whose gradients it saw; the name of its owner does not count."""
    return call["kind"], call["function"], places.get(call["node"], call["owner"])


def _hook(call: Document) -> str:
    where = "" if call["site"] is None else f" at {call['site']['file']}:{call['site']['line']}"
    return f"{call['kind']} hook `{call['function']}`{where} on {call['owner']}"
