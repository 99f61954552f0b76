"""The same results wherever cases run: one process, two, shares, other people's executors, a Dask cluster."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

SUITE = """
target: functions:Square
defaults: {order: 1}
---
target: functions:Forgets
defaults: {order: 1}
---
target: functions:Product
defaults: {order: 1}
cases:
  - name: "<script>é\\n::error::"
    inputs: {x: {shape: [2, 3]}, y: {shape: [2, 3]}}
  - name: broadcast
    inputs: {x: {shape: [2, 3]}, y: {shape: [3]}}
---
target: functions:Raises
defaults: {order: 1}
cases: [{inputs: {x: {shape: [3]}}}]
---
target: deadly:Leaves
defaults: {order: 1}
cases: [{inputs: {x: {shape: [3]}}}]
---
target: deadly:Segfaults
defaults: {order: 1}
cases: [{inputs: {x: {shape: [3]}}}]
---
target: deadly:Unharmed
defaults: {order: 1}
---
target: functions:Rectified
expect: surrogate
defaults: {order: 1}
"""
EXECUTORS = """
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor


def threads():
    return ThreadPoolExecutor(2)


def processes():
    return ProcessPoolExecutor(2)


class Breaking(Executor):
    \"\"\"Loses every second job.\"\"\"

    def __init__(self):
        self.count = 0

    def submit(self, function, *args):
        future = Future()
        self.count += 1
        if self.count % 2:
            future.set_result(function(*args))
        else:
            future.set_exception(ConnectionError("the node is gone"))
        return future


none = 3


def text():
    return "no executor"


def fails():
    raise RuntimeError("no cluster today")
"""


@pytest.fixture
def suite(folder: Path) -> Path:
    (folder / "specs").mkdir()
    (folder / "specs/a.yaml").write_text(SUITE)
    (folder / "mine.py").write_text(EXECUTORS)
    return folder


def essence(stdout: bytes) -> dict[str, object]:
    """What must not depend on where a case runs."""
    keys = ("verdict", "seed", "inputs", "findings", "smallest", "error", "resolution")
    return {case["id"]: [case.get(key) for key in keys] for case in json.loads(stdout)["cases"]}


@pytest.fixture
def alone(gradcli: Run, suite: Path) -> dict[str, object]:
    return essence(gradcli("check", "--format", "json").stdout)


def test_the_suite_has_every_kind_of_end(alone: dict[str, list[object]]) -> None:
    assert [found[0] for found in alone.values()].count("passed") == 5
    assert [found[0] for found in alone.values()].count("failed") == 1
    assert [found[0] for found in alone.values()].count("error") == 3


def test_executors_of_others_change_no_result(gradcli: Run, suite: Path, alone: dict[str, object]) -> None:
    for options in (["-j", "2"], ["--executor", "mine:threads"], ["--executor", "mine:processes"]):
        ended = gradcli("check", "--format", "json", *options)
        assert ended.returncode == 1
        assert essence(ended.stdout) == alone


def test_a_dask_cluster_changes_no_result(gradcli: Run, suite: Path, alone: dict[str, object]) -> None:
    pytest.importorskip("distributed", reason="needs Dask: pip install 'gradcli[dask]'")
    ended = gradcli("check", "--format", "json", "--executor", "dask", "-j", "2")
    assert essence(ended.stdout) == alone
    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr


def test_shares_merged_change_no_result(gradcli: Run, suite: Path, alone: dict[str, object]) -> None:
    found: dict[str, object] = {}
    for share in ("1/2", "2/2"):
        part = essence(gradcli("check", "--format", "json", "--shard", share).stdout)
        assert not found.keys() & part.keys()
        found |= part
    assert found == alone


def test_a_job_that_its_executor_loses_is_an_error_of_its_case(gradcli: Run, suite: Path) -> None:
    (suite / "specs/a.yaml").write_text("\n---\n".join(["target: functions:Square\ndefaults: {order: 1}\n"
                                                        f"cases: [{{name: case {n}}}]" for n in range(4)]))  # fmt: skip
    ended = gradcli("check", "--format", "json", "--executor", "mine:Breaking")
    cases = json.loads(ended.stdout)["cases"]
    assert [case["verdict"] for case in cases] == ["passed", "error", "passed", "error"]
    assert "the executor lost it (ConnectionError: the node is gone)" in cases[1]["error"]
    assert ended.returncode == 3


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("slurm", "expected processes, dask, dask:ADDRESS or module:factory"),
        ("mine:none", "expected a function that returns an executor, got 3"),
        ("mine:text", "expected it to return a concurrent.futures.Executor, got str"),
        ("mine:missing", "mine"),
        ("nowhere:f", "nowhere"),
        ("mine:fails", "RuntimeError: no cluster today"),
    ],
)
def test_what_is_no_executor_is_refused(gradcli: Run, suite: Path, name: str, problem: str) -> None:
    ended = gradcli("check", "--executor", name)
    assert ended.returncode == 2
    assert problem in ended.stderr.decode()
    assert b"gradcli/runner" not in ended.stderr
