"""The same results wherever cases run: one process, two, shares, other people's executors, a Dask cluster."""

import json
import logging
import re
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from gradcli.runner.executors.dask import dask_executor
from gradcli.runner.executors.futures import ExecutorPool
from gradcli.runner.jobs import Lost
from gradcli.runner.process.interrupts import Interrupts
from tests import warm
from tests.conftest import Run
from tests.programs.users_modules import write_modules

SUITE = """
target: functions:Square
defaults: {order: 1, samples: 1}
---
target: functions:Forgets
defaults: {order: 1, samples: 1}
---
target: functions:Product
defaults: {order: 1, samples: 1}
cases:
  - name: "<script>é\\n::error::"
    inputs: {x: {shape: [2, 3]}, y: {shape: [2, 3]}}
  - name: broadcast
    inputs: {x: {shape: [2, 3]}, y: {shape: [3]}}
---
target: functions:Raises
defaults: {order: 1, samples: 1}
cases: [{inputs: {x: {shape: [3]}}}]
---
target: deadly:Leaves
defaults: {order: 1, samples: 1}
cases: [{inputs: {x: {shape: [3]}}}]
---
target: deadly:Segfaults
defaults: {order: 1, samples: 1}
cases: [{inputs: {x: {shape: [3]}}}]
---
target: deadly:Unharmed
defaults: {order: 1, samples: 1}
---
target: functions:Rectified
expect: surrogate
defaults: {order: 1, samples: 1}
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


def written(folder: Path) -> Path:
    (folder / "specs").mkdir()
    (folder / "specs/a.yaml").write_text(SUITE)
    (folder / "mine.py").write_text(EXECUTORS)
    return folder


@pytest.fixture
def suite(folder: Path) -> Path:
    return written(folder)


def essence(stdout: bytes) -> dict[str, object]:
    """What must not depend on where a case runs, which the time that a call took may."""
    keys = ("verdict", "seed", "inputs", "findings", "smallest", "error", "resolution")
    text = re.sub(rb"had run for [\d.]+ s", b"had run", stdout)
    return {case["id"]: [case.get(key) for key in keys] for case in json.loads(text)["cases"]}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("alone")
    write_modules(folder)
    return essence(warm.run(("check", "--format", "json"), written(folder)).stdout)


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


def _level_of_dask() -> int:
    return logging.getLogger("distributed.worker").getEffectiveLevel()


def test_processes_of_dask_do_not_log_that_the_cluster_closes() -> None:
    pytest.importorskip("distributed", reason="needs Dask: pip install 'gradcli[dask]'")
    with dask_executor(None, 1) as executor:
        assert executor.submit(_level_of_dask).result() == logging.CRITICAL


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
    assert cases[1]["error"].endswith("the executor did not run the case (ConnectionError: the node is gone)")
    assert ended.returncode == 3


class LosesTheSeventh(Executor):
    """Loses each task that holds job 7, and gives out the outcomes of all others at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def submit(self, function: object, /, *args: Any, **kwargs: object) -> "Future[Any]":
        future: Future[Any] = Future()
        self.sizes.append(len(args[0]))
        if 7 in args[0]:
            future.set_exception(ConnectionError("the node is gone"))
        else:
            future.set_result(args[0])
        return future


@pytest.mark.parametrize(("count", "largest"), [(0, 0), (8, 1), (1000, 1), (2500, 3), (30_000, 10)])
def test_many_jobs_are_few_tasks_and_a_lost_task_loses_one_job(count: int, largest: int) -> None:
    executor = LosesTheSeventh()
    pool = ExecutorPool(executor=executor, start=Path(), path=[], timeout=None, interrupts=Interrupts())
    outcomes = list(pool.outcomes(range(count)))  # type: ignore[arg-type]
    assert [n for n, outcome in enumerate(outcomes) if outcome != n] == [7] * (count > 7)
    assert not count or isinstance(outcomes[7], Lost)
    assert max(executor.sizes, default=0) == largest
    assert pool.finished() == ()


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
