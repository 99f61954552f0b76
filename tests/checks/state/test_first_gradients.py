"""A backward whose first gradients in a process differ from later ones, which the other passes do not see."""

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

X = np.array([0.6, -1.2, 0.9, -1.7, 0.3])


def warming_up(ns, passes, *, least=0.0):
    """log(1 + x^2), the gradient scaled by n over the number of passes in the first ones, from `least` on."""
    count = [0]

    class Warm(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return ns.log1p(x * x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            count[0] += 1
            return g * 2 * x / (1 + x * x) * max(least, min(1.0, count[0] / passes))

    return Warm


@pytest.mark.parametrize("passes", [2, 3, 5])
def test_the_first_passes_scaled_down_at_given_inputs(ns, passes):
    (case,) = gradcli.check(warming_up(ns, passes), (X,), order=1, shrink=False).cases
    assert case.verdict is Verdict.FAILED
    assert {finding.kind for finding in case.findings} == {FindingKind.STATEFUL}
    assert gradcli.check(warming_up(ns, passes, least=1.0), (X,), order=1).ok


def test_the_first_passes_scaled_down_in_the_search_are_a_note(ns):
    for least in (0.0, 1.0):
        (case,) = gradcli.check(warming_up(ns, 2, least=least), order=1).cases
        assert case.verdict is Verdict.PASSED
        noted = [note for note in case.notes if note.startswith("in the search for inputs, the first call of backward")]
        assert len(noted) == (least == 0.0)


def test_passes_that_outlast_the_search_fail(ns):
    for least, verdict in ((0.0, Verdict.FAILED), (1.0, Verdict.PASSED)):
        (case,) = gradcli.check(warming_up(ns, 7, least=least), order=1, shrink=False).cases
        assert case.verdict is verdict


def test_random_numbers_say_nothing_of_the_first_pass(ns):
    """Each call of forward draws a mask of its own, which backward uses."""

    class Dropout(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mask = (ns.rand_like(x) > 0.3).to(x.dtype) / 0.7
            return x * ctx.mask

        @staticmethod
        def backward(ctx, g):
            return g * ctx.mask

    for given in ((), ((X,),)):
        (case,) = gradcli.check(Dropout, *given, order=1).cases
        assert case.verdict is Verdict.PASSED
        assert not [note for note in case.notes if "first call of backward" in note]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("both", [True, False])
def test_an_output_that_is_returned_twice_is_no_state(ns, both):
    """The framework may pass on the sum of both gradients in the place of one; the direct call has each in its own."""

    class Twice(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = x.exp()
            return y, y

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            return (g + h if both else g) * x.exp()

    (case,) = gradcli.check(Twice, order=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if both else Verdict.FAILED)
    assert FindingKind.STATEFUL not in [finding.kind for finding in case.findings]
