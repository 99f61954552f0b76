"""A forward function on JAX arrays and the backward function written for it, as one custom_vjp function."""

import inspect
from typing import Any

from gradcli.backends.tensor.pairs import MARK, Pair, shown_as, spread


def joined(pair: Pair) -> Any:
    """Arguments that are whole numbers, flags or texts by their default or annotation are known when JAX compiles."""
    import jax

    parameters = list(inspect.signature(pair.forward).parameters.values())
    fixed = tuple(n for n, parameter in enumerate(parameters) if _is_fixed(parameter))

    def primal(*inputs: Any) -> Any:
        return pair.split(pair.forward(*inputs))[0]

    def forward(*inputs: Any) -> Any:
        results, extra = pair.split(pair.forward(*inputs))
        return results, (tuple(value for n, value in enumerate(inputs) if n not in fixed), extra)

    def backward(*given: Any) -> Any:
        *known, (left, extra), cotangents = given
        values, numbers = iter(left), iter(known)
        inputs = [next(numbers) if n in fixed else next(values) for n in range(len(known) + len(left))]
        several = cotangents if isinstance(cotangents, tuple | list) else (cotangents,)
        found = spread(pair.call_backward(several, inputs, extra), [_is_floating(value) for value in inputs])
        return tuple(g for n, g in enumerate(found) if n not in fixed) if len(found) == len(inputs) else found

    rule = jax.custom_vjp(shown_as(pair.forward, primal), nondiff_argnums=fixed)
    rule.defvjp(shown_as(pair.forward, forward), shown_as(pair.backward, backward))
    setattr(rule, MARK, pair)
    return rule


def _is_floating(value: object) -> bool:
    import jax.numpy as jnp

    return isinstance(value, float) or (hasattr(value, "dtype") and bool(jnp.issubdtype(value.dtype, jnp.inexact)))


def _is_fixed(parameter: inspect.Parameter) -> bool:
    kinds = (int, bool, str, tuple)
    named = parameter.annotation in (*kinds, *(kind.__name__ for kind in kinds))
    return named or isinstance(parameter.default, kinds)
