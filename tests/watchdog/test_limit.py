"""A limit of processor time."""

import time

import pytest

from gradcli.watchdog import limit as module
from gradcli.watchdog.limit import DELAY, TimeLimit


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Processor time, the clock, and how long this thread has waited for a processor, set by hand."""
    now = {"worked": 5.0, "clock": 100.0, "waited": 30.0}
    monkeypatch.setattr(module, "process_time", lambda: now["worked"])
    monkeypatch.setattr(module, "monotonic", lambda: now["clock"])
    monkeypatch.setattr(module, "_waited", lambda: now["waited"])
    return now


def test_a_busy_machine_does_not_end_it(clocks: dict[str, float]) -> None:
    limit = TimeLimit(2.0)
    clocks["clock"] += 7.0
    assert not limit.is_over
    clocks["clock"] += 60.0
    clocks["waited"] += 60.0
    assert not limit.is_over
    clocks["worked"] += 2.1
    assert limit.is_over


def test_a_target_that_waits_does(clocks: dict[str, float]) -> None:
    limit = TimeLimit(2.0)
    clocks["clock"] += DELAY * 2.0 + 0.1
    assert limit.is_over


def test_the_clock_may_be_given_apart(clocks: dict[str, float]) -> None:
    limit = TimeLimit(2.0, clock=3.0)
    clocks["clock"] += 2.5
    assert limit.left == pytest.approx(0.5)
    assert not limit.is_over
    clocks["clock"] += 1.0
    assert limit.is_over


def test_what_is_left_is_the_lesser_of_both(clocks: dict[str, float]) -> None:
    limit = TimeLimit(2.0, clock=3.0)
    assert limit.left == pytest.approx(2.0)
    clocks["worked"] += 1.5
    assert limit.left == pytest.approx(0.5)


def test_it_reads_the_processor_time_of_this_process() -> None:
    limit = TimeLimit(60.0)
    assert 0 < limit.left <= 60.0
    assert not limit.is_over
    over = TimeLimit(0.0)
    until = time.process_time() + 0.01
    while time.process_time() < until:
        pass
    assert over.is_over
