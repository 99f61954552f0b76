"""Special functions and integrals."""

from __future__ import annotations

SPECIAL: dict[str, tuple[str, str, list[tuple[str, str, str, str]]]] = {
    "LogSumExpPair": (
        "a=nm b=nm",
        """
    @staticmethod
    def forward(ctx, a, b):
        y = torch.log(torch.exp(a) + torch.exp(b))
        ctx.save_for_backward(a, b, y)
        return y

    @staticmethod
    def backward(ctx, g):
        a, b, y = ctx.saved_tensors
        return g * torch.exp(a - y), g * torch.exp(b - y)
""",
        [
            ("argument", "g * torch.exp(b - y)", "g * torch.exp(b - a)", "wrong-factor"),
            ("factor", "return g * torch.exp(a - y)", "return g * torch.exp(a)", "wrong-factor"),
            ("function", "return g * torch.exp(a - y)", "return g * torch.sigmoid(a - y)", "wrong-factor"),
            (
                "assignment",
                "return g * torch.exp(a - y), g * torch.exp(b - y)",
                "return g * torch.exp(b - y), g * torch.exp(a - y)",
                "swapped-gradients",
            ),
        ],
    ),
    "VonMises": (
        "x=n mu=n kappa=pos:n",
        """
    @staticmethod
    def forward(ctx, x, mu, kappa):
        ctx.save_for_backward(x, mu, kappa)
        return torch.exp(kappa * torch.cos(x - mu))

    @staticmethod
    def backward(ctx, g):
        x, mu, kappa = ctx.saved_tensors
        c, s = torch.cos(x - mu), torch.sin(x - mu)
        y = torch.exp(kappa * c)
        gx = -g * y * kappa * s
        return gx, -gx, g * y * c
""",
        [
            ("chain", "gx = -g * y * kappa * s", "gx = -g * kappa * s", "wrong-factor"),
            ("chain", "gx = -g * y * kappa * s", "gx = -g * y * s", "wrong-factor"),
            ("sign", "return gx, -gx,", "return gx, gx,", "wrong-sign"),
            ("function", "g * y * c", "g * y * s", "wrong-factor"),
            ("order", "return gx, -gx, g * y * c", "return gx, g * y * c, -gx", "swapped-gradients"),
        ],
    ),
    "Quadrature": (
        "f=nm h=0.25",
        """
    @staticmethod
    def forward(ctx, f, h):
        ctx.save_for_backward(f)
        ctx.h = h
        e = torch.exp(f)
        return h * (e.sum(1) - 0.5 * e[:, 0] - 0.5 * e[:, -1])

    @staticmethod
    def backward(ctx, g):
        (f,) = ctx.saved_tensors
        weight = torch.full_like(f, ctx.h)
        weight[:, 0] = 0.5 * ctx.h
        weight[:, -1] = 0.5 * ctx.h
        return g.unsqueeze(1) * weight * torch.exp(f), None
""",
        [
            ("index", "weight[:, -1] = 0.5 * ctx.h", "weight[:, -2] = 0.5 * ctx.h", "wrong-shift wrong-entries"),
            ("constant", "weight[:, 0] = 0.5 * ctx.h", "weight[:, 0] = ctx.h", "wrong-entries"),
            (
                "chain",
                "g.unsqueeze(1) * weight * torch.exp(f)",
                "g.unsqueeze(1) * weight",
                "wrong-factor ignores-grad-output",
            ),
            ("factor", "torch.full_like(f, ctx.h)", "torch.ones_like(f)", "wrong-factor wrong-entries"),
        ],
    ),
    "SoftPlusBeta": (
        "x=nm beta=1.7",
        """
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return torch.log1p(torch.exp(beta * x)) / beta

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.sigmoid(ctx.beta * x), None
""",
        [
            ("argument", "torch.sigmoid(ctx.beta * x)", "torch.sigmoid(x)", "wrong-factor"),
            ("factor", "g * torch.sigmoid(ctx.beta * x)", "g * torch.sigmoid(ctx.beta * x) / ctx.beta", "wrong-factor"),
            ("function", "torch.sigmoid(ctx.beta * x)", "torch.tanh(ctx.beta * x)", "wrong-factor"),
        ],
    ),
}
