"""Planted mistakes for `gradcli fix`: right Functions as text, and in each the places where people go wrong.

A mistake is (kind, what is right, what stands there instead, the names a check may give). The
same text serves the engine and PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.fix.engineering import ENGINEERING

HEADERS = {
    "engine": "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n",
    "torch": "import torch\nfrom torch.autograd import Function\n\n\n",
    "jax": "import jax\nimport jax.numpy as jnp\n\n\n",
    "numpy": "import numpy as np\n\n\n",
}


@dataclass(frozen=True)
class Specimen:
    """A file with one mistake beside the file without it; `target` is its name, `grad` that of a NumPy gradient.

    `inputs` describes them as in benchmarks/fix/engineering.py; empty where they are to be inferred.
    """

    name: str
    kind: str
    framework: str
    target: str
    right: str
    wrong: str
    names: frozenset[str]
    grad: str | None = None
    inputs: str = ""


FUNCTIONS: dict[str, tuple[str, list[tuple[str, str, str, str]]]] = {
    "TanhLinear": (
        """
    @staticmethod
    def forward(ctx, x, w):
        y = torch.tanh(x.mm(w))
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        gz = g * (1 - y * y)  # through tanh
        gx = gz.mm(w.t())
        gw = x.t().mm(gz)
        return gx, gw
""",
        [
            ("chain", "gx = gz.mm(w.t())", "gx = g.mm(w.t())", "wrong-gradient missing-term"),
            ("chain", "gw = x.t().mm(gz)", "gw = x.t().mm(g)", "wrong-gradient missing-term"),
            ("transposition", "gw = x.t().mm(gz)", "gw = gz.t().mm(x)", "transposed wrong-shape"),
            ("swap", "return gx, gw", "return gw, gx", "swapped-gradients wrong-shape"),
            ("sign", "gz = g * (1 - y * y)", "gz = g * (y * y - 1)", "wrong-sign"),
            ("missing gradient", "return gx, gw", "return gx, None", "missing-gradient"),
            ("term", "gz = g * (1 - y * y)", "gz = g * (1 - y)", "wrong-gradient missing-term wrong-factor"),
        ],
    ),
    "Linear": (
        """
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input.mm(weight.t()) + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias
""",
        [
            ("assignment", "grad_weight = grad_output", "grad_input = grad_output", "swapped-gradients"),
            ("branch", "if ctx.needs_input_grad[1]:", "if ctx.needs_input_grad[2]:", "needs-input-grad"),
            ("reduction", "grad_output.sum(0)", "grad_output.mean(0)", "wrong-reduction wrong-factor"),
            ("reduction axis", "grad_output.sum(0)", "grad_output.sum(1)", "wrong-reduction wrong-shape"),
            (
                "swap",
                "return grad_input, grad_weight,",
                "return grad_weight, grad_input,",
                "swapped-gradients wrong-shape",
            ),
            ("arity", "return grad_input, grad_weight, grad_bias", "return grad_input, grad_weight", "wrong-arity"),
            (
                "none",
                "return grad_input, grad_weight, grad_bias",
                "return grad_input, None, grad_bias",
                "missing-gradient",
            ),
        ],
    ),
    "Scaled": (
        """
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.k, None
""",
        [
            ("factor", "grad_output * ctx.k, None", "grad_output, None", "wrong-factor"),
            ("sign", "grad_output * ctx.k", "-grad_output * ctx.k", "wrong-sign"),
            ("factor", "grad_output * ctx.k", "grad_output / ctx.k", "wrong-factor"),
            ("arity", "grad_output * ctx.k, None", "grad_output * ctx.k", "wrong-arity"),
        ],
    ),
    "Softmax": (
        """
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x - x.max(-1, keepdim=True)[0])
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        inner = (grad_output * y).sum(-1, keepdim=True)
        return y * (grad_output - inner)
