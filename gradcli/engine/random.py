"""The namespace `random`: the state of the engine's random numbers."""

from gradcli.engine.generator import forked_rng as fork_rng
from gradcli.engine.generator import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
