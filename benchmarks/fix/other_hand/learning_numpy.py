"""Layers and losses with their vjps by hand, in NumPy."""

import numpy as np

from benchmarks.fix.other_hand.record import Family

PLANT = Family("layers", "numpy", __file__)


def dense(x, w, b):
    return np.tanh(x @ w + b)


def dense_vjp(x, w, b, g):
    h = np.tanh(x @ w + b)
    dz = g * (1 - h**2)
    return dz @ w.T, x.T @ dz, dz.sum(axis=0)


PLANT(
    "dense",
    "x=NxM w=MxK b=K",
    ("missing-reduction", "missing-reduction wrong-shape", "b", "dz.sum(axis=0)", "dz"),
    ("chain-rule-forgotten", "wrong-factor", "x w b", "dz = g * (1 - h**2)", "dz = g"),
    ("power", "wrong-factor wrong-gradient", "x w b", "1 - h**2", "1 - h"),
    ("wrong-variable", "wrong-gradient wrong-factor", "w", "x.T @ dz", "x.T @ g"),
    ("keepdims", "wrong-shape missing-reduction", "b", "dz.sum(axis=0)", "dz.sum(axis=0, keepdims=True)"),
    flags=True,
)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_vjp(x, g):
    s = softmax(x)
    return s * (g - (s * g).sum(axis=-1, keepdims=True))


PLANT(
    "softmax",
    "x=NxM",
    ("missing-term", "missing-term", "x", "s * (g - (s * g).sum(axis=-1, keepdims=True))", "s * g"),
    (
        "diagonal-only",
        "missing-term wrong-gradient",
        "x",
        "s * (g - (s * g).sum(axis=-1, keepdims=True))",
        "s * (1 - s) * g",
    ),
    ("wrong-axis", "wrong-reduction", "x", "(s * g).sum(axis=-1, keepdims=True)", "(s * g).sum(axis=0, keepdims=True)"),
    ("sign-of-term", "wrong-sign missing-term", "x", "(g - (s", "(g + (s"),
)


def layer_norm(x, gamma, beta):
    mu = x.mean(-1, keepdims=True)
    sd = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return gamma * (x - mu) / sd + beta


def layer_norm_vjp(x, gamma, beta, g):
    n = x.shape[-1]
    mu = x.mean(-1, keepdims=True)
    sd = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    xhat = (x - mu) / sd
    gx = g * gamma
    dx = (n * gx - gx.sum(-1, keepdims=True) - xhat * (gx * xhat).sum(-1, keepdims=True)) / (n * sd)
    return dx, (g * xhat).sum(0), g.sum(0)


PLANT(
    "layer_norm",
    "x=KxM gamma=M beta=M",
    ("missing-term", "missing-term", "x", " - xhat * (gx * xhat).sum(-1, keepdims=True)", ""),
    ("factor-of-size", "wrong-factor wrong-reduction", "x", "/ (n * sd)", "/ sd"),
    (
        "factor-of-axis",
        "wrong-factor missing-term wrong-reduction wrong-gradient",
        "x",
        "n = x.shape[-1]",
        "n = x.shape[0]",
    ),
    ("other-factor-missing", "wrong-factor", "x", "gx = g * gamma", "gx = g"),
    ("swapped-two", "swapped-gradients", "gamma beta", "(g * xhat).sum(0), g.sum(0)", "g.sum(0), (g * xhat).sum(0)"),
    ("mean-for-sum", "wrong-reduction wrong-factor", "beta", ", g.sum(0)", ", g.mean(0)"),
    flags=True,
)


