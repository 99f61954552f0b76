"""The source of the engine's random numbers, and its state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.engine.dtypes import CPU, require_cpu
from gradcli.engine.grad_mode import STATE


class Generator:
    """A source of random numbers with its own state.

    Args:
        device: accepted as older programs pass it; the CPU.
    """

    def __init__(self, device: Any = None) -> None:
        require_cpu(device)
        self._numpy = np.random.default_rng()
        self._seed = 0

    def manual_seed(self, seed: int) -> Generator:
        """Start again from a seed."""
        self._seed = int(seed)
        self._numpy = np.random.default_rng(self._seed % 2**63)
        return self

    def get_state(self) -> dict[str, Any]:
        """Return a snapshot, for `set_state`."""
        return {"seed": self._seed, "bits": self._numpy.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> Generator:
        """Go back to a snapshot."""
        self._seed = state["seed"]
        self._numpy.bit_generator.state = state["bits"]
        return self

    @property
    def device(self) -> Any:
        """Where the numbers are made: the CPU."""
        return CPU

    def seed(self) -> int:
        """Start from a seed of the system's, and return it."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) // 2)
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed that was last set."""
        return self._seed


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the engine's random numbers; they are NumPy's, not those of another framework."""
    return default_generator.manual_seed(seed)


def get_rng_state() -> dict[str, Any]:
    """Return a snapshot of the default generator; opaque, not a tensor as PyTorch's is."""
    return default_generator.get_state()


def set_rng_state(new_state: dict[str, Any]) -> None:
    """Set the default generator back to a snapshot."""
    default_generator.set_state(new_state)


def random_source(generator: Generator | None) -> np.random.Generator:
    """Return NumPy's generator behind a generator, or behind the default one.

    Raises:
        RuntimeError: random numbers are refused, as under `vmap`.
    """
    if STATE.why_no_random is not None:
        raise RuntimeError(STATE.why_no_random)
    return (generator or default_generator)._numpy


def initial_seed() -> int:
    """Return the seed that the default generator was last given."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seed the default generator from the system, and return the seed."""
    return default_generator.seed()


@contextmanager
def forked_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Put the default generator back to where it was at the end of the context.

    Args:
        devices: has no effect.
        enabled: with False, do nothing.
    """
    del devices
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
