"""A slip has the name that is true of it: an entry's, a term's, a reduction's, and a factor's only where it is one."""

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import named

HEAD = "import numpy as np\n\n\n"
CASES = {
    "the side of a mask": (
        "def f(x):\n    return np.where(x < 0.4, x ** 2, 3 * x)\n\n\n"
        "def f_vjp(x, g):\n    return g * np.where(x >= 0.4, 2 * x, 3.0)\n",
        "wrong-entries",
        "belongs",
    ),
    "the sign of a term": (
        "def f(x):\n    return np.sin(x) * x\n\n\ndef f_vjp(x, g):\n    return g * (np.sin(x) + x * (-np.cos(x)))\n",
        "missing-term",
        "",
    ),
    "a softmax without the sum": (
        "def f(x):\n    e = np.exp(x)\n    return e / e.sum(axis=-1, keepdims=True)\n\n\n"
        "def f_vjp(x, g):\n    e = np.exp(x)\n    y = e / e.sum(axis=-1, keepdims=True)\n    return g * y * (1 - y)\n",
        "missing-term",
        "`y * (g - (g * y).sum(axis=-1, keepdims=True))` belongs",
    ),
    "the size of another axis": (
        "def f(x):\n    return (x - x.mean(axis=-1, keepdims=True)) ** 2\n\n\n"
        "def f_vjp(x, g):\n    h = 2 * g * (x - x.mean(axis=-1, keepdims=True))\n"
        "    return h - h.sum(axis=-1, keepdims=True) / x.shape[0]\n",
        "wrong-reduction",
        "x.shape[-1]` belongs",
    ),
    "the normaliser that forward computes": (
        "def f(x):\n    m = x.max(axis=-1, keepdims=True)\n"
        "    return m + np.log(np.exp(x - m).sum(axis=-1, keepdims=True))\n\n\n"
        "def f_vjp(x, g):\n    m = x.max(axis=-1, keepdims=True)\n    return g * np.exp(x - m)\n",
        "wrong-factor",
        "lacks the factor `1 / np.exp(x - m).sum(axis=-1, keepdims=True)`",
    ),
    "the sign of what is summed": (
        "def f(x):\n    return np.exp(np.sum(x, axis=-1))\n\n\n"
        "def f_vjp(x, g):\n    return (g * np.exp(np.sum(-x, axis=-1)))[:, None] * np.ones_like(x)\n",
        "wrong-factor",
        "np.exp(np.sum(x, axis=-1)))[:, None]` belongs",
    ),
    "neighbours that a helper adds": (
        "def f(x):\n    return 3 * x\n\n\ndef spread(g):\n    return g + np.roll(g, 1, -1) + np.roll(g, -1, -1)\n\n\n"
        "def f_vjp(x, g):\n    return spread(g)\n",
        "wrong-gradient",
        "3 * g` belongs",
    ),
    "a factor that a helper has wrong": (
        "def f(x):\n    return np.sin(x)\n\n\ndef scaled(x, g):\n    return g * np.sin(x)\n\n\n"
        "def f_vjp(x, g):\n    return scaled(x, g)\n",
        "wrong-factor",
        "g * np.cos(x)` belongs",
    ),
    "one axis of two": (
        "def f(x):\n    return np.exp(x - x.mean(axis=(0, 1), keepdims=True))\n\n\n"
        "def f_vjp(x, g):\n    h = g * np.exp(x - x.mean(axis=(0, 1), keepdims=True))\n"
        "    return h - h.mean(axis=1, keepdims=True)\n",
        "wrong-reduction",
        "",
    ),
    "a mask that has a name": (
        "def f(x):\n    return np.where(np.abs(x) <= 0.7, x ** 2, 3 * x)\n\n\n"
        "def f_vjp(x, g):\n    inside = np.abs(x) <= 0.7\n    return g * np.where(x > 0, 2 * x, 3.0)\n",
        "wrong-entries",
        "g * np.where(inside, 2 * x, 3.0)` belongs",
    ),
    "a format of few digits": (
        "def f(x):\n    return np.sin(x) * x\n\n\n"
        "def f_vjp(x, g):\n    c = np.cos(x.astype(np.float16))\n    return g * (np.sin(x) + x * c)\n",
        "low-precision",
        "`np.cos(x)` belongs",
    ),
    "a step too few": (
        "def f(x):\n    for _ in range(3):\n        x = np.sin(x)\n    return x\n\n\n"
        "def f_vjp(x, g):\n    for _ in range(2):\n        g, x = g * np.cos(x), np.sin(x)\n    return g\n",
        "wrong-gradient",
        "range(3)` belongs",
    ),
    "a term too many in a long backward": (
        "def f(x):\n    state, out = np.zeros(x.shape[0]), []\n    for t in range(x.shape[1]):\n"
        "        state = 0.7 * state + 0.3 * np.sin(x[:, t]) * x[:, t]\n        out.append(state)\n"
        "    return np.stack(out, axis=1)\n\n\n"
        "def f_vjp(x, g):\n    carried, grads = np.zeros(x.shape[0]), []\n"
        "    for t in range(x.shape[1] - 1, -1, -1):\n        total = g[:, t] + carried\n"
        "        s, c = np.sin(x[:, t]), np.cos(x[:, t])\n        slope = 0.3 * (s + x[:, t] * c)\n"
        "        grads.append(slope * total)\n        carried = (1 - 0.3) * total + 0.3 * total\n"
        "    return np.stack(grads[::-1], axis=1)\n",
        "missing-term",
        "`(1 - 0.3) * total` belongs",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_slip_is_named_for_what_it_is(case, tmp_path):
    text, kind, says = CASES[case]
    specimen = Specimen("own", "", "numpy", "f", HEAD + text, HEAD + text, frozenset(), grad="f_vjp", inputs="x=nm")
    (sentence,) = named(specimen, tmp_path)[0].sentences
    assert sentence.endswith(f"[{kind}]")
    assert says in sentence
