"""Solvers and other products of matrices."""

from __future__ import annotations

MATRICES: dict[str, tuple[str, str, list[tuple[str, str, str, str]]]] = {
    "LinearSolve": (
        "a=spd:nn b=nm",
        """
    @staticmethod
    def forward(ctx, a, b):
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        gb = torch.linalg.solve(a.t(), g)
        return -gb.mm(x.t()), gb
""",
        [
            ("sign", "return -gb.mm(x.t())", "return gb.mm(x.t())", "wrong-sign"),
            ("argument", "-gb.mm(x.t())", "-g.mm(x.t())", "wrong-factor missing-term"),
            ("transposition", "-gb.mm(x.t())", "-x.mm(gb.t())", "transposed"),
        ],
    ),
    "GeneralSolve": (
        "a=nn b=nm",
        """
    @staticmethod
    def forward(ctx, a, b):
        m = a + 3 * torch.eye(a.shape[0], dtype=a.dtype)
        x = torch.linalg.solve(m, b)
        ctx.save_for_backward(m, x)
        return x

    @staticmethod
    def backward(ctx, g):
        m, x = ctx.saved_tensors
        gb = torch.linalg.solve(m.t(), g)
        ga = -gb.mm(x.t())
        return ga, gb
""",
        [
            ("transposition", "torch.linalg.solve(m.t(), g)", "torch.linalg.solve(m, g)", "transposed wrong-factor"),
            ("transposition", "ga = -gb.mm(x.t())", "ga = -x.mm(gb.t())", "transposed"),
            ("argument", "ga = -gb.mm(x.t())", "ga = -g.mm(x.t())", "wrong-factor missing-term"),
        ],
    ),
    "Inverse": (
        "a=spd:nn",
        """
    @staticmethod
    def forward(ctx, a):
        b = torch.linalg.inv(a + torch.triu(a))
        ctx.save_for_backward(b)
        return b

    @staticmethod
    def backward(ctx, g):
        (b,) = ctx.saved_tensors
        gm = -b.t().mm(g).mm(b.t())
        return gm + torch.triu(gm)
""",
        [
            ("transposition", "-b.t().mm(g).mm(b.t())", "-b.mm(g).mm(b)", "transposed wrong-factor wrong-gradient"),
            ("transposition", "-b.t().mm(g).mm(b.t())", "-b.t().mm(g).mm(b)", "transposed wrong-factor"),
            ("term", "gm + torch.triu(gm)", "gm", "missing-term wrong-entries"),
            ("index", "gm + torch.triu(gm)", "gm + torch.triu(gm, 1)", "wrong-shift wrong-entries missing-term"),
            ("function", "gm + torch.triu(gm)", "gm + torch.tril(gm)", "wrong-entries wrong-factor missing-term"),
        ],
    ),
    "Bilinear": (
        "x=nm a=mk y=nk",
        """
    @staticmethod
    def forward(ctx, x, a, y):
        ctx.save_for_backward(x, a, y)
        return ((x @ a) * y).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, a, y = ctx.saved_tensors
        gy = g.unsqueeze(1) * y
        return gy @ a.t(), x.t() @ gy, g.unsqueeze(1) * (x @ a)
""",
        [
            ("chain", "x.t() @ gy", "x.t() @ y", "ignores-grad-output wrong-factor"),
            ("argument", "gy = g.unsqueeze(1) * y", "gy = g.unsqueeze(1) * (x @ a)", "wrong-factor"),
            ("factor", "g.unsqueeze(1) * (x @ a)", "(x @ a)", "ignores-grad-output"),
            ("transposition", "x.t() @ gy", "(gy.t() @ x)", "wrong-shape transposed"),
        ],
    ),
}
