"""Planted mistakes in Functions as engineers write them: losses, normalisations, geometry, finance, physics, solvers.

As in benchmarks/fix/corpus.py, a mistake is (kind, what is right, what stands there instead, names that are true of
it). Here every Function says its inputs: `x=nm` is a tensor whose axes have the sizes n and m, `pos:` `unit:` `spd:`
`distinct:` draw it so, `bool:` and `idx:` make a mask and indices below the size after the slash; a number is an
argument.
"""

from __future__ import annotations

ENGINEERING: dict[str, tuple[str, str, list[tuple[str, str, str, str]]]] = {
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
    "RotateVector": (
        "v=n3 angle=n",
        """
    @staticmethod
    def forward(ctx, v, angle):
        c, s = torch.cos(angle), torch.sin(angle)
        x = c * v[:, 0] - s * v[:, 1]
        y = s * v[:, 0] + c * v[:, 1]
        ctx.save_for_backward(v, angle)
        return torch.stack([x, y, v[:, 2]], 1)

    @staticmethod
    def backward(ctx, g):
        v, angle = ctx.saved_tensors
        c, s = torch.cos(angle), torch.sin(angle)
        gx = c * g[:, 0] + s * g[:, 1]
        gy = -s * g[:, 0] + c * g[:, 1]
        gv = torch.stack([gx, gy, g[:, 2]], 1)
        ga = g[:, 0] * (-s * v[:, 0] - c * v[:, 1]) + g[:, 1] * (c * v[:, 0] - s * v[:, 1])
        return gv, ga
""",
        [
            ("sign", "gy = -s * g", "gy = s * g", "wrong-entries wrong-sign missing-term"),
            ("transposition", "gx = c * g[:, 0] + s", "gx = c * g[:, 0] - s", "wrong-entries wrong-sign missing-term"),
            ("index", "g[:, 1] * (c * v[:, 0]", "g[:, 1] * (c * v[:, 1]", "wrong-shift wrong-factor missing-term"),
            ("term", " + g[:, 1] * (c * v[:, 0] - s * v[:, 1])", "", "missing-term"),
            ("index", "g[:, 2]], 1)", "g[:, 1]], 1)", "wrong-shift wrong-entries"),
        ],
    ),
    "CrossProduct": (
        "a=n3 b=n3",
        """
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.cross(a, b, dim=1)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.cross(b, g, dim=1), torch.cross(g, a, dim=1)
""",
        [
            ("order", "torch.cross(b, g, dim=1)", "torch.cross(g, b, dim=1)", "wrong-sign"),
            ("argument", "torch.cross(g, a, dim=1)", "torch.cross(g, b, dim=1)", "wrong-factor"),
            (
                "swap",
                "return torch.cross(b, g, dim=1), torch.cross(g, a, dim=1)",
                "return torch.cross(g, a, dim=1), torch.cross(b, g, dim=1)",
                "swapped-gradients",
            ),
        ],
    ),
    "TriangleArea": (
        "a=n2 b=n2 c=n2",
        """
    @staticmethod
    def forward(ctx, a, b, c):
        u, v = b - a, c - a
        ctx.save_for_backward(u, v)
        return 0.5 * (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])

    @staticmethod
    def backward(ctx, g):
        u, v = ctx.saved_tensors
        gu = 0.5 * g.unsqueeze(1) * torch.stack([v[:, 1], -v[:, 0]], 1)
        gv = 0.5 * g.unsqueeze(1) * torch.stack([-u[:, 1], u[:, 0]], 1)
        return -gu - gv, gu, gv
""",
        [
            ("assignment", "return -gu - gv, gu, gv", "return -gu - gv, gv, gu", "swapped-gradients"),
            ("term", "return -gu - gv,", "return -gu,", "missing-term"),
            ("sign", "return -gu - gv,", "return -gu + gv,", "missing-term wrong-sign"),
            ("sign", "[v[:, 1], -v[:, 0]]", "[v[:, 1], v[:, 0]]", "wrong-entries wrong-sign missing-term"),
            ("rotation", "return -gu - gv, gu, gv", "return gu, gv, -gu - gv", "swapped-gradients"),
        ],
    ),
    "BlackScholes": (
        "s=pos:n k=pos:n v=pos:n t=0.5",
        """
    @staticmethod
    def forward(ctx, s, k, v, t):
        root = t ** 0.5
        d1 = (torch.log(s / k) + 0.5 * v * v * t) / (v * root)
        d2 = d1 - v * root
        n1 = 0.5 * (1 + torch.erf(d1 / 2 ** 0.5))
        n2 = 0.5 * (1 + torch.erf(d2 / 2 ** 0.5))
        ctx.save_for_backward(s, k, v, d1, n1, n2)
        ctx.root = root
        return s * n1 - k * n2

    @staticmethod
    def backward(ctx, g):
        s, k, v, d1, n1, n2 = ctx.saved_tensors
        density = torch.exp(-0.5 * d1 * d1) / 6.283185307179586 ** 0.5
        return g * n1, -g * n2, g * s * density * ctx.root, None
""",
        [
            ("factor", "density * ctx.root", "density", "wrong-factor"),
            ("argument", "g * s * density", "g * k * density", "wrong-factor"),
            ("sign", "-g * n2", "g * n2", "wrong-sign"),
            ("argument", "return g * n1", "return g * n2", "wrong-factor"),
            ("function", "torch.exp(-0.5 * d1 * d1)", "torch.exp(-d1 * d1)", "wrong-factor"),
            ("factor", "/ 6.283185307179586 ** 0.5", "", "wrong-factor"),
        ],
    ),
    "Discount": (
        "cash=nm rate=pos:n",
        """
    @staticmethod
    def forward(ctx, cash, rate):
        t = torch.arange(1, cash.shape[1] + 1, dtype=cash.dtype)
        factor = torch.exp(-rate.unsqueeze(1) * t)
        ctx.save_for_backward(cash, t, factor)
        return (cash * factor).sum(1)

    @staticmethod
    def backward(ctx, g):
        cash, t, factor = ctx.saved_tensors
        u = g.unsqueeze(1) * factor
        return u, -(u * cash * t).sum(1)
""",
        [
            ("chain", "-(u * cash * t).sum(1)", "-(u * cash).sum(1)", "wrong-factor"),
            ("sign", "-(u * cash * t).sum(1)", "(u * cash * t).sum(1)", "wrong-sign"),
            ("factor", "u = g.unsqueeze(1) * factor", "u = g.unsqueeze(1)", "wrong-factor ignores-grad-output"),
            ("reduction", "(u * cash * t).sum(1)", "(u * cash * t).mean(1)", "wrong-reduction wrong-factor"),
        ],
    ),
    "PortfolioVariance": (
        "w=n c=spd:nn",
        """
    @staticmethod
    def forward(ctx, w, c):
        ctx.save_for_backward(w, c)
        return torch.sqrt(w @ c @ w)

    @staticmethod
    def backward(ctx, g):
        w, c = ctx.saved_tensors
        risk = torch.sqrt(w @ c @ w)
        return g * (c + c.t()) @ w / (2 * risk), g * torch.outer(w, w) / (2 * risk)
""",
        [
            ("factor", "@ w / (2 * risk)", "@ w / risk", "wrong-factor"),
            ("chain", "torch.outer(w, w) / (2 * risk)", "torch.outer(w, w)", "wrong-factor"),
            ("argument", "torch.outer(w, w) / (2 * risk)", "torch.outer(w, w) / (2 * risk ** 2)", "wrong-factor"),
        ],
    ),
    "Oscillator": (
        "t=n a=n w=pos:n d=pos:n",
        """
    @staticmethod
    def forward(ctx, t, a, w, d):
        e = torch.exp(-d * t)
        ctx.save_for_backward(t, a, w, d, e)
        return a * e * torch.cos(w * t)

    @staticmethod
    def backward(ctx, g):
        t, a, w, d, e = ctx.saved_tensors
        c, s = torch.cos(w * t), torch.sin(w * t)
        gt = -g * a * e * (d * c + w * s)
        ga = g * e * c
        gw = -g * a * e * t * s
        gd = -g * a * e * t * c
        return gt, ga, gw, gd
""",
        [
            ("chain", "gw = -g * a * e * t * s", "gw = -g * a * e * s", "wrong-factor"),
            ("chain", "(d * c + w * s)", "(d * c + s)", "wrong-factor missing-term"),
            ("term", "(d * c + w * s)", "(w * s)", "missing-term wrong-factor"),
            ("function", "gd = -g * a * e * t * c", "gd = -g * a * e * t * s", "wrong-factor swapped-gradients"),
            ("assignment", "return gt, ga, gw, gd", "return gt, ga, gd, gw", "swapped-gradients"),
            ("assignment", "return gt, ga, gw, gd", "return ga, gw, gt, gd", "swapped-gradients"),
            ("factor", "ga = g * e * c", "ga = g * c", "wrong-factor"),
        ],
    ),
    "LennardJones": (
        "r=pos:nm sigma=1.3",
        """
    @staticmethod
    def forward(ctx, r, sigma):
        q = (sigma / r) ** 6
        ctx.save_for_backward(r, q)
        return 4 * (q * q - q)

    @staticmethod
    def backward(ctx, g):
        r, q = ctx.saved_tensors
        return g * 4 * (-12 * q * q + 6 * q) / r, None
""",
        [
            ("factor", "-12 * q * q", "-6 * q * q", "wrong-factor missing-term"),
            ("chain", "+ 6 * q) / r", "+ 6 * q)", "wrong-factor"),
            ("sign", "-12 * q * q + 6 * q", "-12 * q * q - 6 * q", "missing-term wrong-sign"),
            ("power", "-12 * q * q", "-12 * q", "wrong-factor missing-term"),
        ],
    ),
    "HeatStep": (
        "u=n k=pos:n",
        """
    @staticmethod
    def forward(ctx, u, k):
        d = u[1:] - u[:-1]
        flux = k[1:] * d
        ctx.save_for_backward(d, k)
        out = u.clone()
        out[1:] = out[1:] - 0.1 * flux
        out[:-1] = out[:-1] + 0.1 * flux
        return out

    @staticmethod
    def backward(ctx, g):
        d, k = ctx.saved_tensors
        gf = 0.1 * (g[:-1] - g[1:])
        gd = k[1:] * gf
        gu = g.clone()
        gu[1:] = gu[1:] + gd
        gu[:-1] = gu[:-1] - gd
        gk = torch.zeros_like(k)
        gk[1:] = d * gf
        return gu, gk
""",
        [
            ("index", "gk[1:] = d * gf", "gk[:-1] = d * gf", "wrong-shift wrong-entries"),
            ("sign", "gu[1:] = gu[1:] + gd", "gu[1:] = gu[1:] - gd", "missing-term wrong-sign wrong-entries"),
            ("factor", "gf = 0.1 * (g", "gf = (g", "wrong-factor missing-term"),
            ("index", "gd = k[1:] * gf", "gd = k[:-1] * gf", "wrong-shift wrong-factor"),
            ("sign", "(g[:-1] - g[1:])", "(g[1:] - g[:-1])", "wrong-sign missing-term"),
        ],
    ),
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
