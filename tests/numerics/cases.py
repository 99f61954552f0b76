"""One table of correct maps, ordinary and awkward, with their Jacobians in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gradcli.backends.executed_lines import lines_run
from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.maps.vector_map import Effort, VectorMap

Array = np.ndarray


class FormulaMap(VectorMap):
    """A map given by a function and a Jacobian, both of flat vectors; `spoil` turns the Jacobian into a wrong claim.

    `steps` says how many steps an iteration takes at a point.
    """

    def __init__(
        self,
        function: Callable[[Array], Array],
        jacobian: Callable[[Array], Array],
        domain: Space,
        codomain: Space,
        spoil: Callable[[Array], Array] | None = None,
        steps: Callable[[Array], int | Effort] | None = None,
    ) -> None:
        self.function, self.jacobian, self.spoil, self.steps = function, jacobian, spoil, steps
        self.domain, self.codomain = domain, codomain

    def claimed(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            jacobian = np.asarray(self.jacobian(x), float).reshape(self.codomain.size, self.domain.size)
        return jacobian if self.spoil is None else self.spoil(jacobian)

    def value(self, x: Array) -> Array:
        return np.asarray(self.function(x), float).reshape(self.codomain.size)

    def effort(self, x: Array) -> Effort | None:
        steps = None if self.steps is None else self.steps(x)
        return Effort(lines={"a step": steps}) if isinstance(steps, int) else steps

    def vjp(self, x: Array, cotangent: Array) -> Array:
        return self.claimed(x).T @ cotangent

    def vjp_many(self, x: Array, cotangents: Array) -> Array:
        return cotangents @ self.claimed(x)


def space(*shapes: tuple[int, ...], dtype: str = "float64") -> Space:
    return Space(tuple(Block(f"b{i}", shape, dtype) for i, shape in enumerate(shapes)))


@dataclass(frozen=True)
class Case:
    """A correct map at a point; `sure` says that AGREES is expected, otherwise UNDECIDED is fine too."""

    name: str
    function: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    x: Array
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    sure: bool = True
    steps: Callable[[Array], int | Effort] | None = None

    def map(self, spoil: Callable[[Array], Array] | None = None) -> FormulaMap:
        domain, codomain = space(*self.inputs), space(*self.outputs)
        return FormulaMap(self.function, self.jacobian, domain, codomain, spoil, steps=self.steps)


def elementwise(name: str, function: Callable, slope: Callable, x: object, sure: bool = True) -> Case:
    x = np.atleast_1d(np.asarray(x, float))
    return Case(name, function, lambda p: np.diag(slope(p)), x, (x.shape,), (x.shape,), sure)


def iterated(name: str, function: Callable, slope: Callable, x: Array) -> Case:
    """A loop that stops early, whose steps are counted as those of a user's forward are."""
    return replace(elementwise(name, function, slope, x, False), steps=lambda p: lines_run(lambda: function(p)))


RNG = np.random.default_rng(20)
NORMAL = RNG.standard_normal(6)
POSITIVE = np.abs(NORMAL) + 0.1
WEIGHTS = RNG.standard_normal((4, 6))


def sech2(x: Array) -> Array:
    return 1 / np.cosh(x) ** 2


ORDINARY = [
    elementwise("sine", np.sin, np.cos, NORMAL),
    elementwise("exponential", np.exp, np.exp, NORMAL),
    elementwise("hyperbolic tangent", np.tanh, sech2, NORMAL),
    elementwise("cube", lambda x: x**3, lambda x: 3 * x**2, NORMAL),
    elementwise("logarithm", np.log, lambda x: 1 / x, POSITIVE),
    elementwise("reciprocal", lambda x: 1 / x, lambda x: -1 / x**2, NORMAL),
    Case("linear", lambda x: WEIGHTS @ x, lambda x: WEIGHTS, NORMAL, ((6,),), ((4,),)),
    Case("sum of squares", lambda x: x @ x, lambda x: 2 * x, NORMAL, ((6,),), ((),)),
    Case(
        "product of two inputs",
        lambda x: x[:3] * x[3:],
        lambda x: np.hstack([np.diag(x[3:]), np.diag(x[:3])]),
        NORMAL,
        ((3,), (3,)),
        ((3,),),
    ),
    Case("scalar in, scalar out", lambda x: x**2, lambda x: np.diag(2 * x), NORMAL[:1], ((),), ((),)),
]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


