"""Numbers that set how accurate a result is, which may be other numbers without a word against backward; and numbers of
a formula, whose mistakes a value such as 1, 0 or 2 hides."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.cases import CheckSpec, InputsFrom
from gradcli.checks.other_points.numbers import other_values, sets_accuracy
from gradcli.inputs.flags import parse_input
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.pairs import FRAMEWORKS, each_pair

POSITIVE = (0.8, 1.7, 2.9, 0.3)
SIGNED = (0.7, -1.3, 0.2, -0.4)
SMALL = (0.1, 0.05, 0.15, 0.12)


def function_of(ns: Any, forward: Callable[..., Any], vjp: Callable[..., Any]) -> Any:
    """A Function of x and numbers; vjp(g, x, y, *numbers) is x's gradient."""

    class Made(ns.autograd.Function):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return vjp(ns, g, x, y, *ctx.numbers), *[None] * len(ctx.numbers)

    def run(ctx: Any, x: Any, *numbers: Any) -> Any:
        y = forward(ns, x.detach(), *numbers)
        ctx.save_for_backward(x, y)
        ctx.numbers = numbers
        return y

    Made.forward = staticmethod(_with_signature_of(forward, run))
    return Made


def _with_signature_of(forward: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """`run` with the names and defaults of forward's parameters, ctx in the place of the namespace."""
    names = forward.__code__.co_varnames[1 : forward.__code__.co_argcount]
    made: dict[str, Any] = {"run": run}
    exec(f"def forward(ctx, {', '.join(names)}): return run(ctx, {', '.join(names)})", made)
    found = made["forward"]
    found.__defaults__ = forward.__defaults__
    return found


def checked(target: Any, x: tuple[float, ...], ns: Any, *numbers: Any, order: int = 1) -> CheckResult:
    leaf = ns.tensor(list(x), dtype=ns.float64, requires_grad=True)
    return gradcli.check(target, (leaf, *numbers), order=order, samples=1, shrink=False).cases[0]


def newton(ns, x, tol=1e-14):
    """The cube root."""
    y = ns.ones_like(x)
    for _ in range(60):
        step = (y**3 - x) / (3 * y**2)
        y = y - step
        if float(step.abs().max()) < tol:
            break
    return y


def newton_to(ns, x, stop=1e-6):
    return newton(ns, x, stop)


def bisection(ns, x, width=1e-8):
    """The cube root, between two bounds."""
    low, high = ns.zeros_like(x), ns.ones_like(x) * 4
    while float((high - low).max()) > width:
        middle = (low + high) / 2
        above = middle**3 > x
        low, high = ns.where(above, low, middle), ns.where(above, middle, high)
    return (low + high) / 2


def root_vjp(ns, g, x, y, *numbers):
    return g / (3 * y**2)


def contraction(ns, x, max_iter=60):
    """y = x + sin(y) / 4."""
    y = x
    for _ in range(max_iter):
        y = x + ns.sin(y) / 4
    return y


def contraction_of(ns, x, depth=20):
    return contraction(ns, x, depth)


def contraction_vjp(ns, g, x, y, *numbers):
    return g / (1 - ns.cos(y) / 4)


def damped_vjp(ns, g, x, y, damping):
    """The linear system of the implicit function theorem, which Tikhonov's term keeps regular."""
    slope = 1 - ns.cos(y) / 4
    return g * slope / (slope**2 + damping)


def damped_contraction(ns, x, damping=0.0):
    return contraction(ns, x)


def clamped_log(ns, x, eps=1e-6):
    return ns.log(ns.clamp(x, min=eps))


def clamped_log_vjp(ns, g, x, y, eps):
    return g / x


def normalised(ns, x, eps=1e-6):
    centred = x - x.mean()
    return centred / ns.sqrt((centred**2).mean() + eps)


def normalised_vjp(ns, g, x, y, eps):
    centred = x - x.mean()
    scale = 1 / ns.sqrt((centred**2).mean() + eps)
    return scale * (g - g.mean() - y * (g * y).mean())


def relaxed(ns, x, rate=0.9, limit=200):
    """The same contraction by steps of another length."""
    y = x
    for _ in range(limit):
        step = rate * (x + ns.sin(y) / 4 - y)
        y = y + step
        if float(step.abs().max()) < 1e-9:
            break
    return y


def doubled(vjp):
    return lambda *arguments: 2 * vjp(*arguments)


ACCURATE = {
    "Newton, a tight tol": (newton, root_vjp, POSITIVE),
    "Newton, stopped early": (newton_to, root_vjp, POSITIVE),
    "bisection to a width": (bisection, root_vjp, POSITIVE),
    "a fixed point, max_iter": (contraction, contraction_vjp, SIGNED),
    "a fixed point, a number of steps": (contraction_of, contraction_vjp, SIGNED),
    "an implicit layer, damping in backward": (damped_contraction, damped_vjp, SIGNED),
    "a clamped logarithm, eps": (clamped_log, clamped_log_vjp, SMALL),
    "a normalisation, eps": (normalised, normalised_vjp, SIGNED),
    "relaxation, its rate": (relaxed, contraction_vjp, SIGNED),
}


@each_pair(["backend"], backend=FRAMEWORKS, name=ACCURATE, given=(True, False))
def test_a_right_function_passes_whatever_its_accuracy(ns: Any, name: str, given: bool) -> None:
    forward, vjp, x = ACCURATE[name]
    numbers = forward.__defaults__ if given else ()
    result = checked(function_of(ns, forward, vjp), x, ns, *numbers)
    assert result.verdict is Verdict.PASSED, result


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ACCURATE)
def test_its_wrong_twin_fails(ns: Any, name: str, unexplained: None) -> None:
    forward, vjp, x = ACCURATE[name]
    assert checked(function_of(ns, forward, doubled(vjp)), x[:2], ns).verdict is Verdict.FAILED


