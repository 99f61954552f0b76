"""Passes made through one graph: used where they bear each other out, and never where something is wrong."""

import numpy as np
import pytest

from gradcli.backends.registry import backend_named
from gradcli.cases import Argument
from gradcli.checks.base import Situation
from gradcli.checks.battery import run_battery
from gradcli.findings import FindingKind
from gradcli.results import judge
from gradcli.settings import Settings
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="the layouts are PyTorch's")

VALUE = np.array([[0.5, -1.25, 2.0], [0.75, 1.5, -0.25]])


def squares(backward):
    """A Function x -> x^2 with this for the gradient, given ctx, x and grad_output."""

    class Squares(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.passes = 0
            return x * x

        @staticmethod
        def backward(ctx, g):
            ctx.passes += 1
            return backward(ctx, ctx.saved_tensors[0], g)

    return Squares


def raises_again(ctx, x, g):
    if ctx.passes > 1:
        raise RuntimeError("once only")
    return 2 * x * g


def reads_as_if_contiguous(ctx, x, g):
    return 2 * x * g.as_strided(g.shape, x.stride())


def bound(function):
    argument = Argument(name="x", value=VALUE, is_tensor=True, requires_grad=True)
    return backend_named("torch").bind(function, (argument,))


def together(function, **settings):
    situation = Situation(subject=bound(function), settings=Settings(order=1, **settings), seed=3)
    return situation, situation.together()


def right(ctx, x, g):
    return 2 * x * g


@pytest.mark.parametrize("skip", [(), ("layout",), ("repeat",)])
def test_gradients_are_those_of_passes_made_alone(skip):
    situation, found = together(squares(right), skip=skip)
    assert found is not None
    assert found.laid_out is ("layout" not in skip)
    assert found.interleaved is ("repeat" not in skip)
    for got, cotangents in ((found.of_u, situation.cotangents()), (found.of_v, situation.constant_cotangents())):
        np.testing.assert_array_equal(got[0], situation.subject.backward(cotangents)[0])


WRONG = {
    "a second pass raises": raises_again,
    "a second pass differs": lambda ctx, x, g: 2 * x * g * ctx.passes,
    "a second pass is a little off": lambda ctx, x, g: 2 * x * g * (1 + 1e-6 * ctx.passes),
    "grad_output is not used": lambda ctx, x, g: 2 * x,
    "it is clipped": lambda ctx, x, g: (2 * x * g).clamp(-100, 100),
    "it is not linear": lambda ctx, x, g: 2 * x * g.abs(),
    "strides are taken for granted": reads_as_if_contiguous,
    "it is not finite": lambda ctx, x, g: 2 * x * g / 0.0,
}


@pytest.mark.parametrize("backward", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_left_to_each_check(backward):
    _, found = together(squares(backward))
    assert found is None
    assert judge(run_battery(bound(squares(backward)), Settings(order=1), seed=3)) is Verdict.FAILED


def test_a_callable_has_no_backward_to_call_by_hand():
    situation, found = together(lambda x: x * x)
    assert found is not None
    np.testing.assert_array_equal(found.of_u[0], 2 * VALUE * situation.cotangents()[0])


def keeping(measure):
    """x -> x^2, whose backward is off by what forward measured last over what it should be."""

    class Kept(torch.autograd.Function):
        last = 1.0

        @staticmethod
        def forward(ctx, x):
            Kept.last = measure(x.detach())
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g * (Kept.last / measure(x.detach()))

    return Kept


STATE = {
    "the sign of the sum": lambda x: torch.sign(x.sum()),
    "the first entry": lambda x: x.reshape(-1)[0],
    "the number of entries": lambda x: float(x.numel()),
    "whether there are positive entries": lambda x: 1.0 + bool((x > 0).any()),
    "whether there are negative entries": lambda x: 1.0 + bool((x < 0).any()),
    "the largest entry": lambda x: x.max(),
}


@pytest.mark.parametrize("measure", STATE.values(), ids=STATE.keys())
def test_calls_between_the_passes_show_what_forward_keeps(measure):
    _, found = together(keeping(measure))
    assert found is None or not found.interleaved
    evidence = run_battery(bound(keeping(measure)), Settings(order=1), seed=3)
    assert [e.finding.kind for e in evidence if e.finding is not None] == [FindingKind.STATEFUL]


def test_passes_after_a_call_that_writes_into_what_was_saved_are_compared_with_passes_of_another_graph():
    def writes(ctx, x, g):
        found = 2 * x * g
        x.data[0, 0] = 7.0
        return found

    _, found = together(squares(writes))
    assert found is None or not found.interleaved
    failed = {e.check for e in run_battery(bound(squares(writes)), Settings(order=1), seed=3) if e.finding is not None}
    assert {"mutation", "repeat"} <= failed


def test_a_function_that_refuses_other_inputs_is_compared_without_other_calls():
    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if not torch.equal(x.detach(), torch.from_numpy(VALUE)):
                raise ValueError("another input")
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    _, found = together(Refuses)
    assert found is not None
    assert not found.interleaved


def test_few_calls_are_made_of_what_is_right():
    subject = bound(squares(right))
    assert judge(run_battery(subject, Settings(order=1), seed=3)) is Verdict.PASSED
    around = [stage for name, stage in subject.counters.stages.items() if name != "gradient"]
    assert sum(stage.forward for stage in around) <= 24  # twenty of them between forward and backward
    assert sum(stage.backward for stage in around) <= 8