def softmax_jacobian(x: Array) -> Array:
    s = softmax(x)
    return np.diag(s) - np.outer(s, s)


SPREAD = RNG.standard_normal((5, 5))
HILBERT = 1.0 / (np.arange(6)[:, None] + np.arange(6)[None, :] + 1)


def solve_case(name: str, matrix: Array, sure: bool = True) -> Case:
    n = len(matrix)
    b = np.linspace(1, 2, n)

    def function(x: Array) -> Array:
        return np.linalg.solve(x.reshape(n, n), b)

    def jacobian(x: Array) -> Array:
        inverse = np.linalg.inv(x.reshape(n, n))
        return -np.einsum("ij,k->ijk", inverse, inverse @ b).reshape(n, n * n)

    return Case(name, function, jacobian, matrix.ravel(), ((n, n),), ((n,),), sure)


SPD = SPREAD @ SPREAD.T + 5 * np.eye(5)


def cholesky_gradient(x: Array) -> Array:
    lower = np.linalg.cholesky(x.reshape(5, 5))
    inverse = np.linalg.inv(lower)
    rows = []
    for i in range(5):
        for j in range(i + 1):
            unit = np.zeros((5, 5))
            unit[i, j] = 1.0
            phi = np.tril(lower.T @ unit)
            phi[np.diag_indices(5)] *= 0.5
            full = inverse.T @ phi @ inverse
            rows.append(((full + full.T) / 2).ravel())
    return np.array(rows)


def loose_root(tolerance: float) -> Callable[[Array], Array]:
    def function(x: Array) -> Array:
        y = np.ones_like(x)
        for k in range(len(x)):
            for _ in range(500):
                step = 0.3 * (x[k] - y[k] - 0.2 * np.sin(y[k]))
                y[k] += step
                if abs(step) < tolerance:
                    break
        return y

    return function


