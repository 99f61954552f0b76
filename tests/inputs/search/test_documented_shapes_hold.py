"""A wrong gradient leads to no inputs of other shapes than those that documentation gives."""

from typing import Any

import pytest

import gradcli
from gradcli.backends.numpy.claims import GradientPair
from gradcli.results import CheckResult
from gradcli.verdict import Verdict


def checked(target: Any) -> CheckResult:
    return gradcli.check(target, shrink=False, order=1).cases[0]


def shapes_of(case: CheckResult) -> list[tuple[int, ...] | None]:
    return [spec.shape for spec in case.inputs]


def linear(ns: Any, of_bias: str) -> type:
    class Linear(ns.autograd.Function):
        """x: (N, D), w: (M, D), b: (M,)"""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, b: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w.t() + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g @ w, g.t() @ x, {"right": g.sum(0), "all": g.sum(), "near": 1.01 * g.sum(0)}[of_bias]

    return Linear


def optional_linear(ns: Any, of_shift: str) -> type:
    class Linear(ns.autograd.Function):
        """x: (N, D), w: (M, D), offset: (M,)"""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, offset: Any = None) -> Any:
            ctx.save_for_backward(x, w)
            ctx.shifts = offset is not None
            return x @ w.t() if offset is None else x @ w.t() + offset

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            of_offset = {"right": g.sum(0), "all": g.sum(), "near": 1.01 * g.sum(0)}[of_shift]
            return g @ w, g.t() @ x, of_offset if ctx.shifts else None

    return Linear


