"""bwd tests whether its cotangent is a tracer, and uses another formula if it is.

Without jit the gradient is right. Under jax.jit every value is a tracer, and the gradient is 3 instead of 2.

Run: --order 1
"""

import jax


@jax.custom_vjp
def wrong(x):
    return 2.0 * x


def wrong_backward(x, g):
    return ((3.0 if isinstance(g, jax.core.Tracer) else 2.0) * g,)


wrong.defvjp(lambda x: (2.0 * x, x), wrong_backward)


@jax.custom_vjp
def fixed(x):
    return 2.0 * x


fixed.defvjp(lambda x: (2.0 * x, x), lambda x, g: (2.0 * g,))
