"""Geometry, finance and physics."""

from __future__ import annotations

SCIENCES: dict[str, tuple[str, str, list[tuple[str, str, str, str]]]] = {
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
}
