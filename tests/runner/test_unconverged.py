"""A wrong gradient of an iteration that stops before it converges, and the note that says so."""

import numpy as np
import pytest

import gradcli
from gradcli.inputs.hints.argument_names import limits_iterations
from gradcli.verdict import Verdict
from tests.checks.other_points.test_numbers import SIGNED, contraction_vjp, doubled, function_of


def contracted(ns, x, max_iter=40):
    """y = x + sin(y) / 4."""
    y = x
    for _ in range(max_iter):
        y = x + ns.sin(y) / 4
    return y


def contracted_early(ns, x, max_iter=3):
    return contracted(ns, x, max_iter)


def contracted_in_steps(ns, x, depth=3):
    return contracted(ns, x, depth)


def alternating(ns, x, max_iter=40):
    """y = x - 2 sin(y), which goes back and forth."""
    y = x
    for _ in range(max_iter):
        y = x - 2 * ns.sin(y)
    return y


def alternating_vjp(ns, g, x, y, *numbers):
    return g / (1 + 2 * ns.cos(y))


def refused(ns, x, max_iter=3):
    if max_iter > 3:
        raise ValueError("at most 3")
    return contracted(ns, x, max_iter)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("forward", "vjp", "verdict", "note"),
    [
        (contracted, contraction_vjp, Verdict.PASSED, None),
        (contracted, doubled(contraction_vjp), Verdict.FAILED, None),
        (contracted_early, contraction_vjp, Verdict.FAILED, "max_iter=7 (default: 3)"),
        (contracted_early, doubled(contraction_vjp), Verdict.FAILED, "max_iter=7 (default: 3)"),
        (contracted_in_steps, contraction_vjp, Verdict.FAILED, None),
        (alternating, alternating_vjp, Verdict.FAILED, "max_iter=81 (default: 40)"),
        (refused, contraction_vjp, Verdict.FAILED, None),
    ],
)
def test_a_wrong_gradient_of_an_unconverged_iteration_has_a_note(ns, forward, vjp, verdict, note):
    leaf = ns.tensor(np.array(SIGNED).tolist(), dtype=ns.float64, requires_grad=True)
    (case,) = gradcli.check(function_of(ns, forward, vjp), (leaf,), order=1, shrink=False).cases
    assert case.verdict is verdict, case
    found = [each for each in case.notes if "forward has not converged at these inputs" in each]
    assert len(found) == (note is not None)
    assert note is None or f"with {note} its outputs change by up to" in found[0]


@pytest.mark.parametrize(
    ("name", "is_limit"),
    [("max_iter", True), ("maxiters", True), ("inner_max_iter", True), ("max_steps", True), ("MAX_ITERATIONS", True),
     ("n_iter", False), ("num_steps", False), ("max_norm", False), ("tol", False), ("min_iter", False)],
)  # fmt: skip
def test_names_of_limits_are_known(name, is_limit):
    assert limits_iterations(name) is is_limit
