"""Some of the inputs require a gradient, or some of the outputs are used, of three or more."""

import pytest

import gradcli
from gradcli.checks.subsets import further_subsets, subsets
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict


def weighted(ns, is_shortcut):
    class Weighted(ns.autograd.Function):
        """p x + q y, with a formula of its own where `is_shortcut` of what requires a gradient."""

        @staticmethod
        def forward(ctx, p, x, q, y):
            ctx.save_for_backward(p, x, q, y)
            return p * x + q * y

        @staticmethod
        def backward(ctx, g):
            p, x, q, y = ctx.saved_tensors
            if is_shortcut(*ctx.needs_input_grad):
                return g * x, g * p, g * y, g * p
            return g * x, g * p, g * y, g * q

    return Weighted


PATTERNS = {
    "two alone": lambda p, x, q, y: x and y and not (p or q),
    "two beside one that does not": lambda p, x, q, y: p and y and not q and not x,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_two_of_four_inputs_that_require_a_gradient(ns, name):
    inputs = {each: {"shape": [3]} for each in ("p", "x", "q", "y")}
    for is_shortcut, verdict in ((PATTERNS[name], Verdict.FAILED), (lambda *_: False, Verdict.PASSED)):
        (case,) = gradcli.check(
            weighted(ns, is_shortcut), inputs, order=1, shrink=False, only=["gradient", "subsets"]
        ).cases
        assert case.verdict is verdict
    (case,) = gradcli.check(
        weighted(ns, PATTERNS[name]), inputs, order=1, shrink=False, only=["gradient", "subsets"]
    ).cases
    assert [(f.kind, f.input) for f in case.findings] == [(FindingKind.NEEDS_INPUT_GRAD, "y")]


def test_subsets_of_many_inputs_are_few_and_have_all_patterns_of_two():
    for count in (4, 5, 6, 9):
        tried = [*subsets(range(count)), *further_subsets(range(count))]
        assert len(tried) <= 42
        patterns = {(i, j, i in each, j in each) for each in tried for i in range(count) for j in range(i)}
        assert len(patterns) == 4 * count * (count - 1) // 2


def powers(ns, *, keeps_all):
    class Powers(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x**2, x**3, x**4

        @staticmethod
        def backward(ctx, *gs):
            (x,) = ctx.saved_tensors
            total = 0.0 * x
            for power, g in enumerate(gs, 2):
                if g is None and power == 3 and not keeps_all:
                    total = 0.0 * x  # what output 0 gave is lost
                if g is not None:
                    total = total + power * g * x ** (power - 1)
            return total

    return Powers


@pytest.mark.parametrize("keeps_all", [True, False])
def test_two_of_three_outputs_that_are_used(ns, keeps_all):
    (case,) = gradcli.check(
        powers(ns, keeps_all=keeps_all),
        {"x": {"shape": [3], "domain": "positive"}},
        order=1,
        shrink=False,
        only=["gradient", "unused-outputs"],
    ).cases
    assert case.verdict is (Verdict.PASSED if keeps_all else Verdict.FAILED)
    assert [f.kind for f in case.findings] == ([] if keeps_all else [FindingKind.UNDEFINED_GRAD])
