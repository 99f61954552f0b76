"""Kind 1: number arguments that say how exactly something is computed, beside numbers that belong to the formula."""

from __future__ import annotations

from typing import Any

from benchmarks.kinds.member import case, leaf, member, normal, spd


@member("1")
def norm_with_a_floor(ns: Any, spoilt: bool) -> Any:
    class Normalize(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, eps: float = 1e-12) -> Any:
            n = ns.sqrt((x * x).sum(-1, keepdim=True)).clamp(min=eps)
            ctx.save_for_backward(x / n, n)
            return x / n

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, n = ctx.saved_tensors
            inner = (g * y).sum(-1, keepdim=True)
            return (g - (0.5 if spoilt else 1) * y * inner) / n, None

    return case(Normalize, order=1)


@member("1")
def rms_norm(ns: Any, spoilt: bool) -> Any:
    class RMSNorm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, eps: float) -> Any:
            ctx.save_for_backward(x, weight)
            ctx.eps = eps
            return weight * x / ns.sqrt((x * x).mean(-1, keepdim=True) + eps)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight = ctx.saved_tensors
            r = 1 / ns.sqrt((x * x).mean(-1, keepdim=True) + ctx.eps)
            gw = g * weight
            gx = r * gw - (0 if spoilt else 1) * r**3 * x * (gw * x).mean(-1, keepdim=True)
            return gx, (g * x * r).sum(0), None

    return case(RMSNorm, normal(ns, 3, 4), normal(ns, 4), 1e-8)


@member("1")
def log_of_clamped(ns: Any, spoilt: bool) -> Any:
    class LogClamp(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, p: Any, eps: float = 1e-7) -> Any:
            ctx.save_for_backward(p)
            ctx.eps = eps
            return ns.log(p.clamp(eps, 1 - eps))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (p,) = ctx.saved_tensors
            inside = (p >= ctx.eps) & (p <= 1 - ctx.eps)
            return ns.where(inside, (2 if spoilt else 1) * g / p.clamp(ctx.eps, 1 - ctx.eps), g * 0), None

    return case(LogClamp, leaf(ns, [0.2, 0.7, 0.45, 0.9]), 1e-7)


@member("1")
def conjugate_gradients(ns: Any, spoilt: bool) -> Any:
    def solve(a: Any, b: Any, rtol: float, maxiter: int) -> Any:
        x, r = b * 0, b
        p, rr = r, (r * r).sum()
        for _ in range(maxiter):
            if float(rr) <= rtol**2 * float((b * b).sum()):
                break
            ap = a @ p
            alpha = rr / (p * ap).sum()
            x, r = x + alpha * p, r - alpha * ap
            new = (r * r).sum()
            p, rr = r + new / rr * p, new
        return x

    class CG(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, A: Any, b: Any, rtol: float = 1e-12, maxiter: int = 100) -> Any:
            x = solve(A.detach(), b.detach(), rtol, maxiter)
            ctx.save_for_backward(A, x)
            ctx.how = rtol, maxiter
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            A, x = ctx.saved_tensors
            gb = solve(A, g, *ctx.how)
            ga = gb[:, None] * x[None, :]
            return (ga if spoilt else -ga), gb, None, None

    return case(CG, spd(ns, 4), normal(ns, 4), 1e-12, 100, order=1)


@member("1")
def damped_step(ns: Any, spoilt: bool) -> Any:
    """A Levenberg-Marquardt step; the wrong one leaves the damping out of the adjoint system."""

    class Damped(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, J: Any, r: Any, damping: float = 1e-3) -> Any:
            H = J.t() @ J + damping * ns.eye(J.shape[1], dtype=J.dtype)
            p = ns.linalg.solve(H, J.t() @ r)
            ctx.save_for_backward(J, r, p)
            ctx.damping = damping
            return p

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            J, r, p = ctx.saved_tensors
            H = J.t() @ J + (0 if spoilt else ctx.damping) * ns.eye(J.shape[1], dtype=J.dtype)
            u = ns.linalg.solve(H, g)
            gj = (r - J @ p)[:, None] * u[None, :] - (J @ u)[:, None] * p[None, :]
            return gj, J @ u, None

    return case(Damped, normal(ns, 5, 3), normal(ns, 5), 1e-3, order=1)


