"""JAX's arrays: to and from NumPy's, without a program that JAX would compile for each new shape."""

from contextlib import AbstractContextManager
from functools import cached_property
from types import ModuleType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.tensor.framework import Framework


@final
class JaxFramework(Framework):
    """Conversions between JAX and NumPy arrays. JAX draws random numbers from keys: no generator is reset."""

    name = "jax"

    @cached_property
    def namespace(self) -> ModuleType:
        """jax.numpy."""
        import jax.numpy

        return jax.numpy  # type: ignore[no-any-return]  # JAX is not followed by the type checker

    def is_tensor(self, value: object) -> bool:
        """Whether `value` is a jax.Array of numbers rather than of random keys."""
        import jax

        return isinstance(value, jax.Array) and not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended)

    def to_array(self, tensor: Any) -> NDArray[Any]:
        """A copy on the host; precisions that NumPy lacks become float32."""
        array = np.array(tensor)
        return array.astype(np.float32) if array.dtype.kind == "V" else array

    def dtype_name(self, tensor: Any) -> str:
        """The dtype's name."""
        return str(tensor.dtype)

    def from_array(self, array: NDArray[Any], dtype: str | None = None) -> Any:
        """A jax.Array of the same values and, inside `in_64_bits`, of the same precision."""
        import jax  # whose `numpy.asarray` would compile a program for each new shape, in 30 ms

        return jax.device_put(np.array(array, None if dtype is None else jax.numpy.dtype(dtype)))

    def stepwise(self) -> AbstractContextManager[None]:
        """jax.disable_jit, under which while_loop, fori_loop and scan call their bodies."""
        import jax

        return jax.disable_jit()  # type: ignore[no-any-return]  # JAX is not followed by the type checker

    def seed_generators(self, seed: int) -> None:
        """Nothing: JAX keeps no generator."""

    def generator_states(self) -> object:
        """Nothing to keep."""
        return None

    def restore_generators(self, states: object) -> None:
        """Nothing to restore."""


def conjugate(value: Any) -> Any:
    """The conjugate of an array, which JAX compiles a program for; a real one as it is."""
    import jax.numpy as jnp

    return jnp.conj(value) if jnp.iscomplexobj(value) else value
