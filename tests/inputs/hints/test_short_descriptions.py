"""Descriptions without a colon: a shape or a range behind a name, several names, names that are articles or short."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict

SPD = {"A": "spd"}


@pytest.mark.parametrize(
    ("names", "text", "shapes", "domains"),
    [
        ("a", "Inverse of a matrix a (n, n) by iteration.", {"a": ("n", "n")}, {}),
        ("a", "The inverse of a (n, n)", {"a": ("n", "n")}, {}),
        ("ab", "Product of a (n, m) and b (m, k).", {"a": ("n", "m"), "b": ("m", "k")}, {}),
        ("xa", "Applies a (N, D) tensor; a (3, 4) kernel.", {}, {}),
        ("xA", "A (2, 3) kernel is applied to x (N, D).", {"x": ("N", "D")}, {}),
        ("Ab", "A (n, n) is symmetric positive definite, b (n,).", {"A": ("n", "n"), "b": ("n",)}, SPD),
        ("Ab", "A: (n, n), symmetric positive definite; b: (n,)", {"A": ("n", "n"), "b": ("n",)}, SPD),
        ("Ab", "A: (n, n) symmetric positive definite, b: (n,)", {"A": ("n", "n"), "b": ("n",)}, SPD),
        ("Ab", "With a symmetric positive definite matrix A (n, n).", {"A": ("n", "n")}, SPD),
        ("ab", "A positive definite matrix a (n, n), b (n,)", {"a": ("n", "n"), "b": ("n",)}, {"a": "spd"}),
        ("xS", "x (n,), S symmetric positive definite (n, n)", {"x": ("n",), "S": ("n", "n")}, {"S": "spd"}),
        ("A", "Square root of A (n, n) symmetric positive definite by iteration", {"A": ("n", "n")}, SPD),
        ("A", "Square root of A (n, n) not symmetric positive definite", {"A": ("n", "n")}, {}),
        ("A", "A (n, n) need not be symmetric positive definite.", {"A": ("n", "n")}, {}),
        (
            "Ab",
            "Solve A x = b for A a symmetric positive definite matrix (n, n), b (n,).",
            {"A": ("n", "n"), "b": ("n",)},
            SPD,
        ),
        ("Ab", "Solves for A a matrix (n, n) and b (n,).", {"A": ("n", "n"), "b": ("n",)}, {}),
        ("Ab", "A must be invertible (n, n), b (n,)", {"A": ("n", "n"), "b": ("n",)}, {}),
        ("xA", "A weighted sum (3, 4) of x (N, D); a kernel.", {"x": ("N", "D")}, {}),
        ("xu", "State x (2,), torque u (1,) -> xdot (2,)", {"x": (2,), "u": (1,)}, {}),
        ("xy", "The roots of E; x in (0, 1), y between 0 and 1", {}, {"x": "unit", "y": "unit"}),
        ("xy", "Clamps x and y in [0, 1].", {}, {}),
        ("T", "Radiance at temperature T (positive, in kelvin)", {}, {"T": "positive"}),
        ("T", "Radiance at temperature T (strictly positive)", {}, {"T": "positive"}),
        ("T", "Response at shift T (positive, zero or negative)", {}, {}),
        ("x", "The logarithm if x (positive) is large, else zero", {}, {}),
        ("x", "Linear for x in (0, 1), constant elsewhere. x in (1, 2)", {}, {}),
    ],
)
def test_shapes_and_domains(names: str, text: str, shapes: Any, domains: dict[str, str]) -> None:
    assert documented_shapes(tuple(names), "", text) == shapes
    assert documented_values(tuple(names), "", text, shapes=shapes).domains == domains


def root(ns: Any, factor: float, documentation: str = "The square root of a (positive scalar) by iteration.") -> type:
    """The square root by Newton's method, which finds none of a negative number."""

    class Root(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            x, before = 0.5 * (1 + a), a
            for _ in range(100):
                if float(ns.abs(x - before).max()) <= 1e-14 * float(ns.abs(x).max()):
                    break
                x, before = 0.5 * (x + a / x), x
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * g / (2 * x)

    return Root


@pytest.mark.parametrize("library", ["gradcli.engine", "torch"])
def test_the_root_is_checked_at_positive_numbers(library: str) -> None:
    ns = pytest.importorskip(library)
    (case,) = gradcli.check(root(ns, 1.0), order=1, samples=1).cases
    assert (case.verdict, [spec.domain for spec in case.inputs]) == (Verdict.PASSED, ["positive"])
    (case,) = gradcli.check(root(ns, 1.01), order=1, samples=1, shrink=False).cases
    assert case.verdict is Verdict.FAILED


@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", ["Square root of positive a by iteration", "Square root of a > 0 by iteration"])
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_the_root_of_a_positive_argument(ns: Any, words: str, factor: float) -> None:
    (case,) = gradcli.check(root(ns, factor, words), order=1, samples=1, shrink=False).cases
    assert case.inputs[0].domain == "positive"
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


@pytest.mark.parametrize(
    ("text", "positive"),
    [
        ("square root of a (positive scalar) by iteration", "a"),
        ("Square root of a (a positive number).", "a"),
        ("the power x of s (strictly positive scalar), clipped", "s"),
        ("the logarithm of x (positive array), a real scalar", "x"),
        ("the value of a (positive scalar) function of x", ""),
        ("passes x (positive values) and drops the rest", ""),
        ("passes x (positive) through", ""),
        ("the sum of x (positive entries) and s", ""),
        ("x (positive scalar) is kept if it is large, s otherwise", ""),
    ],
)
def test_nouns_in_brackets(text: str, positive: str) -> None:
    assert set(documented_values(("a", "x", "s"), "", text).domains) == set(positive)


def test_several_numbers() -> None:
    found = documented_values(("x", "sigma", "eps"), "", "Energy of x (N, 3); sigma and eps are scalars.")
    assert found.types == {"sigma": "scalar", "eps": "scalar"}


@pytest.mark.parametrize(
    ("text", "scalars"),
    [
        ("observations z (T,), log q and log r scalars", "qr"),
        ("z (T,) and scalars log q, log r", "qr"),
        ("z (T,), log q is a scalar", "q"),
        ("z (T,), log q scalar fields, log r", ""),
        ("the scalar log q of z (T,)", ""),
    ],
)
@pytest.mark.parametrize("prefix", ["", "log_", "log"])
def test_scalars_that_are_logarithms(text: str, scalars: str, prefix: str) -> None:
    names = ("z", f"{prefix}q", f"{prefix}r")
    found = documented_values(names, "", text, shapes={"z": ("T",)}).types
    assert set(found) == {f"{prefix}{name}" for name in scalars}
    assert set(found.values()) <= {"scalar"}


@pytest.mark.parametrize("swapped", [False, True])
def test_a_likelihood_of_logarithms_has_its_inputs(ns: Any, swapped: bool) -> None:
    class Likelihood(ns.autograd.Function):
        """Log-likelihood of observations z (T,), log q and log r scalars."""

        @staticmethod
        def forward(ctx: Any, z: Any, q: Any, r: Any) -> Any:
            if z.dim() != 1 or q.dim() or r.dim():
                raise ValueError
            ctx.save_for_backward(z, q, r)
            return (z * z).sum() / q.exp() + 3 * r.exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, q, r = ctx.saved_tensors
            by_q, by_r = -g * (z * z).sum() / q.exp(), 3 * g * r.exp()
            return 2 * g * z / q.exp(), *((by_r, by_q) if swapped else (by_q, by_r))

    (case,) = gradcli.check(Likelihood, order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.FAILED if swapped else Verdict.PASSED)


def solution(ns: Any, factor: float) -> type:
    """The solution of A x = b, with a gradient that is right for symmetric positive definite matrices alone."""

    class Solution(ns.autograd.Function):
        """A (n, n) is symmetric positive definite, b (n,)."""

        @staticmethod
        def forward(ctx: Any, A: Any, b: Any) -> Any:
            values, vectors = ns.linalg.eigh((A + A.mT) / 2)
            x = vectors @ ((vectors.mT @ b) / values.abs())
            ctx.save_for_backward(A, x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            matrix, x = ctx.saved_tensors
            u = ns.linalg.solve(matrix, g)
            return -factor * (ns.outer(u, x) + ns.outer(x, u)) / 2, u

    return Solution


def test_a_matrix_described_so_is_drawn_so(ns: Any) -> None:
    right = gradcli.check(solution(ns, 1.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED
    assert [(spec.domain, spec.shape) for spec in right.inputs] == [("spd", (3, 3)), ("normal", (3,))]
    assert gradcli.check(solution(ns, 1.01), shrink=False, order=1).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("names", "text", "shapes"),
    [
        ("u x b", "u T,B,3*D   x T,B,D   b 2*D", {"u": ("T", "B", "3*D"), "x": ("T", "B", "D"), "b": ("2*D",)}),
        ("x w", "x: N, C ; w: C, 4", {"x": ("N", "C"), "w": ("C", 4)}),
        ("x w", "x sums  w parts", {}),
        ("x w", "x N,C  of which w is one", {}),
        ("x w", "x (N, C), spring = (g_over_L, c) (2,)", {"x": ("N", "C")}),
        ("x spring", "x (N, C), spring = (g_over_L, c) (2,)", {"x": ("N", "C"), "spring": (2,)}),
        ("x spring", "x (N, C), spring = (stiffness, damping) (2,)", {"x": ("N", "C"), "spring": (2,)}),
        ("x spring", "x (N, C), spring: (fx, fy) (2,)", {"x": ("N", "C"), "spring": (2,)}),
        ("x y", "x (N, 2) (see y)", {"x": ("N", 2)}),
        ("pts M", "turns points (N, 2) by a matrix M (2, 2)", {"pts": ("N", 2), "M": (2, 2)}),
        ("img w", "the image (B, C, H, W) and weights (C,)", {"img": ("B", "C", "H", "W")}),
        ("pos vel", "positions (N, 3), velocities (N, 3)", {"pos": ("N", 3), "vel": ("N", 3)}),
        ("ws x", "windows (N, C) of x (M, C)", {"x": ("M", "C")}),
        ("post pos", "positions (N, 3)", {}),
        (
            "x y w s",
            "x, y: B L D   w: D N   s: D",
            {"x": ("B", "L", "D"), "y": ("B", "L", "D"), "w": ("D", "N"), "s": ("D",)},
        ),
        ("x w", "x: B L D, w: D -> B L D", {"x": ("B", "L", "D"), "w": ("D",)}),
        ("x w", "x: b n (h d); w: h d (of each head)", {"x": ("b", "n", "h*d"), "w": ("h", "d")}),
        ("x w", "Args:\n    x: B T C\n    w: C", {"x": ("B", "T", "C"), "w": ("C",)}),
        ("x w", "x: BxTx3, w: N x D matrix", {"x": ("B", "T", 3), "w": ("N", "D")}),
        ("x w", "x (B T C), w [C]", {"x": ("B", "T", "C"), "w": ("C",)}),
        ("s t x", "s t (C,), x (N, C)", {"s": ("C",), "t": ("C",), "x": ("N", "C")}),
        ("x w", "y = x w (N, K), exp(-x / (R T)), f(x w) * (x W)", {"w": ("N", "K")}),
        ("x w", "x: the input of w. w: hidden features, w: 1 2, x (see w)", {}),
        ("p q x y z", "p: x y z, q: y", {}),
        ("pts points", "the points (N, 2)", {"points": ("N", 2)}),
    ],
)
def test_shapes_without_brackets(names: str, text: str, shapes: dict[str, tuple[int | str, ...]]) -> None:
    assert documented_shapes(names.split(), "", text) == shapes


def projection(ns: Any, factor: float) -> Any:
    class Projection(ns.autograd.Function):
        """projects points (N, 2) by a matrix M (3, 3)"""

        @staticmethod
        def forward(ctx: Any, pts: Any, M: Any) -> Any:
            whole = ns.nn.functional.pad(pts, (0, 1), value=1.0)
            q = whole @ M.T
            ctx.save_for_backward(M, whole, q)
            return q[:, :2] / (3 + q[:, 2:])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            M, whole, q = ctx.saved_tensors
            below = 3 + q[:, 2:]
            inner = ns.cat([g / below, -(g * q[:, :2]).sum(1, keepdim=True) / below**2], 1)
            return (inner @ M)[:, :2], factor * inner.T @ whole

    return Projection


def gate(ns: Any, factor: float) -> Any:
    class Gate(ns.autograd.Function):
        # u holds the state, the gate and the candidate on its last axis
        @staticmethod
        def forward(ctx: Any, u: Any, x: Any, b: Any) -> Any:
            # u B,3*D   x B,D   b 2*D
            D = x.shape[1]
            state, opened, other = u.split(D, dim=-1)
            first, second = b.split(D)
            ctx.save_for_backward(state, opened, other, x, b)
            return state * (opened + first) + x * (other + second)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            state, opened, other, x, b = ctx.saved_tensors
            first, second = b.split(x.shape[1])
            of_u = ns.cat([g * (opened + first), g * state, g * x], 1)
            return of_u, g * (other + second), factor * ns.cat([g * state, g * x], 1).sum(0)

    return Gate


def spring(ns: Any, factor: float) -> Any:
    class Spring(ns.autograd.Function):
        """acceleration of states (N, 2); state (N, 2), par = (stiffness, damping) (2,)"""

        @staticmethod
        def forward(ctx: Any, state: Any, par: Any) -> Any:
            ctx.save_for_backward(state, par)
            return -(state * par).sum(1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            state, par = ctx.saved_tensors
            return -g[:, None] * par, -factor * (g[:, None] * state).sum(0)

    return Spring


def leaky(ns: Any, factor: float) -> Any:
    class Leaky(ns.autograd.Function):
        # x, gain: B T C   decay: C
        @staticmethod
        def forward(ctx: Any, x: Any, gain: Any, decay: Any) -> Any:
            state, states = 0 * x[:, 0], []
            for step in range(x.shape[1]):
                states.append(state)
                state = decay * state + gain[:, step] * x[:, step]
            ctx.save_for_backward(x, gain, decay, ns.stack(states, 1))
            return state

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, gain, decay, states = ctx.saved_tensors
            to_x, to_gain, to_decay = [], [], ns.zeros_like(decay)
            for step in reversed(range(x.shape[1])):
                to_x.insert(0, g * gain[:, step])
                to_gain.insert(0, g * x[:, step])
                to_decay = to_decay + (g * states[:, step]).sum(0)
                g = g * decay
            return ns.stack(to_x, 1), ns.stack(to_gain, 1), factor * to_decay

    return Leaky


def rescaled(ns: Any, factor: float) -> Any:
    class Rescaled(ns.autograd.Function):
        # low high (C,), x (B, T, C)
        @staticmethod
        def forward(ctx: Any, x: Any, low: Any, high: Any) -> Any:
            part = ns.sigmoid(x)
            ctx.save_for_backward(part, low, high)
            return low + (high - low) * part

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            part, low, high = ctx.saved_tensors
            to_x = g * (high - low) * part * (1 - part)
            return to_x, (g * (1 - part)).sum((0, 1)), factor * (g * part).sum((0, 1))

    return Rescaled


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize("make", [projection, gate, spring, leaky, rescaled])
def test_inputs_of_these_shapes(ns: Any, make: Any, factor: float) -> None:
    (case,) = gradcli.check(make(ns, factor), order=1, shrink=False).cases
    shapes = {spec.name: spec.shape for spec in case.inputs}
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), (case.error, case.findings)
    assert shapes.get("M", (3, 3)) == (3, 3)
    assert shapes.get("par", (2,)) == (2,)
    assert {f.input for f in case.findings} == (set() if factor == 1 else {list(shapes)[-1]})


@pytest.mark.parametrize("factor", [1.0, 1.25])
def test_an_equation_that_is_solved_says_for_which_numbers(ns: Any, factor: float) -> None:
    class Side(ns.autograd.Function):
        """side with side * side = area for positive area"""

        @staticmethod
        def forward(ctx: Any, area: Any) -> Any:
            side = area.abs().sqrt()
            ctx.save_for_backward(side)
            return side

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (side,) = ctx.saved_tensors
            return factor * g / (2 * side)

    (case,) = gradcli.check(Side, order=1, shrink=False, only=("gradient",)).cases
    assert case.inputs[0].domain == "positive"
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
