"""How much memory is in use at one time, by use; storages are counted once."""

from dataclasses import dataclass, field
from typing import final

from gradcli.traces import MemoryPeak

Key = tuple[str, int]
"""The device and the address of a storage."""
FIXED, SAVED, ACCUMULATED, MOVING = range(4)
"""What a storage is used for; one with several uses counts for the first of them."""


@final
@dataclass(slots=True)
class Meter:
    """Storages in use and the peak; the cost of a change does not grow with the number of storages."""

    peak: MemoryPeak | None = None
    _uses: dict[Key, list[int]] = field(default_factory=dict)
    _sizes: dict[Key, int] = field(default_factory=dict)
    _totals: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def take(self, use: int, key: Key, size: int) -> None:
        """Add a use of a storage."""
        self._count(key, -1)
        self._sizes[key] = size
        self._uses.setdefault(key, [0, 0, 0, 0])[use] += 1
        self._count(key, 1)

    def let_go(self, use: int, key: Key) -> None:
        """Remove a use of a storage."""
        self._count(key, -1)
        uses = self._uses[key]
        uses[use] -= 1
        self._count(key, 1)
        if not any(uses):
            del self._uses[key], self._sizes[key]

    def is_fixed(self, key: Key) -> bool:
        """Whether a storage is that of a parameter or of data."""
        return key in self._uses and bool(self._uses[key][FIXED])

    def _count(self, key: Key, sign: int) -> None:
        uses = self._uses.get(key, ())
        first = next((use for use, count in enumerate(uses) if count), None)
        if first is not None:
            self._totals[first] += sign * self._sizes[key]

    def measure(self, node: int | None) -> None:
        """Update the peak with what is in use while `node` runs."""
        if self.peak is None or sum(self._totals) > self.peak.bytes:
            fixed, saved, accumulated, moving = self._totals
            self.peak = MemoryPeak(node=node, fixed=fixed, saved=saved, gradients=moving, accumulated=accumulated)