@member("1")
def huber_with_delta(ns: Any, spoilt: bool) -> Any:
    """Delta is 1 by default, which hides that the wrong one forgets it."""

    class Huber(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, delta: float = 1.0) -> Any:
            ctx.save_for_backward(x)
            ctx.delta = delta
            a = ns.abs(x)
            return ns.where(a <= delta, 0.5 * x * x, delta * (a - 0.5 * delta))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            d = ctx.delta
            out = ns.sign(x) if spoilt else d * ns.sign(x)
            return g * ns.where(ns.abs(x) <= d, x, out), None

    return case(Huber, order=1)


@member("1")
def fixed_point_with_tolerance(ns: Any, spoilt: bool) -> Any:
    """The solution of y = cos(w y) + x."""

    def solve(x: Any, w: Any, tol: float) -> Any:
        y = x
        for _ in range(500):
            new = ns.cos(w * y) + x
            if float(ns.abs(new - y).max()) < tol:
                return new
            y = new
        return y

    class FixedPoint(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, tol: float = 1e-14) -> Any:
            y = solve(x.detach(), w.detach(), tol)
            ctx.save_for_backward(w, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            w, y = ctx.saved_tensors
            s = ns.sin(w * y)
            u = g / (1 + w * s)
            return u, (-u * s * y if not spoilt else -g * s * y), None

    return case(FixedPoint, leaf(ns, [0.3, -0.2, 0.5]), leaf(ns, [0.4, 0.3, 0.6]), 1e-14, order=1)


@member("1")
def p_norm(ns: Any, spoilt: bool) -> Any:
    """The wrong one knows p = 2 only."""

    class PNorm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, p: int = 2, eps: float = 1e-10) -> Any:
            y = ((ns.abs(x) ** p).sum() + eps) ** (1 / p)
            ctx.save_for_backward(x, y)
            ctx.p = p
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            p = 2 if spoilt else ctx.p
            return g * ns.sign(x) * ns.abs(x) ** (p - 1) * y ** (1 - p), None, None

    return case(PNorm, leaf(ns, [0.5, -1.5, 2.0]), 2, 1e-10, order=1)


@member("1")
def cosine_similarity(ns: Any, spoilt: bool) -> Any:
    class Cosine(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, epsilon: float = 1e-8) -> Any:
            na, nb = ns.sqrt((a * a).sum()), ns.sqrt((b * b).sum())
            y = (a * b).sum() / (na * nb).clamp(min=epsilon)
            ctx.save_for_backward(a, b, y, na, nb)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b, y, na, nb = ctx.saved_tensors
            da = b / (na * nb) - y * a / na**2
            db = a / (na * nb) - (0 if spoilt else 1) * y * b / nb**2
            return g * da, g * db, None

    return case(Cosine, normal(ns, 4, seed=1), normal(ns, 4, seed=2), 1e-8, order=1)


@member("1")
def power_iteration(ns: Any, spoilt: bool) -> Any:
    """The largest eigenvalue of a symmetric matrix, in a given number of iterations."""

    class Largest(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, A: Any, n_iter: int = 400) -> Any:
            S = (A + A.t()) / 2
            v = ns.ones(A.shape[0], dtype=A.dtype)
            for _ in range(n_iter):
                v = S @ v
                v = v / ns.sqrt((v * v).sum())
            ctx.save_for_backward(v)
            return v @ S @ v

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (v,) = ctx.saved_tensors
            return g * (2 if spoilt else 1) * v[:, None] * v[None, :], None

    return case(Largest, leaf(ns, [[4.0, 1.0, 0.2], [1.0, 2.0, 0.5], [0.2, 0.5, 1.0]]), 400, order=1)
