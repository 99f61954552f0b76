"""Progress on a terminal: the count, the running case and an estimate that holds; nothing of it elsewhere."""

import os
import pty
import random
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.cli.output.progress import time_left
from tests.conftest import Run

SLOW = """
import time
from gradcli.engine.autograd import Function
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        time.sleep(0.02)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g
"""
SPEC = "target: slow:Square\ncases:\n" + "".join(
    f"  - {{name: 'case[{n}]', inputs: {{x: {{shape: [3]}}}}, order: 1, samples: 1, only: [gradient]}}\n"
    for n in range(5)
)


def on_a_terminal(folder: Path, *arguments: str) -> tuple[str, str]:
    """What the command writes to standard output, a pipe, and to standard error, a terminal of 120 columns."""
    main, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "gradcli", "check", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=end, env=environment) as process:
        os.close(end)
        written = b""
        while select.select([main], [], [], 60)[0]:
            try:
                part = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            written += part
        assert process.stdout is not None
        said = process.stdout.read().decode()
    os.close(main)
    return said, written.decode()


def screen(written: str) -> str:
    """What is left on the screen: carriage returns, and the erasing of a line and of lines above, done."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\s\S]", written):
        if token == "\r":
            column = 0
        elif token == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif token.startswith("\x1b["):
            if token.endswith("A"):
                row = max(row - int(token[2:-1] or 1), 0)
            elif token.endswith("K"):
                lines[row] = ""
        else:
            lines[row] = f"{lines[row][:column].ljust(column)}{token}{lines[row][column + 1 :]}"
            column += 1
    return "\n".join(lines).strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "slow.yaml").write_text(SPEC)
    return tmp_path


def test_a_terminal_shows_the_count_and_the_running_case_and_nothing_is_left(project: Path) -> None:
    said, written = on_a_terminal(project, "slow.yaml")
    assert "5 passed" in said
    assert "case[" not in screen(written)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    for number in range(5):
        assert re.search(rf"case\[{number}\][^\r\n]*{number}/5", text), text
    assert screen(written) == ""


@pytest.mark.parametrize("flag", ["-q", "--in-process"])
def test_a_quiet_run_and_one_for_a_debugger_draw_nothing(project: Path, flag: str) -> None:
    assert on_a_terminal(project, "slow.yaml", flag)[1] == ""


def test_off_a_terminal_nothing_is_drawn(gradcli: Run, folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    (folder / "slow.yaml").write_text(SPEC)
    ended = gradcli("check", "slow.yaml")
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_nothing_is_said_of_the_time_left_before_it_can_be_known() -> None:
    assert time_left([1.0, 1.0], 10, 0.0) == ""
    assert time_left([1.0] * 5, 0, 0.0) == ""


def test_equal_cases_give_one_figure_and_unequal_ones_a_range() -> None:
    assert time_left([10.0] * 4, 3, 0.0) == "about 30 s left"
    assert time_left([10.0] * 4, 3, 4.0) == "about 30 s left"  # 26 s, in the digits that an estimate has
    assert time_left([10.0] * 4, 3, 500.0) == "about 20 s left"  # a case that hangs does not shorten the others
    assert time_left([60.0] * 4, 60, 0.0) == "about 60 min left"
    # mean 20, s = 10: 1 case more takes 20 ± 2·10·sqrt(1 + 1/3), 12 more take 240 ± 2·10·sqrt(12 + 144/3) = 85 to 395
    assert time_left([10.0, 20.0, 30.0], 1, 0.0) == "up to 40 s left"
    assert time_left([10.0, 20.0, 30.0], 12, 0.0) == "90 s to 7 min left"


def test_the_range_holds_what_cases_of_one_kind_come_to() -> None:
    drawn = random.Random(5)
    holds = 0
    for _ in range(400):
        cases = [drawn.uniform(1.0, 3.0) for _ in range(30)]
        said = time_left([100.0 * seconds for seconds in cases[:10]], 20, 0.0)
        numbers = [float(number) for number in re.findall(r"[\d.]+", said)]
        low, high = (numbers[0] * 0.8, numbers[0] * 1.2) if len(numbers) == 1 else numbers
        holds += low - 0.5 <= sum(cases[10:]) * 100.0 / 60.0 <= high + 0.5
    assert holds > 360
