"""Inputs at which the returned gradients have exactly their inputs' shapes come before those where they are summed."""

from typing import Any

import pytest

from gradcli.results import CheckResult
from gradcli.verdict import Verdict
from tests.inputs.search.test_shapes_that_fit import checked, function_of


def shapes_of(result: CheckResult) -> list[tuple[int, ...] | None]:
    return [spec.shape for spec in result.inputs]


def cut(ns: Any, adjacency: Any, s: Any) -> Any:
    """Of a graph whose adjacency is made symmetric; a vector is accepted too, of which the transpose is itself."""
    return ((adjacency + adjacency.t()) * (s[:, None] - s[None, :]) ** 2).sum()


def gradients_of_cut(ns: Any, g: Any, adjacency: Any, s: Any, wrong: str = "") -> Any:
    d = s[:, None] - s[None, :]
    weights = adjacency + adjacency.t()
    of_adjacency = (1.0 if wrong == "symmetry" else 2.0) * g * d**2
    factor = {"1 % off": 4.04, "half": 2.0}.get(wrong, 4.0)
    return of_adjacency, factor * g * (weights * d).sum(1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("wrong", ["", "symmetry", "1 % off", "half"])
@pytest.mark.usefixtures("unexplained")
def test_a_matrix_is_taken_where_backward_returns_one_for_a_vector(ns: Any, wrong: str) -> None:
    result = checked(function_of(ns, cut, lambda *given: gradients_of_cut(*given, wrong=wrong)))
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), result
    assert shapes_of(result) == [(3, 3), (3,)]
    assert any("there the framework sums a gradient to its input's shape" in note for note in result.notes)


def distances(ns: Any, a: Any, b: Any) -> Any:
    return ((a[:, None] - b[None]) ** 4).sum(-1)


def gradients_of_distances(ns: Any, g: Any, a: Any, b: Any, axis: int = 0) -> Any:
    t = 4 * g[..., None] * (a[:, None] - b[None]) ** 3
    return t.sum(1), -t.sum(axis)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_sum_over_the_wrong_axis_of_pairs_is_seen(ns: Any, axis: int) -> None:
    result = checked(function_of(ns, distances, lambda *given: gradients_of_distances(*given, axis=axis)))
    assert result.verdict is (Verdict.FAILED if axis else Verdict.PASSED), result
    assert all(len(shape or ()) == 2 for shape in shapes_of(result))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_documented_vector_is_kept_though_its_gradient_is_summed(ns: Any, factor: float) -> None:
    class Shifted(ns.autograd.Function):
        """Args:
        x: (n, m)
        offset: (m,)
        """

        @staticmethod
        def forward(ctx: Any, x: Any, offset: Any) -> Any:
            ctx.save_for_backward(x)
            return ns.exp(x) + offset

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * ns.exp(x), factor * g

    result = checked(Shifted)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert shapes_of(result) == [(3, 4), (4,)]


def scores(ns: Any, q: Any, k: Any, bias: Any) -> Any:
    return ns.exp(q @ k.t() + bias)


def gradients_of_scores(ns: Any, g: Any, q: Any, k: Any, bias: Any, wrong: str = "") -> Any:
    t = g * ns.exp(q @ k.t() + bias)
    return t @ k, t.t() @ q, t.t() if wrong else t


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", ["", "transposed"])
def test_a_refused_gradient_is_shown_where_it_is_the_transpose(ns: Any, wrong: str) -> None:
    result = checked(function_of(ns, scores, lambda *given: gradients_of_scores(*given, wrong=wrong)))
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), result
    assert [finding.kind.value for finding in result.findings] == (["transposed"] if wrong else [])
    assert [len(shape or ()) for shape in shapes_of(result)] == [2, 2, 2]


@pytest.mark.parametrize("wrong", ["", "cut", "1 % off"])
def test_a_number_is_no_way_out_where_backward_is_written_for_axes_too(ns: Any, wrong: str) -> None:
    class Absorbed(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, eps: Any) -> Any:
            ctx.save_for_backward(x, eps)
            return ns.exp(-x * eps)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, eps = ctx.saved_tensors
            t = -g * ns.exp(-x * eps) * (1.01 if wrong == "1 % off" else 1)
            rows = t[:1] if wrong == "cut" else t
            return t * eps, (t * x).sum() if eps.ndim == 0 else (rows * x[: rows.shape[0]]).sum(0)

    result = checked(Absorbed)
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), result
    assert shapes_of(result)[1] != ()


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_number_is_taken_for_a_sum_over_all_entries(ns: Any, factor: float) -> None:
    def swish(ns: Any, x: Any, beta: Any) -> Any:
        return x / (1 + ns.exp(-beta * x))

    def gradients(ns: Any, g: Any, x: Any, beta: Any) -> Any:
        s = 1 / (1 + ns.exp(-beta * x))
        return g * s * (1 + beta * x * (1 - s)), factor * (g * x * x * s * (1 - s)).sum()

    result = checked(function_of(ns, swish, gradients))
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert shapes_of(result) == [(3, 4), ()]
