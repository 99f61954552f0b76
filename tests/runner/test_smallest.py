"""The smallest failing input shows the mistake itself, at the very numbers that are printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.runner.case as runner_case
import gradcli.runner.outcome.failed as runner_failed
from gradcli import engine
from gradcli.engine.autograd import Function

FACTOR = 1.25


class Product(Function):
    """x w: the gradient of x is too large by a quarter, unless w is zero."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, w = ctx.saved_tensors
        return FACTOR * grad_output * w, grad_output * x


class Bell(Function):
    """exp(-x²), nothing far from zero, and its slope nothing at zero."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = (-x * x).exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, y = ctx.saved_tensors
        return FACTOR * grad_output * -2 * x * y


def smallest(function: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    given = tuple(engine.tensor(value.tolist(), dtype=engine.float64, requires_grad=True) for value in inputs)
    result = gradcli.check(function, given, order=1).cases[0]
    assert result.verdict.value == "failed"
    assert result.smallest
    return [np.array(eval(code.split("=", 1)[1])) for code in result.smallest]


def test_a_factor_that_is_zero_does_not_show_a_wrong_factor() -> None:
    x, w = smallest(Product, np.array([0.3, -1.2, 2.2]), np.array([1.4, 0.6, -0.8]))
    assert x.size < 3
    assert np.abs(w).max() > 0.1


@pytest.mark.parametrize("given", [np.array([30.0, 40.0]), np.array([0.0, 0.0]), np.array([0.7, -0.4])])
def test_inputs_that_show_nothing_are_replaced_by_some_that_do(given: np.ndarray) -> None:
    (x,) = smallest(Bell, given)
    assert (np.abs(x * np.exp(-x * x)) > 1e-3).any()


def test_a_failure_says_where_it_was_measured_if_not_at_the_inputs() -> None:
    far = engine.tensor([30.0, 40.0], dtype=engine.float64, requires_grad=True)
    result = gradcli.check(Bell, (far,), order=1).cases[0]
    assert any("the gradient is zero here; compared at" in note for note in result.notes), result.notes


class Tally:
    """Of how often forward ran."""

    calls = 0


class NothingBelowZero(Function):
    """x² + 3x: the gradient is lost where x is negative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Tally.calls += 1
        ctx.save_for_backward(x)
        return x * x + 3 * x

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_output * (2 * x + 3) * (x >= 0)


class Magnitude(Function):
    """|x|, whose slope is returned as 1 everywhere: right where x is positive, and one of many at zero."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.abs()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output * 1.0


class Crossed(Function):
    """x w: the gradient of x is transposed."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x.mm(w)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad_output.mm(w.t()).t(), x.t().mm(grad_output)


GENERATOR = np.random.default_rng(4)
MIXED = GENERATOR.standard_normal((5, 4))


def test_one_entry_is_enough_where_a_mistake_is_that_of_each() -> None:
    (x,) = smallest(NothingBelowZero, MIXED)
    assert x.tolist() == [[-1.0]]


def test_a_kink_at_which_nothing_is_wrong_is_no_smallest_input() -> None:
    (x,) = smallest(Magnitude, MIXED)
    assert x.size == 1
    assert (x < 0).all()


def test_what_only_several_entries_show_keeps_them() -> None:
    x, w = smallest(Crossed, GENERATOR.standard_normal((3, 3)), GENERATOR.standard_normal((3, 3)))
    assert x.shape == (2, 2)
    assert w.any()


def test_names_are_proven_once(monkeypatch: pytest.MonkeyPatch) -> None:
    named = []
    own = runner_failed.name_findings
    monkeypatch.setattr(
        runner_failed, "name_findings", lambda *given, **more: named.append(given) or own(*given, **more)
    )
    smallest(NothingBelowZero, MIXED)
    assert len(named) == 1


def test_a_candidate_costs_a_few_runs_of_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_case, "_with_patch", lambda result, *_: result)  # its proof runs forward as well
    given = (engine.tensor(MIXED, requires_grad=True),)
    before = Tally.calls
    gradcli.check(NothingBelowZero, given, order=1, shrink=False)
    between = Tally.calls
    gradcli.check(NothingBelowZero, given, order=1)
    assert Tally.calls - between < 2 * (between - before)


