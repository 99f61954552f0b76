"""Where forward accepts several inputs, backward decides: by its errors, and by what it returns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.cases import InputSpec
from gradcli.inputs.search.inference import infer
from gradcli.targets import Trial
from gradcli.verdict import Verdict
from tests.pairs import FRAMEWORKS, each_pair
from tests.programs import plain_functions as plain


def test_a_number_that_must_be_a_tensor_is_one_without_a_gradient():
    def saves(x, alpha):
        if not isinstance(alpha, np.ndarray):
            raise TypeError("save_for_backward can only save variables, but argument 1 is of type float")
        return x * 1

    assert infer(plain.info_of(saves), plain.attempt_of(saves)).as_flags() == "-i x=3x4 -i alpha=scalar,grad=false"


def test_a_tensor_that_changes_no_output_is_a_number_for_backward():
    def reverse(x, strength):
        return x + 0 * np.ndim(strength)

    def backward(ctx, grad_output):
        return grad_output * ctx.strength, grad_output

    found = infer(plain.info_of(reverse, backward), plain.attempt_of(reverse))
    assert found.as_flags() == "-i x=3x4 -i strength=scalar,grad=false"


def test_a_factor_that_must_be_a_tensor_has_a_gradient():
    def saves(x, alpha):
        if not isinstance(alpha, np.ndarray):
            raise TypeError("save_for_backward can only save variables, but argument 1 is of type float")
        return x * alpha

    assert infer(plain.info_of(saves), plain.attempt_of(saves)).as_flags() == "-i x=3x4 -i alpha=3x4"


def test_defaults_are_given_where_backward_counts_on_them():
    def scaled(x, scale=2.0, axis=-1):
        return x * scale

    def attempt_backward(arguments):
        trial = plain.attempt_of(scaled)(arguments)
        failed = None if len(arguments) == 3 else IndexError("tuple index out of range")
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=failed)

    found = infer(plain.info_of(scaled), plain.attempt_of(scaled), attempt_backward=attempt_backward)
    assert found.as_flags() == "-i x=3x4 -a scale=2.0 -a axis=-1"
    assert found.notes == (
        "forward also accepts -i x=3x4, but backward fails for these inputs, so they are not checked",
    )


def contrasted(q, k):
    return (q @ k.T)[np.arange(len(q)), np.arange(len(q))]


def contrasted_backward(message):
    def attempt_backward(arguments):
        q, k = (argument.value for argument in arguments)
        trial = plain.attempt_of(contrasted)(arguments)
        failed = None if q.shape == k.shape else RuntimeError(message.format(len(k), len(q)))
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=failed)

    return infer(plain.info_of(contrasted), plain.attempt_of(contrasted), attempt_backward=attempt_backward)


def test_sizes_are_equal_where_backward_asks_for_it():
    found = contrasted_backward("The size of tensor a ({}) must match the size of tensor b ({})")
    (rows, columns), other = (spec.shape for spec in found.specs)
    assert (rows, columns) == other
    assert rows != columns
    assert "but backward fails for these inputs, so they are not checked" in found.notes[0]


def test_sizes_stay_different_where_the_framework_refuses_the_gradient():
    refused = "returned an invalid gradient at index 0 - got [{}, 4] but expected shape compatible with [{}, 4]"
    one, other = (spec.shape for spec in contrasted_backward(refused).specs)
    assert one != other


def test_an_exchange_of_gradients_does_not_lead_to_inputs_of_other_ranks():
    def hinge(pos, neg):
        return np.mean(np.maximum(1 - pos[:, None] + neg[None], 0))

    def attempt_backward(arguments):
        pos, neg = (argument.value for argument in arguments)
        refused = (
            f"invalid gradient at index 1 - got {list(pos.shape)} but expected shape compatible with {list(neg.shape)}"
        )
        failed = RuntimeError(f"HingeBackward returned an {refused}") if pos.ndim == neg.ndim == 1 else None
        return Trial(outputs=plain.attempt_of(hinge)(arguments).outputs, differentiable=(True,), backward_error=failed)

    found = infer(plain.info_of(hinge), plain.attempt_of(hinge), attempt_backward=attempt_backward)
    right = infer(plain.info_of(hinge), plain.attempt_of(hinge))
    assert found.specs == right.specs


def test_defaults_are_left_out_where_backward_fails_with_them_too():
    def scaled(x, scale=2.0):
        return x * scale

    def attempt_backward(arguments):
        trial = plain.attempt_of(scaled)(arguments)
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=ValueError("never"))

    found = infer(plain.info_of(scaled), plain.attempt_of(scaled), attempt_backward=attempt_backward)
    assert found.as_flags() == "-i x=3x4"


def test_a_note_says_that_backward_returns_none_for_what_is_taken_for_class_numbers():
    def absolute(pred, target):
        return np.abs(pred - target).mean()

    def attempt_backward(arguments):
        trial = plain.attempt_of(absolute)(arguments)
        gradients = (np.ones(arguments[0].value.shape), None if arguments[1].requires_grad else np.ones(1))
        return Trial(outputs=trial.outputs, differentiable=(True,), gradients=gradients)

    found = infer(plain.info_of(absolute), plain.attempt_of(absolute), attempt_backward=attempt_backward)
    assert found.specs[1].domain == "indices"
    assert "-i target=3x4, but there backward returns None for a tensor" in found.notes[0]


def test_backward_breaks_a_tie_and_never_more():
    def attempt_backward(arguments):
        trial = plain.attempt_of(plain.relu)(arguments)
        failed = ValueError("vectors only") if arguments[0].value.ndim != 1 else None
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=failed)

    found = infer(plain.info_of(plain.relu), plain.attempt_of(plain.relu), attempt_backward=attempt_backward)
    assert found.specs == (InputSpec(name="input", shape=(3,)),)
    assert found.notes == (
        "forward also accepts -i input=3x4, but backward fails for these inputs, so they are not checked",
    )


@pytest.mark.parametrize(
    ("got", "expected"), [([3, 20], "-i gates=3x20 -i c=3x5"), ([3, 5], "-i gates=3x4 -i c=3x5")], ids=["own", "other"]
)
def test_an_axis_is_as_long_as_backward_has_it_unless_that_is_another_input(got, expected):
    def forward(gates, c):
        parts = np.split(gates, 4, axis=-1)
        return parts[0] * c + parts[1] * parts[2] * parts[3]

    def backward(arguments):
        trial = plain.attempt_of(forward)(arguments)
        shape = list(np.shape(arguments[0].value))
        if not trial.ok or shape == got:
            return replace(trial, gradients=(np.ones(1), np.ones(1)))
        text = f"F returned an invalid gradient at index 0 - got {got} but expected shape compatible with {shape}"
        return replace(trial, backward_error=RuntimeError(text))

    found = infer(plain.info_of(forward), plain.attempt_of(forward), attempt_backward=backward)
    assert found.as_flags() == expected


def forgetful(ns: Any, of_x: str, *, first: bool) -> type:
    """Twice y, whatever x is, with a gradient for both."""

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.shape = x.shape
        return 2 * y

    def backward(ctx: Any, g: Any) -> Any:
        gradient = {"zero": ns.zeros(ctx.shape, dtype=g.dtype), "same": g, "small": 0.01 * g, "none": None}[of_x]
        return (gradient, 2 * g) if first else (2 * g, gradient)

    def exchanged(ctx: Any, y: Any, x: Any) -> Any:
        return forward(ctx, x, y)

    return type(
        "Forgetful",
        (ns.autograd.Function,),
        {"forward": staticmethod(forward if first else exchanged), "backward": staticmethod(backward)},
    )


@pytest.mark.sampled(8)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("of_x", "passes"), [("zero", True), ("none", True), ("same", False), ("small", False)])
def test_a_gradient_of_what_changes_no_output_is_checked(ns: Any, of_x: str, passes: bool, first: bool) -> None:
    case = gradcli.check(forgetful(ns, of_x, first=first), shrink=False, order=1).cases[0]
    assert case.verdict is (gradcli.Verdict.PASSED if passes else gradcli.Verdict.FAILED)
    assert [finding.input for finding in case.findings] == ([] if passes else ["x"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("complete", [True, False])
def test_the_shape_of_an_earlier_input_is_no_exchange(ns: Any, complete: bool, unexplained: None) -> None:
    class Gated(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, v):
            g, h = (x @ w).sigmoid(), x @ v
            ctx.save_for_backward(x, w, v, g, h)
            return g * h

        @staticmethod
        def backward(ctx, dy):
            x, w, v, g, h = ctx.saved_tensors
            dg, dh = dy * h * g * (1 - g), dy * g
            dx = dg @ w.T + dh @ v.T if complete else dg @ w.T
            return dx, x.T @ dg, x.T @ dh

    case = gradcli.check(Gated, order=1).cases[0]
    assert [spec.shape for spec in case.inputs] == [(3, 4), (4, 5), (4, 5)]
    failed = {evidence.input for evidence in case.evidence if evidence.verdict is Verdict.FAILED}
    assert failed == (set() if complete else {"x"})


def mixing(ns: Any, factor: float) -> type:
    """A state moved towards another one, by gates from two tensors that are each as wide as two states."""

    class Mixing(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, state: Any) -> Any:
            (gate, of_input), (of_gate, of_state) = a.chunk(2, -1), b.chunk(2, -1)
            z, n = ns.sigmoid(gate * of_gate), ns.tanh(of_input + of_state)
            ctx.save_for_backward(a, b, state)
            return z * state + (1 - z) * n

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b, state = ctx.saved_tensors
            width = state.shape[-1]
            sums, n = a * b, ns.tanh((a + b)[:, width:])
            z = ns.sigmoid(sums[:, :width])
            of_gate, of_sum = g * (state - n) * z * (1 - z), factor * g * (1 - z) * (1 - n * n)
            of_a = ns.cat([of_gate * b[:, :width], of_sum], -1)
            return of_a, ns.cat([of_gate * a[:, :width], of_sum], -1), g * z

    return Mixing


def scaled_view(ns: Any, factor: float) -> type:
    """Points of the plane with a 1 appended, moved by a matrix; forward alone takes points of a space too."""

    class ScaledView(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, at: Any, camera: Any) -> Any:
            whole = ns.cat([at, ns.ones_like(at[:, :1])], 1)
            seen = whole @ camera.t()
            ctx.save_for_backward(whole, camera)
            return seen[:, :2] * ns.sin(seen[:, 2:])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            whole, camera = ctx.saved_tensors
            seen = whole @ camera.t()
            depth = factor * (g * seen[:, :2]).sum(1, keepdim=True) * ns.cos(seen[:, 2:])
            of_seen = ns.cat([g * ns.sin(seen[:, 2:]), depth], 1)
            return (of_seen @ camera)[:, :2], of_seen.t() @ whole

    return ScaledView


@pytest.mark.sampled(2)
@each_pair(["backend"], backend=FRAMEWORKS, made=[mixing, scaled_view], factor=[1, 1.01])
@pytest.mark.usefixtures("unexplained")
def test_sizes_are_found_that_forward_and_backward_agree_on(ns: Any, made: Any, factor: float) -> None:
    (case,) = gradcli.check(made(ns, factor), order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), (case.inputs, case.error)
    shapes = [spec.shape or () for spec in case.inputs]
    if made is mixing:
        assert shapes[0] == shapes[1] == (shapes[2][0], 2 * shapes[2][1])
    else:
        assert [shape[1] for shape in shapes] == [2, 3]


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("unexplained")
def test_a_gradient_cut_to_a_size_of_its_own_is_no_reason_for_other_sizes(ns: Any) -> None:
    class Moved(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, at: Any, move: Any) -> Any:
            ctx.save_for_backward(at, move)
            return at @ move.t()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            at, move = ctx.saved_tensors
            return (g @ move)[:, :2], g.t() @ at

    (case,) = gradcli.check(Moved, order=1, samples=1, shrink=False).cases
    assert case.verdict is Verdict.FAILED
    assert {spec.shape for spec in case.inputs} == {(3, 4), (5, 4)}


def refusing_leaves(function, names, wanted):
    """An attempt of backward that refuses gradients of leaves as JAX does; `wanted` gives their shape by that of x."""

    def attempt(arguments):
        trial = plain.attempt_of(function)(arguments)
        given, error = {a.name: np.shape(a.value) for a in arguments}, None
        for name in names:
            if trial.ok and error is None and given[name] != wanted(given["x"]):
                got, own = (str(list(shape)).replace(" ", "") for shape in (wanted(given["x"]), given[name]))
                error = ValueError(
                    f"but at output[0]['{name}'] the bwd rule produced an output of type float64{got} corresponding to "
                    f"an input of type float64{own}, so the shapes do not match"
                )
        gradients = None if error else tuple(np.zeros(shape) for shape in given.values())
        return Trial(
            outputs=trial.outputs, differentiable=trial.differentiable, error=trial.error, backward_error=error,
            gradients=gradients,
        )  # fmt: skip

    return attempt


def test_leaves_of_a_dict_become_smaller_together():
    def likelihood(centre, width, x):
        return ((x - centre) ** 2 * np.exp(width) - width).sum()

    attempt = refusing_leaves(likelihood, ("width", "centre"), lambda shape: shape[1:])
    found = infer(plain.info_of(likelihood), plain.attempt_of(likelihood), attempt_backward=attempt)
    assert found.as_flags() == "-i centre=4 -i width=4 -i x=3x4"


def test_a_leaf_with_the_gradient_of_an_array_is_no_number():
    def distance(mu, x):
        return ((x - mu) ** 2).sum()

    attempt = refusing_leaves(distance, ("mu",), lambda shape: shape[1:])
    found = infer(plain.info_of(distance), plain.attempt_of(distance), attempt_backward=attempt)
    assert found.as_flags() == "-i mu=4 -i x=3x4"


@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_a_leaf_of_a_dict_in_jax_is_as_small_as_its_gradient(factor: float, verdict: Verdict) -> None:
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")

    @jax.custom_vjp
    def distance(state: Any, x: Any) -> Any:
        return ((x - state["centre"]) ** 2).sum()

    def backward(kept: Any, g: Any) -> Any:
        state, x = kept
        apart = 2 * g * (x - state["centre"])
        return {"centre": -factor * apart.sum(0)}, apart

    distance.defvjp(lambda state, x: (distance(state, x), (state, x)), backward)
    (case,) = gradcli.check(distance, order=1, samples=1, shrink=False, only=("returns", "gradient")).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [spec.shape for spec in case.inputs if spec.kind == "tensor"] == [(4,), (3, 4)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("axis", "verdict"), [(-1, Verdict.PASSED), (0, Verdict.FAILED)])
def test_a_backward_that_raises_for_wide_matrices_is_checked_at_tall_ones(ns: Any, axis: int, verdict: Verdict) -> None:
    class Ranked(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ranked, places = x.sort(-1)
            ctx.save_for_backward(places)
            return ranked

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (places,) = ctx.saved_tensors
            return ns.zeros_like(g).scatter(axis, places, g)

    (case,) = gradcli.check(Ranked, order=1, samples=1, shrink=False, only=("returns", "gradient")).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [spec.shape for spec in case.inputs] == [(3, 4) if axis else (4, 3)]
