"""A backward that rounds grad_output is found without a pass of its own where nothing is rounded."""

import numpy as np
import pytest

from gradcli.checks.battery import run_battery
from gradcli.findings import FindingKind
from gradcli.settings import Settings
from tests.programs.planted import function, ns, subject_of


def judged(backward, *shapes):
    """The kinds found, and the forwards and backwards of the check."""
    subject = subject_of(function(lambda x: x.tanh(), backward), *shapes)
    found = run_battery(subject, Settings(order=1), seed=0)
    stage = subject.counters.stages["precision"]
    return {e.finding.kind for e in found if e.finding is not None}, stage.forward + stage.backward


def mostly(g):
    """Four of five entries rounded, not the first ones."""
    rounded = g.float().double()
    return ns.where(ns.arange(g.numel()) % 5 == 0, g, rounded)


@pytest.mark.parametrize("size", [1, 2, 12, 3000, 20_000])
def test_a_right_gradient_takes_no_pass(size):
    assert judged(lambda g, x, y: g * (1 - y * y), (size,)) == (set(), 0)


@pytest.mark.parametrize("size", [1, 2, 12, 3000, 20_000])
def test_a_rounded_grad_output_is_found(size):
    kinds, _ = judged(lambda g, x, y: g.float().double() * (1 - y * y), (size,))
    assert FindingKind.LOW_PRECISION in kinds


@pytest.mark.parametrize("size", [12, 3000, 20_000])
def test_one_that_is_rounded_in_most_entries_is_found(size):
    kinds, _ = judged(lambda g, x, y: mostly(g) * (1 - y * y), (size,))
    assert FindingKind.LOW_PRECISION in kinds


def test_one_that_is_rounded_in_the_small_entries_is_found():
    small = np.linspace(3.0, 9.0, 400)
    values = np.concatenate([np.linspace(0.1, 0.4, 100), small])

    def backward(g, x, y):
        return ns.where(x > 1, g.float().double(), g) * (1 - y * y)

    kinds, _ = judged(backward, values)
    assert FindingKind.LOW_PRECISION in kinds


def test_one_of_several_inputs_is_found():
    made = function(lambda x, z: x * z, lambda g, x, z, y: (g * z, g.float().double() * x))
    found = run_battery(subject_of(made, (30,), (30,)), Settings(order=1), seed=0)
    assert any(e.finding is not None and e.finding.kind is FindingKind.LOW_PRECISION for e in found)