def root_slope(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: 1 / (1 + 0.2 * np.cos(function(x)))


def newton_root(tolerance: float) -> Callable[[Array], Array]:
    def function(x: Array) -> Array:
        y = np.ones_like(x)
        for k in range(len(x)):
            while abs(y[k] ** 3 - x[k]) > tolerance:
                y[k] -= (y[k] ** 3 - x[k]) / (3 * y[k] ** 2)
        return y

    return function


def in_float32(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x.astype(np.float32)).astype(float)


def sorted_case(name: str, x: Array, sure: bool = True) -> Case:
    def jacobian(p: Array) -> Array:
        return np.eye(len(p))[np.argsort(p, kind="stable")]

    return Case(name, np.sort, jacobian, x, (x.shape,), (x.shape,), sure)


AWKWARD = [
    elementwise("tiny numbers", np.sin, np.cos, NORMAL * 1e-8),
    elementwise("huge numbers", lambda x: np.sin(x * 1e-8), lambda x: 1e-8 * np.cos(x * 1e-8), NORMAL * 1e8),
    elementwise("many sizes", lambda x: x**2, lambda x: 2 * x, [1e-8, -1e-3, 1.0, 30.0, -1e8]),
    elementwise("offset 1e8", lambda x: 1e8 + np.sin(x), np.cos, NORMAL, False),
    elementwise("cancelled offset", lambda x: (1e8 + np.sin(x)) - 1e8, np.cos, NORMAL, False),
    elementwise("fast sine", lambda x: np.sin(1e5 * x), lambda x: 1e5 * np.cos(1e5 * x), NORMAL, False),
    elementwise(
        "small fast ripple",
        lambda x: np.sin(x) + 1e-6 * np.sin(1e5 * x),
        lambda x: np.cos(x) + 0.1 * np.cos(1e5 * x),
        NORMAL,
        False,
    ),
    elementwise("logarithm near zero", np.log, lambda x: 1 / x, [1e-9, 1e-5, 2.0, 1e-12]),
    elementwise("reciprocal near zero", lambda x: 1 / x, lambda x: -1 / x**2, [1e-6, -1e-6, 1.0]),
    elementwise("square root near zero", np.sqrt, lambda x: 0.5 / np.sqrt(x), [1e-12, 1.0, 1e-6]),
    elementwise("arcsine near one", np.arcsin, lambda x: 1 / np.sqrt((1 - x) * (1 + x)), [1 - 1e-9, 0.3], False),
    elementwise("pole close by", lambda x: 1 / (x - 1), lambda x: -1 / (x - 1) ** 2, [1 + 1e-4, 1 - 1e-5], False),
    elementwise("tangent near its pole", np.tan, lambda x: 1 / np.cos(x) ** 2, [np.pi / 2 - 1e-3, 0.2]),
    elementwise("gaussian tail", lambda x: np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x), [9.0, 0.5, -12.0]),
    elementwise("lone gaussian tail", lambda x: np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x), [19.0]),
    elementwise("one minus tanh", lambda x: 1 - np.tanh(x), lambda x: -sech2(x), [20.0, 25.0], False),
    elementwise("one minus tanh, lone", lambda x: 1 - np.tanh(x), lambda x: -sech2(x), [14.0], False),
    elementwise(
        "saturated sigmoid",
        lambda x: 1 / (1 + np.exp(-x)),
        lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2,
        [40.0, 60.0],
        False,
    ),
    elementwise(
        "steep sigmoid",
        lambda x: 1 / (1 + np.exp(-1e3 * (x - 0.5))),
        lambda x: 1e3 / (2 + np.exp(-1e3 * (x - 0.5)) + np.exp(1e3 * (x - 0.5))),
        [0.501, 0.4999],
    ),
    elementwise("underflowing", lambda x: np.exp(-x), lambda x: -np.exp(-x), [720.0, 740.0], False),
    elementwise("nearly overflowing", np.exp, np.exp, [700.0, -3.0], False),
    elementwise(
        "cancelling cosine",
        lambda x: (1 - np.cos(x)) / x**2,
        lambda x: np.sin(x) / x**2 - 2 * (1 - np.cos(x)) / x**3,
        [1e-3, 1.0, 1e-4],
        False,
    ),
    elementwise(
        "naive expm1", lambda x: (np.exp(x) - 1) / x, lambda x: (np.exp(x) * (x - 1) + 1) / x**2, [1e-3, 1.0], False
    ),
    Case("softmax", softmax, softmax_jacobian, NORMAL, ((6,),), ((6,),)),
    Case("saturated softmax", softmax, softmax_jacobian, NORMAL * 200, ((6,),), ((6,),), False),
    Case("half saturated softmax", softmax, softmax_jacobian, NORMAL * 10, ((6,),), ((6,),)),
    Case("norm", lambda x: np.sqrt(x @ x), lambda x: x / np.sqrt(x @ x), NORMAL, ((6,),), ((),)),
    Case(
        "norm near zero",
        lambda x: np.sqrt(x @ x + 1e-12),
        lambda x: x / np.sqrt(x @ x + 1e-12),
        NORMAL * 1e-7,
        ((6,),),
        ((),),
    ),
    Case("variance", lambda x: x.var(), lambda x: 2 * (x - x.mean()) / 6, NORMAL + 1e4, ((6,),), ((),), False),
    solve_case("solve", SPREAD + 4 * np.eye(5)),
    solve_case("ill-conditioned solve", HILBERT, False),
    Case(
        "determinant",
        lambda x: np.linalg.det(x.reshape(5, 5)),
        lambda x: np.linalg.det(x.reshape(5, 5)) * np.linalg.inv(x.reshape(5, 5)).T,
        SPREAD.ravel(),
        ((5, 5),),
        ((),),
    ),
    Case(
        "Cholesky",
        lambda x: np.linalg.cholesky(x.reshape(5, 5))[np.tril_indices(5)],
        cholesky_gradient,
        SPD.ravel(),
        ((5, 5),),
        ((15,),),
    ),
    elementwise("rectifier", lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, NORMAL),
    elementwise("rectifier at zero", lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, [1.0, 0.0, -2.0]),
    elementwise("rectifier at zeros only", lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, [0.0, 0.0], False),
    elementwise("dead rectifier", lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, -POSITIVE),
    elementwise("absolute value at zero", np.abs, np.sign, [0.0, 1.0]),
    elementwise("rectifier just above zero", lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, [1e-9, 1.0, -1e-9]),
    elementwise(
        "rectifier close to its kink",
        lambda x: np.maximum(x - 1, 0),
        lambda x: (x > 1) * 1.0,
        [1 + 1e-7, 1 - 1e-7, 3.0],
    ),
    elementwise(
        "clip at its edges", lambda x: np.clip(x, -1, 1), lambda x: ((x > -1) & (x < 1)) * 1.0, [1.0, -1.0, 0.3, 4.0]
    ),
    elementwise("cubed magnitude at zero", lambda x: np.abs(x) ** 3, lambda x: 3 * x * np.abs(x), [0.0, 1.0]),
    elementwise("x |x| at zero", lambda x: x * np.abs(x), lambda x: 2 * np.abs(x), [0.0, 1.0]),
    Case("maximum", lambda x: x.max(), lambda x: np.eye(6)[x.argmax()], NORMAL, ((6,),), ((),)),
    Case(
        "maximum with ties",
        lambda x: x.max(),
        lambda x: np.eye(3)[x.argmax()],
        np.array([2.0, 2.0, 1.0]),
        ((3,),),
        ((),),
    ),
    Case(
        "maximum of ties, averaged",
        lambda x: x.max(),
        lambda x: (x == x.max()) / (x == x.max()).sum(),
        np.array([2.0, 2.0, 1.0]),
        ((3,),),
        ((),),
    ),
    Case("maximum of equal entries", lambda x: x.max(), lambda x: np.eye(3)[x.argmax()], np.ones(3), ((3,),), ((),)),
    sorted_case("sort", NORMAL),
    sorted_case("sort with ties", np.array([1.0, 0.5, 1.0, 2.0, 0.5])),
    sorted_case("sort of many", RNG.standard_normal(40)),
    Case("median", lambda x: np.median(x), lambda x: np.eye(5)[np.argsort(x)[2]], NORMAL[:5], ((5,),), ((),)),
    elementwise("sign", np.sign, lambda x: 0 * x, NORMAL),
    elementwise("rounding", np.round, lambda x: 0 * x, NORMAL, False),
    elementwise("fractional part", lambda x: x - np.floor(x), lambda x: 0 * x + 1, NORMAL, False),
    elementwise("constant", lambda x: 0 * x + 4.25, lambda x: 0 * x, NORMAL),
    elementwise("zero", lambda x: 0 * x, lambda x: 0 * x, NORMAL),
    elementwise("float32 sine", in_float32(np.sin), np.cos, NORMAL, False),
    elementwise("float32 exponential", in_float32(np.exp), np.exp, NORMAL, False),
    elementwise("float32 flat sine", in_float32(np.sin), np.cos, [np.pi / 2 + 1e-3, np.pi / 2 - 2e-4], False),
    elementwise("float32 tanh", in_float32(np.tanh), sech2, [3.0, 0.1, -6.0], False),
    elementwise("float32 inside", lambda x: x + in_float32(np.sin)(x), lambda x: 1 + np.cos(x), NORMAL, False),
    elementwise("float16 sine", lambda x: np.sin(x.astype(np.float16)).astype(float), np.cos, NORMAL, False),
    elementwise("rounded to 1e-6", lambda x: np.round(np.sin(x), 6), np.cos, NORMAL, False),
    elementwise("rounded to 1e-10", lambda x: np.round(np.sin(x), 10), np.cos, NORMAL, False),
    iterated("iteration to 1e-10", loose_root(1e-10), root_slope(loose_root(1e-13)), POSITIVE),
    iterated("iteration to 1e-8", loose_root(1e-8), root_slope(loose_root(1e-13)), POSITIVE),
    iterated("iteration to 1e-6", loose_root(1e-6), root_slope(loose_root(1e-13)), POSITIVE),
    iterated("iteration to 1e-4", loose_root(1e-4), root_slope(loose_root(1e-13)), POSITIVE),
    iterated("Newton to 1e-10", newton_root(1e-10), lambda x: 1 / (3 * np.cbrt(x) ** 2), POSITIVE),
    iterated("Newton to 1e-4", newton_root(1e-4), lambda x: 1 / (3 * np.cbrt(x) ** 2), POSITIVE),
    elementwise(
        "interpolation table",
        lambda x: np.interp(x, np.linspace(-4, 4, 81), np.linspace(-4, 4, 81) ** 2),
        lambda x: (
            (np.linspace(-4, 4, 81) ** 2)[np.floor((x + 4) / 0.1).astype(int) + 1] / 0.1
            - (np.linspace(-4, 4, 81) ** 2)[np.floor((x + 4) / 0.1).astype(int)] / 0.1
        ),
        NORMAL,
    ),
]
