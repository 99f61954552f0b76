"""Activations, layers and normalisations."""

from __future__ import annotations

LAYERS: dict[str, tuple[str, str, list[tuple[str, str, str, str]]]] = {
    "Mish": (
        "x=nm",
        """
    @staticmethod
    def forward(ctx, x):
        t = torch.tanh(torch.log1p(torch.exp(x)))
        ctx.save_for_backward(x, t)
        return x * t

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        s = torch.sigmoid(x)
        return g * (t + x * (1 - t * t) * s)
""",
        [
            ("chain", "x * (1 - t * t) * s", "x * (1 - t * t)", "wrong-factor missing-term"),
            ("chain", "x * (1 - t * t) * s", "x * s", "wrong-factor missing-term"),
            ("term", "(t + x * (1 - t * t) * s)", "t", "missing-term wrong-factor"),
            ("sign", "t + x * (1", "t - x * (1", "missing-term wrong-sign wrong-factor"),
            ("function", "torch.sigmoid(x)", "torch.tanh(x)", "wrong-factor missing-term"),
        ],
    ),
    "Gelu": (
        "x=nm",
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        inner = 0.7978845608 * (x + 0.044715 * x ** 3)
        t = torch.tanh(inner)
        slope = 0.7978845608 * (1 + 3 * 0.044715 * x ** 2)
        return grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
""",
        [
            ("chain", "0.5 * x * (1 - t * t) * slope", "0.5 * x * (1 - t * t)", "wrong-factor missing-term"),
            ("factor", "1 + 3 * 0.044715", "1 + 0.044715", "wrong-factor missing-term"),
            ("power", "0.044715 * x ** 2", "0.044715 * x", "wrong-factor missing-term"),
            ("term", "(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)", "(0.5 * (1 + t))", "missing-term wrong-factor"),
        ],
    ),
    "TwoLayer": (
        "x=nm w1=mk w2=kl",
        """
    @staticmethod
    def forward(ctx, x, w1, w2):
        h = torch.tanh(x.mm(w1))
        y = torch.sigmoid(h.mm(w2))
        ctx.save_for_backward(x, w1, w2, h, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w1, w2, h, y = ctx.saved_tensors
        dz = g * y * (1 - y)
        dw2 = h.t().mm(dz)
        dh = dz.mm(w2.t())
        da = dh * (1 - h * h)
        return da.mm(w1.t()), x.t().mm(da), dw2
""",
        [
            ("chain", "dh = dz.mm(w2.t())", "dh = g.mm(w2.t())", "wrong-factor missing-term"),
            ("chain", "da = dh * (1 - h * h)", "da = dh", "wrong-factor missing-term"),
            ("chain", "x.t().mm(da)", "x.t().mm(dh)", "wrong-factor missing-term"),
            ("chain", "dz = g * y * (1 - y)", "dz = g * y", "wrong-factor missing-term"),
            ("argument", "da = dh * (1 - h * h)", "da = dh * (1 - y.mean() * h)", "wrong-factor missing-term"),
            ("argument", "dw2 = h.t().mm(dz)", "dw2 = torch.tanh(h).t().mm(dz)", "wrong-factor missing-term"),
        ],
    ),
    "BatchNorm": (
        "x=nm gamma=m beta=m",
        """
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mu = x.mean(0)
        var = ((x - mu) ** 2).mean(0)
        inv = 1 / torch.sqrt(var + 1e-5)
        xhat = (x - mu) * inv
        ctx.save_for_backward(xhat, inv, gamma)
        return gamma * xhat + beta

    @staticmethod
    def backward(ctx, g):
        xhat, inv, gamma = ctx.saved_tensors
        n = g.shape[0]
        gx = gamma * inv / n * (n * g - g.sum(0) - xhat * (g * xhat).sum(0))
        return gx, (g * xhat).sum(0), g.sum(0)
""",
        [
            ("term", " - xhat * (g * xhat).sum(0))", ")", "missing-term"),
            ("term", "n * g - g.sum(0) - xhat", "n * g - xhat", "missing-term"),
            ("factor", "gamma * inv / n", "gamma / n", "wrong-factor"),
            ("factor", "xhat * (g * xhat).sum(0))", "xhat * g.sum(0))", "wrong-factor missing-term"),
            ("size", "n = g.shape[0]", "n = g.shape[1]", "wrong-factor wrong-reduction missing-term wrong-shift"),
            (
                "reduction",
                "return gx, (g * xhat).sum(0)",
                "return gx, (g * xhat).mean(0)",
                "wrong-reduction wrong-factor",
            ),
            ("axis", "(g * xhat).sum(0), g.sum(0)", "(g * xhat).sum(0), g.sum(0) * inv", "wrong-factor"),
            ("chain", "gx = gamma * inv", "gx = inv", "wrong-factor"),
        ],
    ),
    "RmsNorm": (
        "x=nm w=m",
        """
    @staticmethod
    def forward(ctx, x, w):
        r = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, w, r)
        return x * r * w

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        gw = g * w
        dot = (gw * x).mean(-1, keepdim=True)
        return r * gw - r ** 3 * x * dot, (g * x * r).sum(0)
""",
        [
            ("power", "r ** 3 * x", "r ** 2 * x", "wrong-factor missing-term"),
            ("term", "r * gw - r ** 3 * x * dot", "r * gw", "missing-term"),
            ("chain", "gw = g * w", "gw = g", "wrong-factor"),
            ("factor", "(g * x * r).sum(0)", "(g * x).sum(0)", "wrong-factor"),
            (
                "reduction",
                "(gw * x).mean(-1, keepdim=True)",
                "(gw * x).sum(-1, keepdim=True)",
                "wrong-reduction wrong-factor missing-term",
            ),
            ("argument", "(gw * x).mean", "(g * x).mean", "wrong-factor missing-term"),
        ],
    ),
    "GroupScale": (
        "x=nmk s=m",
        """
    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * torch.exp(s).reshape(1, -1, 1)

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        e = torch.exp(s).reshape(1, -1, 1)
        return g * e, (g * x * e).sum((0, 2))
""",
        [
            ("chain", "(g * x * e).sum((0, 2))", "(g * x).sum((0, 2))", "wrong-factor"),
            ("axis", "sum((0, 2))", "sum((0, 1))", "wrong-reduction wrong-shape"),
            ("factor", "return g * e,", "return g,", "wrong-factor"),
            ("reduction", ".sum((0, 2))", ".sum(2).mean(0)", "wrong-reduction wrong-factor"),
        ],
    ),
}
