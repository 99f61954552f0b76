"""Inputs are inferred for which the shapes of the gradients fit, but no shape is hidden by an axis of one entry."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.backends.numpy.claims import GradientPair
from gradcli.cases import CheckSpec
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.pairs import in_turn


def checked(target: Any) -> CheckResult:
    settings = Settings(order=1, samples=1, shrink=False, only=("returns", "gradient"))
    return check_object(target, case_of(CheckSpec(target="module:Target"), settings))


def function_of(ns: Any, forward: Callable[..., Any], vjp: Callable[..., Any]) -> Any:
    """A Function of the tensors that `forward(ns, ...)` takes; vjp(ns, g, ...) has a gradient for each."""

    class Made(ns.autograd.Function):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return vjp(ns, g, *ctx.saved_tensors)

    def run(ctx: Any, *tensors: Any) -> Any:
        ctx.save_for_backward(*tensors)
        return forward(ns, *tensors)

    names = ", ".join(forward.__code__.co_varnames[1 : forward.__code__.co_argcount])
    exec(f"def forward(ctx, {names}): return run(ctx, {names})", made := {"run": run})
    Made.forward = staticmethod(made["forward"])
    return Made


def row_norm(v):
    return (v * v).sum(1, keepdim=True).sqrt()


def weight_norm(ns, v, g):
    return g * v / row_norm(v)


def weight_norm_vjp(factor):
    def vjp(ns, go, v, g):
        norm = row_norm(v)
        along = (go * v).sum(1, keepdim=True)
        return g / norm * (go - v * along / norm**2), factor * along / norm

    return vjp


def swish(ns, x, beta):
    return x * ns.sigmoid(beta * x)


def swish_vjp(factor):
    def vjp(ns, g, x, beta):
        s = ns.sigmoid(beta * x)
        return g * (s + beta * x * s * (1 - s)), factor * (g * x * x * s * (1 - s)).sum()

    return vjp


BROADCAST: dict[str, tuple[Any, Callable[[float], Any], dict[str, tuple[int, ...]]]] = {
    "one for each row": (weight_norm, weight_norm_vjp, {"v": (3, 4), "g": (3, 1)}),
    "one number": (swish, swish_vjp, {"x": (3, 4), "beta": ()}),
    "a temperature": (
        lambda ns, x, t: x / t,
        lambda factor: lambda ns, g, x, t: (g / t, -factor * (g * x / t**2).sum()),
        {"x": (3, 4), "t": ()},
    ),
    "one for each row, of logarithms": (
        lambda ns, x, c: ns.exp(c) * x,
        lambda factor: lambda ns, g, x, c: (g * ns.exp(c), factor * (g * x * ns.exp(c)).sum(-1, keepdim=True)),
        {"x": (3, 4), "c": (3, 1)},
    ),
    "a number first": (
        lambda ns, alpha, x: alpha * ns.tanh(x),
        lambda factor: lambda ns, g, alpha, x: (factor * (g * ns.tanh(x)).sum(), g * alpha * (1 - ns.tanh(x) ** 2)),
        {"alpha": (), "x": (3, 4)},
    ),
    "two numbers": (
        lambda ns, x, w, b: w * ns.sin(x) + b,
        lambda factor: lambda ns, g, x, w, b: (g * w * ns.cos(x), factor * (g * ns.sin(x)).sum(), g.sum()),
        {"x": (3, 4), "w": (), "b": ()},
    ),
    "a product of vectors": (
        lambda ns, u, w: (u * w).sum() ** 2,
        lambda factor: lambda ns, g, u, w: (2 * g * (u * w).sum() * w, factor * 2 * g * (u * w).sum() * u),
        {},
    ),
    "one for each column": (
        lambda ns, x, scale: x * scale,
        lambda factor: lambda ns, g, x, scale: (g * scale, factor * (g * x).sum(0)),
        {"x": (3, 4), "scale": (4,)},
    ),
    "rows beyond those of the first are not used": (
        lambda ns, x, w: x * ns.sin(w[: x.shape[0]]),
        lambda factor: lambda ns, g, x, w: (g * ns.sin(w[: x.shape[0]]), factor * g * x * ns.cos(w[: x.shape[0]])),
        {"x": (3, 4), "w": (3, 4)},
    ),
}


@pytest.mark.parametrize("name", BROADCAST)
def test_a_right_function_is_given_no_more_than_it_broadcasts(ns: Any, name: str) -> None:
    forward, vjp, shapes = BROADCAST[name]
    result = checked(function_of(ns, forward, vjp(1)))
    assert result.verdict is Verdict.PASSED, result
    assert shapes.items() <= {spec.name: spec.shape for spec in result.inputs}.items()


@in_turn("name", BROADCAST)
def test_its_wrong_twin_fails_there(ns: Any, name: str) -> None:
    forward, vjp, shapes = BROADCAST[name]
    result = checked(function_of(ns, forward, vjp(1.5)))
    assert result.verdict is Verdict.FAILED
    assert "wrong-shape" not in {finding.kind.value for finding in result.findings}
    assert shapes.items() <= {spec.name: spec.shape for spec in result.inputs}.items()


@pytest.mark.parametrize("name", ["one for each row", "one number", "a temperature"])
def test_what_forward_takes_and_backward_does_not_is_a_note_with_its_flags(ns: Any, name: str) -> None:
    forward, vjp, shapes = BROADCAST[name]
    notes = checked(function_of(ns, forward, vjp(1))).notes
    (note,) = [note for note in notes if note.startswith("forward also accepts -i ")]
    assert note.endswith("but backward fails for these inputs, so they are not checked")
    assert all(f"-i {argument}=" in note for argument in shapes)


def slope(ns, g, x):
    return g * ns.cos(x)


CUT: dict[str, Callable[..., Any]] = {
    "its first entry": lambda ns, g, x: slope(ns, g, x).reshape(-1)[:1],
    "its sum": lambda ns, g, x: slope(ns, g, x).sum(),
    "its first row": lambda ns, g, x: slope(ns, g, x)[:1],
    "the sum over rows, kept": lambda ns, g, x: slope(ns, g, x).sum(0, keepdim=True),
    "the sum over columns, kept": lambda ns, g, x: slope(ns, g, x).sum(-1, keepdim=True),
    "its mean": lambda ns, g, x: slope(ns, g, x).mean(),
}


@in_turn("name", CUT)
def test_a_gradient_of_another_shape_is_not_hidden_by_single_entries(ns: Any, name: str) -> None:
    result = checked(function_of(ns, lambda ns, x: ns.sin(x), CUT[name]))
    assert result.verdict is Verdict.FAILED, result
    assert [(finding.kind.value, finding.input) for finding in result.findings] == [("wrong-shape", "x")]
    assert all(spec.shape is not None and min(spec.shape) > 1 for spec in result.inputs)


OF_TWO: dict[str, Callable[..., Any]] = {
    "both cut": lambda ns, g, a, b: ((g * b).reshape(-1)[:1], (g * a).reshape(-1)[:1]),
    "the first summed over rows": lambda ns, g, a, b: ((g * b).sum(0), g * a),
    "the first summed": lambda ns, g, a, b: ((g * b).sum(0).sum(0), (g * a).reshape(-1)[:2]),
    "exchanged ends": lambda ns, g, a, b: ((g * b)[:2], g * a),
}


@in_turn("name", OF_TWO)
def test_gradients_that_fit_no_inputs_fail_at_the_first_ones(ns: Any, name: str) -> None:
    result = checked(function_of(ns, lambda ns, a, b: a * b + ns.sin(a), OF_TWO[name]))
    assert result.verdict is Verdict.FAILED, result
    assert all(spec.shape is not None and min(spec.shape, default=0) > 1 for spec in result.inputs)


EXCHANGED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "an elementwise slope": (lambda ns, x: ns.sin(x), slope),
    "a power": (lambda ns, x: x * x * x, lambda ns, g, x: 3 * g * x * x),
    "a factor": (lambda ns, x: 3.0 * x, lambda ns, g, x: 3.0 * g),
    "a sum": (lambda ns, x: (x * x).sum(), lambda ns, g, x: 2 * g * x),
    "a mean over rows": (lambda ns, x: ns.exp(x).mean(-1), lambda ns, g, x: g[..., None] * ns.exp(x) / x.shape[-1]),
    "the output": (lambda ns, x: ns.tanh(x), lambda ns, g, x: g * (1 - ns.tanh(x) ** 2)),
}


@in_turn("name", EXCHANGED)
def test_a_transposed_gradient_is_seen_at_square_inputs(ns: Any, name: str) -> None:
    forward, vjp = EXCHANGED[name]
    assert checked(function_of(ns, forward, vjp)).verdict is Verdict.PASSED
    result = checked(function_of(ns, forward, lambda ns, g, x: vjp(ns, g, x).T))
    assert result.verdict is Verdict.FAILED
    assert "transposed" in {finding.kind.value for finding in result.findings}


OF_VECTORS: dict[str, Callable[..., Any]] = {
    "dot": lambda ns, factor: (lambda ns, u, w: u @ w, lambda ns, g, u, w: (g * w, factor * g * u)),
    "angle": lambda ns, factor: (
        lambda ns, u, w: ns.sin(u @ w),
        lambda ns, g, u, w: (g * ns.cos(u @ w) * w, factor * g * ns.cos(u @ w) * u),
    ),
    "three": lambda ns, factor: (
        lambda ns, u, v, w: (u @ v) * w,
        lambda ns, g, u, v, w: ((g @ w) * v, factor * (g @ w) * u, g * (u @ v)),
    ),
    "squared length": lambda ns, factor: (lambda ns, x: x @ x, lambda ns, g, x: factor * 2 * g * x),
    "gaussian": lambda ns, factor: (
        lambda ns, x: ns.exp(-0.5 * (x @ x)),
        lambda ns, g, x: -factor * g * ns.exp(-0.5 * (x @ x)) * x,
    ),
    "length": lambda ns, factor: (lambda ns, v: ns.sqrt(v @ v), lambda ns, g, v: factor * g * v / ns.sqrt(v @ v)),
    "inversion in a sphere": lambda ns, factor: (
        lambda ns, x: x / (x @ x),
        lambda ns, g, x: factor * (g / (x @ x) - 2 * x * (g @ x) / (x @ x) ** 2),
    ),
    "a quartic": lambda ns, factor: (lambda ns, x: (x @ x) ** 2, lambda ns, g, x: 4 * factor * g * (x @ x) * x),
    "scaled by its length": lambda ns, factor: (
        lambda ns, x: (x @ x) * x,
        lambda ns, g, x: factor * (2 * (g @ x) * x + g * (x @ x)),
    ),
}


@pytest.mark.usefixtures("unexplained")
@in_turn("name", OF_VECTORS)
def test_a_function_of_vectors_that_forward_takes_matrices_for_is_given_vectors(ns: Any, name: str) -> None:
    assert checked(function_of(ns, *OF_VECTORS[name](ns, 1))).verdict is Verdict.PASSED
    assert checked(function_of(ns, *OF_VECTORS[name](ns, 2))).verdict is Verdict.FAILED


OF_MATRICES: dict[str, tuple[Callable[..., Any], Callable[[float], Callable[..., Any]]]] = {
    "square": (lambda ns, x: x @ x, lambda factor: lambda ns, g, x: g @ x.T + factor * x.T @ g),
    "cube": (
        lambda ns, x: x @ x @ x,
        lambda factor: lambda ns, g, x: g @ (x @ x).T + factor * x.T @ g @ x.T + (x @ x).T @ g,
    ),
    "trace of the square": (lambda ns, x: ns.trace(x @ x), lambda factor: lambda ns, g, x: factor * 2 * g * x.T),
}


@in_turn("name", OF_MATRICES)
def test_a_function_of_square_matrices_is_given_those(ns: Any, name: str) -> None:
    forward, vjp = OF_MATRICES[name]
    result = checked(function_of(ns, forward, vjp(1)))
    assert result.verdict is Verdict.PASSED, result
    assert [spec.shape for spec in result.inputs] == [(3, 3)]
    assert checked(function_of(ns, forward, vjp(2))).verdict is Verdict.FAILED


def test_single_entries_are_chosen_where_forward_refuses_all_others(ns: Any) -> None:
    class Single(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if x.numel() != 1:
                raise ValueError(f"expected one number, got {x.numel()}")
            ctx.save_for_backward(x)
            return ns.sin(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ns.cos(ctx.saved_tensors[0])

    assert checked(Single).verdict is Verdict.PASSED


def test_numbers_do_not_take_the_place_of_a_tensor_whose_gradient_is_refused(ns: Any) -> None:
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any) -> Any:
            ctx.x, ctx.scale = x, scale
            return x * scale

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.scale, 2 * (g * ctx.x).sum()

    result = checked(Scaled)
    assert result.verdict is Verdict.FAILED
    assert [spec.kind for spec in result.inputs] == ["tensor", "tensor"]


def np_weight_norm(v, g):
    return g * v / np.sqrt((v * v).sum(1, keepdims=True))


def np_weight_norm_vjp(factor):
    def vjp(v, g, go):
        norm = np.sqrt((v * v).sum(1, keepdims=True))
        along = (go * v).sum(1, keepdims=True)
        return g / norm * (go - v * along / norm**2), factor * along / norm

    return vjp


NUMPY: dict[str, tuple[Any, Any, str | None]] = {
    "one for each row": (np_weight_norm, np_weight_norm_vjp(1), None),
    "one for each row, wrong": (np_weight_norm, np_weight_norm_vjp(2), "wrong-factor"),
    "one number": (lambda x, t: x / t, lambda x, t, g: (g / t, -(g * x / t**2).sum()), None),
    "one number, wrong": (lambda x, t: x / t, lambda x, t, g: (g / t, (g * x / t**2).sum()), "wrong-sign"),
    "its first entry": (np.sin, lambda x, g: (g * np.cos(x)).reshape(-1)[:1], "wrong-shape"),
    "its first row": (lambda x: np.sin(x), lambda x, g: (g * np.cos(x))[:1], "wrong-shape"),
    "its sum": (lambda x: np.sin(x), lambda x, g: (g * np.cos(x)).sum(), "wrong-shape"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NUMPY)
def test_pairs_of_numpy_are_given_the_same(name: str) -> None:
    function, vjp, finding = NUMPY[name]
    result = checked(GradientPair(function=function, gradient=vjp))
    assert [each.kind.value for each in result.findings] == ([] if finding is None else [finding])
    assert result.verdict is (Verdict.PASSED if finding is None else Verdict.FAILED), result


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("one for each row", None),
        ("one for each row, wrong", "wrong-factor"),
        ("one number", None),
        ("arrays, or numbers", None),
        ("arrays, or numbers, wrong", "wrong-factor"),
        ("its first entry", "wrong-shape"),
        ("its sum", "wrong-shape"),
    ],
)
def test_functions_of_jax_are_given_the_same(name: str, finding: str | None) -> None:
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    jnp = jax.numpy
    factor = 2 if finding == "wrong-factor" else 1

    def normed(v, g):
        return g * v / jnp.sqrt((v * v).sum(1, keepdims=True))

    def normed_vjp(kept, go):
        v, g = kept
        norm, along = jnp.sqrt((v * v).sum(1, keepdims=True)), (go * v).sum(1, keepdims=True)
        return g / norm * (go - v * along / norm**2), factor * along / norm

    rules = {
        "one for each row": (normed, normed_vjp),
        "one number": (lambda x, t: x / t, lambda kept, g: (g / kept[1], -factor * (g * kept[0] / kept[1] ** 2).sum())),
        "arrays, or numbers": (
            lambda x, low, high: jnp.maximum(x, low) + jnp.sin(high),
            lambda k, g: (g * (k[0] > k[1]), factor * g * (k[0] < k[1]), g * jnp.cos(k[2])),
        ),
        "its first entry": (lambda x: jnp.sin(x), lambda kept, g: ((g * jnp.cos(kept[0])).reshape(-1)[:1],)),
        "its sum": (lambda x: jnp.sin(x), lambda kept, g: ((g * jnp.cos(kept[0])).sum(),)),
    }
    function, backward = rules[name.removesuffix(", wrong")]
    target = jax.custom_vjp(function)
    target.defvjp(lambda *tensors: (function(*tensors), tensors), backward)
    result = checked(target)
    assert [each.kind.value for each in result.findings] == ([] if finding is None else [finding])
    assert result.verdict is (Verdict.PASSED if finding is None else Verdict.FAILED), result


def np_discounted(cash, rate):
    t = np.arange(1, cash.shape[-1] + 1)
    return (cash / (1 + rate[:, None]) ** t).sum(-1)


@pytest.mark.parametrize("factor", [1, 1.001])
def test_a_vector_that_backward_alone_insists_on_is_found(factor: float) -> None:
    def vjp(cash, rate, g):
        t, base = np.arange(1, cash.shape[-1] + 1), 1 + rate[:, None]
        return g[:, None] / base**t, -factor * g * (t * cash / base ** (t + 1)).sum(-1)

    result = checked(GradientPair(function=np_discounted, gradient=vjp))
    assert [len(spec.shape or ()) for spec in result.inputs] == [2, 1]
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [f.input for f in result.findings] == ([] if factor == 1 else ["rate"])


def test_a_sum_left_out_in_jax_does_not_lead_to_less_likely_inputs() -> None:
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    target = jax.custom_vjp(lambda x, mask: (x * mask).sum(-1) / mask.sum(-1))

    def backward(kept, g):
        x, mask = kept
        n = mask.sum(-1, keepdims=True)
        mean = (x * mask).sum(-1, keepdims=True) / n
        return g[..., None] / n, g[..., None] * (x - mean) / n  # the first lacks `* mask`, and so the size of x

    target.defvjp(lambda *tensors: (target(*tensors), tensors), backward)
    result = checked(target)
    assert [spec.shape for spec in result.inputs] == [(3, 4), (3, 4)]
    assert [f.kind.value for f in result.findings] == ["wrong-shape"]


def test_an_overlap_with_a_target_without_gradient_is_checked_at_tensors_of_one_shape(ns: Any) -> None:
    def dice(ns, p, t):
        return 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)

    def vjp(ns, g, p, t):
        u = p.sum() + t.sum() + 1
        return -g * (2 * t * u - (2 * (p * t).sum() + 1)) / u**2, None

    result = checked(function_of(ns, dice, vjp))
    assert [spec.shape for spec in result.inputs] == [(3, 4), (3, 4)]
    assert not any("backward fails" in note for note in result.notes)