FORMULAS = {
    "temperature of 1": (lambda ns, x, temperature=1.0: ns.tanh(x / temperature), "wrong", 0.75),
    "slope of 0": (lambda ns, x, slope=0.0: ns.where(x > 0, x, slope * x), "flat", 0.375),
    "exponent of 2": (lambda ns, x, p=2: (x * x + 1) ** p, "square", 3),
    "exponent of 2 as a loop": (lambda ns, x, p=2: looped(ns, x, p), "square", 3),
    "exponent of 2.0": (lambda ns, x, p=2.0: (x * x + 1) ** p, "square", 1.5),
    "weight of 1": (lambda ns, x, weight=1: weight * ns.sin(x), "cosine", 2),
    "one step in time": (lambda ns, x, steps=1: euler(ns, x, steps), "one step", 2),
    "steps by another name": (lambda ns, x, order=1: euler(ns, x, order), "one step", 2),
    "a step of 0.5": (lambda ns, x, dt=0.5: x - dt * x**3, "half a step", 0.375),
}
LEAVE_OUT = {
    "wrong": lambda ns, g, x, y, t: g * (1 - y * y),
    "flat": lambda ns, g, x, y, slope: ns.where(x > 0, g, 0 * g),
    "square": lambda ns, g, x, y, p: g * 2 * (x * x + 1) * 2 * x,
    "cosine": lambda ns, g, x, y, w: g * ns.cos(x),
    "one step": lambda ns, g, x, y, steps: g * (1 - 0.3 * x * x),
    "half a step": lambda ns, g, x, y, dt: g * (1 - 1.5 * x * x),
}
RIGHT = {
    "wrong": lambda ns, g, x, y, t: g * (1 - y * y) / t,
    "flat": lambda ns, g, x, y, slope: ns.where(x > 0, g, slope * g),
    "square": lambda ns, g, x, y, p: g * p * (x * x + 1) ** (p - 1) * 2 * x,
    "cosine": lambda ns, g, x, y, w: g * w * ns.cos(x),
    "one step": lambda ns, g, x, y, steps: g * euler_slope(ns, x, steps),
    "half a step": lambda ns, g, x, y, dt: g * (1 - 3 * dt * x * x),
}