@pytest.mark.parametrize("function", [NothingBelowZero, Magnitude, Bell])
def test_the_smallest_input_fails_again_by_itself(function: Any) -> None:
    (x,) = smallest(function, MIXED)
    given = (engine.tensor(x, requires_grad=True),)
    result = gradcli.check(function, given, order=1, shrink=False).cases[0]
    assert result.verdict.value == "failed"
    assert result.findings[0].input == "x"


NO_TENSOR: dict[str, Any] = {
    "an array": lambda g: g.numpy(),
    "a dict": lambda g: {"x": g},
    "a number": lambda g: 2.0,
}


@pytest.mark.parametrize("name", NO_TENSOR)
def test_what_is_no_tensor_is_shown_at_one_entry_and_says_nothing_of_shapes(name: str) -> None:
    class Tripled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 3 * x

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            return NO_TENSOR[name](3 * grad_output.detach())

    case = gradcli.check(Tripled, order=1).cases[0]
    assert "backward returns a value of type" in case.findings[0].message
    assert case.smallest == ("x = [[0.0]]",)
    assert not any("inferred the shape" in note for note in case.notes)


class Undescribed(Function):
    """Running sums in steps of t: the gradient of x sums from the wrong end."""

    @staticmethod
    def forward(ctx: Any, x: Any, t: Any) -> Any:
        ctx.save_for_backward(x, t)
        return (x * t).cumsum(0)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, t = ctx.saved_tensors
        return grad_output.cumsum(0) * t, grad_output.flip(0).cumsum(0).flip(0) * x


class Summed(Undescribed):
    """The same of x (n,) and t (n,)."""


class Columns(Function):
    """Running sums down the columns: the gradient sums from the wrong end."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.cumsum(0)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.cumsum(0)


class SquareColumns(Columns):
    """The same of x (n, n)."""


class Symmetric(Function):
    """Squares of A (n, n) and its transpose together: the gradient is lost off the diagonal."""

    @staticmethod
    def forward(ctx: Any, A: Any) -> Any:
        ctx.save_for_backward(A)
        return ((A + A.t()) ** 2).sum()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (A,) = ctx.saved_tensors
        return grad_output * 4 * (A + A.t()) * engine.eye(A.shape[0], dtype=A.dtype)[:, : A.shape[1]]


class RunningProducts(Function):
    """Running sums of products along rows: the gradient of x sums from the wrong end, as two entries show."""

    @staticmethod
    def forward(ctx: Any, x: Any, other: Any) -> Any:
        ctx.save_for_backward(x, other)
        return (x * other).cumsum(-1)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, other = ctx.saved_tensors
        summed = grad_output.flip(-1).cumsum(-1).flip(-1)
        return grad_output.cumsum(-1) * other, summed * x


STEPS = GENERATOR.standard_normal(4)


def test_documented_shapes_are_kept() -> None:
    x, t = smallest(Summed, STEPS, STEPS[::-1])
    assert x.shape == t.shape == (2,)
    x, t = smallest(Undescribed, STEPS, STEPS[::-1])
    assert (x.shape, t.shape) == ((2,), (1,))  # x of one entry would broadcast, and its gradient have a wrong shape
    (x,) = smallest(SquareColumns, GENERATOR.standard_normal((3, 3)))
    assert x.shape == (2, 2)
    (x,) = smallest(Columns, GENERATOR.standard_normal((3, 3)))
    assert x.shape == (2, 1)
    (A,) = smallest(Symmetric, GENERATOR.standard_normal((3, 3)))
    assert A.shape == (2, 2)


@pytest.mark.parametrize("shape", [(3, 4), (3, 3)])
def test_what_has_a_wrong_gradient_does_not_broadcast_in_the_smallest(shape: tuple[int, ...]) -> None:
    """Of one entry beside two, the right gradient is a sum: another mistake than the sum from the wrong end."""
    x, other = (GENERATOR.standard_normal(shape) for _ in range(2))
    small, _ = smallest(RunningProducts, x, other)
    assert small.shape == (1, 2)


def test_shapes_that_depart_from_documentation_may_depart_further() -> None:
    x, t = smallest(Summed, STEPS[:1], STEPS)
    assert (x.shape, t.shape) == ((1,), (2,))
