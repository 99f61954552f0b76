"""Sixty cases in every format and wherever they run: the same verdicts, findings and seeds, and valid documents."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema

from tests.programs.suite_of_sixty import MISTAKES, RIGHT, WRONG, write_suite

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/reporters/data"
LONGEST = 4.0
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""pytest without the other plugins that are installed."""
Cases = dict[str, list[object]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sixty")
    write_suite(place)
    return place


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def run(folder: Path) -> Command:
    def run(*arguments: str, module: str = "gradcli") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", module, *arguments], cwd=folder, capture_output=True, text=True, timeout=500,
            check=False, env={**os.environ, **ALONE, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    return run


REPORTS = ("r.json", "r.ndjson", "r.xml", "r.sarif", "r.md", "r.html")


@pytest.fixture(scope="module")
def alone(run: Command, folder: Path) -> Cases:
    """One process, every report written beside."""
    ended = run("check", "--timeout", f"{LONGEST}", *(part for name in REPORTS for part in ("--report", name)), "-q")
    assert ended.returncode == 1, ended.stderr
    return essence((folder / "r.json").read_text())


@pytest.fixture(scope="module")
def limit(alone: Cases, folder: Path) -> str:
    """Seconds after which the case that hangs is ended: eight times what any other case took here."""
    cases = json.loads((folder / "r.json").read_text())["cases"]
    slowest = max(case["seconds"] for case in cases if case["verdict"] != "error")
    return f"{min(LONGEST, max(2.0, 8 * slowest)):.1f}"


def essence(text: str) -> Cases:
    keys = ("verdict", "seed", "findings", "inputs", "smallest")
    return {case["id"]: [case[key] for key in keys] for case in json.loads(text)["cases"]}


def count(cases: Cases, verdict: str) -> int:
    return sum(found[0] == verdict for found in cases.values())


def test_every_case_ends_as_it_should(alone: Cases, folder: Path) -> None:
    assert list(alone) == write_suite(folder)
    assert len(alone) == 60
    assert count(alone, "passed") == RIGHT + 4
    assert count(alone, "failed") == WRONG
    assert count(alone, "error") == 6
    names = {name: found[2][0]["name"] for name, found in alone.items() if found[0] == "failed"}  # type: ignore[index]
    assert len({*names.values()}) == len(MISTAKES), names


def test_the_documents_are_valid_and_have_every_case(alone: Cases, folder: Path) -> None:
    xmlschema.XMLSchema(str(DATA / "junit-10.xsd")).validate(str(folder / "r.xml"))
    root = ElementTree.parse(folder / "r.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("60", f"{WRONG}", "6")
    schema = json.loads((DATA / "sarif-schema-2.1.0.json").read_text())
    sarif = json.loads((folder / "r.sarif").read_text())
    jsonschema.Draft7Validator(schema).validate(sarif)
    assert (
        len(
            {
                result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
                for result in sarif["runs"][0]["results"]
            }
        )
        == WRONG
    )
    assert len((folder / "r.ndjson").read_text().splitlines()) == 61
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.count('<details class="case"') == 60
    assert "<script>alert" not in page
    assert page.count("<svg") > WRONG
    rows = [
        line for line in (folder / "r.md").read_text(encoding="utf-8").splitlines() if re.match(r"\| [✅❌⚠]", line)
    ]
    assert len(rows) == 60


def test_the_documents_of_one_run_agree(alone: Cases, folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "r.ndjson").read_text().splitlines()]
    document = json.loads((folder / "r.json").read_text())
    assert lines[:-1] == document.pop("cases")
    assert lines[-1] == document


def test_github_is_told_of_every_finding(alone: Cases, run: Command) -> None:
    text = run("merge", "r.json", "--format", "github").stdout
    assert len(re.findall(r"^::error file=sixty\.py,line=\d+,", text, re.M)) >= WRONG - 1
    assert not re.search(r"^\s*::error::injected", re.sub(r"(?s)::stop-commands::(\w+)\n.*?\n::\1::", "", text), re.M)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", [("-j", "2"), ("-j", "2", "--executor", "dask")], ids=["-j 2", "dask"])
def test_workers_change_nothing(alone: Cases, run: Command, limit: str, options: tuple[str, ...]) -> None:
    if "dask" in options:
        pytest.importorskip("distributed", reason="needs Dask: pip install 'gradcli[dask]'")
    assert essence(run("check", "--timeout", limit, "--format", "json", *options).stdout) == alone


def test_shares_change_nothing(alone: Cases, run: Command, limit: str) -> None:
    for share in (1, 2, 3):
        run("check", "--timeout", limit, "-q", "--shard", f"{share}/3", "--report", f"s{share}.json")
    merged = essence(run("merge", "s1.json", "s2.json", "s3.json", "--format", "json").stdout)
    assert merged == alone


def test_pytest_in_two_processes_comes_to_the_same_verdicts(
    alone: Cases, run: Command, folder: Path, limit: str
) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.gradcli]\ntimeout = {limit}\n")
    path = folder / "pytest.xml"
    plugins = ("-p", "gradcli.pytest_plugin", "-p", "no:cacheprovider", "-p", "xdist")
    run(*plugins, "-n", "2", "--gradcli", "specs", f"--junit-xml={path}", module="pytest")
    (folder / "pyproject.toml").unlink()
    found = {case.get("name"): len(case) == 0 for case in ElementTree.parse(path).getroot().iter("testcase")}
    assert len(found) == 60
    assert sum(found.values()) == count(alone, "passed")
    assert {name for name, passed in found.items() if passed and name in alone} <= {
        name for name, case in alone.items() if case[0] == "passed"
    }