def prelu(ns: Any, of_weight: str) -> type:
    class PReLU(ns.autograd.Function):
        """x: (N, C, L), weight: (C,)"""

        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.save_for_backward(x, weight)
            return ns.where(x > 0, x, weight.view(-1, 1) * x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight = ctx.saved_tensors
            below = ns.where(x > 0, ns.zeros_like(x), g * x)
            whole = {"right": below.sum((0, 2)), "all": below.sum(), "near": 1.01 * below.sum((0, 2))}[of_weight]
            return ns.where(x > 0, g, weight.view(-1, 1) * g), whole

    return PReLU


@pytest.mark.sampled(3)
@pytest.mark.parametrize("made", [linear, optional_linear, prelu])
def test_a_sum_over_all_entries_fails_at_a_vector(ns: Any, made: Any) -> None:
    right = checked(made(ns, "right"))
    assert right.verdict is Verdict.PASSED
    assert len(shapes_of(right)[-1] or ()) == 1
    wrong = checked(made(ns, "all"))
    assert [(finding.kind.value, finding.input) for finding in wrong.findings] == [
        ("wrong-shape", wrong.inputs[-1].name)
    ]
    assert shapes_of(wrong) == shapes_of(right)
    assert checked(made(ns, "near")).verdict is Verdict.FAILED


def softplus(ns: Any, factor: float) -> type:
    class Softplus(ns.autograd.Function):
        """x: (N, C)"""

        @staticmethod
        def forward(ctx: Any, x: Any, beta: Any) -> Any:
            ctx.save_for_backward(x, beta)
            return ns.log1p(ns.exp(beta * x)) / beta

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, beta = ctx.saved_tensors
            s = ns.sigmoid(beta * x)
            return g * s, factor * (g * (x * s / beta - ns.log1p(ns.exp(beta * x)) / beta**2)).sum()

    return Softplus


def test_a_number_whose_shape_no_text_gives_stays_one(ns: Any) -> None:
    case = checked(softplus(ns, 1.0))
    assert case.verdict is Verdict.PASSED
    assert shapes_of(case)[1] == ()
    assert checked(softplus(ns, 1.01)).verdict is Verdict.FAILED


def affine(x: Any, w: Any, b: Any) -> Any:
    """
    x: input of shape (N, d_1, ..., d_k)
    w: weights, of shape (D, M)
    b: biases, of shape (M,)
    """
    return x.reshape(x.shape[0], -1).dot(w) + b


def affine_backward(g: Any, x: Any, w: Any, b: Any) -> Any:
    return g.dot(w.T).reshape(x.shape), x.reshape(x.shape[0], -1).T.dot(g), g.sum(0)


def affine_summed(g: Any, x: Any, w: Any, b: Any) -> Any:
    return *affine_backward(g, x, w, b)[:2], g.sum()


def test_a_derivative_in_numpy_keeps_documented_shapes() -> None:
    right, wrong = (checked(GradientPair(function=affine, gradient=each)) for each in (affine_backward, affine_summed))
    assert right.verdict is Verdict.PASSED
    assert [(finding.kind.value, finding.input) for finding in wrong.findings] == [("wrong-shape", "b")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", [7, 11])
@pytest.mark.parametrize("is_wrong", [False, True])
def test_an_argument_that_seldom_matters_keeps_its_shape(ns: Any, seed: int, *, is_wrong: bool) -> None:
    class Entry(ns.autograd.Function):
        """when a ball enters a box, 50 if it never does; start, speed: (R, 3), near, far: (3,)"""

        @staticmethod
        def forward(ctx: Any, start: Any, speed: Any, near: Any, far: Any) -> Any:
            one, two = (near - start) / speed, (far - start) / speed
            enters, axis = ns.minimum(one, two).max(-1)
            meets = (enters > 0) & (enters <= ns.maximum(one, two).amin(-1))
            ctx.save_for_backward(start, speed, near, far, axis, meets, one <= two)
            return ns.where(meets, enters, 50 * ns.ones_like(enters))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            start, speed, near, far, axis, meets, is_near = ctx.saved_tensors
            own = (g * meets)[:, None] * (axis[:, None] == ns.arange(3)).double() / speed
            of_near = own * is_near.double()
            wall = ns.where(is_near, near + 0 * start, far + 0 * start)
            factor = 1.01 if is_wrong else 1.0
            return -factor * own, -own * (wall - start) / speed, of_near.sum(0), (own - of_near).sum(0)

    (case,) = gradcli.check(Entry, order=1, shrink=False, only=("gradient",), seed=seed).cases
    assert [spec.shape for spec in case.inputs] == [(4, 3), (4, 3), (3,), (3,)]
    assert {finding.input for finding in case.findings} == ({"start"} if is_wrong else set())


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_large_documented_numbers_hold(ns: Any, factor: float, verdict: Verdict) -> None:
    class Bands(ns.autograd.Function):
        """levels: (N, 8); gains: (8,)"""

        @staticmethod
        def forward(ctx: Any, levels: Any, gains: Any) -> Any:
            ctx.save_for_backward(levels, gains)
            return levels * gains.exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            levels, gains = ctx.saved_tensors
            of_gains = (g * levels).sum(0) * gains.exp()
            of_gains[6:] *= factor  # of the two highest bands
            return g * gains.exp(), of_gains

    case = checked(Bands)
    assert case.verdict is verdict, (case.findings, case.error)
    assert shapes_of(case) == [(3, 8), (8,)]


def log_shares(ns: Any, factor: float) -> type:
    """Logarithms of the shares of what is open, minus infinity elsewhere, as a sampler needs them."""

    class LogShares(ns.autograd.Function):
        """scores (N, K), open (N, K) boolean mask"""

        @staticmethod
        def forward(ctx: Any, scores: Any, open: Any) -> Any:
            shares = ns.exp(scores) * open
            shares = shares / shares.sum(1, keepdim=True)
            ctx.save_for_backward(shares, open)
            return ns.where(open, ns.log(ns.where(open, shares, 1.0)), -float("inf"))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            shares, open = ctx.saved_tensors
            g = g * open
            return g - factor * shares * g.sum(1, keepdim=True), None

    return LogShares


def above_diagonal(ns: Any, factor: float) -> type:
    class Causal(ns.autograd.Function):
        """Scores s (T, T), forbidden above the diagonal."""

        @staticmethod
        def forward(ctx: Any, s: Any) -> Any:
            rows = ns.arange(s.shape[0])
            future = rows[None, :] > rows[:, None]
            ctx.save_for_backward(future)
            return (0.5 * s).masked_fill(future, float("-inf"))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (future,) = ctx.saved_tensors
            return factor * 0.5 * g.masked_fill(future, 0.0)

    return Causal


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.parametrize(("of", "shapes"), [(log_shares, [(3, 4), (3, 4)]), (above_diagonal, [(3, 3)])])
def test_outputs_of_minus_infinity_by_design(ns: Any, of: Any, shapes: list[tuple[int, ...]], factor: float) -> None:
    (case,) = gradcli.check(of(ns, factor), order=1, samples=1, shrink=False, only=("gradient",)).cases
    assert [spec.shape for spec in case.inputs] == shapes, case.error
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [finding.input for finding in case.findings] == ([] if factor == 1 else [case.inputs[0].name])


def test_minus_infinity_where_an_input_decides_it_asks_for_other_inputs(ns: Any) -> None:
    class Log(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return ns.where(x > 0, ns.log(ns.where(x > 0, x, 1.0)), -float("inf"))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g / x

    (case,) = gradcli.check(Log, order=1, samples=1, shrink=False, only=("gradient",)).cases
    assert [spec.domain for spec in case.inputs] == ["positive"], case.error
    assert case.verdict is Verdict.PASSED
