"""A case that takes long is mentioned on standard error: what runs, for how long, and what is still to come."""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.cli.output.slow_cases import slow_cases_reported, slowest
from gradcli.runner.process.activity import RunningJob
from gradcli.watchdog.status import StatusReading

SLOW = """
import time
time.sleep(6)
from functions import Square
class Slow(Square): pass
"""
Told = Callable[[bool], str]


def job(label: str, seconds: float, **known: object) -> RunningJob:
    now = time.monotonic()
    status = StatusReading(due=math.inf, since=now - 2.0, **known)  # type: ignore[arg-type]
    return RunningJob(label=label, since=now - seconds, status=status, calls_limited=True)


def test_what_has_run_longest_is_described_in_one_line() -> None:
    assert slowest((job("quick", 4.0),)) is None
    forward = job("slow", 7.0, call=14, phase="gradient", forwards=13, forward_seconds=1.0, asked=False)
    said = slowest((job("later", 6.0), forward, job("quick", 1.0)))
    assert said == (
        "slow has run for 7 s: check gradient, call 14 (forward at inputs that gradcli chose) has run for 2.0 s; "
        "forward was called 13 times, 1 s each, about 27 calls (27 s) left if the gradient is right; "
        "1 more case also running"
    )
    assert slowest((job("two\nlines\x1b[2J", 6.0),)) == "two\\nlines\\x1b[2J has run for 6 s"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"phase": "naming", "forwards": 3}, "naming, between calls of the target; forward was called 3 times"),
        (
            {"phase": "returns", "call": 2, "is_backward": True, "forwards": 60, "forward_seconds": 0.5},
            "check returns, call 2 (backward) has run for 2.0 s; forward was called 60 times, 0.5 s each",
        ),
    ],
)
def test_nothing_is_said_of_calls_to_come_where_it_is_not_known(known: dict[str, object], said: str) -> None:
    assert slowest((job("slow", 9.0, **known),)) == f"slow has run for 9 s: {said}"
    assert (
        slowest((RunningJob(label="m.py", since=time.monotonic() - 9.0, begun=False),))
        == "m.py has been importing for 9 s"
    )


class Busy:
    """Always does the same job; knows how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def activities(self) -> tuple[RunningJob, ...]:
        self.asked += 1
        return (job("slow", 60.0),)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Told:
    def run(wanted: bool) -> str:
        monkeypatch.setattr("gradcli.cli.output.slow_cases._LOOK_SECONDS", 0.001)
        pool = Busy()
        with slow_cases_reported(pool, wanted=wanted):  # type: ignore[arg-type]
            until = time.monotonic() + 30.0
            while wanted and pool.asked < 3 and time.monotonic() < until:
                time.sleep(0.001)
        assert "gradcli-slow-cases" not in [thread.name for thread in threading.enumerate()]
        out, error = capfd.readouterr()
        assert out == ""
        return error

    return run


def test_the_line_comes_again_when_it_is_due_and_not_at_all_in_a_quiet_run(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(False) == ""
    monkeypatch.setattr("gradcli.cli.output.slow_cases.NEXT_SECONDS", (0.0, 0.0, 1000.0))
    assert told(True).splitlines() == ["gradcli: slow has run for 60 s"] * 3


def test_a_slow_import_is_mentioned_on_standard_error_alone(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "gradcli", "check", "slow.py:Slow", "-i", "x=2"]
    loud, quiet = (
        subprocess.Popen([*command, *flag], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1)
        for flag in ([], ["-q"])
    )
    (out, error), (_, silent) = loud.communicate(timeout=100), quiet.communicate(timeout=100)
    assert (loud.returncode, quiet.returncode, silent) == (0, 0, b"")
    assert b"slow.py:Slow has been importing for 5 s\n" in error or b"importing for 6 s\n" in error
    assert b"importing" not in out
