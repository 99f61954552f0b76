"""The values of a JAX function while it runs, each with where it came from."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gradcli.traces import NonFinite


@final
@dataclass(slots=True)
class Value:
    """A value while the function runs: the step that made it, or the input that it is; neither for a constant.

    `sources` has a bit for each input that it was computed from, `cuts` one for each equation on the way that gave
    numbers without a gradient; `bad` is what made its first entry that is not finite.
    """

    held: Any
    step: int | None = None
    slot: int = 0
    leaf: int | None = None
    sources: int = 0
    cuts: int = 0
    bad: NonFinite | None = None

    @property
    def is_tracked(self) -> bool:
        """Whether it comes from an input by operations on numbers with a fraction."""
        return self.step is not None or self.leaf is not None


def is_inexact(value: Any) -> bool:
    """Whether a value has a gradient: real or complex numbers."""
    import jax.numpy as jnp

    return bool(jnp.issubdtype(jnp.result_type(value), jnp.inexact))


def wide(value: Any) -> Any:
    """The dtype in which NumPy can compute with a value: float32 for the short formats that it lacks."""
    array = np.asarray(value)
    return np.float32 if array.dtype.kind == "V" else array.dtype
