"""The memory of one backward pass: what its nodes saved, in which storages, and how much there was at one time."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from gradcli.traces import Edge, Held, MemoryLedger, SavedTensor, Storage
from gradcli.traces.memory import ACTIVATION, DATA, PARAMETER
from gradcli.tracing.memory.peak import ACCUMULATED, FIXED, MOVING, SAVED, Key, Meter
from gradcli.tracing.reading import Lens, dtype_name, maker_of


@final
@dataclass(slots=True, kw_only=True)
class _Entry:
    """A storage that was saved: its number, which nodes saved it, and whether a recorded operation created it."""

    number: int
    bytes: int
    nodes: list[int] = field(default_factory=list)
    contents: str | None = None
    recorded: bool = False


@final
@dataclass(slots=True)
class LedgerWatch:
    """Counts the memory of one backward pass, node by node.

    A gradient is in flight from the node that returned it until the node that receives it has run; what a node saved is
    freed when it has run, unless the graph is retained.
    """

    lens: Lens
    retained: bool
    uncounted: int = 0
    saved: list[SavedTensor] = field(default_factory=list)
    entries: dict[Key, _Entry] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    meter: Meter = field(default_factory=Meter)
    _owned: dict[int, set[Key]] = field(default_factory=dict)
    _coming: dict[int, dict[int, Key]] = field(default_factory=dict)
    _accumulated: dict[int, Key] = field(default_factory=dict)
    _leaves: dict[int, Any] = field(default_factory=dict)

    # --- what was saved
    def add_saved(self, node: int, name: str, tensor: Any, *, on_ctx: bool = False) -> None:
        """Note a tensor that a node holds: until it has run, or, as an attribute of ctx, for longer."""
        key, size = self.lens.storage(tensor)
        if not size:
            return
        entry = self.entries.setdefault(key, _Entry(number=len(self.entries), bytes=size))
        if node not in entry.nodes:
            entry.nodes.append(node)
        owned = self._owned.setdefault(node, set())
        if on_ctx or key not in owned:
            self.meter.take(SAVED, key, size)
        if not on_ctx:
            owned.add(key)
        entry.recorded = entry.recorded or maker_of(tensor) is not None
        if entry.contents is None:
            entry.contents = _contents(self.lens, tensor)
        self.saved.append(
            SavedTensor(
                node=node,
                name=name,
                shape=tuple(int(size) for size in tensor.shape),
                dtype=dtype_name(tensor.dtype),
                bytes=self.lens.nbytes(tensor),
                storage=entry.number,
                on_ctx=on_ctx,
            )
        )

    def begin(self, leaves: Mapping[int, Any], given: Iterable[Any]) -> None:
        """Start counting: `leaves` by the numbers of their nodes; `given` are named tensors that are no results."""
        self._leaves = dict(leaves)
        for number, leaf in leaves.items():
            self.meter.take(FIXED, *self.lens.storage(leaf))
            self._accumulate(number)
        for tensor in given:
            key, size = self.lens.storage(tensor)
            if key in self.entries and not self.entries[key].recorded:
                self.meter.take(FIXED, key, size)
        self.meter.measure(None)

    def _accumulate(self, number: int) -> None:
        """The `.grad` of a leaf, which may have become another tensor."""
        gradient = self._leaves[number].grad
        if gradient is None:
            return
        key, size = self.lens.storage(gradient)
        self.meter.take(ACCUMULATED, key, size)
        if number in self._accumulated:
            self.meter.let_go(ACCUMULATED, self._accumulated[number])
        self._accumulated[number] = key

    # --- while the pass runs
    def before(self, node: int, gradients: Sequence[Any]) -> None:
        """Note the gradients that a node receives."""
        self._let_go_of(self._coming.pop(node, {}))
        self._coming[node] = self._taken(gradients)
        self.meter.measure(node)

    def after(self, node: int, gradients: Sequence[Any], edges: Sequence[Edge]) -> None:
        """Note the gradients that a node returned and their targets; the peak is before its inputs are freed."""
        given = self._taken(gradients)
        if node in self._leaves:
            self._accumulate(node)
        self.meter.measure(node)
        self._let_go_of(self._coming.pop(node, {}))
        for place, edge in enumerate(edges):
            if edge.target is not None and place in given:
                self._send(edge.target, edge.slot, given.pop(place))
        self._let_go_of(given)
        if not self.retained:
            for key in self._owned.pop(node, ()):
                self.meter.let_go(SAVED, key)

    def _taken(self, gradients: Sequence[Any]) -> dict[int, Key]:
        found = {}
        for place, gradient in enumerate(gradients):
            if self.lens.is_tensor(gradient):
                key, size = self.lens.storage(gradient)
                self.meter.take(MOVING, key, size)
                found[place] = key
        return found

    def _send(self, target: int, slot: int, key: Key) -> None:
        """Note a gradient in flight; if two have the same target, their sum replaces both."""
        coming = self._coming.setdefault(target, {})
        if slot in coming:
            self.meter.let_go(MOVING, key)
        else:
            coming[slot] = key

    def _let_go_of(self, keys: Mapping[int, Key]) -> None:
        for key in keys.values():
            self.meter.let_go(MOVING, key)

    # --- afterwards
    def activations(self) -> set[Key]:
        """The storages that belong neither to a leaf nor to named data."""
        return {key for key in self.entries if not self.meter.is_fixed(key)}

    def owned(self, node: int) -> set[Key]:
        """What a node has saved and not freed."""
        return self._owned.get(node, set())

    def with_keys(self) -> Iterator[tuple[SavedTensor, Key]]:
        """The saved tensors, each with its storage."""
        keys = list(self.entries)
        return ((saved, keys[saved.storage]) for saved in self.saved)

    def frozen(self, labels: Mapping[Key, str]) -> MemoryLedger:
        """As plain values; `labels` gives the names of parameters and data by their storage."""
        leaves = {self.lens.storage(leaf)[0] for leaf in self._leaves.values()}
        storages = []
        for key, entry in self.entries.items():
            kind = PARAMETER if key in leaves else DATA if self.meter.is_fixed(key) else ACTIVATION
            storages.append(
                Storage(
                    bytes=entry.bytes,
                    kind=kind,
                    label=None if kind == ACTIVATION else labels.get(key),
                    nodes=tuple(reversed(entry.nodes)),
                    contents=entry.contents,
                )
            )
        return MemoryLedger(
            saved=tuple(self.saved),
            storages=tuple(storages),
            held=tuple(self.held),
            peak=self.meter.peak,
            uncounted=self.uncounted,
        )


def _contents(lens: Lens, tensor: Any) -> str | None:
    """A digest of the values; None if all are equal, which many tensors share by chance."""
    array = lens.array(tensor)
    if array is None or array.size < 2 or (array == array.flat[0]).all():
        return None
    digest = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return f"{array.dtype}{array.shape}{digest}"
