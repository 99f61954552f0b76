"""Specs as items of pytest, and the fixture: the same verdicts and texts as the command's, no internals."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.conftest import Run

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
PLUGIN = ("-p", "no:gradcli", "-p", "gradcli.pytest_plugin")
"""This checkout's plugin, whichever is installed."""
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Without the other plugins that are installed, whose packages pytest would rewrite, gradcli among them."""
SPEC = """
target: functions:Square
defaults: {order: 1, tags: quick}
---
target: functions:Forgets
defaults: {order: 1}
---
target: functions:Raises
cases:
  - name: given
    inputs: {x: {shape: [3]}}
---
target: deadly:Leaves
cases:
  - inputs: {x: {shape: [3]}}
"""


@pytest.fixture
def pytest_in(folder: Path) -> Pytest:
    (folder / "specs").mkdir()
    (folder / "specs/a.yaml").write_text(SPEC)
    (folder / "specs/notes.txt").write_text("nothing")
    (folder / "other.yaml").write_text("some: other file\n")

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        given = (*PLUGIN, "-p", "no:cacheprovider", *arguments)
        return warm.run_for_text(given, folder, imports="pytest", module="pytest", PYTEST_ADDOPTS="", **ALONE)

    return run


def outcomes(text: str) -> dict[str, str]:
    found = re.findall(r"^(\S+\.yaml::.+?) (PASSED|FAILED|SKIPPED|ERROR)", text, re.M)
    return {name.partition("::")[2]: outcome for name, outcome in found}


def collected(text: str) -> list[str]:
    return re.findall(r"^\S+\.yaml::(.+)$", text, re.M)


VERDICTS = {
    "functions:Square": "PASSED",
    "functions:Forgets": "FAILED",
    "functions:Raises[given]": "FAILED",
    "deadly:Leaves": "FAILED",
}


@pytest.mark.parametrize(
    "arguments",
    [["--gradcli", "specs"], ["--gradcli", "specs/a.yaml"], ["specs/a.yaml"], ["-o", "gradcli_specs=specs"]],
)
def test_specs_are_collected_where_they_are_asked_for(pytest_in: Pytest, arguments: list[str]) -> None:
    assert collected(pytest_in("--collect-only", "-q", *arguments).stdout) == [*VERDICTS]


def test_an_item_fails_where_the_case_does_not_pass(pytest_in: Pytest) -> None:
    ended = pytest_in("-v", "--gradcli", "specs")
    assert outcomes(ended.stdout) == VERDICTS
    assert ended.returncode == 1


def test_files_that_nobody_asked_for_are_left_alone(pytest_in: Pytest) -> None:
    assert pytest_in().returncode == 5


def test_a_failure_shows_the_text_of_the_command_and_nothing_else(pytest_in: Pytest, gradcli: Run) -> None:
    said = pytest_in("--gradcli", "specs", "-k", "Forgets").stdout
    shown = gradcli("check", "specs/a.yaml", "-k", "Forgets").stdout.decode()
    for line in shown.splitlines()[1:-1]:
        assert line.rstrip() in said
    assert "gradcli/runner" not in said
    assert "def runtest" not in said


def test_cases_are_chosen_by_words_tags_and_markers(pytest_in: Pytest) -> None:
    def chosen(*options: str) -> list[str]:
        return collected(pytest_in("--collect-only", "-q", "--gradcli", "specs", *options).stdout)

    assert chosen("-k", "Square") == ["functions:Square"]
    assert chosen("-k", "quick") == ["functions:Square"]
    assert chosen("-m", "gradcli") == [*VERDICTS]
    assert chosen("-m", "not gradcli") == []
    one = "specs/a.yaml::functions:Forgets"
    assert outcomes(pytest_in("-v", one).stdout) == {"functions:Forgets": "FAILED"}


def test_a_spec_that_is_wrong_is_an_error_with_its_line(pytest_in: Pytest, folder: Path) -> None:
    (folder / "specs/b.yaml").write_text("target: functions:Square\nshpae: 3\n")
    ended = pytest_in("--gradcli", "specs")
    assert ended.returncode == 2
    assert re.search(r"b\.yaml:2:1: unknown key 'shpae'", ended.stdout)
    assert "Traceback" not in ended.stdout


def test_xdist_runs_the_same_cases(pytest_in: Pytest) -> None:
    pytest.importorskip("xdist", reason="needs pytest-xdist")
    text = pytest_in("-p", "xdist", "-v", "-n", "2", "--gradcli", "specs").stdout
    found = set(re.findall(r"(PASSED|FAILED) specs/a\.yaml::(\S+)", text))
    assert found == {(outcome, name) for name, outcome in VERDICTS.items()}


def test_verdicts_and_configuration_are_those_of_the_command(pytest_in: Pytest, gradcli: Run, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradcli]\nseed = 3\nspecs = ['specs']\n")
    document = json.loads(gradcli("check", "--format", "json").stdout)
    passed = {case["id"] for case in document["cases"] if case["verdict"] == "passed"}
    found = outcomes(pytest_in("-v", "--gradcli", "specs").stdout)
    assert {name for name, outcome in found.items() if outcome == "PASSED"} == passed
    (folder / "pyproject.toml").write_text("[tool.gradcli]\nseed = 'x'\n")
    assert "expected seed to be a whole number" in pytest_in("--gradcli", "specs").stdout


def test_the_fixture_fails_with_the_reports_text(pytest_in: Pytest, folder: Path) -> None:
    (folder / "test_mine.py").write_text(
        "import pytest\nfrom functions import Forgets, Square\n\n"
        "def test_right(gradcheck):\n    report = gradcheck(Square)\n    assert report.ok\n\n"
        "def test_wrong(gradcheck):\n    gradcheck(Forgets)\n\n"
        "@pytest.mark.gradcli(order=1, samples=1)\n"
        "def test_marked(gradcheck):\n    case, = gradcheck(Square).cases\n"
        "    assert (case.orders, case.samples) == ((1,), 1)\n\n"
        "@pytest.mark.gradcli(odrer=1)\ndef test_misspelt(gradcheck):\n    pass\n"
    )
    ended = pytest_in("-rA", "test_mine.py")
    assert re.search(r"2 passed, 1 failed, 1 error|1 failed, 2 passed, 1 error", ended.stdout)
    assert "finding=wrong-factor" in ended.stdout
    assert "pytest.mark.gradcli takes only the keyword arguments order, samples" in ended.stdout
    assert "gradcli/api.py" not in ended.stdout


def test_a_run_without_specs_imports_nothing_of_gradcli(folder: Path) -> None:
    (folder / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    mine = {name for name in sys.modules if name.startswith('gradcli')}\n"
        "    assert mine <= {'gradcli', 'gradcli._version', 'gradcli.pytest_plugin'}\n"
        "    assert 'numpy' not in sys.modules\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *PLUGIN, "test_nothing.py"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **ALONE, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
