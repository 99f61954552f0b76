"""JAX's custom derivatives: right ones pass, planted mistakes are named at the right input, the null backend fails."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
jnp = jax.numpy

import gradcli  # noqa: E402 - after the importorskip
from gradcli.backends.null_backend import NullBackend  # noqa: E402 - after the importorskip
from gradcli.backends.registry import backend_for, backend_named  # noqa: E402
from gradcli.cases import Argument  # noqa: E402
from gradcli.checks.battery import run_battery  # noqa: E402
from gradcli.diagnosis.naming import name_findings  # noqa: E402
from gradcli.errors import UserCodeError  # noqa: E402
from gradcli.findings import FindingKind  # noqa: E402
from gradcli.results import judge  # noqa: E402
from gradcli.settings import Settings  # noqa: E402
from gradcli.verdict import Verdict  # noqa: E402

BACKEND = backend_named("jax")


def with_vjp(primal: Any, fwd: Any, bwd: Any, **options: Any) -> Any:
    function = jax.custom_vjp(primal, **options)
    function.defvjp(fwd, bwd)
    return function


def with_jvp(primal: Any, rule: Any) -> Any:
    function = jax.custom_jvp(primal)
    function.defjvp(rule)
    return function


def linear(bwd: Any = None) -> Any:
    def primal(x, w, b):
        return x @ w.T + b

    def right(res, g):
        x, w = res
        return g @ w, g.T @ x, g.sum(0)

    return with_vjp(primal, lambda x, w, b: (primal(x, w, b), (x, w)), bwd or right)


def cube(bwd: Any = None) -> Any:
    return with_vjp(lambda x: x**3, lambda x: (x**3, x), bwd or (lambda x, g: (3 * x * x * g,)))


def product(bwd: Any = None) -> Any:
    return with_vjp(lambda x, y: x * y, lambda x, y: (x * y, (x, y)), bwd or (lambda r, g: (g * r[1], g * r[0])))


def power(bwd: Any = None) -> Any:
    return with_vjp(
        lambda n, x: x**n,
        lambda n, x: (x**n, x),
        bwd or (lambda n, x, g: (g * n * x ** (n - 1),)),
        nondiff_argnums=(0,),
    )


def gather(bwd: Any = None) -> Any:
    def right(res, g):
        x, index = res
        return jnp.zeros_like(x).at[index].add(g), None

    return with_vjp(lambda x, index: x[index] ** 1, lambda x, index: (x[index], (x, index)), bwd or right)


def two_outputs(bwd: Any = None) -> Any:
    def right(x, cotangents):
        first, second = cotangents
        return (first * jnp.cos(x) + second["sum"] * 2 * x,)

    def primal(x):
        return jnp.sin(x), {"sum": (x * x).sum()}

    return with_vjp(primal, lambda x: (primal(x), x), bwd or right)


def square_of_complex(bwd: Any = None) -> Any:
    return with_vjp(lambda z: z * z, lambda z: (z * z, z), bwd or (lambda z, g: (2 * z * g,)))


def modulus(bwd: Any = None) -> Any:
    def primal(z):
        return (z * jnp.conj(z)).real

    return with_vjp(primal, lambda z: (primal(z), z), bwd or (lambda z, g: (2 * g * jnp.conj(z),)))


def layer(bwd: Any = None) -> Any:
    def primal(params, x):
        return jnp.tanh(x @ params["w"][0] + params["b"])

    def right(res, g):
        params, x, y = res
        d = g * (1 - y * y)
        return {"b": d.sum(0), "w": [x.T @ d]}, d @ params["w"][0].T

    def fwd(params, x):
        y = primal(params, x)
        return y, (params, x, y)

    return with_vjp(primal, fwd, bwd or right)


def log1p_exp(slope: Any = jax.nn.sigmoid) -> Any:
    def primal(x):
        return jnp.log1p(jnp.exp(x))

    def rule(primals, tangents):
        (x,), (v,) = primals, tangents
        return primal(x), slope(x) * v

    return with_jvp(primal, rule)


def product_jvps(sign: float = 1.0) -> Any:
    function = jax.custom_jvp(lambda x, y: x * jnp.sin(y))
    function.defjvps(lambda v, _, x, y: jnp.sin(y) * v, lambda v, _, x, y: sign * x * jnp.cos(y) * v)
    return function


def wrong_inner() -> Any:
    """A square whose derivative is right and whose second derivative is three times the right one."""
    double = with_vjp(lambda x: 2 * x, lambda x: (2 * x, None), lambda _, g: (6 * g,))
    return cube(lambda x, g: (1.5 * x * double(x) * g,))


@dataclass(frozen=True)
class Row:
    """A right function and its arguments: a tuple is a shape, an array a tensor, anything else a value."""

    name: str
    build: Callable[[], Any]
    inputs: dict[str, Any] = field(default_factory=dict)


LINEAR = {"x": (3, 4), "w": (5, 4), "b": (5,)}
PAIR = {"x": (2, 3), "y": (2, 3)}
COMPLEX = {"z": np.array([1.0 + 2.0j, -0.5 + 0.25j, 0.75 - 1.5j])}
PARAMS = {
    "params": {"w": [np.array([[0.5, -0.25, 1.0], [0.125, 0.75, -0.5]])], "b": np.array([0.5, -1.0, 0.25])},
    "x": (4, 2),
}
RIGHT = [
    Row("linear", linear, LINEAR),
    Row("jit of linear", lambda: jax.jit(linear()), LINEAR),
    Row("cube", cube, {"x": (3, 2)}),
    Row("cube of a number", cube, {"x": ()}),
    Row("nondiff_argnums", power, {"n": 3, "x": (2, 3)}),
    Row("integer input", gather, {"x": (4, 2), "index": np.array([0, 2, 2])}),
    Row("two outputs in a dict", two_outputs, {"x": (3,)}),
    Row("complex, holomorphic", square_of_complex, COMPLEX),
    Row("complex to real", modulus, COMPLEX),
    Row("pytree", layer, PARAMS),
    Row("custom_jvp", log1p_exp, {"x": (2, 3)}),
    Row("custom_jvp by argument", product_jvps, PAIR),
    Row("plain function", lambda: lambda x, y: jnp.tanh(x) @ y.T, {"x": (2, 3), "y": (4, 3)}),
]
ROWS = pytest.mark.parametrize("row", RIGHT, ids=[row.name for row in RIGHT])


def arguments(inputs: dict[str, Any]) -> list[Argument]:
    generator = np.random.default_rng(0)
    made = []
    for name, given in inputs.items():
        shape = isinstance(given, tuple)
        value = np.asarray(generator.normal(size=given)) if shape else given
        tensor = isinstance(value, np.ndarray)
        made.append(
            Argument(name=name, value=value, is_tensor=tensor, requires_grad=tensor and value.dtype.kind in "fc")
        )
    return made


def found_in(function: Any, inputs: dict[str, Any], order: int = 1) -> tuple[Verdict, set[tuple[FindingKind, Any]]]:
    subject = backend_for(function).bind(function, arguments(inputs))
    evidence = run_battery(subject, Settings(order=order), seed=0)
    return judge(evidence), {(f.kind, f.input) for f in name_findings(evidence, subject)}


@pytest.mark.sampled(3)
@ROWS
def test_right_functions_pass_at_both_orders_with_a_fine_resolution(row):
    function = row.build()
    subject = BACKEND.bind(function, arguments(row.inputs))
    evidence = run_battery(subject, Settings(order=2), seed=0)
    assert judge(evidence) is Verdict.PASSED, [e for e in evidence if e.verdict is not Verdict.PASSED]
    assert max(e.resolution for e in evidence if e.check == "gradient" and e.resolution is not None) < 1e-8
    assert {e.order for e in evidence if e.check == "higher-order"} == {2}


def test_the_third_order_is_checked_too():
    assert found_in(cube(), {"x": (3,)}, order=3) == (Verdict.PASSED, set())


@pytest.mark.sampled(4)
@ROWS
def test_the_null_backend_fails_every_row(row):
    null = NullBackend(BACKEND)
    subject = null.bind(row.build(), arguments(row.inputs))
    evidence = run_battery(subject, Settings(order=1), seed=0)
    assert judge(evidence) is Verdict.FAILED
    assert {f.kind for f in name_findings(evidence, subject)} == {FindingKind.MISSING_GRADIENT}


def without_sum(r, g):
    return g @ r[1], g.T @ r[0], g


def called_inside(function: Any) -> Any:
    """A plain function that calls one with a rule of its own."""

    def outside(*given):
        return jnp.sin(function(*given))

    return outside


def one_entry(x, g):
    return (3 * x * x * g).at[0, 1].multiply(1.001)


MISTAKES = [
    ("factor", lambda: linear(lambda r, g: (g @ r[1], 2 * g.T @ r[0], g.sum(0))), LINEAR, "wrong-factor", "w"),
    ("small factor", lambda: cube(lambda x, g: ((3 + 3e-6) * x * x * g,)), {"x": (2, 3)}, "wrong-factor", "x"),
    ("sign", lambda: linear(lambda r, g: (-g @ r[1], g.T @ r[0], g.sum(0))), LINEAR, "wrong-sign", "x"),
    ("missing", lambda: linear(lambda r, g: (g @ r[1], g.T @ r[0], None)), LINEAR, "missing-gradient", "b"),
    ("zeros", lambda: product(lambda r, g: (g * r[1], 0 * g)), PAIR, "missing-gradient", "y"),
    ("not summed", lambda: linear(without_sum), LINEAR, "missing-reduction", "b"),
    (
        "transposed",
        lambda: linear(lambda r, g: (g @ r[1], r[0].T @ g, g.sum(0))),
        {"x": (3, 4), "w": (4, 4), "b": (4,)},
        "transposed",
        "w",
    ),
    ("one entry", lambda: cube(lambda x, g: (one_entry(x, g),)), {"x": (2, 3)}, "wrong-entries", "x"),
    (
        "ignores the cotangent",
        lambda: cube(lambda x, g: (3 * x * x,)),
        {"x": (2, 3)},
        "ignores-grad-output",
        "x",
    ),
    ("not linear", lambda: cube(lambda x, g: (3 * x * x * g * g,)), {"x": (2, 3)}, "nonlinear-backward", "x"),
    (
        "nondiff argument",
        lambda: power(lambda n, x, g: (g * x ** (n - 1),)),
        {"n": 3, "x": (2, 3)},
        "wrong-factor",
        "x",
    ),
    (
        "conjugate left out",
        lambda: modulus(lambda z, g: (2 * g * z,)),
        COMPLEX,
        "missing-conjugate",
        "z",
    ),
    (
        "leaf of a pytree",
        lambda: layer(lambda r, g: ({"b": g.sum(0), "w": [r[1].T @ (g * (1 - r[2] ** 2))]}, g @ r[0]["w"][0].T)),
        PARAMS,
        None,
        None,
    ),
    ("bare array", lambda: cube(lambda x, g: 3 * x * x * g), {"x": (2, 3)}, "wrong-arity", None),
    ("too many", lambda: cube(lambda x, g: (3 * x * x * g, None)), {"x": (2, 3)}, "wrong-arity", None),
    ("sum left out inside", lambda: called_inside(linear(without_sum)), LINEAR, "wrong-shape", None),
    ("too few inside", lambda: called_inside(product(lambda r, g: (g * r[1],))), PAIR, "wrong-arity", None),
    ("custom_jvp factor", lambda: log1p_exp(lambda x: 2 * jax.nn.sigmoid(x)), {"x": (2, 3)}, "wrong-factor", "x"),
    ("custom_jvp sign", lambda: product_jvps(-1.0), PAIR, "wrong-sign", "y"),
]


def test_the_refused_shape_of_a_function_inside_is_told_with_both_shapes():
    subject = BACKEND.bind(called_inside(linear(without_sum)), arguments(LINEAR))
    (finding,) = name_findings(run_battery(subject, Settings(), seed=0), subject)
    assert "args[2] has shape [3, 5], but the argument has shape [5]" in finding.message


def test_what_a_rule_inside_raises_by_itself_stays_an_error():
    def raises(r, g):
        raise ValueError("Custom VJP bwd rule must produce a structure that I cannot")

    subject = BACKEND.bind(called_inside(product(raises)), arguments(PAIR))
    with pytest.raises(UserCodeError, match="backward raised ValueError"):
        run_battery(subject, Settings(), seed=0)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("build", "inputs", "kind", "name"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_planted_mistake_is_named_at_the_right_input(build, inputs, kind, name):
    verdict, found = found_in(build(), inputs)
    assert verdict is Verdict.FAILED
    if kind is None:  # the leaves b and x are wrong, w is right
        assert {where for _, where in found} == {"params['b']", "x"}
    else:
        assert found == {(FindingKind(kind), name)}


def test_exchanged_gradients_are_named_as_such():
    verdict, found = found_in(product(lambda r, g: (g * r[0], g * r[1])), PAIR)
    assert verdict is Verdict.FAILED
    assert found == {(FindingKind.SWAPPED_GRADIENTS, "x"), (FindingKind.SWAPPED_GRADIENTS, "y")}


def test_a_wrong_second_order_is_found_behind_a_right_first_one():
    assert found_in(wrong_inner(), {"x": (3,)})[0] is Verdict.PASSED
    verdict, found = found_in(wrong_inner(), {"x": (3,)}, order=2)
    assert verdict is Verdict.FAILED
    assert {kind for kind, _ in found} == {FindingKind.WRONG_SECOND_ORDER}


def test_a_stopped_gradient_in_backward_is_named():
    stopped = cube(lambda x, g: (3 * jax.lax.stop_gradient(x * x) * g,))
    verdict, found = found_in(stopped, {"x": (3,)}, order=2)
    assert verdict is Verdict.FAILED
    assert {kind for kind, _ in found} <= {FindingKind.NOT_TWICE_DIFFERENTIABLE, FindingKind.WRONG_SECOND_ORDER}


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.usefixtures("unexplained")
def test_what_jax_runs_anew_at_another_constant_is_no_iteration_of_forward(right):
    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def celu(x, alpha=1.0):
        return jnp.where(x > 0, x, alpha * jnp.expm1(x / alpha))

    def celu_backward(alpha, x, g):
        return (g * jnp.where(x > 0, 1.0, jnp.exp(x / (alpha if right else 1.0))),)

    celu.defvjp(lambda x, alpha: (celu(x, alpha), x), celu_backward)
    only = ("gradient", "constants", "other-inputs")
    (case,) = gradcli.check(celu, {"x": {"shape": [4]}}, order=1, samples=1, shrink=False, only=only).cases
    assert case.verdict is (Verdict.PASSED if right else Verdict.FAILED), case.notes
    assert not any("iterations" in note for note in case.notes)
