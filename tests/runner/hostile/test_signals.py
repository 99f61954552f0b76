"""A run that is ended from outside keeps what it has, and leaves no process behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_WAITS = """
import os, time
from functions import Square

class Waits(Square):
    @staticmethod
    def forward(ctx, x):
        with open("pid", "w") as file:
            file.write(str(os.getpid()))
        while True:
            time.sleep(0.01)
"""
_IGNORES = _WAITS.replace("import os, time", "import os, time, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)")


def _started(folder: Path, program: str, *extra: str) -> tuple["subprocess.Popen[bytes]", int]:
    (folder / "waits.py").write_text(program)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "gradcli", "check", "functions:Square", "waits:Waits", "functions:Forgets"]
    # A shell's background jobs ignore interrupts, and jobs of nohup ignore SIGHUP; a child inherits that.
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    try:
        process = subprocess.Popen(
            [*command, "-i", "x=2", "--format", "json", "--report", "r.json", "--report", "r.ndjson", *extra],
            cwd=folder, env=environment, stdout=-1, stderr=-1, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    deadline = time.monotonic() + 60
    while not all((folder / name).exists() and (folder / name).read_text() for name in ("pid", "r.ndjson")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process, int((folder / "pid").read_text())


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("extra", [[], ["-j", "2"], ["--in-process"]], ids=["one worker", "two", "in process"])
def test_an_interrupted_run_reports_what_it_has(folder: Path, number: signal.Signals, extra: list[str]) -> None:
    process, worker = _started(folder, _WAITS, *extra)
    process.send_signal(number)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number, error.decode()
    document = json.loads(out)
    assert document["interrupted"] is True
    verdicts = {case["target"]: case["verdict"] for case in document["cases"]}
    assert verdicts["functions:Square"] == "passed"
    assert "waits:Waits" not in verdicts
    assert json.loads((folder / "r.json").read_text()) == document
    assert json.loads((folder / "r.ndjson").read_text().splitlines()[0])["target"] == "functions:Square"
    assert b"Traceback" not in error
    assert _gone(worker)


@pytest.mark.parametrize("program", [_WAITS, _IGNORES], ids=["waits", "ignores SIGTERM"])
def test_workers_end_with_a_command_that_is_killed_and_what_was_done_is_on_disk(folder: Path, program: str) -> None:
    process, worker = _started(folder, program)
    process.kill()
    process.communicate(timeout=60)
    assert _gone(worker)
    (line,) = (folder / "r.ndjson").read_text().splitlines()
    assert json.loads(line)["verdict"] == "passed"
    assert '"functions:Square"' in (folder / "r.json").read_text()
