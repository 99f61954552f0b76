"""The clock of optional work leaves out the waits for a processor, and only those."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gradcli.watchdog import limit as module
from gradcli.watchdog.limit import Clock

BUSY = 3
"""Programs that want the same processor."""


@pytest.fixture
def one_busy_processor() -> Iterator[None]:
    """This process and three others, on one processor."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("a process cannot be bound to a processor here")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the waits")
@pytest.mark.usefixtures("one_busy_processor")
def test_time_in_which_others_had_the_processor_is_not_counted() -> None:
    clock, worked, began = Clock(), time.process_time(), time.monotonic()
    start = clock.now()
    while time.process_time() - worked < 0.2:
        pass
    wall = time.monotonic() - began
    assert wall > 0.4, "the processor was not busy"
    assert not clock.is_past(start + 0.2 + wall / 2)
    assert clock.is_past(start + 0.15)


def test_time_in_which_it_sleeps_is_counted() -> None:
    clock = Clock()
    due = clock.now() + 0.05
    assert not clock.is_past(due)
    time.sleep(0.1)
    assert clock.is_past(due)


def test_without_these_figures_it_is_the_ordinary_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SCHEDULER", "/nowhere")
    clock = Clock()
    assert abs(clock.now() - time.monotonic()) < 60
    assert clock.is_past(time.monotonic())
