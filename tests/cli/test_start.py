"""What a command imports before it answers: processor time is lost there first, and unseen."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.runner.workers import fork_server_start
from tests.conftest import Run

COMMAND = """
import atexit, json, os, sys
from gradcli.__main__ import main
atexit.register(lambda: open("command.txt", "w").write("\\n".join(sys.modules)))
sys.argv = ["gradcli", "check", "small.py:Cube", "-i", "x=3x4"]
sys.exit(main())
"""
SMALL = """
import atexit, sys
from gradcli.examples.cube import Cube as Given
atexit.register(lambda: open("worker.txt", "w").write("\\n".join(sys.modules)))
class Cube(Given): pass
"""
HEAVY = ("torch", "jax", "dask", "typer", "click", "pydantic", "rich", "yaml", "numpy.ma", "numpy.polynomial")
BESIDE_THE_COMMAND = (
    "numpy", "gradcli.numerics", "gradcli.engine", "gradcli.backends", "gradcli.checks", "gradcli.diagnosis",
    "gradcli.inputs.search", "gradcli.inputs.drawing", "gradcli.tolerance", "gradcli.traces", "gradcli.runner.case",
    "importlib.metadata", "html",
    "statistics", "multiprocessing", "asyncio", "concurrent.futures", "subprocess",
)  # fmt: skip
BESIDE_A_PASS = (
    "gradcli.cli", "gradcli.reporters", "gradcli.tolerance", "gradcli.traces", "gradcli.diagnosis.naming",
    "gradcli.diagnosis.first_order", "gradcli.runner.outcome.failed", "gradcli.runner.store.failures",
    "gradcli.runner.outcome.reduce", "gradcli.runner.trace", "gradcli.runner.outcome.details", "gradcli.tracing.passes",
    "gradcli.backends.torch.backend", "gradcli.diagnosis.facts",
    "gradcli.backends.jax.backend", "gradcli.backends.numpy.backend", "gradcli.spec.load", "gradcli.engine.nn",
    "gradcli.engine.optim", "statistics", "html",
)  # fmt: skip
MOST_IN_THE_COMMAND = 68
MOST_IN_A_WORKER = 326
"""Modules of gradcli's own, little more than there are: each costs up to a millisecond."""


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
    """The modules of gradcli's own, without the packages that hold them, most of which are a docstring alone."""
    packages = {module.rpartition(".")[0] for module in modules}
    return sorted(module for module in modules if module.split(".")[0] == "gradcli" and module not in packages)


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
    assert "gradcli.runner.workers.fork_server_start" in imported["worker"]


LOOKS = """
import json, os, sys
from functions import Square

def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True

seen = {
    "arguments": sys.argv,
    "main": hasattr(sys.modules["__main__"], "__file__"),
    "input": sys.stdin.read(),
    "of its own": os.getsid(0) == os.getpid() and os.getpgid(0) == os.getpid(),
    "inherited": is_open(int(os.environ["GIVEN"])),
}
with open("seen.json", "w") as file:
    json.dump(seen, file)

class Looks(Square): pass
"""


def test_a_worker_finds_nothing_of_the_command_it_is_a_copy_of(folder: Path) -> None:
    (folder / "looks.py").write_text(LOOKS)
    reading, writing = os.pipe()
    given = os.dup2(reading, 200)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "GIVEN": str(given)}
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "gradcli", "check", "looks:Looks", "-i", "x=2"], cwd=folder, env=environment,
            pass_fds=[given], input=b"typed", capture_output=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        for descriptor in (reading, writing, given):
            os.close(descriptor)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads((folder / "seen.json").read_text()) == {
        "arguments": ["-c"], "main": False, "input": "", "of its own": True, "inherited": False
    }  # fmt: skip


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_where_the_command_cannot_be_copied_it_goes_on(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    asked = []

    def refuse() -> int:
        asked.append(number)
        raise OSError(number, os.strerror(number))

    before = len(os.listdir("/dev/fd"))
    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr("threading.active_count", lambda: 1)
    assert fork_server_start.begin() is None
    assert asked == [number]
    assert fork_server_start.taken() is None
    assert len(os.listdir("/dev/fd")) == before


def test_a_fork_server_that_nobody_takes_ends_with_the_command(gradcli: Run) -> None:
    """It holds standard error, which is read to its end here."""
    ended = gradcli("check", "--dtype", "float31", "functions:Square", capture_output=True)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"float31" in ended.stderr
