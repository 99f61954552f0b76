"""Functions of rows: norms, attention, running sums, weights, powers."""

from __future__ import annotations

ROWS: dict[str, tuple[str, list[tuple[str, str, str, str]]]] = {
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