def cross_entropy(logits, target):
    z = logits - logits.max(1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    return -(target * log_p).sum() / len(logits)


def cross_entropy_vjp(logits, target, g):
    z = logits - logits.max(1, keepdims=True)
    e = np.exp(z)
    p = e / e.sum(1, keepdims=True)
    log_p = np.log(p)
    dlogits = (p * target.sum(1, keepdims=True) - target) / len(logits)
    return g * dlogits, -g * log_p / len(logits)


PLANT(
    "cross_entropy",
    "logits=NxM target=NxM,domain=unit",
    (
        "other-factor-missing",
        "missing-term wrong-factor",
        "logits",
        "p * target.sum(1, keepdims=True) - target",
        "p - target",
    ),
    ("factor-of-size", "wrong-factor wrong-reduction", "logits", "- target) / len(logits)", "- target)"),
    ("factor-of-size", "wrong-factor wrong-reduction", "logits", "- target) / len(logits)", "- target) / logits.size"),
    ("sign", "wrong-sign", "target", "-g * log_p", "g * log_p"),
    ("wrong-variable", "wrong-gradient wrong-factor", "target", "-g * log_p", "-g * p"),
    ("ignored-grad-output", "ignores-grad-output", "logits", "return g * dlogits", "return dlogits"),
    flags=True,
)


def attention(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p @ v


def attention_vjp(q, k, v, g):
    scale = 1 / np.sqrt(q.shape[1])
    s = q @ k.T * scale
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    dp = g @ v.T
    ds = p * (dp - (dp * p).sum(1, keepdims=True)) * scale
    return ds @ k, ds.T @ q, p.T @ g


PLANT(
    "attention",
    "q=NxM k=KxM v=KxL",
    ("factor-missing", "wrong-factor", "q k", "keepdims=True)) * scale", "keepdims=True))"),
    ("missing-term", "missing-term", "q k", "p * (dp - (dp * p).sum(1, keepdims=True)) * scale", "p * dp * scale"),
    ("wrong-axis", "wrong-reduction", "q k", "(dp * p).sum(1, keepdims=True)", "(dp * p).sum(0, keepdims=True)"),
    ("swapped-two", "swapped-gradients wrong-shape", "q k", "ds @ k, ds.T @ q", "ds.T @ q, ds @ k"),
    (
        "power",
        "wrong-factor",
        "q k",
        "ds = p * (dp - (dp * p).sum(1, keepdims=True)) * scale",
        "ds = p * (dp - (dp * p).sum(1, keepdims=True)) / q.shape[1]",
    ),
    flags=True,
)


def leaky_relu(x, slope=0.1):
    return np.where(x > 0, x, slope * x)


def leaky_relu_vjp(x, slope, g):
    return g * np.where(x > 0, 1.0, slope)


PLANT(
    "leaky_relu",
    "x=NxM slope:0.1",
    ("mask-side", "wrong-entries", "x", "x > 0, 1.0", "x < 0, 1.0"),
    ("constant-wrong", "wrong-entries", "x", "1.0, slope)", "1.0, 0.0)"),
    ("ignored-grad-output", "ignores-grad-output", "x", "return g * np.where", "return np.where"),
    (
        "mutated-grad-output",
        "mutates-grad-output",
        "",
        "return g * np.where(x > 0, 1.0, slope)",
        "g *= np.where(x > 0, 1.0, slope)\n    return g",
    ),
    flags=True,
)


def gru_gate(x, h, w, u):
    z = 1 / (1 + np.exp(-(x @ w + h @ u)))
    return z * h + (1 - z) * np.tanh(x)


def gru_gate_vjp(x, h, w, u, g):
    z = 1 / (1 + np.exp(-(x @ w + h @ u)))
    c = np.tanh(x)
    da = g * (h - c) * z * (1 - z)
    dx = da @ w.T + g * (1 - z) * (1 - c**2)
    dh = da @ u.T + g * z
    return dx, dh, x.T @ da, h.T @ da


PLANT(
    "gru_gate",
    "x=NxM h=NxM w=MxM u=MxM",
    ("missing-term", "missing-term", "x", "da @ w.T + g * (1 - z) * (1 - c**2)", "da @ w.T"),
    ("missing-term", "missing-term", "h", "da @ u.T + g * z", "g * z"),
    ("transposed-operand", "transposed", "x", "da @ w.T", "da @ w"),
    ("swapped-two", "swapped-gradients", "w u", "x.T @ da, h.T @ da", "h.T @ da, x.T @ da"),
    ("chain-rule-forgotten", "wrong-factor missing-term", "x", " * (1 - c**2)\n", "\n"),
    ("sign-inner", "wrong-gradient missing-term wrong-factor", "x h w u", "(h - c)", "(h + c)"),
    flags=True,
)


def embedding_mean(table, index):
    return table[index].mean(axis=1)


def embedding_mean_vjp(table, index, g):
    out = np.zeros_like(table)
    np.add.at(out, index, g[:, None, :] / index.shape[1])
    return out


PLANT(
    "embedding_mean",
    "table=KxM index=NxT,domain=indices,high=K",
    (
        "duplicates-overwritten",
        "wrong-entries wrong-gradient",
        "table",
        "np.add.at(out, index, g[:, None, :] / index.shape[1])",
        "out[index] = g[:, None, :] / index.shape[1]",
    ),
    ("factor-of-size", "wrong-factor wrong-reduction", "table", "/ index.shape[1]", ""),
    ("factor-of-axis", "wrong-factor wrong-reduction", "table", "/ index.shape[1]", "/ index.shape[0]"),
    (
        "duplicates-overwritten",
        "wrong-entries wrong-gradient",
        "table",
        "np.add.at(out, index, g[:, None, :] / index.shape[1])",
        "out[index] += g[:, None, :] / index.shape[1]",
    ),
    flags=True,
)
