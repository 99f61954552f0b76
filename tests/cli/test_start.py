"""What a command imports before it answers: processor time is lost there first, and unseen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = """
import atexit, json, os, sys
from gradcli.__main__ import main
atexit.register(lambda: open("command.txt", "w").write("\\n".join(sys.modules)))
sys.argv = ["gradcli", "check", "small.py:Cube"]
sys.exit(main())
"""
SMALL = """
import atexit, sys
from gradcli.examples.cube import Cube as Given
atexit.register(lambda: open("worker.txt", "w").write("\\n".join(sys.modules)))
class Cube(Given): pass
"""
HEAVY = ("torch", "jax", "dask", "typer", "click", "pydantic", "rich", "yaml", "numpy.ma")
BESIDE_THE_COMMAND = (
    "numpy", "gradcli.numerics", "gradcli.engine", "gradcli.backends", "gradcli.checks", "gradcli.diagnosis",
    "gradcli.inputs", "gradcli.tolerance", "gradcli.traces", "gradcli.runner.case", "importlib.metadata", "html",
    "statistics", "multiprocessing", "asyncio", "concurrent.futures", "subprocess",
)  # fmt: skip
BESIDE_A_PASS = (
    "gradcli.cli", "gradcli.reporters", "gradcli.tolerance", "gradcli.traces", "gradcli.diagnosis.naming",
    "gradcli.diagnosis.first_order", "gradcli.runner.failed", "gradcli.runner.failures", "gradcli.runner.reduce",
    "gradcli.runner.trace", "gradcli.runner.drawn", "gradcli.backends.tracing", "gradcli.backends.torch_backend",
    "gradcli.backends.jax_backend", "gradcli.backends.numpy_backend", "gradcli.spec.load", "statistics", "html",
)  # fmt: skip
MOST_IN_THE_COMMAND = 66
MOST_IN_A_WORKER = 322
"""Modules of gradcli's own, 5 % above what there are: each costs up to a millisecond."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules of the command, and of its worker, at the end of a check of a small right Function."""
    folder: Path = tmp_path_factory.mktemp("start")
    (folder / "small.py").write_text(SMALL)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(
        [sys.executable, "-c", COMMAND], cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=120
    )
    return {name: set((folder / f"{name}.txt").read_text().split()) for name in ("command", "worker")}


def among(names: tuple[str, ...], modules: set[str]) -> list[str]:
    return sorted(module for module in modules if any(f"{module}.".startswith(f"{name}.") for name in names))


def own(modules: set[str]) -> list[str]:
    return sorted(module for module in modules if module.split(".")[0] == "gradcli")


def test_the_command_leaves_numpy_and_the_checks_to_its_workers(imported: dict[str, set[str]]) -> None:
    assert among((*HEAVY, *BESIDE_THE_COMMAND), imported["command"]) == []
    assert len(own(imported["command"])) <= MOST_IN_THE_COMMAND


def test_a_worker_imports_what_the_check_of_a_right_function_needs(imported: dict[str, set[str]]) -> None:
    assert {"numpy", "gradcli.engine", "gradcli.checks.gradient"} <= imported["worker"]
    assert among((*HEAVY, *BESIDE_A_PASS), imported["worker"]) == []
    assert len(own(imported["worker"])) <= MOST_IN_A_WORKER


def test_command_and_worker_import_what_both_use_once(imported: dict[str, set[str]]) -> None:
    """A worker is a copy of the command at its start, and of nothing else of it."""
    assert {"gradcli.results", "gradcli.runner.jobs"} <= imported["command"] & imported["worker"]
    assert "gradcli.runner.workers.birth" in imported["worker"]
