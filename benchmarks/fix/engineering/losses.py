"""Losses and distances."""

from __future__ import annotations

LOSSES: dict[str, tuple[str, str, list[tuple[str, str, str, str]]]] = {
    "CrossEntropy": (
        "logits=nm target=unit:nm",
        """
    @staticmethod
    def forward(ctx, logits, target):
        logp = logits - torch.logsumexp(logits, 1, keepdim=True)
        ctx.save_for_backward(logp, target)
        return -(target * logp).sum(1).mean()

    @staticmethod
    def backward(ctx, g):
        logp, target = ctx.saved_tensors
        p = torch.exp(logp)
        n = logp.shape[0]
        return g * (p * target.sum(1, keepdim=True) - target) / n, -g * logp / n
""",
        [
            ("factor", "p * target.sum(1, keepdim=True) - target", "p - target", "wrong-factor missing-term"),
            ("reduction", "- target) / n", "- target)", "wrong-reduction wrong-factor"),
            ("sign", "-g * logp / n", "g * logp / n", "wrong-sign"),
            ("function", "p = torch.exp(logp)", "p = logp", "wrong-factor missing-term"),
            ("argument", "-g * logp / n", "-g * p / n", "wrong-factor"),
            (
                "term",
                "p * target.sum(1, keepdim=True) - target",
                "p * target.sum(1, keepdim=True)",
                "missing-term wrong-factor",
            ),
        ],
    ),
    "Huber": (
        "p=nm t=nm delta=0.7",
        """
    @staticmethod
    def forward(ctx, p, t, delta):
        d = p - t
        a = torch.abs(d)
        ctx.save_for_backward(d, a)
        ctx.delta = delta
        return torch.where(a < delta, 0.5 * d * d, delta * (a - 0.5 * delta)).sum()

    @staticmethod
    def backward(ctx, g):
        d, a = ctx.saved_tensors
        slope = torch.where(a < ctx.delta, d, ctx.delta * torch.sign(d))
        return g * slope, -g * slope, None
""",
        [
            ("region", "ctx.delta * torch.sign(d)", "torch.sign(d)", "wrong-entries wrong-factor"),
            ("function", "ctx.delta * torch.sign(d)", "ctx.delta * d", "wrong-entries wrong-factor"),
            ("mask", "a < ctx.delta, d", "d < ctx.delta, d", "wrong-entries wrong-factor"),
            ("sign", "-g * slope", "g * slope", "wrong-sign"),
            ("constant", "where(a < ctx.delta, d,", "where(a < ctx.delta, 0.5 * d,", "wrong-entries wrong-factor"),
        ],
    ),
    "KlDivergence": (
        "m=nk s=nk",
        """
    @staticmethod
    def forward(ctx, m, s):
        ctx.save_for_backward(m, s)
        return 0.5 * (m * m + torch.exp(s) - 1 - s).sum()

    @staticmethod
    def backward(ctx, g):
        m, s = ctx.saved_tensors
        return g * m, 0.5 * g * (torch.exp(s) - 1)
""",
        [
            ("term", "(torch.exp(s) - 1)", "torch.exp(s)", "missing-term wrong-factor"),
            ("factor", "return g * m,", "return 0.5 * g * m,", "wrong-factor"),
            ("chain", "0.5 * g * (torch.exp(s) - 1)", "0.5 * g * (s - 1)", "wrong-factor missing-term"),
            ("sign", "(torch.exp(s) - 1)", "(torch.exp(s) + 1)", "missing-term wrong-sign wrong-factor"),
        ],
    ),
    "FocalLoss": (
        "p=unit:nm gamma=2.0",
        """
    @staticmethod
    def forward(ctx, p, gamma):
        ctx.save_for_backward(p)
        ctx.gamma = gamma
        return (-((1 - p) ** gamma) * torch.log(p)).sum()

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        q = 1 - p
        slope = ctx.gamma * q ** (ctx.gamma - 1) * torch.log(p) - q ** ctx.gamma / p
        return g * slope, None
""",
        [
            ("term", " - q ** ctx.gamma / p", "", "missing-term"),
            ("factor", "ctx.gamma * q ** (ctx.gamma - 1)", "q ** (ctx.gamma - 1)", "wrong-factor missing-term"),
            ("power", "q ** (ctx.gamma - 1)", "q ** ctx.gamma", "wrong-factor missing-term"),
            ("operator", "q ** ctx.gamma / p", "q ** ctx.gamma * p", "wrong-factor missing-term"),
            ("sign", "torch.log(p) - q", "torch.log(p) + q", "missing-term wrong-sign"),
        ],
    ),
    "CosineSimilarity": (
        "a=nm b=nm",
        """
    @staticmethod
    def forward(ctx, a, b):
        na = torch.sqrt((a * a).sum(1, keepdim=True))
        nb = torch.sqrt((b * b).sum(1, keepdim=True))
        c = (a * b).sum(1, keepdim=True) / (na * nb)
        ctx.save_for_backward(a, b, na, nb, c)
        return c

    @staticmethod
    def backward(ctx, g):
        a, b, na, nb, c = ctx.saved_tensors
        ga = g * (b / (na * nb) - c * a / na ** 2)
        gb = g * (a / (na * nb) - c * b / nb ** 2)
        return ga, gb
""",
        [
            ("power", "c * a / na ** 2", "c * a / na", "wrong-factor missing-term"),
            ("argument", "c * b / nb ** 2", "c * b / na ** 2", "wrong-factor missing-term"),
            ("term", " - c * a / na ** 2)", ")", "missing-term"),
            ("argument", "g * (a / (na * nb) - c * b", "g * (a / (na * nb) - c * a", "wrong-factor missing-term"),
            ("factor", "c * a / na ** 2", "a / na ** 2", "wrong-factor missing-term"),
            ("swap", "return ga, gb", "return gb, ga", "swapped-gradients"),
        ],
    ),
    "Distance": (
        "a=nk b=mk",
        """
    @staticmethod
    def forward(ctx, a, b):
        d = a.unsqueeze(1) - b.unsqueeze(0)
        r = torch.sqrt((d * d).sum(-1))
        ctx.save_for_backward(d, r)
        return r

    @staticmethod
    def backward(ctx, g):
        d, r = ctx.saved_tensors
        u = (g / r).unsqueeze(-1) * d
        return u.sum(1), -u.sum(0)
""",
        [
            ("chain", "(g / r).unsqueeze", "g.unsqueeze", "wrong-factor"),
            ("sign", "-u.sum(0)", "u.sum(0)", "wrong-sign"),
            ("operator", "(g / r)", "(g * r)", "wrong-factor"),
            (
                "axis",
                "return u.sum(1), -u.sum(0)",
                "return u.sum(0), -u.sum(1)",
                "wrong-shape wrong-reduction swapped-gradients wrong-sign",
            ),
        ],
    ),
}
