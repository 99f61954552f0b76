"""Hand-written NumPy derivatives: right ones pass, planted mistakes are named, the null backend fails every row."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.backends.null_backend import NullBackend
from gradcli.backends.numpy.claims import GradientPair
from gradcli.backends.registry import backend_named
from gradcli.cases import Argument
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.findings import FindingKind
from gradcli.results import judge
from gradcli.settings import Settings
from gradcli.verdict import Verdict

BACKEND = backend_named("numpy")
MATRIX = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])


def squares(x):
    return np.sum(x * x)


def square_slopes(x):
    return 2 * x


def mixed(x):
    return np.array([x[0] * x[1], np.sin(x[2])])


def mixed_jacobian(x):
    return np.array([[x[1], x[0], 0.0], [0.0, 0.0, np.cos(x[2])]])


def layer(x, w, b):
    return np.tanh(x @ w + b)


def layer_vjp(x, w, b, u):
    d = u * (1 - np.tanh(x @ w + b) ** 2)
    return d @ w.T, x.T @ d, d.sum(0)


def energy(x, y, scale=2.0):
    return scale * np.sum(x * np.sin(y))


def energy_gradients(x, y, scale=2.0):
    return scale * np.sin(y), scale * x * np.cos(y)


def polar(r, angle):
    return r * np.cos(angle), r * np.sin(angle)


def polar_vjp(r, angle, cotangents):
    u, v = cotangents
    return u * np.cos(angle) + v * np.sin(angle), r * (v * np.cos(angle) - u * np.sin(angle))


def with_gradient(x):
    return np.sum(np.exp(x)), np.exp(x)


def least_squares(x, target):
    residual = MATRIX @ x - target
    return 0.5 * residual @ residual, MATRIX.T @ residual


@dataclass(frozen=True)
class Row:
    """A right pair and its arguments: a tuple is a shape, an array a tensor, anything else a value."""

    name: str
    function: Any
    gradient: Any
    inputs: dict[str, Any] = field(default_factory=dict)


PAIR = {"x": (2, 3), "y": (2, 3)}
LAYER = {"x": (3, 4), "w": (4, 5), "b": (5,)}
COMPLEX = {"z": np.array([1.0 + 2.0j, -0.5 + 0.25j, 0.75 - 1.5j])}
RIGHT = [
    Row("gradient", squares, square_slopes, {"x": (3, 4)}),
    Row("gradient of a number", lambda x: x**3, lambda x: 3 * x**2, {"x": ()}),
    Row("gradient of an array of one entry", lambda x: np.array([squares(x)]), square_slopes, {"x": (3,)}),
    Row("Python floats", lambda x: float(np.sum(x * x)), lambda x: (2 * x).tolist(), {"x": (3,)}),
    Row("Jacobian", mixed, mixed_jacobian, {"x": (3,)}),
    Row("Jacobian of a matrix", lambda x: MATRIX @ x, lambda x: np.kron(MATRIX, np.eye(x.shape[1])), {"x": (3, 2)}),
    Row(
        "Jacobian, all axes",
        lambda x: x.sum(0),
        lambda x: np.broadcast_to(np.eye(x.shape[1])[:, None], (x.shape[1], *x.shape)),
        {"x": (3, 2)},
    ),
    Row("elementwise", np.sin, np.cos, {"x": (3, 4)}),
    Row("vjp", layer, layer_vjp, LAYER),
    Row("vjp of two outputs", polar, polar_vjp, {"r": (3,), "angle": (3,)}),
    Row("two gradients", energy, energy_gradients, PAIR),
    Row("two gradients and a constant", energy, energy_gradients, {**PAIR, "scale": 3.0}),
    Row("one in a tuple", squares, lambda x: (2 * x,), {"x": (3,)}),
    Row("value and gradient", with_gradient, None, {"x": (3,)}),
    Row("value and gradient, with data", least_squares, None, {"x": (3,), "target": (2,)}),
    Row("complex, holomorphic", lambda z: z**2, lambda z: np.diag(2 * z), COMPLEX),
    Row("complex to real", lambda z: np.sum(np.abs(z) ** 2), lambda z: 2 * z, COMPLEX),
    Row("complex vjp", lambda z: z**2, lambda z, u: 2 * np.conj(z) * u, COMPLEX),
    Row("real to complex", lambda t: np.exp(1j * t), lambda t: 1j * np.exp(1j * t), {"t": (3,)}),
]
ROWS = pytest.mark.parametrize("row", RIGHT, ids=[row.name for row in RIGHT])


def arguments(inputs: dict[str, Any]) -> list[Argument]:
    generator = np.random.default_rng(0)
    made = []
    for name, given in inputs.items():
        value = np.asarray(generator.normal(size=given)) if isinstance(given, tuple) else given
        tensor = isinstance(value, np.ndarray)
        made.append(
            Argument(name=name, value=value, is_tensor=tensor, requires_grad=tensor and value.dtype.kind in "fc")
        )
    return made


def found_in(function: Any, gradient: Any, inputs: dict[str, Any]) -> tuple[Verdict, set[tuple[FindingKind, Any]]]:
    subject = BACKEND.bind(GradientPair(function=function, gradient=gradient), arguments(inputs))
    evidence = run_battery(subject, Settings(), seed=0)
    return judge(evidence), {(f.kind, f.input) for f in name_findings(evidence, subject)}


@ROWS
def test_right_pairs_pass_and_higher_orders_are_shown_as_not_offered(row):
    subject = BACKEND.bind(GradientPair(function=row.function, gradient=row.gradient), arguments(row.inputs))
    evidence = run_battery(subject, Settings(order=2), seed=0)
    assert judge(evidence) is Verdict.PASSED, [e for e in evidence if e.verdict is not Verdict.PASSED]
    assert max(e.resolution for e in evidence if e.check == "gradient" and e.resolution is not None) < 1e-7
    assert [(e.order, e.verdict) for e in evidence if e.check == "higher-order"] == [(2, Verdict.SKIPPED)]


@ROWS
def test_the_null_backend_fails_every_row(row):
    null = NullBackend(BACKEND)
    subject = null.bind(GradientPair(function=row.function, gradient=row.gradient), arguments(row.inputs))
    evidence = run_battery(subject, Settings(order=1), seed=0)
    assert judge(evidence) is Verdict.FAILED
    assert {f.kind for f in name_findings(evidence, subject)} == {FindingKind.MISSING_GRADIENT}


def one_entry(x):
    slopes = 2 * x
    slopes[0, 1] *= 1.001
    return slopes


def writes_into_x(x):
    x *= 2
    return x


def writes_into_cotangent(x, w, b, u):
    u *= 1 - np.tanh(x @ w + b) ** 2
    return u @ w.T, x.T @ u, u.sum(0)


def noisy(x):
    return 2 * x + np.random.default_rng().normal()


CACHE: dict[str, Any] = {}


def caching(x):
    CACHE["x"] = x
    return np.sum(x * x)


def from_cache(x):
    return 2 * CACHE["x"]


MISTAKES = [
    ("factor", squares, lambda x: x, {"x": (3, 4)}, "wrong-factor", "x"),
    ("small factor", squares, lambda x: (2 + 2e-6) * x, {"x": (3, 4)}, "wrong-factor", "x"),
    ("sign", energy, lambda x, y: (2 * np.sin(y), -2 * x * np.cos(y)), PAIR, "wrong-sign", "y"),
    ("missing", energy, lambda x, y: (2 * np.sin(y), None), PAIR, "missing-gradient", "y"),
    ("one entry", squares, one_entry, {"x": (3, 4)}, "wrong-entries", "x"),
    ("one entry of a Jacobian", mixed, lambda x: mixed_jacobian(x) * [1, 1, 1.001], {"x": (3,)}, "wrong-entries", "x"),
    ("transposed", lambda x: np.sum(x**3), lambda x: 3 * x.T**2, {"x": (3, 3)}, "transposed", "x"),
    ("transposed, told by shape", lambda x: np.sum(x**3), lambda x: 3 * x.T**2, {"x": (3, 4)}, "transposed", "x"),
    ("Jacobian the wrong way", mixed, lambda x: mixed_jacobian(x).T, {"x": (3,)}, "wrong-shape", "x"),
    ("no sum", layer, lambda x, w, b, u: (*layer_vjp(x, w, b, u)[:2], u * (1 - layer(x, w, b) ** 2)), LAYER,
     "missing-reduction", "b"),
    ("ignores the cotangent", layer, lambda x, w, b, u: layer_vjp(x, w, b, np.ones((3, 5))), LAYER, None, None),
    ("too few", layer, lambda x, w, b, u: layer_vjp(x, w, b, u)[:2], LAYER, "wrong-arity", None),
    ("writes into x", squares, writes_into_x, {"x": (3,)}, "mutates-input", "x"),
    ("writes into the cotangent", layer, writes_into_cotangent, LAYER, "mutates-grad-output", None),
    ("forward writes into x", writes_into_x, lambda x: 2 * np.ones(x.shape), {"x": (3,)}, "mutates-input", "x"),
    ("noisy", squares, noisy, {"x": (3,)}, "nondeterministic-backward", "x"),
    ("uses another call's input", caching, from_cache, {"x": (3,)}, "stateful", "x"),
    ("value and gradient", lambda x: (np.sum(np.exp(x)), 2 * np.exp(x)), None, {"x": (3,)}, "wrong-factor", "x"),
    ("conjugate", lambda z: np.sum(np.abs(z) ** 2), lambda z: 2 * np.conj(z), COMPLEX, "missing-conjugate", "z"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "gradient", "inputs", "kind", "name"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_planted_mistake_is_named_at_the_right_input(function, gradient, inputs, kind, name):
    verdict, found = found_in(function, gradient, inputs)
    assert verdict is Verdict.FAILED
    if kind is None:
        assert found == {(FindingKind.IGNORES_GRAD_OUTPUT, each) for each in inputs}
    else:
        assert found == {(FindingKind(kind), name)}


def test_exchanged_gradients_are_named_as_such():
    verdict, found = found_in(energy, lambda x, y: energy_gradients(x, y)[::-1], PAIR)
    assert verdict is Verdict.FAILED
    assert found == {(FindingKind.SWAPPED_GRADIENTS, "x"), (FindingKind.SWAPPED_GRADIENTS, "y")}


def radiance(T):
    """The radiance at temperature T (positive, in kelvin)."""
    return 1 / np.expm1(700 / T)


def radiance_slope(T):
    return 700 / T**2 * np.exp(700 / T) / np.expm1(700 / T) ** 2


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_an_elementwise_derivative_that_overflows_in_some_entries_is_not_one_that_ignores_grad_output(factor, verdict):
    def slope(T):
        return factor * radiance_slope(T)

    at_one = {"T": np.array([[0.5, 0.8], [300.0, 900.0]])}
    case = gradcli.check(radiance, at_one, grad=slope, only=("linearity", "gradient"), shrink=False).cases[0]
    assert FindingKind.IGNORES_GRAD_OUTPUT not in {finding.kind for finding in case.findings}
    assert case.verdict is Verdict.FAILED  # exp overflows in two entries
    warm = {"T": np.array([[250.0, 400.0], [300.0, 900.0]])}
    assert gradcli.check(radiance, warm, grad=slope, shrink=False).verdict is verdict