""",
        [
            ("term", "y * (grad_output - inner)", "y * grad_output", "missing-term"),
            (
                "axis",
                "sum(-1, keepdim=True)\n        return",
                "sum(0, keepdim=True)\n        return",
                "wrong-reduction missing-term wrong-gradient",
            ),
            ("sign", "(grad_output - inner)", "(grad_output + inner)", "missing-term wrong-gradient"),
            ("detach", "(y,) = ctx.saved_tensors", "y = ctx.saved_tensors[0].detach()", "not-twice-differentiable"),
            ("factor inside", "(grad_output * y).sum(", "grad_output.sum(", "missing-term wrong-gradient"),
        ],
    ),
    "LogSoftmax": (
        """
    @staticmethod
    def forward(ctx, x):
        y = x - torch.logsumexp(x, -1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output - y.exp() * grad_output.sum(-1, keepdim=True)
""",
        [
            ("function", "y.exp()", "y", "wrong-gradient missing-term"),
            ("sign", "grad_output - y.exp()", "grad_output + y.exp()", "missing-term wrong-gradient"),
            (
                "term",
                "grad_output - y.exp() * grad_output.sum(-1, keepdim=True)",
                "grad_output.clone()",
                "missing-term",
            ),
            (
                "mean",
                "grad_output.sum(-1, keepdim=True)",
                "grad_output.mean(-1, keepdim=True)",
                "missing-term wrong-gradient wrong-reduction",
            ),
        ],
    ),
    "MSE": (
        """
    @staticmethod
    def forward(ctx, prediction, target):
        ctx.save_for_backward(prediction, target)
        return ((prediction - target) ** 2).mean()

    @staticmethod
    def backward(ctx, grad_output):
        prediction, target = ctx.saved_tensors
        difference = 2 * (prediction - target) / prediction.numel()
        return grad_output * difference, -grad_output * difference
""",
        [
            ("size", " / prediction.numel()", "", "wrong-reduction wrong-factor"),
            ("factor", "2 * (prediction", "(prediction", "wrong-factor"),
            (
                "ignored cotangent",
                "return grad_output * difference, -grad_output * difference",
                "return difference, -difference",
                "ignores-grad-output",
            ),
            ("sign", "-grad_output * difference", "grad_output * difference", "wrong-sign"),
            ("size", "prediction.numel()", "prediction.shape[0]", "wrong-factor wrong-reduction"),
        ],
    ),
    "LayerNorm": (
        """
    @staticmethod
    def forward(ctx, x, gamma):
        mean = x.mean(-1, keepdim=True)
        rstd = 1 / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
        xhat = (x - mean) * rstd
        ctx.save_for_backward(x, gamma)
        return xhat * gamma

    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        mean = x.mean(-1, keepdim=True)
        rstd = 1 / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
        xhat = (x - mean) * rstd
        g = grad_output * gamma
        gx = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        ggamma = (grad_output * xhat).sum(0)
        return gx, ggamma
""",
        [
            ("term", " - xhat * (g * xhat).mean(-1, keepdim=True)", "", "missing-term wrong-gradient"),
            ("term", "g - g.mean(-1, keepdim=True) - xhat", "g - xhat", "missing-term wrong-gradient"),
            ("chain", "gx = rstd * (g -", "gx = (g -", "wrong-gradient wrong-factor"),
            ("chain", "g = grad_output * gamma", "g = grad_output", "wrong-gradient"),
            ("mean", "(grad_output * xhat).sum(0)", "(grad_output * xhat).mean(0)", "wrong-reduction wrong-factor"),
            ("argument", "(grad_output * xhat).sum(0)", "(grad_output * x).sum(0)", "wrong-gradient missing-term"),
            (
                "axis",
                "g - g.mean(-1, keepdim=True)",
                "g - g.mean(0, keepdim=True)",
                "wrong-gradient missing-term wrong-reduction",
            ),
        ],
    ),
    "Relu": (
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x < 0] = 0
        return grad_input
""",
        [
            ("in place", "grad_output.clone()", "grad_output", "mutates-grad-output"),
            ("mask", "grad_input[x < 0]", "grad_input[x > 0]", "wrong-entries wrong-gradient"),
            ("mask", "grad_input[x < 0] = 0", "grad_input[x < 0] = 1", "wrong-entries ignores-grad-output"),
        ],
    ),
    "LeakyRelu": (
        """
    @staticmethod
    def forward(ctx, x, slope=0.1):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad_output, ctx.slope * grad_output), None
""",
        [
            ("mask", "where(x > 0, grad_output", "where(x < 0, grad_output", "wrong-entries wrong-gradient"),
            ("region", "ctx.slope * grad_output)", "grad_output)", "wrong-entries"),
            ("unneeded", "* grad_output), None", "* grad_output), grad_output", "unneeded-gradient"),
            (
                "region",
                "grad_output, ctx.slope * grad_output)",
                "ctx.slope * grad_output, grad_output)",
                "wrong-entries wrong-gradient",
            ),
        ],
    ),
    "Sigmoid": (
        """
    @staticmethod
    def forward(ctx, x):
        y = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)
""",
        [
            ("factor", "grad_output * y * (1 - y)", "grad_output * y", "wrong-gradient missing-term"),
            ("factor", "grad_output * y * (1 - y)", "grad_output * (1 - y)", "wrong-gradient missing-term"),
            ("operator", "y * (1 - y)", "y * (1 + y)", "wrong-gradient missing-term"),
            ("ignored cotangent", "grad_output * y * (1 - y)", "y * (1 - y)", "ignores-grad-output"),
            (
                "data",
                "return grad_output * y * (1 - y)",
                "return grad_output * y.detach() * (1 - y)",
                "not-twice-differentiable",
            ),
        ],
    ),
    "Cube": (
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * grad_output
""",
        [
            ("factor", "3 * x ** 2", "x ** 2", "wrong-factor"),
            ("power", "x ** 2", "x", "wrong-gradient missing-term"),
            ("nonlinear", "* grad_output", "* grad_output ** 2", "nonlinear-backward"),
            ("constant", "3 * x ** 2 * grad_output", "3 * x ** 2 * grad_output + 1", "nonlinear-backward"),
            ("detach", "3 * x ** 2 * grad_output", "3 * x.detach() ** 2 * grad_output", "not-twice-differentiable"),
            ("no grad", "(x,) = ctx.saved_tensors", "x = ctx.saved_tensors[0].detach()", "not-twice-differentiable"),
        ],
    ),
    "Divide": (
        """
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g / b, -g * a / b ** 2
""",
        [
            ("sign", "-g * a / b ** 2", "g * a / b ** 2", "wrong-sign"),
            ("power", "-g * a / b ** 2", "-g * a / b", "wrong-gradient wrong-factor"),
            ("argument", "-g * a / b ** 2", "-g * b / b ** 2", "wrong-gradient"),
            ("swap", "return g / b, -g * a / b ** 2", "return -g * a / b ** 2, g / b", "swapped-gradients"),
            ("saved", "save_for_backward(a, b)", "save_for_backward(b, a)", "wrong-gradient"),
            ("unpacked", "a, b = ctx.saved_tensors", "b, a = ctx.saved_tensors", "wrong-gradient"),
        ],
    ),
    "Normalize": (
        """
    @staticmethod
    def forward(ctx, x):
        norm = torch.sqrt((x * x).sum(-1, keepdim=True))
        y = x / norm
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        norm = torch.sqrt((x * x).sum(-1, keepdim=True))
        return (g - y * (g * y).sum(-1, keepdim=True)) / norm
""",
        [
            ("term", "(g - y * (g * y).sum(-1, keepdim=True)) / norm", "g / norm", "missing-term"),
            ("factor", "g - y * (g * y)", "g - x * (g * y)", "wrong-gradient missing-term"),
            (
                "axis",
                "(g * y).sum(-1, keepdim=True)",
                "(g * y).sum(0, keepdim=True)",
                "wrong-gradient missing-term wrong-reduction",
            ),
            (
                "function",
                "norm = torch.sqrt((x * x).sum(-1, keepdim=True))\n        return",
                "norm = (x * x).sum(-1, keepdim=True)\n        return",
                "wrong-gradient",
            ),
        ],
    ),
    "Attention": (
        """
    @staticmethod
    def forward(ctx, q, k, v):
        p = torch.softmax(q.matmul(k.transpose(-1, -2)) / q.shape[-1] ** 0.5, -1)
        ctx.save_for_backward(q, k, v)
        return p.matmul(v)

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        scale = q.shape[-1] ** 0.5
        p = torch.softmax(q.matmul(k.transpose(-1, -2)) / scale, -1)
        gp = g.matmul(v.transpose(-1, -2))
        gs = p * (gp - (gp * p).sum(-1, keepdim=True)) / scale
        return gs.matmul(k), gs.transpose(-1, -2).matmul(q), p.transpose(-1, -2).matmul(g)
""",
        [
            ("factor", "keepdim=True)) / scale", "keepdim=True))", "wrong-factor wrong-gradient"),
            (
                "term",
                "p * (gp - (gp * p).sum(-1, keepdim=True)) / scale",
                "p * gp / scale",
                "wrong-gradient missing-term",
            ),
            ("transposition", "p.transpose(-1, -2).matmul(g)", "p.matmul(g)", "wrong-shape wrong-gradient transposed"),
            (
                "argument",
                "gs.transpose(-1, -2).matmul(q)",
                "gs.transpose(-1, -2).matmul(k)",
                "wrong-gradient wrong-shape",
            ),
        ],
    ),
    "CumulativeSum": (
        """
    @staticmethod
    def forward(ctx, x):
        return torch.cumsum(x, 0)

    @staticmethod
    def backward(ctx, g):
        return torch.flip(torch.cumsum(torch.flip(g, (0,)), 0), (0,))
""",
        [
            (
                "index",
                "torch.flip(torch.cumsum(torch.flip(g, (0,)), 0), (0,))",
                "torch.cumsum(g, 0)",
                "wrong-entries wrong-gradient",
            ),
            (
                "axis",
                "torch.cumsum(torch.flip(g, (0,)), 0)",
                "torch.cumsum(torch.flip(g, (0,)), -1)",
                "wrong-gradient wrong-entries",
            ),
        ],
    ),
    "AddColumn": (
        """
    @staticmethod
    def forward(ctx, x, column):
        return x + column.unsqueeze(1)

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(1)
""",
        [
            ("no reduction", "return g, g.sum(1)", "return g, g", "missing-reduction wrong-shape"),
            ("reduction axis", "g.sum(1)", "g.sum(0)", "wrong-shape wrong-reduction"),
            ("mean", "g.sum(1)", "g.mean(1)", "wrong-reduction wrong-factor"),
        ],
    ),
    "Weighted": (
        """
    @staticmethod
    def forward(ctx, a, b, c):
        ctx.save_for_backward(a, b, c)
        return a * torch.sin(b) + c * c

    @staticmethod
    def backward(ctx, g):
        a, b, c = ctx.saved_tensors
        return g * torch.sin(b), g * a * torch.cos(b), 2 * g * c
""",
        [
            ("function", "a * torch.cos(b)", "a * torch.sin(b)", "wrong-gradient"),
            ("factor", "g * a * torch.cos(b)", "g * torch.cos(b)", "wrong-gradient"),
            ("factor", "g * a * torch.cos(b)", "g * a", "wrong-gradient"),
            (
                "order",
                "return g * torch.sin(b), g * a * torch.cos(b), 2 * g * c",
                "return 2 * g * c, g * a * torch.cos(b), g * torch.sin(b)",
                "swapped-gradients",
            ),
        ],
    ),
    "Power": (
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        i = 0
        out = g
        while i < 3:
            out = out * x
            i += 1
        return 4 * out
""",
        [
            ("count", "while i < 3:", "while i < 2:", "wrong-gradient"),
            ("count", "i = 0", "i = 1", "wrong-gradient"),
        ],
    ),
    "ComplexSquare": (
        """
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * 2 * z.conj()
""",
        [
            ("conjugate", "g * 2 * z.conj()", "g * 2 * z", "missing-conjugate wrong-gradient"),
            ("sign", "g * 2 * z.conj()", "-g * 2 * z.conj()", "wrong-sign"),
            ("factor", "g * 2 * z.conj()", "g * z.conj()", "wrong-factor"),
        ],
    ),
}

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


