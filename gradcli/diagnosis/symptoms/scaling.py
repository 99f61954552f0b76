"""By which factor hooks scaled what reaches each leaf: one factor only if it is the same on every path to it."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import final

from gradcli.diagnosis.symptoms.flow import HOOK_NODE, LEAF_NODE, Flow, nothing
from gradcli.frozen import dataclass
from gradcli.traces import ArraySummary, HookCall, TraceNode

_BEFORE_THE_NODE = ("tensor", "node-pre", "module-backward-pre")
_AFTER_THE_NODE = ("node-post", "module-full", "module-legacy")
_LINEAR = (HOOK_NODE, "CheckpointFunctionBackward")
"""Functions of the framework, which are linear, whatever a user's own backward may be."""
_UNDIVIDED = re.compile(r"(Add|Sub|Mul|Div|Mm|Mv|Dot|Bmm|Addmm|Addmv|Baddbmm|Convolution)(Cmul|Cdiv)?Backward\d*$")
"""Nodes that use all that they receive for each of their operands."""
_SAME = 1e-6
_AS_A_SUM = 1e-2
"""Of the parts: more than rounding in any precision, less than a hook that changes a gradient on purpose."""


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """What hooks made of the gradient at a place: `factor` times the gradient that autograd alone would give there.

    The factor is NaN if it differs by path or is not known. `some` and `every` are the calls of hooks that lie on some
    and on every path to the place, one bit each. `rules` are users' own backwards that a changed gradient has passed:
    the factor presumes that they are linear. `divided_in` is a node that received a gradient without one factor, and
    may have given each of its operands a part of it only, as a concatenation does. `shared` says that a hook on
    another gradient, in the same memory, changed this one in place.
    """

    factor: float = 1.0
    some: int = 0
    every: int = 0
    rules: frozenset[int] = frozenset()
    divided_in: int | None = None
    shared: bool = False

    @property
    def is_known(self) -> bool:
        """Whether it is one factor on every path."""
        return not math.isnan(self.factor)

    def behind(self, factor: float | None, bit: int) -> "Scale":
        """The scale behind a hook that multiplied by `factor`, None for one that did not just multiply."""
        factor = self.factor * (math.nan if factor is None else factor)
        return replace(self, factor=factor, some=self.some | bit, every=self.every | bit)

    def unknown(self, some: int = 0, *, shared: bool = False) -> "Scale":
        """The scale where hooks also did what cannot be followed."""
        return replace(self, factor=math.nan, some=self.some | some, shared=self.shared or shared)

    def beside(self, other: "Scale") -> "Scale":
        """The scale of a sum."""
        if self is other:
            return self
        return Scale(
            factor=self.factor if math.isclose(self.factor, other.factor, rel_tol=_SAME) else math.nan,
            some=self.some | other.some,
            every=self.every & other.every,
            rules=self.rules | other.rules,
            divided_in=other.divided_in if self.divided_in is None else self.divided_in,
            shared=self.shared or other.shared,
        )


_PLAIN = Scale()
_Slots = dict[int, Scale]


