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