def looped(ns, x, p):
    y = ns.ones_like(x)
    for _ in range(p):
        y = y * (x * x + 1)
    return y


def euler(ns, x, steps):
    for _ in range(steps):
        x = x - 0.1 * x**3
    return x


def euler_slope(ns, x, steps):
    slope = ns.ones_like(x)
    for _ in range(steps):
        slope = slope * (1 - 0.3 * x * x)
        x = x - 0.1 * x**3
    return slope


@pytest.mark.sampled(4)
@each_pair(["backend"], backend=FRAMEWORKS, name=FORMULAS, given=(True, False))
def test_a_mistake_that_the_number_of_a_formula_hides_is_found(ns: Any, name: str, given: bool) -> None:
    forward, mistake, shown = FORMULAS[name]
    result = checked(function_of(ns, forward, LEAVE_OUT[mistake]), SIGNED, ns, *(forward.__defaults__ if given else ()))
    assert result.verdict is Verdict.FAILED
    said = f"={shown!r} ({'given' if given else 'default'}: {forward.__defaults__[0]!r})"
    assert any(said in f.message for f in result.findings), result


@pytest.mark.parametrize("name", FORMULAS)
def test_its_right_twin_passes(ns: Any, name: str) -> None:
    forward, mistake, _ = FORMULAS[name]
    assert checked(function_of(ns, forward, RIGHT[mistake]), SIGNED, ns).verdict is Verdict.PASSED


def test_what_shows_at_another_accuracy_is_a_note(ns: Any) -> None:
    result = checked(function_of(ns, damped_contraction, damped_vjp), SIGNED, ns)
    (note,) = [note for note in result.notes if "not counted as a failure" in note]
    wrong_there = "the gradient of x is wrong with damping=0.375 (default: 0.0)"
    because = "damping sets how accurate forward is, and so how accurate the gradient can be"
    assert note == f"{wrong_there}; not counted as a failure, because {because}"


def counted(ns, x, sharpness=1.2 * 20**4):
    """y = x + sin(y) / 20, in as many steps as a contraction by 1/20 needs: five, and four at a smaller sharpness."""
    y = x
    for _ in range(math.ceil(math.log(sharpness) / math.log(20))):
        y = x + ns.sin(y) / 20
    return y


def sharp_contraction_vjp(ns, g, x, y, *numbers):
    return g / (1 - ns.cos(y) / 20)


def test_a_coarser_stop_by_any_name_is_a_note(ns: Any) -> None:
    result = checked(function_of(ns, counted, sharp_contraction_vjp), SIGNED, ns)
    assert result.verdict is Verdict.PASSED, result
    assert any("sharpness decides how many iterations forward runs" in note for note in result.notes)
    wrong = checked(function_of(ns, counted, doubled(sharp_contraction_vjp)), SIGNED, ns)
    assert wrong.verdict is Verdict.FAILED


def cube_root(x, threshold=1e-7):
    y = np.ones_like(x)
    while np.abs(y**3 - x).max() > threshold:
        y = y - (y**3 - x) / (3 * y**2)
    return y


def cube_root_vjp(x, g, threshold=1e-7):
    return g / (3 * cube_root(x) ** 2)


def wrong_cube_root_vjp(x, g, threshold=1e-7):
    return g / (2 * cube_root(x) ** 2)


def power(x, p=2):
    return (x * x + 1) ** p


def power_vjp(x, g, p=2):
    return g * p * (x * x + 1) ** (p - 1) * 2 * x