@final
@dataclass(slots=True)
class Scaling:
    """The scale of what reached each leaf.

    Backward is linear: what reaches a leaf is a sum over the paths from the roots, and on each path the hooks that it
    passes multiply. Removing them divides the sum by one factor if their product is the same on all paths that carry
    anything. Each output of a node is a path of its own. Where a gradient is zero without a hook's doing, there is no
    path.
    """

    flow: Flow
    calls: Sequence[HookCall]
    leaves: dict[int, Scale] = field(default_factory=dict)
    _arriving: dict[int, _Slots] = field(default_factory=dict)
    _sent: dict[tuple[int, int], list[ArraySummary]] = field(default_factory=dict)
    _at: dict[int, list[int]] = field(default_factory=dict)
    _first: dict[int, list[HookCall]] = field(default_factory=dict)
    _in_place: bool = False

    @classmethod
    def of(cls, flow: Flow, calls: Sequence[HookCall]) -> "Scaling":
        """The scales in a graph; `calls` are those of hooks that changed gradients."""
        found = cls(flow, calls)
        for place, call in enumerate(calls):
            number = call.node if call.inside is None else call.inside
            if number is not None:
                found._at.setdefault(number, []).append(place)
        found._in_place = any(is_in_place(call) for call in calls)
        for call in flow.graph.hooks if found._in_place else ():
            if call.node is not None and call.kind in _BEFORE_THE_NODE:
                found._first.setdefault(call.node, []).append(call)
        for number, slot in flow.starts():
            found._arrive(number, slot, _PLAIN)
        for node in flow.graph.nodes:
            found._pass(node)
        return found

    def _calls_at(self, node: TraceNode, kinds: Sequence[str]) -> Iterator[tuple[HookCall, int]]:
        """The calls of these kinds at a node, each with its bit."""
        for place in self._at.get(node.id, ()):
            if self.calls[place].kind in kinds and self.calls[place].inside is None:
                yield self.calls[place], 1 << place

    def _arrive(self, number: int, slot: int, scale: Scale) -> None:
        slots = self._arriving.setdefault(number, {})
        slots[slot] = slots[slot].beside(scale) if slot in slots else scale

    def _pass(self, node: TraceNode) -> None:
        """Take what arrives at a node through the hooks before it, and send it on."""
        slots = self._arriving.pop(node.id, {})
        if self._in_place:
            self._find_shared(node, slots)
        for call, bit in self._calls_at(node, _BEFORE_THE_NODE):
            for slot in self.flow.places_changed(call) or range(len(node.edges)):
                slots[slot] = slots[slot].behind(call.factor, bit) if slot in slots else _PLAIN.unknown(bit)
        if node.name == LEAF_NODE:
            self._fill(node, slots)
        else:
            self._send(node, slots)

    def _fill(self, node: TraceNode, slots: _Slots) -> None:
        scale = slots.get(0)
        if scale is None or node.refused:
            return
        for call, bit in self._calls_at(node, ("post-accumulate",)):
            scale = scale.behind(call.factor, bit)
        if node.filled_inside:
            scale = replace(scale.unknown(), every=0)
        self.leaves[node.id] = scale

    def _send(self, node: TraceNode, slots: _Slots) -> None:
        alone = node.name == HOOK_NODE
        whole = self._through(node, slots)
        for place, edge in enumerate(node.edges):
            gradient = node.gradients_out[place] if place < len(node.gradients_out) else None
            if edge.target is None or (alone and place not in slots and gradient is None):
                continue
            scale = slots.get(place, _PLAIN) if alone else whole
            hooked = False
            for call, bit in self._calls_at(node, _AFTER_THE_NODE):
                places = self.flow.places_changed(call)
                if place in places or not places:
                    scale, hooked = scale.behind(call.factor, bit), True
            if gradient is not None and self._in_place:
                self._sent.setdefault((edge.target, edge.slot), []).append(gradient)
            if (gradient is None and not hooked) or (nothing(gradient) and scale.is_known and scale.factor != 0):
                continue
            self._arrive(edge.target, edge.slot, scale)

    def _through(self, node: TraceNode, slots: _Slots) -> Scale:
        """The scale of what a node returns that computes each of its results from all that it receives."""
        scale = reduce(Scale.beside, slots.values(), next(iter(slots.values()), _PLAIN))
        is_users = node.rule is not None and node.name not in _LINEAR
        operands = sum(is_users or edge.target is not None for edge in node.edges)
        if not scale.is_known and operands > 1 and not _UNDIVIDED.match(node.name):
            scale = replace(scale, divided_in=node.id)
        if is_users and scale.some:
            scale = replace(scale, rules=scale.rules | {node.id})
        inside = sum(1 << n for n in self._at.get(node.id, ()) if self.calls[n].inside is not None)
        return scale.unknown(inside) if inside else scale

    # --- gradients that share memory
    def _find_shared(self, node: TraceNode, slots: _Slots) -> None:
        """Find gradients that were changed between the node that sent them and this one, by a hook on another."""
        for slot in slots:
            parts = self._sent.pop((node.id, slot), [])
            seen = self._seen(node, slot)
            if parts and seen is not None and (node.id, slot) not in self.flow.starts() and not _is_sum(parts, seen):
                slots[slot] = slots[slot].unknown(self._bits_of(seen), shared=True)

    def _seen(self, node: TraceNode, slot: int) -> ArraySummary | None:
        """A gradient as it came to a node, before the node's own hooks."""
        for call in self._first.get(node.id, ()):
            places = self.flow.places(call)
            if slot in places:
                return call.before[places.index(slot)]
        return node.gradients_in[slot] if slot < len(node.gradients_in) else None

    def _bits_of(self, seen: ArraySummary) -> int:
        """The calls of hooks that may have changed, in place, a gradient that is now what was `seen`."""
        changed = {1 << place: call for place, call in enumerate(self.calls) if is_in_place(call)}
        left = [bit for bit, call in changed.items() if seen in call.after]
        return sum(left or changed)


def is_in_place(call: HookCall) -> bool:
    """Whether a hook changed the tensor that it was given, which may be the gradient of something else as well."""
    return call.effect.startswith("changed the gradient in place") and call.kind != "post-accumulate"


def _is_sum(parts: Sequence[ArraySummary], seen: ArraySummary) -> bool:
    """Whether a gradient is the sum of its parts, as far as their summaries tell."""
    if any((part.shape, part.dtype) != (seen.shape, seen.dtype) for part in parts):
        return True
    if len(parts) == 1:
        return parts[0] == seen or bool(parts[0].non_finite)
    norms = [part.norm for part in (*parts, seen)]
    if any(norm is None or not math.isfinite(norm) for norm in norms):
        return True
    rows = [(part.probe,) if part.values is None else part.values for part in (*parts, seen)]
    if any(None in row or len(row) != len(rows[0]) for row in rows):
        return True
    sums = [sum(column) for column in zip(*rows[:-1], strict=True)]
    slack = _AS_A_SUM * sum(norm or 0.0 for norm in norms)
    return all(abs(total - value) <= slack for total, value in zip(sums, rows[-1], strict=True))
