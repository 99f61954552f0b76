"""A backward that does not return at inferred inputs ends as an error; a slow one is waited for."""

from pathlib import Path

import pytest

import gradcli
from gradcli.results import CheckResult
from gradcli.verdict import Verdict
from tests.conftest import Run

SOURCE = """
import time
from {framework}.autograd import Function

class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        {act}
        return {factor} * g
"""
HANGS = {"loop": "while True: pass", "sleep": "time.sleep(1e6)"}
SLOW = "time.sleep(0.03)"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls may take little, so that the tests do not wait."""
    monkeypatch.setattr("gradcli.watchdog.case.FLOOR_SECONDS", 0.01)
    monkeypatch.setattr("gradcli.watchdog.case.UNMEASURED_SECONDS", 0.02)
    monkeypatch.setattr("gradcli.watchdog.case.SEARCH_SECONDS", 0.5)
    monkeypatch.setattr("gradcli.watchdog.case.INFERRED_SECONDS", 1.0)


def checked(folder: Path, framework: str, act: str, factor: int = 2) -> CheckResult:
    pytest.importorskip(framework)
    file = folder / f"times_{factor}.py"
    file.write_text(SOURCE.format(framework=framework, act=act, factor=factor))
    skip = ("other-inputs", "sizes", "empty", "constants", "memory")
    (case,) = gradcli.check(f"{file}:Double", order=1, samples=1, skip=skip, shrink=False).cases
    return case


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("act", HANGS)
def test_a_backward_that_never_returns_is_an_error(tmp_path: Path, framework: str, act: str) -> None:
    case = checked(tmp_path, framework, HANGS[act])
    assert case.verdict is Verdict.ERROR
    assert str(case.error).startswith("backward did not return within 1 s at the inferred inputs and was stopped at")
    assert "times_2.py:" in str(case.error)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_one_that_is_slower_than_the_search_allows_is_checked(tmp_path: Path, framework: str) -> None:
    assert checked(tmp_path, framework, SLOW).verdict is Verdict.PASSED
    assert checked(tmp_path, framework, SLOW, factor=3).verdict is Verdict.FAILED


def test_a_time_limit_is_kept_however_short(gradcli: Run, folder: Path) -> None:
    (folder / "double.py").write_text(SOURCE.format(framework="gradcli.engine", act="pass", factor=2))
    ended = gradcli("check", "double.py:Double", "--timeout", "0.01")
    assert ended.returncode == 3
    assert b"ran over its time limit of 0.01 s" in ended.stdout
    assert gradcli("check", "double.py:Double", "--timeout", "100").returncode == 0
