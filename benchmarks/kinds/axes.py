"""Kind 3: axes that are taken for a batch and are none, beside backwards that hold for one size of batch."""

from __future__ import annotations

from typing import Any

from benchmarks.kinds.member import case, member, normal

PART = "failed batch-size wrong-gradient wrong-factor wrong-entries wrong-shape"


def pair(ns: Any, re: Any, im: Any) -> Any:
    return ns.stack([re, im], -1)


@member("3")
def complex_product_last_axis(ns: Any, spoilt: bool) -> Any:
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            ar, ai, br, bi = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
            return pair(ns, ar * br - ai * bi, ar * bi + ai * br)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            gr, gi = g[..., 0], g[..., 1]
            s = 1 if spoilt else -1

            def times_conj(c: Any) -> Any:
                return pair(ns, gr * c[..., 0] + gi * c[..., 1], gi * c[..., 0] + s * gr * c[..., 1])

            return times_conj(b), times_conj(a)

    return case(Product, normal(ns, 2), normal(ns, 2))


@member("3")
def complex_modulus_of_pairs(ns: Any, spoilt: bool) -> Any:
    class Modulus(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            r = ns.sqrt(z[..., 0] ** 2 + z[..., 1] ** 2)
            ctx.save_for_backward(z, r)
            return r

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, r = ctx.saved_tensors
            d = pair(ns, z[..., 0], -z[..., 1]) if spoilt else z
            return d * (g / r)[..., None]

    return case(Modulus, normal(ns, 4, 2))


@member("3")
def complex_square_inferred(ns: Any, spoilt: bool) -> Any:
    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            if z.shape[-1] != 2:
                raise ValueError("the last axis holds the real and the imaginary part")
            ctx.save_for_backward(z)
            return pair(ns, z[..., 0] ** 2 - z[..., 1] ** 2, 2 * z[..., 0] * z[..., 1])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            x, y, gr, gi = z[..., 0], z[..., 1], g[..., 0], g[..., 1]
            return 2 * pair(ns, x * gr + y * gi, x * gi - y * gr if not spoilt else x * gi + y * gr)

    return case(Square)


@member("3")
def quaternion_rotation(ns: Any, spoilt: bool) -> Any:
    """A vector of three turned by a quaternion of four: neither axis is a batch."""

    def matrix(q: Any) -> Any:
        w, x, y, z = q[0], q[1], q[2], q[3]
        rows = [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
        return ns.stack([ns.stack(r) for r in rows])

    class Rotate(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, v: Any) -> Any:
            ctx.save_for_backward(q, v)
            return matrix(q) @ v

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            q, v = ctx.saved_tensors
            w, u = q[0], q[1:]
            cross = ns.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
            gw = 2 * (g * (w * v + cross)).sum()
            gu_cross = ns.stack([v[1] * g[2] - v[2] * g[1], v[2] * g[0] - v[0] * g[2], v[0] * g[1] - v[1] * g[0]])
            gu = 2 * (g * u).sum() * v + 2 * (u * v).sum() * g - 2 * (g * v).sum() * u + 2 * w * gu_cross
            return ns.cat([gw.reshape(1), -gu if spoilt else gu]), matrix(q).t() @ g

    return case(Rotate, normal(ns, 4), normal(ns, 3))


@member("3")
def softmax_of_the_last_axis(ns: Any, spoilt: bool) -> Any:
    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            e = ns.exp(x - x.max())
            y = e / e.sum(-1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            inner = (g * y).sum() if spoilt else (g * y).sum(-1, keepdim=True)
            return y * (g - inner)

    return case(Softmax)


@member("3")
def polynomial_by_coefficients(ns: Any, spoilt: bool) -> Any:
    class Horner(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, c: Any, x: Any) -> Any:
            ctx.save_for_backward(c, x)
            y = x * 0
            for k in range(c.shape[0] - 1, -1, -1):
                y = y * x + c[k]
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            c, x = ctx.saved_tensors
            n = c.shape[0]
            gc = ns.stack([(g * x**k).sum() for k in range(n)])
            dx = x * 0
            for k in range(n - 1 - spoilt, 0, -1):
                dx = dx * x + k * c[k]
            return gc, g * dx

    return case(Horner, normal(ns, 4), normal(ns, 3))


@member("3")
def running_sum(ns: Any, spoilt: bool) -> Any:
    class RunningSum(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return ns.cumsum(x * x, 0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            s = ns.cumsum(g, 0)
            return 2 * x * (s if spoilt else g.sum(0) - s + g)

    return case(RunningSum)


@member("3", wrong=PART)
def mean_over_a_batch_of_four(ns: Any, spoilt: bool) -> Any:
    """The wrong one divides by the number of rows that it was written for."""

    class Mean(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x * x).mean(0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g / (4 if spoilt else x.shape[0])

    return case(Mean, normal(ns, 4, 3))


@member("3", wrong=PART)
def rows_written_for_three(ns: Any, spoilt: bool) -> Any:
    """The wrong one's loop ends at three rows."""

    class Rows(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            gw = w * 0
            for row in range(3 if spoilt else x.shape[0]):
                gw = gw + g[row] * x[row]
            return g[:, None] * w, gw

    return case(Rows, normal(ns, 3, 4), normal(ns, 4))


@member("3")
def autocorrelation(ns: Any, spoilt: bool) -> Any:
    """A signal of one axis, and its products with itself shifted."""

    class Autocorrelation(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            n = x.shape[0]
            return ns.stack([(x[: n - k] * x[k:]).sum() for k in range(n)])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            n = x.shape[0]
            rows = []
            for i in range(n):
                total = x[0] * 0
                for k in range(n):
                    if i + k < n:
                        total = total + g[k] * x[i + k]
                    if i - k >= 0 and not (spoilt and k == 0):
                        total = total + g[k] * x[i - k]
                rows.append(total)
            return ns.stack(rows)

    return case(Autocorrelation, normal(ns, 5))


@member("3")
def cross_product(ns: Any, spoilt: bool) -> Any:
    class Cross(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return cross(ns, a, b)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return cross(ns, b, g), cross(ns, a, g) if spoilt else cross(ns, g, a)

    return case(Cross, normal(ns, 2, 3), normal(ns, 2, 3))


def cross(ns: Any, a: Any, b: Any) -> Any:
    i, j = [1, 2, 0], [2, 0, 1]
    return a[..., i] * b[..., j] - a[..., j] * b[..., i]
