"""Each exit code of the contract, from a process of its own."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gradcli.reporters.formats import SUFFIXES
from tests.conftest import Run


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["check", "functions:Square"]),
        (1, ["check", "functions:Forgets"]),
        (1, ["check", "functions:Raises", "functions:Forgets"]),
        (2, ["check", "functions:Sqare"]),
        (2, ["check", ""]),
        (2, ["check", "nosuchmodule:Square"]),
        (2, ["check", "functions:Square", "--nosuchoption"]),
        (2, ["check", "functions:Square", "--format", "html"]),
        (2, ["chek"]),
        (2, ["replay", "nosuchfile.json"]),
        (2, ["explain", "nosuchname"]),
        (3, ["check", "functions:Raises"]),
        (3, ["check", "functions:Raises", "functions:Square"]),
        (4, ["check", "functions:Square", "-i", "x=0"]),
        (0, ["check", "functions:Square", "-i", "x=0", "--allow-inconclusive"]),
        (5, ["check"]),
        (5, ["check", "functions:Square", "--shard", "2/2"]),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else " ".join(value),
)
def test_the_process_ends_with_the_code_of_the_contract(gradcli: Run, code: int, arguments: list[str]) -> None:
    ended = gradcli(*arguments)
    assert ended.returncode == code, ended.stderr.decode() + ended.stdout.decode()
    if code in (2, 5):
        assert ended.stdout == b""
        assert ended.stderr.strip()
        assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["check", "trace", "list", "init"])
def test_an_empty_target_says_what_was_expected_and_is_not_the_working_directory(gradcli: Run, command: str) -> None:
    ended = gradcli(command, "")
    assert ended.returncode == 2
    told = ended.stderr.decode()
    assert all(wanted in told for wanted in ("'' is empty", "package.module:Name", "file.py:Name", ".yaml"))


@pytest.mark.parametrize("extra", [[], ["--in-process"]], ids=["in a worker", "in process"])
def test_a_fault_of_gradcli_itself_ends_with_70_and_says_how_to_report_it(
    folder: Path, gradcli: Run, extra: list[str]
) -> None:
    (folder / "faulty.py").write_text(
        "import gradcli.runner.case as case\nfrom functions import Square\n"
        "case.judge = None  # gradcli's own code raises when it calls it\n"
    )
    ended = gradcli("check", "faulty:Square", "-i", "x=2", *extra)
    assert ended.returncode == 70
    assert b"'NoneType' object is not callable" in ended.stderr
    assert b"report it" in ended.stderr
    assert ended.stdout == b""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("when", ["forward", "import"])
def test_a_signal_before_the_first_case_ends_leaves_a_report_that_says_so(folder: Path, when: str) -> None:
    wait = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nwhile True: time.sleep(0.01)\n"
    inside = f"class Waits(Square):\n    @staticmethod\n    def forward(ctx, x):\n{textwrap.indent(wait, ' ' * 8)}"
    (folder / "waits.py").write_text(f"from functions import Square\n{wait if when == 'import' else inside}")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "gradcli", "check", "waits.py", "-i", "x=2"]
    command += [word for suffix in SUFFIXES for word in ("--report", f"r{suffix}")]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=-1, stderr=-1) as process:
        deadline = time.monotonic() + 60
        while not (folder / "pid").exists() or not (folder / "pid").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        try:
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 143, error.decode()
    assert all((folder / f"r{suffix}").exists() for suffix in SUFFIXES)
    report = json.loads((folder / "r.json").read_text())
    assert (report["interrupted"], report["cases"]) == (True, [])


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("extra", [["--in-process"], [], ["-j", "2"]], ids=["in process", "one worker", "two"])
def test_an_interrupt_ends_with_130_and_leaves_no_process_behind(folder: Path, extra: list[str]) -> None:
    (folder / "waits.py").write_text(
        "import os, time\nfrom functions import Square\nclass Waits(Square):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        open('pid', 'w').write(str(os.getpid()))\n"
        "        while True: time.sleep(0.01)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "gradcli", "check", "waits:Waits", "-i", "x=2", *extra]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=-1, stderr=-1) as process:
        deadline = time.monotonic() + 60
        while not (folder / "pid").exists() or not (folder / "pid").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        try:
            out, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, error.decode()
    assert out == b""
    worker = int((folder / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
