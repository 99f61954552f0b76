"""Inputs where backward fits come first, then those where it returns something, and last those where it raises."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.backends.numpy.claims import GradientPair
from gradcli.backends.registry import backend_for
from gradcli.cases import Argument
from gradcli.inputs.search.backward_inputs import with_axes_less
from gradcli.inputs.search.candidates import Choice
from gradcli.inputs.search.error_messages import is_refusal
from gradcli.inputs.search.replies import Reply, ended, reply_in
from gradcli.inputs.search.slots import slots_of
from gradcli.inputs.search.trials import Guess
from gradcli.results import CheckResult
from gradcli.targets import Trial
from gradcli.verdict import Verdict
from tests.inputs.search.test_shapes_that_fit import checked
from tests.programs import plain_functions as plain

Gradients = Callable[..., tuple[Any, ...]]


def moving_average(ns: Any, given: Gradients) -> Any:
    """Windows of a signal times weights; backward is written for vectors, forward takes rows as well."""

    class Averaged(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, signal: Any, weights: Any) -> Any:
            ctx.save_for_backward(signal, weights)
            count = signal.shape[0] - weights.shape[0] + 1
            return sum(signal[i : count + i] * weights[i] for i in range(weights.shape[0]))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            signal, weights = ctx.saved_tensors
            (count,), size = g.shape, weights.shape[0]
            of_signal = ns.zeros_like(signal)
            for i in range(size):
                of_signal[i : count + i] += g * weights[i]
            of_weights = ns.stack([(g * signal[i : count + i]).sum() for i in range(size)])
            return given(of_signal, of_weights)

    return Averaged


WINDOWS: dict[str, Gradients] = {
    "the weights' summed": lambda s, w: (s, w.sum()),
    "the weights' cut": lambda s, w: (s, w[:2]),
    "the signal's cut": lambda s, w: (s[:-1], w),
    "both cut": lambda s, w: (s[:-1], w[:-1]),
    "one too many": lambda s, w: (s, w, s),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_vectors_are_found_where_backward_refuses_rows(ns: Any, factor: float) -> None:
    result = checked(moving_average(ns, lambda s, w: (s, factor * w)))
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [len(spec.shape or ()) for spec in result.inputs] == [1, 1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", WINDOWS)
def test_a_wrong_shape_is_shown_where_backward_runs(ns: Any, name: str) -> None:
    result = checked(moving_average(ns, WINDOWS[name]))
    assert result.verdict is Verdict.FAILED, result
    kinds = {finding.kind.value for finding in result.findings}
    assert kinds == {"wrong-arity" if name == "one too many" else "wrong-shape"}
    assert all(len(spec.shape or ()) == 1 and min(spec.shape or (0,)) > 1 for spec in result.inputs)
    assert any("backward fails for these inputs, so they are not checked" in note for note in result.notes)


def gained(ns: Any, wrong: bool) -> CheckResult:
    class Gained(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, kernel: Any, gain: Any = None) -> Any:
            ctx.save_for_backward(x, kernel, gain)
            count = x.shape[0] - kernel.shape[0] + 1
            y = sum(x[i : count + i] * kernel[i] for i in range(kernel.shape[0]))
            return y if gain is None else y * gain

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, kernel, gain = ctx.saved_tensors
            (count,), size = g.shape, kernel.shape[0]
            windows = ns.stack([x[i : count + i] for i in range(size)])
            of_gain = None if gain is None else g * (kernel @ windows)
            g = g if gain is None else g * gain
            of_x = ns.zeros_like(x)
            for i in range(size):
                of_x[i : count + i] += g * kernel[i]
            return of_x, (windows @ g).sum() if wrong else windows @ g, of_gain

    return checked(Gained)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [False, True])
def test_an_optional_argument_with_which_backward_raises_is_left_out(ns: Any, wrong: bool) -> None:
    result = gained(ns, wrong)
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), result
    assert [finding.input for finding in result.findings] == (["kernel"] if wrong else [])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_gradient_that_the_framework_sums_does_not_count_as_fitting_elsewhere(ns: Any, factor: float) -> None:
    class Ranked(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            order = ns.argsort(x)
            ordered = x[order] if x.ndim == 1 else x
            ctx.save_for_backward(ordered, order, w)
            return (ordered * w).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ordered, order, w = ctx.saved_tensors
            if ordered.ndim in (2, 3):
                raise IndexError("index 3 is out of bounds for dimension 0 with size 3")
            of_x = ns.zeros_like(ordered)
            if ordered.ndim == 1:
                of_x[order] = factor * g * w
            return of_x, g * ordered

    result = checked(Ranked)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert [len(spec.shape or ()) for spec in result.inputs] == [1, 1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_what_the_framework_sums_is_checked_where_nothing_else_fits(ns: Any, factor: float) -> None:
    class Shifted(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shift: Any) -> Any:
            ctx.save_for_backward(x, shift)
            return ns.sin(x) + shift

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, shift = ctx.saved_tensors
            if shift.ndim != 1 or x.ndim != 2:
                raise ValueError("expected rows and a vector")
            return factor * g * ns.cos(x), g

    result = checked(Shifted)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert [spec.shape for spec in result.inputs] == [(3, 4), (4,)]


def test_a_summed_gradient_is_recognised_by_what_backward_returns(ns: Any) -> None:
    class Sum(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, b: Any) -> Any:
            return x + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    for shape, reply in (((4,), Reply.SUMMED), ((3, 4), Reply.FITS)):
        values = {"x": np.ones((3, 4)), "b": np.ones(shape)}
        arguments = [Argument(name=n, value=v, is_tensor=True, requires_grad=True) for n, v in values.items()]
        assert reply_in(backend_for(Sum).attempt(Sum, arguments, gradients=True)) is reply


@pytest.mark.parametrize(
    "message",
    [
        "Function FBackward returned an invalid gradient at index 1 - got [] but expected shape compatible with [3]",
        "function FBackward returned an incorrect number of gradients (expected 2, got 4)",
        "FBackward: expected Variable or None (got numpy.ndarray)",
        "function FBackward returned a gradient different from None at position 2, but the corresponding forward input "
        "was not a Variable",
    ],
)
def test_what_a_framework_refuses_was_returned(message: str) -> None:
    assert is_refusal(message)
    error = RuntimeError(message)
    assert ended(Trial(outputs=(np.ones(1),), backward_error=error)) is Reply.REFUSED
    assert ended(Trial(outputs=(np.ones(1),), backward_error=ValueError("sizes differ"))) is Reply.RAISES


def test_inputs_that_are_checked_are_not_said_to_be_left_out(ns: Any) -> None:
    class Affine(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
            ctx.save_for_backward(input, weight)
            out = input @ weight.T
            return out if bias is None else out + bias

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            input, weight = ctx.saved_tensors
            return g @ weight, g.T @ input, g.sum(0)

    result = checked(Affine)
    assert result.verdict is Verdict.FAILED
    assert result.findings[0].message.endswith("bias was left at the default: return None as its gradient")
    assert not any("not checked" in note for note in result.notes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.usefixtures("unexplained")
def test_vectors_are_found_of_which_one_has_to_be_longer_than_twice_the_other(ns: Any, factor: float) -> None:
    class Dilated(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, taps: Any) -> Any:
            ctx.save_for_backward(x, taps)
            count = x.shape[0] - 2 * (taps.shape[0] - 1)
            return sum(x[2 * i : 2 * i + count] * taps[i] for i in range(taps.shape[0]))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, taps = ctx.saved_tensors
            (count,) = g.shape
            of_x = ns.zeros_like(x)
            for i in range(taps.shape[0]):
                of_x[2 * i : 2 * i + count] += g * taps[i]
            return of_x, factor * ns.stack([(g * x[2 * i : 2 * i + count]).sum() for i in range(taps.shape[0])])

    result = checked(Dilated)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert all(len(spec.shape or ()) == 1 and min(spec.shape or (0,)) > 1 for spec in result.inputs)


def rotated(ns: Any, factor: float) -> Any:
    """Points turned by a quaternion q, of which a matrix is accepted by forward as well."""

    def cross(a: Any, b: Any) -> Any:
        return ns.cross(a, b, dim=-1)

    class Rotated(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, points: Any) -> Any:
            w, u = q[0], q[1:].expand_as(points)
            ctx.save_for_backward(q, points)
            return points + 2 * (w * cross(u, points) + cross(u, cross(u, points)))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            q, p = ctx.saved_tensors
            w, u = q[0], q[1:].expand_as(p)
            along = 2 * (g * cross(u, p)).sum()
            across = 2 * (w * cross(p, g) + cross(cross(u, p), g) + cross(p, cross(g, u))).sum(0)
            turned = g + 2 * (w * cross(g, u) + cross(u, cross(u, g)))
            return ns.cat([along.reshape(1), factor * across]), turned

    return Rotated


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_where_backward_is_refused_at_the_first_inputs_the_search_goes_on(
    ns: Any, factor: float, verdict: Verdict
) -> None:
    found = checked(rotated(ns, factor))
    assert found.verdict is verdict
    assert found.inputs[0].shape == (4,)


def steered(torch: Any, is_right: bool) -> Any:
    """Gains are single numbers; forward takes a matrix of each beside a vector, and of the vector one row."""

    class Steered(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, error: Any, kp: Any, kd: Any) -> Any:
            steps = torch.diff(error, prepend=error[:1])
            ctx.save_for_backward(error, steps, kp, kd)
            return kp * error + kd * steps

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            error, steps, kp, kd = ctx.saved_tensors
            first = torch.zeros_like(g[:1])
            of_steps = torch.cat([first, g[1:]]) if is_right else g
            of_error = kp * g + kd * (of_steps - torch.cat([of_steps[1:], first]))
            return of_error, (g * error).sum(), (g * steps).sum()

    return Steered


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.usefixtures("unexplained")
def test_matrices_that_only_forward_takes_for_all_gains_are_single_numbers(is_right: bool) -> None:
    found = checked(steered(pytest.importorskip("torch"), is_right))
    assert [spec.shape for spec in found.inputs] == [(3,), (), ()]
    wrong = {each.input for each in found.evidence if each.verdict is Verdict.FAILED}
    assert wrong == (set() if is_right else {"error"})


def test_columns_beside_each_other_are_also_tried_as_one() -> None:
    def residual(x: Any, H: Any, z: Any) -> Any:
        return z - H @ x

    (slots,) = slots_of(plain.info_of(residual), ())
    matrices = tuple(Choice(kind="float", rank=2) for _ in slots)
    guess = Guess(skeleton=matrices, shapes={0: (3, 4), 1: (5, 3), 2: (5, 4)})
    assert {0: (3,), 1: (5, 3), 2: (5,)} in [each.shapes for each in with_axes_less(guess, slots)]


def on_a_circle(ns: Any, derivative: Callable[..., Any], documentation: str = "") -> Any:
    class OnACircle(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, angle: Any) -> Any:
            ctx.save_for_backward(angle)
            return ns.stack([ns.cos(angle), ns.sin(angle)])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (angle,) = ctx.saved_tensors
            return (g * derivative(angle)).sum()

    return OnACircle


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_function_of_one_number_with_several_outputs(ns: Any, is_wrong: bool) -> None:
    sign = 1 if is_wrong else -1
    result = checked(on_a_circle(ns, lambda angle: ns.stack([sign * ns.sin(angle), ns.cos(angle)])))
    assert [spec.shape for spec in result.inputs] == [()]
    assert result.verdict is (Verdict.FAILED if is_wrong else Verdict.PASSED)


@pytest.mark.parametrize("is_wrong", [False, True])
def test_two_numbers_of_which_numpy_makes_a_vector(is_wrong: bool) -> None:
    def polar(radius: Any, angle: Any) -> Any:
        return np.array([radius * np.cos(angle), radius * np.sin(angle), radius])

    def gradient(radius: Any, angle: Any, g: Any) -> Any:
        of_radius = (g * np.array([np.cos(angle), np.sin(angle), 0.0 if is_wrong else 1.0])).sum()
        return of_radius, radius * (g[1] * np.cos(angle) - g[0] * np.sin(angle))

    result = checked(GradientPair(function=polar, gradient=gradient))
    assert [spec.shape for spec in result.inputs] == [(), ()]
    assert result.verdict is (Verdict.FAILED if is_wrong else Verdict.PASSED)


def test_a_sum_where_entries_have_their_own_gradients_stays_a_mistake(ns: Any) -> None:
    class Sine(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return ns.sin(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return (g * ns.cos(x)).sum()

    documented = on_a_circle(ns, lambda angle: ns.stack([-ns.sin(angle), ns.cos(angle)]), "angle: (N,)")
    assert [checked(each).verdict for each in (Sine, documented)] == [Verdict.FAILED] * 2
