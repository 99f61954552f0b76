"""Attention, sequences, indices and pooling."""

from __future__ import annotations

SEQUENCES: dict[str, tuple[str, str, list[tuple[str, str, str, str]]]] = {
    "SoftmaxTemperature": (
        "x=nm tau=0.6",
        """
    @staticmethod
    def forward(ctx, x, tau):
        p = torch.softmax(x / tau, 1)
        ctx.save_for_backward(p)
        ctx.tau = tau
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(1, keepdim=True)) / ctx.tau, None
""",
        [
            ("factor", " / ctx.tau, None", ", None", "wrong-factor"),
            ("term", "(g - (g * p).sum(1, keepdim=True))", "g", "missing-term"),
            ("axis", "sum(1, keepdim=True)", "sum(0, keepdim=True)", "wrong-reduction missing-term"),
            ("chain", "p * (g - (g * p)", "(g - (g * p)", "wrong-factor"),
            ("factor", "(g * p).sum", "g.sum", "wrong-factor missing-term"),
            ("operator", " / ctx.tau, None", " * ctx.tau, None", "wrong-factor"),
        ],
    ),
    "Sparsemax": (
        "x=nm",
        """
    @staticmethod
    def forward(ctx, x):
        z = torch.exp(x)
        y = z / (1 + z.sum(1, keepdim=True))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * g - y * (y * g).sum(1, keepdim=True)
""",
        [
            ("term", " - y * (y * g).sum(1, keepdim=True)", "", "missing-term"),
            ("factor", "- y * (y * g).sum", "- (y * g).sum", "wrong-factor missing-term"),
            ("sign", "y * g - y", "y * g + y", "missing-term wrong-sign"),
            ("axis", "(y * g).sum(1, keepdim=True)", "(y * g).sum(0, keepdim=True)", "wrong-reduction missing-term"),
        ],
    ),
    "AttentionCore": (
        "q=nk k=mk v=ml",
        """
    @staticmethod
    def forward(ctx, q, k, v):
        p = torch.softmax(q @ k.t() * 0.5, 1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        gv = p.t() @ g
        gp = g @ v.t()
        gs = p * (gp - (gp * p).sum(1, keepdim=True)) * 0.5
        return gs @ k, gs.t() @ q, gv
""",
        [
            ("factor", "keepdim=True)) * 0.5", "keepdim=True))", "wrong-factor missing-term"),
            ("chain", "gs = p * (gp", "gs = (gp", "wrong-factor missing-term"),
            ("term", "(gp - (gp * p).sum(1, keepdim=True))", "gp", "missing-term wrong-factor"),
            ("argument", "gp = g @ v.t()", "gp = g @ v.t() * p", "wrong-factor missing-term"),
            ("chain", "gs @ k, gs.t() @ q", "gs @ k, gp.t() @ q", "wrong-factor missing-term"),
        ],
    ),
    "Conv1d": (
        "x=l w=3",
        """
    @staticmethod
    def forward(ctx, x, w):
        n = x.shape[0] - w.shape[0] + 1
        ctx.save_for_backward(x, w)
        return torch.stack([(x[i : i + w.shape[0]] * w).sum() for i in range(n)])

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = torch.zeros_like(x)
        gw = torch.zeros_like(w)
        for i in range(g.shape[0]):
            gx[i : i + w.shape[0]] += g[i] * w
            gw = gw + g[i] * x[i : i + w.shape[0]]
        return gx, gw
""",
        [
            ("flip", "+= g[i] * w", "+= g[i] * w.flip(0)", "wrong-shift transposed wrong-factor"),
            ("index", "gw = gw + g[i] * x", "gw = gw + g[i - 1] * x", "wrong-shift"),
            ("term", "gw = gw + g[i] * x", "gw = g[i] * x", "missing-term ignores-grad-output"),
            ("factor", "+= g[i] * w", "+= g[i]", "wrong-factor"),
        ],
    ),
    "ExclusiveSum": (
        "x=n",
        """
    @staticmethod
    def forward(ctx, x):
        return torch.cumsum(x, 0) - x

    @staticmethod
    def backward(ctx, g):
        return torch.cumsum(g.flip(0), 0).flip(0) - g
""",
        [
            (
                "index",
                "torch.cumsum(g.flip(0), 0).flip(0) - g",
                "torch.cumsum(g.flip(0), 0).flip(0)",
                "missing-term wrong-shift",
            ),
            (
                "flip",
                "torch.cumsum(g.flip(0), 0).flip(0) - g",
                "torch.cumsum(g, 0) - g",
                "wrong-shift transposed wrong-gradient",
            ),
        ],
    ),
    "Difference": (
        "x=nm",
        """
    @staticmethod
    def forward(ctx, x):
        return x[1:] - x[:-1]

    @staticmethod
    def backward(ctx, g):
        gx = torch.zeros((g.shape[0] + 1, g.shape[1]), dtype=g.dtype)
        gx[1:] = g
        gx[:-1] = gx[:-1] - g
        return gx
""",
        [
            ("index", "gx[1:] = g", "gx[:-1] = g", "wrong-shift wrong-entries missing-gradient"),
            ("sign", "gx[:-1] - g", "gx[:-1] + g", "missing-term wrong-sign wrong-entries"),
            ("term", "gx[:-1] = gx[:-1] - g", "gx[:-1] = -g", "missing-term wrong-entries"),
        ],
    ),
    "Gather": (
        "x=nm index=idx:k/n",
        """
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(x, index)
        return torch.tanh(x)[index]

    @staticmethod
    def backward(ctx, g):
        x, index = ctx.saved_tensors
        out = torch.zeros_like(x)
        out.index_add_(0, index, g)
        return out * (1 - torch.tanh(x) ** 2), None
""",
        [
            ("chain", "return out * (1 - torch.tanh(x) ** 2)", "return out", "wrong-factor wrong-entries"),
            ("accumulate", "out.index_add_(0, index, g)", "out[index] = g", "wrong-entries ignores-grad-output"),
            ("power", "(1 - torch.tanh(x) ** 2)", "(1 - torch.tanh(x))", "wrong-factor wrong-entries missing-term"),
        ],
    ),
    "MaxPool": (
        "x=distinct:nm",
        """
    @staticmethod
    def forward(ctx, x):
        y = torch.amax(x, 1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        mask = x == y
        return 2 * y * g * mask
""",
        [
            ("mask", "mask = x == y", "mask = x >= y.mean()", "wrong-entries wrong-factor"),
            ("chain", "return 2 * y * g * mask", "return g * mask", "wrong-factor wrong-entries"),
            ("mask", "return 2 * y * g * mask", "return 2 * y * g", "wrong-entries wrong-factor missing-reduction"),
            ("argument", "return 2 * y * g * mask", "return 2 * y * mask", "ignores-grad-output"),
        ],
    ),
    "MaskedMean": (
        "x=nm mask=bool:nm",
        """
    @staticmethod
    def forward(ctx, x, mask):
        weight = mask.to(x.dtype)
        ctx.save_for_backward(x, weight)
        return (x * x * weight).sum(1) / (1 + weight.sum(1))

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        share = (g / (1 + weight.sum(1))).unsqueeze(1)
        return 2 * x * weight * share, None
""",
        [
            ("mask", "2 * x * weight * share", "2 * x * share", "wrong-entries wrong-factor"),
            ("size", "(g / (1 + weight.sum(1)))", "(g / weight.shape[1])", "wrong-factor"),
            ("factor", "2 * x * weight * share", "x * weight * share", "wrong-factor"),
            ("mask", "2 * x * weight * share", "2 * x * (1 - weight) * share", "wrong-entries wrong-factor"),
            ("term", "(1 + weight.sum(1))", "weight.sum(1).clamp(min=0.5)", "missing-term wrong-factor"),
        ],
    ),
    "ClipTies": (
        "x=nm",
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 1, x * x, 2 * x - 1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x >= 1, 2 * x * g, 2 * g)
""",
        [
            ("mask", "where(x >= 1, 2 * x", "where(x < 1, 2 * x", "wrong-entries"),
            ("region", "2 * x * g, 2 * g)", "2 * x * g, g)", "wrong-entries"),
            ("region", "2 * x * g, 2 * g)", "x * g, 2 * g)", "wrong-entries"),
        ],
    ),
    "Rnn": (
        "x=nm w=mm h=m",
        """
    @staticmethod
    def forward(ctx, x, w, h):
        states = [h]
        for i in range(x.shape[0]):
            states.append(torch.tanh(x[i] + w @ states[-1]))
        ctx.save_for_backward(x, w, torch.stack(states))
        return states[-1]

    @staticmethod
    def backward(ctx, g):
        x, w, states = ctx.saved_tensors
        gx = torch.zeros_like(x)
        gw = torch.zeros_like(w)
        for i in range(x.shape[0] - 1, -1, -1):
            z = g * (1 - states[i + 1] ** 2)
            gx[i] = z
            gw = gw + torch.outer(z, states[i])
            g = w.t() @ z
        return gx, gw, g
""",
        [
            ("chain", "z = g * (1 - states[i + 1] ** 2)", "z = g", "wrong-factor"),
            ("index", "torch.outer(z, states[i])", "torch.outer(z, states[i + 1])", "wrong-shift wrong-factor"),
            ("transposition", "g = w.t() @ z", "g = w @ z", "transposed"),
            ("order", "torch.outer(z, states[i])", "torch.outer(states[i], z)", "transposed"),
            ("term", "gw = gw + torch.outer", "gw = torch.outer", "missing-term"),
            ("index", "(1 - states[i + 1] ** 2)", "(1 - states[i] ** 2)", "wrong-shift wrong-factor"),
            ("chain", "g = w.t() @ z", "g = w.t() @ g", "wrong-factor"),
        ],
    ),
}