def square_vjp(x, g, p=2):
    return g * 4 * (x * x + 1) * x


@pytest.mark.parametrize(
    ("function", "gradient", "verdict"),
    [
        ("cube_root", "cube_root_vjp", Verdict.PASSED),
        ("cube_root", "wrong_cube_root_vjp", Verdict.FAILED),
        ("power", "power_vjp", Verdict.PASSED),
        ("power", "square_vjp", Verdict.FAILED),
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_pairs_of_numpy_are_answered_alike(function: str, gradient: str, verdict: Verdict) -> None:
    inputs = (parse_input("x=4,domain=positive"),)
    spec = CheckSpec(
        target=f"{__name__}:{function}", grad=f"{__name__}:{gradient}", inputs=inputs, inputs_from=InputsFrom.FLAGS
    )
    assert check_object(globals()[function], case_of(spec, Settings())).verdict is verdict


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("wrong", [1.0, 1.5])
def test_loops_of_jax_count_as_well(wrong: float) -> None:
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")

    def solve(x, sharpness):
        steps = math.ceil(math.log(sharpness) / math.log(20))
        return jax.lax.fori_loop(0, steps, lambda _, y: x + jax.numpy.sin(y) / 20, x)

    root = jax.custom_vjp(solve, nondiff_argnums=(1,))
    root.defvjp(
        lambda x, sharpness: (solve(x, sharpness),) * 2,
        lambda sharpness, y, g: (wrong * g / (1 - jax.numpy.cos(y) / 20),),
    )
    result = gradcli.check(root, (jax.numpy.array(SIGNED), 1.2 * 20**4), order=1, samples=1, shrink=False).cases[0]
    assert result.verdict is (Verdict.PASSED if wrong == 1.0 else Verdict.FAILED), result
    assert wrong != 1.0 or any("sharpness decides how many iterations" in note for note in result.notes)


@pytest.mark.parametrize("value", [1e-14, 1e-6, 3.0, 0.64, -0.64, 1e308, -2.5, 7, 50, -3, 2, 1000, 4 / 3])
def test_other_values_are_of_the_same_size(value: float) -> None:
    found = other_values(value)
    assert found
    for other in found:
        assert type(other) is type(value)
        assert other != value
        assert abs(other - value) == 1 if isinstance(value, int) else 0.5 <= other / value <= 2
        assert isinstance(value, int) or abs(other) != 1


@pytest.mark.parametrize("value", [1.0, 0.3, 7.5, 0.07])
def test_a_smaller_number_is_tried_first(value: float) -> None:
    smaller = other_values(value)[0]
    assert (value / 2 <= smaller < value, len(repr(smaller)) < 8) == (True, True)


@pytest.mark.parametrize("value", [0, 1, -1, 0.0, 1.0, -1.0])
def test_neutral_numbers_become_others_that_are_not(value: float) -> None:
    assert other_values(value)
    assert all(other not in (0, 1, -1) for other in other_values(value))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf"), 5e-324])
def test_numbers_that_have_no_neighbours_stay(value: float) -> None:
    assert all(np.isfinite(other) and other != value for other in other_values(value))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "eps",
            "tol",
            "atol",
            "rtol",
            "epsilon",
            "max_iter",
            "maxiter",
            "n_iter",
            "damping",
            "tol_abs",
            "eps1",
            "f_tol",
        ),
        *(
            "num_iterations",
            "maxiters",
            "MAX_ITER",
            "inner_tol",
            "eps_",
            "_eps",
            "epsabs",
            "layer_norm_eps",
            "max_steps",
        ),
    ],
)
def test_the_fields_names_for_accuracy_are_known(name: str) -> None:
    assert sets_accuracy(name)


@pytest.mark.parametrize("name", ["scale", "steps", "stolen", "reps", "item", "p", "temperature", "weight", "order"])
def test_others_are_none(name: str) -> None:
    assert not sets_accuracy(name)
