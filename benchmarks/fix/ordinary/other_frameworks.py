"""Functions of JAX and NumPy."""

from __future__ import annotations

JAX = {
    "swish": (
        """@jax.custom_vjp
def swish(x, w):
    return jnp.tanh(x @ w)


def forward(x, w):
    y = jnp.tanh(x @ w)
    return y, (x, w, y)


def backward(saved, g):
    x, w, y = saved
    gz = g * (1 - y**2)
    return gz @ w.T, x.T @ gz


swish.defvjp(forward, backward)
""",
        [
            ("chain", "gz @ w.T", "g @ w.T", "wrong-gradient missing-term"),
            ("sign", "gz = g * (1 - y**2)", "gz = -g * (1 - y**2)", "wrong-sign"),
            ("transposition", "x.T @ gz", "gz.T @ x", "transposed wrong-shape"),
            ("factor", "(1 - y**2)", "(1 - y)", "wrong-gradient missing-term"),
        ],
    ),
    "softmax": (
        """@jax.custom_vjp
def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def forward(x):
    y = jax.nn.softmax(x, axis=-1)
    return y, y


def backward(y, g):
    return (y * (g - (g * y).sum(axis=-1, keepdims=True)),)


softmax.defvjp(forward, backward)
""",
        [
            ("term", "y * (g - (g * y).sum(axis=-1, keepdims=True))", "y * g", "missing-term"),
            ("axis", "sum(axis=-1", "sum(axis=0", "wrong-gradient missing-term wrong-reduction"),
        ],
    ),
}


NUMPY = {
    "sine": (
        """def sine(x, a):
    return a * np.sin(x)


def sine_vjp(x, a, g):
    return g * a * np.cos(x), (g * np.sin(x)).sum(axis=0)
""",
        [
            ("function", "a * np.cos(x)", "a * np.sin(x)", "wrong-gradient"),
            ("factor", "g * a * np.cos(x)", "g * np.cos(x)", "wrong-gradient"),
            ("sign", "g * a * np.cos(x)", "-g * a * np.cos(x)", "wrong-sign"),
        ],
    ),
    "norm": (
        """def norm(x):
    return np.sqrt((x**2).sum())


def norm_vjp(x, g):
    return g * x / np.sqrt((x**2).sum())
""",
        [
            ("factor", "g * x / np.sqrt((x**2).sum())", "g * x", "wrong-factor"),
            ("factor", "g * x /", "2 * g * x /", "wrong-factor"),
            ("ignored cotangent", "g * x / np.sqrt", "x / np.sqrt", "ignores-grad-output"),
        ],
    ),
}