_ALSO_TRUE = {
    "axis": "wrong-reduction",
    "reduction": "wrong-reduction",
    "reduction axis": "wrong-reduction swapped-gradients",
    "index": "wrong-shift",
    "transposition": "transposed",
    "unneeded": "wrong-arity",
    "mask": "wrong-factor wrong-entries nonlinear-backward",
    "region": "wrong-factor wrong-entries",
}
"""What a mistake of a kind may be called as well; of others, another factor where nothing more was known."""


def specimens() -> Iterator[Specimen]:
    """Every mistake: in a Function of the engine and of PyTorch, and in functions of JAX and NumPy."""
    for framework in ("engine", "torch"):
        for name, (body, mistakes) in FUNCTIONS.items():
            text = f"{HEADERS[framework]}class {name}(Function):{body}"
            yield from _planted(framework, name, text, mistakes)
    for name, (inputs, body, mistakes) in ENGINEERING.items():
        text = f"{HEADERS['torch']}class {name}(Function):{body}"
        yield from _planted("torch", name, text, mistakes, inputs=inputs)
    for name, (body, mistakes) in JAX.items():
        yield from _planted("jax", name, HEADERS["jax"] + body, mistakes)
    for name, (body, mistakes) in NUMPY.items():
        yield from _planted("numpy", name, HEADERS["numpy"] + body, mistakes, grad=f"{name}_vjp")


def _planted(
    framework: str,
    name: str,
    right: str,
    mistakes: list[tuple[str, str, str, str]],
    grad: str | None = None,
    inputs: str = "",
) -> Iterator[Specimen]:
    for number, (kind, good, bad, names) in enumerate(mistakes):
        place = right.rindex(good)
        wrong = right[:place] + bad + right[place + len(good) :]
        label = f"{framework}-{name}-{number}-{kind.replace(' ', '_')}"
        names = " ".join((names, _ALSO_TRUE.get(kind, "wrong-factor" if "wrong-gradient" in names else "")))
        yield Specimen(label, kind, framework, name, right, wrong, frozenset(names.split()), grad, inputs)
