"""Calls that are stopped say nothing of forward's domain: they are made again once, then named as what they are."""

import pytest

from gradcli.checks.gradient import GradientCheck
from gradcli.results import Evidence
from gradcli.verdict import Reason, Verdict
from gradcli.watchdog.case import Overrun, Watchdog, current
from gradcli.watchdog.limit import Stops
from tests.checks.frameworks import decided, tensor

UNDEFINED = Evidence(check="gradient", verdict=Verdict.INCONCLUSIVE, input="x", order=1, reason=Reason.DOMAIN)


@pytest.fixture
def run(backend, ns, monkeypatch):
    """The verdict, the evidence and the number of attempts where so many attempts have a call that is stopped."""

    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    def run_with(stopped, then):
        attempts = []

        def check(self, situation):
            watchdog = current()
            attempts.append(len(watchdog.overruns))
            if len(attempts) <= stopped:
                watchdog.overruns.append(Overrun("gradient", 1.4))
                yield UNDEFINED
            else:
                yield then

        monkeypatch.setattr(GradientCheck, "run", check)
        verdict, evidence = decided(backend, Square, tensor("x", [1.0, 2.0]), only=("gradient",))
        return verdict, [e for e in evidence if e.check == "gradient"], attempts

    return run_with


@pytest.mark.parametrize("verdict", [Verdict.PASSED, Verdict.FAILED])
def test_a_check_is_made_again_where_a_call_was_stopped(run, verdict):
    told = Evidence(check="gradient", verdict=verdict, input="x", order=1)
    _, evidence, attempts = run(1, told)
    assert evidence == [told]
    assert attempts == [0, 0]


def test_calls_that_do_not_return_are_named_as_the_reason(run):
    verdict, (evidence,), attempts = run(9, UNDEFINED)
    assert verdict is Verdict.INCONCLUSIVE
    assert len(attempts) == 2
    assert evidence.reason is Reason.BUDGET
    assert evidence.note is not None
    assert evidence.note.endswith("because a call near this point was stopped after 1.4 s")


def test_what_is_undefined_although_every_call_returned_stays_so(run):
    _, evidence, attempts = run(0, UNDEFINED)
    assert evidence == [UNDEFINED]
    assert len(attempts) == 1


def test_stops_are_forgotten_once():
    watchdog = Watchdog()
    assert not watchdog.forgets_stops()
    for expected in (True, False):
        watchdog.overruns.append(Overrun("gradient", 1.4))
        assert watchdog.forgets_stops() is expected
    assert watchdog.overruns


def test_stops_keep_the_nearest_distance_and_count_other_sizes():
    stops = Stops()
    for far in (0.5, float("inf"), 2.0, float("inf")):
        stops.add(far)
    assert (stops.radius, stops.resized) == (0.5, 2)
    assert [stops.excludes(far, 2) for far in (0.25, 0.5, 1.0, float("inf"))] == [False, True, True, True]
    assert not stops.excludes(float("inf"), 3)
