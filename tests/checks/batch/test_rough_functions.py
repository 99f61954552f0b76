"""Batches of other sizes where differences say little: kinks, plateaus, few digits, early stops."""

import numpy as np
import pytest

from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.findings import FindingKind
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.frameworks import tensor
from tests.pairs import in_turn

ROWS = np.array([[0.0, 1.0, -0.5], [2.5, -1.0, 0.0], [1.0, 300.25, -7.5], [0.25, 0.0, 3.0]])
FEW_FORWARDS = 60
"""What the check takes of a right Function; a proof by differences takes hundreds."""


def root_by_halving(x):
    """The cube root to 1e-4, each entry by as many steps as it needs."""
    found = np.empty_like(x)
    for place, value in np.ndenumerate(x):
        low, high = -abs(value) - 1, abs(value) + 1
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (middle, high) if middle**3 < value else (low, middle)
        found[place] = (low + high) / 2
    return found


KINDS = {
    "a rectifier": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "a floor": (np.floor, np.zeros_like),
    "a fixed grid": (lambda x: np.round(256 * x) / 256, np.zeros_like),
    "half precision": (lambda x: np.tanh(x).astype(np.float16) * 1.0, lambda x: 1 - np.tanh(x) ** 2),
    "an early stop": (root_by_halving, lambda x: 1 / (3 * np.cbrt(x) ** 2)),
}


def function_of(ns, forward, slope, wrong):
    """A Function of rows; a wrong one has other gradients for any other number of rows than four."""

    class OfRows(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return ns.tensor(forward(x.detach().numpy()), dtype=ns.float64)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            found = ns.tensor(slope(x.detach().numpy()), dtype=ns.float64)
            return g * (found + 0.25) if wrong and len(x) != 4 else g * found

    return OfRows


@pytest.mark.sampled(2)
@in_turn("kind", KINDS)
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_other_sizes_are_judged_by_their_parts(backend, ns, kind, wrong):
    forward, slope = KINDS[kind]
    rows = ROWS + 1.5 * (ROWS == 0) if kind == "an early stop" else ROWS
    function = function_of(ns, forward, slope, wrong)
    # To prove a gradient wrong takes thousands of calls, fewer where there are fewer entries.
    subject = backend.bind(function, [tensor("x", rows[:, 1:2] if wrong else rows)])
    evidence = run_battery(subject, Settings(only=("sizes",)), seed=0, sweep=True)
    of_sizes = [found.verdict for found in evidence if found.check == "sizes"]
    assert of_sizes == [Verdict.FAILED if wrong else Verdict.PASSED]
    assert [finding.kind for finding in name_findings(evidence, subject)] == [FindingKind.BATCH_SIZE] * wrong
    assert wrong or subject.counters.forward < FEW_FORWARDS
