"""Kinds 14 and 15: symmetric matrices, and rows whose derivatives have very different sizes."""

from __future__ import annotations

from typing import Any

from benchmarks.kinds.member import case, leaf, member, normal, spd

FOLDED = "failed wrong-entries wrong-gradient wrong-factor missing-term transposed"


def fold(ns: Any, g: Any) -> Any:
    """All of a symmetric gradient in the lower triangle."""
    return ns.tril(g) + ns.tril(g.t(), -1)


def of_matrix(ns: Any, body: Any, gradient: Any, mean: bool) -> Any:
    """A function of (A + A')/2, or of the lower triangle alone."""

    class OfMatrix(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, A: Any) -> Any:
            S = (A + A.t()) / 2 if mean else ns.tril(A) + ns.tril(A, -1).t()
            ctx.save_for_backward(S)
            return body(S)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (S,) = ctx.saved_tensors
            return gradient(g, S)

    return OfMatrix


BODIES: dict[str, Any] = {
    "log det": lambda ns: (lambda S: ns.linalg.slogdet(S)[1], lambda g, S: g * ns.linalg.inv(S)),
    "trace of the square": lambda ns: (lambda S: (S * S).sum(), lambda g, S: 2 * g * S),
    "sum of the inverse": lambda ns: (
        lambda S: ns.linalg.inv(S).sum(),
        lambda g, S: -g * ns.linalg.inv(S).sum(1)[:, None] * ns.linalg.inv(S).sum(0)[None, :],
    ),
    "quadratic form": lambda ns: (
        lambda S: (S.sum(0) ** 2).sum(),
        lambda g, S: g * (S.sum(0)[:, None] + S.sum(0)[None, :]),
    ),
}
for name, make in BODIES.items():

    def symmetrised(ns: Any, spoilt: bool, make: Any = make) -> Any:
        """The mean of both triangles: a gradient folded into one is wrong."""
        body, gradient = make(ns)
        back = (lambda g, S: fold(ns, gradient(g, S))) if spoilt else gradient
        return case(of_matrix(ns, body, back, True), spd(ns, 3), order=1)

    symmetrised.__name__ = f"{name} of the mean of both triangles"
    member("14", wrong=FOLDED)(symmetrised)

    def one_triangle(ns: Any, spoilt: bool, make: Any = make) -> Any:
        """Only the lower triangle is read: any division between the triangles is right."""
        body, gradient = make(ns)
        back = (lambda g, S: 1.5 * gradient(g, S)) if spoilt else gradient
        return case(of_matrix(ns, body, back, False), spd(ns, 3), order=1)

    one_triangle.__name__ = f"{name} of the lower triangle, symmetric gradient"
    member("14", right="passed: triangle", wrong="failed")(one_triangle)

    def folded(ns: Any, spoilt: bool, make: Any = make) -> Any:
        """The gradient of what is read, all of it in the triangle that is read."""
        body, gradient = make(ns)
        back = (lambda g, S: ns.tril(gradient(g, S))) if spoilt else (lambda g, S: fold(ns, gradient(g, S)))
        return case(of_matrix(ns, body, back, False), spd(ns, 3), order=1)

    folded.__name__ = f"{name} of the lower triangle, folded"
    member("14", wrong="failed")(folded)


@member("14", wrong=FOLDED)
def covariance_distance(ns: Any, spoilt: bool) -> Any:
    """Reads both triangles without a mean."""

    class Distance(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, A: Any, B: Any) -> Any:
            ctx.save_for_backward(A, B)
            return ((A - B) ** 2).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            A, B = ctx.saved_tensors
            d = 2 * g * (A - B)
            return fold(ns, d) if spoilt else d, -d

    return case(Distance, spd(ns, 3), spd(ns, 3, seed=1), order=1)


# kind 15 ---------------------------------------------------------------------------------------------------------

ROWS: dict[str, Any] = {
    "three magnitudes": [1e12, 1.0, 1e-9],
    "many magnitudes": [10.0**k for k in range(-12, 13, 4)],
    "small beside one": [1.0, 1e-8],
    "small beside large": [1e9, 1e-6, 1e9],
    "tiny": [1e-3, 1e-15, 1e-3],
    "large": [1e15, 1e3],
}
for name, scales in ROWS.items():
    for visible in (True, False):

        def rows(ns: Any, spoilt: bool, scales: Any = scales, visible: bool = visible) -> Any:
            weights = ns.tensor(scales, dtype=ns.float64)
            least = min(range(len(scales)), key=lambda k: scales[k])
            off = ns.tensor([1.1 if spoilt and k == least else 1.0 for k in range(len(scales))], dtype=ns.float64)

            class Scaled(ns.autograd.Function):
                @staticmethod
                def forward(ctx: Any, x: Any) -> Any:
                    ctx.save_for_backward(x)
                    if visible:
                        return weights * ns.sin(x)
                    with ns.no_grad():
                        return weights * ns.sin(x)

                @staticmethod
                def backward(ctx: Any, g: Any) -> Any:
                    (x,) = ctx.saved_tensors
                    return g * weights * off * ns.cos(x)

            return case(Scaled, normal(ns, len(scales)), order=1)

        rows.__name__ = f"rows: {name}{'' if visible else ', body hidden'}"
        member("15", wrong="failed")(rows)


@member("15", wrong="failed")
def moments(ns: Any, spoilt: bool) -> Any:
    """One output with the powers of x of 1 to 6 at x near 0.01, the last of them off by a tenth."""

    class Moments(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return ns.stack([(x**k).mean() for k in range(1, 7)])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            n = x.numel()
            return sum(g[k - 1] * k * x ** (k - 1) / n * (1.1 if spoilt and k == 6 else 1) for k in range(1, 7))

    return case(Moments, leaf(ns, [0.011, 0.009, 0.0105]), order=1)


@member("15", wrong="failed")
def matrix_of_decades(ns: Any, spoilt: bool) -> Any:
    class Mixed(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            m = _decades(ns)
            return m @ (x * x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            m = _decades(ns)
            if spoilt:
                m = m * ns.tensor([[1.0], [1.0], [0.9]], dtype=ns.float64)
            return 2 * x * (m.t() @ g)

    return case(Mixed, normal(ns, 3), order=1)


def _decades(ns: Any) -> Any:
    return ns.tensor([[1e10, 2e10, -1e10], [1.0, 3.0, -2.0], [1e-10, -2e-10, 3e-10]], dtype=ns.float64)
