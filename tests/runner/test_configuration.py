"""What pyproject.toml says of a run, how options go before it, and what is wrong with it."""

import json
from pathlib import Path

import pytest

from gradcli.errors import UsageError
from gradcli.runner.planning.configuration import KEYS, Configuration, configuration, default_targets, settings_from
from tests.conftest import Run

ALL = """
[project]
name = "x"

[tool.gradcli]
specs = ["gradients", "more/a.yaml"]
order = 1
samples = 2
seed = 7
significance = 1e-5
jobs = 2
timeout = 30
skip = ["sizes"]
report = ["out/r.json"]

[tool.gradcli.allow]
mutates-input = "by design"
"""


def written(folder: Path, text: str) -> Configuration:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return configuration(folder)


def test_every_key_reaches_the_settings(tmp_path: Path) -> None:
    found = written(tmp_path, ALL)
    settings = settings_from({}, found)
    assert (settings.order, settings.order_asked, settings.samples, settings.seed) == (1, True, 2, 7)
    assert (settings.significance, settings.jobs, settings.timeout) == (1e-5, 2, 30)
    assert (settings.skip, settings.allow) == (("sizes",), (("mutates-input", "by design"),))
    assert found.specs == ("gradients", "more/a.yaml")
    assert found.reports == (str(tmp_path / "out/r.json"),)


def test_an_option_goes_before_the_configuration(tmp_path: Path) -> None:
    found = written(tmp_path, ALL)
    settings = settings_from({"order": 3, "samples": None, "skip": ("empty",)}, found)
    assert (settings.order, settings.samples, settings.skip) == (3, 2, ("empty",))


def test_paths_are_those_of_the_file_and_are_shown_from_where_the_run_starts(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "gradients").mkdir()
    (tmp_path / "more").mkdir()
    (tmp_path / "more/a.yaml").touch()
    written(tmp_path, ALL)
    assert default_targets(tmp_path / "inner") == (str(tmp_path / "gradients"), str(tmp_path / "more/a.yaml"))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[tool.gradcli]\n\nodrer = 1\n", 3, r"unknown key 'odrer' \(did you mean 'order'\?\)"),
        ("[tool.gradcli]\nzzz = 1\n", 2, "unknown key 'zzz'; known: specs"),
        ("[tool.gradcli]\norder = '2'\n", 2, "expected order to be a whole number, got order='2'"),
        ("[tool.gradcli]\norder = true\n", 2, "expected order to be a whole number, got order=True"),
        ("[tool.gradcli]\nspecs = 'a.yaml'\n", 2, "expected specs to be a list of paths"),
        ("[tool.gradcli]\nskip = [1]\n", 2, "expected skip to be a list of checks"),
        ("# c\n[tool]\n[tool.gradcli]\ntimeout = []\n", 4, "expected timeout to be a number of seconds"),
        (
            "[tool.gradcli.allow]\nwrong-facotr = 'x'\n",
            1,
            r"unknown finding 'wrong-facotr' \(did you mean 'wrong-factor'",
        ),
        ("[tool.gradcli]\nallow = {wrong-factor = ''}\n", 2, "expected allow to be a table"),
        ("[tool.gradcli]\n'report' = 3\n", 2, "expected report to be a list of paths"),
    ],
)
def test_a_wrong_key_is_shown_with_file_and_line(text: str, line: int, problem: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        written(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'pyproject.toml'}:{line}: ")


@pytest.mark.parametrize("text", ["[tool.gradcli\n", "tool = 3\n[tool.gradcli]\n", "\x00"])
def test_a_file_that_is_no_toml_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        written(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("order = 0", "order"),
        ("samples = -1", "samples"),
        ("timeout = 0", "timeout"),
        ("significance = nan", "significance"),
    ],
)
def test_a_value_that_no_run_can_have_names_its_line(text: str, key: str, tmp_path: Path) -> None:
    found = written(tmp_path, f"[tool.gradcli]\nspecs = []\n{text}\n")
    with pytest.raises(UsageError, match=rf"pyproject.toml:3: \[tool.gradcli\] {key} "):
        settings_from({}, found)
    with pytest.raises(UsageError, match=f"^--{key} "):
        settings_from({key: -3}, found)


def test_a_file_without_the_table_says_nothing(tmp_path: Path) -> None:
    assert written(tmp_path, "[tool.other]\nx = 1\n") == Configuration()


def test_the_command_follows_it_and_writes_its_reports(gradcli: Run, folder: Path) -> None:
    (folder / "specs").mkdir()
    (folder / "specs/a.yaml").write_text("target: functions:Square\n")
    (folder / "pyproject.toml").write_text("[tool.gradcli]\norder = 1\nseed = 5\nreport = ['r.json', 'r.xml']\n")
    assert gradcli("check").returncode == 0
    document = json.loads((folder / "r.json").read_text())
    assert document["seed"] == 5
    assert {check["order"] for check in document["cases"][0]["checks"]} == {1}
    assert (folder / "r.xml").exists()
    ended = gradcli("check", "--seed", "6", "--report", "own.json")
    assert ended.returncode == 0
    assert json.loads((folder / "own.json").read_text())["seed"] == 6


def test_a_mistake_in_it_ends_the_command(gradcli: Run, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradcli]\njobz = 2\n")
    ended = gradcli("check", "functions:Square")
    assert ended.returncode == 2
    assert b"pyproject.toml:2: [tool.gradcli]: unknown key 'jobz' (did you mean 'jobs'?)" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_the_documentation_names_every_key() -> None:
    text = (Path(__file__).parents[2] / "docs/cli.md").read_text(encoding="utf-8")
    table = text.partition("[tool.gradcli]\n")[2].partition("```")[0]
    assert [key for key in KEYS if f"{key} =" not in table] == []
