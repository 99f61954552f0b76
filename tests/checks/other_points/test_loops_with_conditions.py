"""Loops that run until a condition holds: their end is exact, so that a wrong gradient in them is no early stop."""

import math

import pytest

from gradcli.cases import CheckSpec, InputsFrom
from gradcli.inputs.flags import parse_input
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.other_points.planted import function_of


def wrapped(ns, x):
    while bool((x > math.pi).any()):
        x = ns.where(x > math.pi, x - 2 * math.pi, x)
    while bool((x < -math.pi).any()):
        x = ns.where(x < -math.pi, x + 2 * math.pi, x)
    return x


def halved(ns, x):
    power = ns.ones_like(x)
    while bool((ns.abs(x) > 1.5).any()):
        large = ns.abs(x) > 1.5
        x, power = ns.where(large, x / 2, x), ns.where(large, 2 * power, power)
    return x, power


def square_by_halves(ns, x):
    rest, power = halved(ns, x)
    return rest**2 * power**2


FUNCTIONS = {
    "angle": (
        lambda ns, x: wrapped(ns, x) ** 2,
        lambda ns, x, g: 2 * wrapped(ns, x) * g,
        lambda ns, x, g: 2 * x * g,
    ),
    "range reduction": (
        square_by_halves,
        lambda ns, x, g: 2 * x * g,
        lambda ns, x, g: 2 * x * g * ns.where(halved(ns, x)[1] > 4, 2 * x / x, x / x),
    ),
}


def drawn(ns, forward, backward):
    spec = CheckSpec(target="planted:Planted", inputs=(parse_input("x=3x4"),), inputs_from=InputsFrom.FLAGS)
    settings = Settings(order=1, samples=1, shrink=False)
    return check_object(function_of(ns, forward, backward), case_of(spec, settings))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_branch_that_the_loop_takes_elsewhere_is_judged(ns, name):
    forward, right, wrong = FUNCTIONS[name]
    assert drawn(ns, forward, right).verdict is Verdict.PASSED
    found = drawn(ns, forward, wrong)
    assert found.verdict is Verdict.FAILED
    assert {e.check for e in found.evidence if e.verdict is Verdict.FAILED} == {"other-inputs"}


def test_one_that_may_have_reached_its_limit_is_only_noted(ns):
    def root(ns, x):
        y = ns.ones_like(x)
        for _ in range(12):
            change = (x * x / y - y) / 2
            y = y + change
            if float(ns.abs(change).max()) < 1e-12:
                break
        return y

    found = drawn(ns, root, lambda ns, x, g: g * ns.sign(x))
    assert found.verdict is Verdict.PASSED


def stepped(ns, *, hard_coded):
    """Twenty short steps of a scheme in time; backward goes back through as many, or always through twenty."""

    class Stepped(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, steps=20):
            ctx.save_for_backward(x)
            ctx.steps = 20 if hard_coded else steps
            for _ in range(steps):
                x = x - 1e-3 * (x**3 - x)
            return x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            slopes = []
            for _ in range(ctx.steps):
                slopes.append(1 - 1e-3 * (3 * x * x - 1))
                x = x - 1e-3 * (x**3 - x)
            for slope in slopes:
                g = g * slope
            return g, None

    return Stepped


def converged(ns):
    """Newton's method for a square root, far past convergence, with the gradient of the limit."""

    class Converged(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, steps=9):
            y = 1 + 0 * x
            for _ in range(steps):
                y = (y + (1 + x * x) / y) / 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * x / y, None

    return Converged


@pytest.mark.sampled(1)
def test_steps_in_time_are_no_iteration_that_has_converged(ns):
    """One more of twenty short steps changes the outputs by a thousandth, as an iteration near its limit does."""
    settings = Settings(order=1, samples=1, shrink=False)
    spec = CheckSpec(target="planted:Stepped", inputs=(parse_input("x=4"),), inputs_from=InputsFrom.FLAGS)
    for target, verdict in (
        (stepped(ns, hard_coded=False), Verdict.PASSED),
        (converged(ns), Verdict.PASSED),
        (stepped(ns, hard_coded=True), Verdict.FAILED),
    ):
        found = check_object(target, case_of(spec, settings))
        assert found.verdict is verdict
    assert {e.check for e in found.evidence if e.verdict is Verdict.FAILED} == {"constants"}


def shifted(ns, u):
    return ns.cat([u[-1:], u[:-1]])


def ring(ns, *, is_right):
    """The fixed point of u = clamp(x + 0.4 * shifted u) to within rounding; wrong: a clamped entry still passes on."""

    class Ring(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit=1.0):
            u = 0 * x
            for _ in range(500):
                new = ns.clamp(x + 0.4 * shifted(ns, u), -limit, limit)
                done = float(ns.abs(new - u).max()) < 1e-15
                u = new
                if done:
                    break
            ctx.free = (ns.abs(u) < limit).to(x.dtype)
            return u

        @staticmethod
        def backward(ctx, g):
            free = ctx.free
            start, passed = (g, free) if is_right else (g * free, 1 + 0 * free)
            v = start
            for _ in range(60):
                passed_on = passed * v
                v = start + 0.4 * ns.cat([passed_on[1:], passed_on[:1]])
            return free * v, None

    return Ring


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.usefixtures("unexplained")
def test_a_bound_of_the_solution_does_not_decide_how_accurate_it_is(ns, is_right):
    """With another bound the iteration takes another number of steps, since it converges to something else."""
    inputs = (parse_input("x=3,value=[0.8,-0.3,0.4]"),)
    spec = CheckSpec(target="planted:Ring", inputs=inputs, inputs_from=InputsFrom.FLAGS)
    settings = Settings(order=1, samples=1, shrink=False, only=("gradient", "constants"))
    found = check_object(ring(ns, is_right=is_right), case_of(spec, settings))
    assert found.verdict is (Verdict.PASSED if is_right else Verdict.FAILED), found.notes
    assert {e.check for e in found.evidence if e.verdict is Verdict.FAILED} == (set() if is_right else {"constants"})


def drained(ns, *, is_right):
    """A level that falls at some rate above three, in a number of steps; wrong: backward misses that it falls."""

    class Drained(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, steps=8):
            slopes = []
            for _ in range(steps):
                above = (x > 3).to(x.dtype)
                slopes.append(1 - above / (2 * steps))
                x = x - above * (x - 3) / (2 * steps)
            ctx.slopes = slopes
            return x

        @staticmethod
        def backward(ctx, g):
            for slope in ctx.slopes if is_right else ():
                g = g * slope
            return g, None

    return Drained


@pytest.mark.sampled(3)
@pytest.mark.parametrize("made", ["right", "wrong", "converged"])
@pytest.mark.usefixtures("unexplained")
def test_an_error_that_more_steps_do_not_reduce_is_no_early_stop(ns, made):
    """Newton's method is far from its limit at large inputs, and reaches it in more steps."""
    target = converged(ns) if made == "converged" else drained(ns, is_right=made == "right")
    spec = CheckSpec(target="planted:Target", inputs=(parse_input("x=9"),), inputs_from=InputsFrom.FLAGS)
    settings = Settings(order=1, samples=1, shrink=False, only=("gradient", "other-inputs"))
    found = check_object(target, case_of(spec, settings))
    assert found.verdict is (Verdict.FAILED if made == "wrong" else Verdict.PASSED), found.notes
    wrong = {e.check for e in found.evidence if e.verdict is Verdict.FAILED}
    assert wrong == ({"other-inputs"} if made == "wrong" else set())
