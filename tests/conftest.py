"""What holds for every test."""

import compileall
import gc
import itertools
import os
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli.backends.registry import backend_named
from gradcli.runner import case
from gradcli.runner.outcome.contained import RAISE
from tests import warm
from tests.programs.users_modules import write_modules

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
os.environ[RAISE] = "1"  # before any worker starts, which inherits it
PACKAGE = Path(__file__).resolve().parent.parent / "gradcli"


def pytest_configure(config: pytest.Config) -> None:
    """Compile gradcli once, before anything runs.

    Hundreds of tests start it in a process of its own. Where the environment keeps Python from writing bytecode, each
    of these would compile all of it again, which takes as long as the rest of such a test.
    """
    config.addinivalue_line("markers", "sampled(n): run n of its cases only, unless --all-cases is given")
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(PACKAGE, quiet=2)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-cases", action="store_true", help="run every case of tests that are marked as sampled")


@pytest.hookimpl(trylast=True)  # after -k and -m: what these leave is sampled
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with the mark `sampled(n)` keep n cases, the same ones in every run; the others are deselected."""
    if config.getoption("--all-cases"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left = [item for group in cases.values() for item in _beyond_sample(group)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def _beyond_sample(group: list[pytest.Item]) -> list[pytest.Item]:
    """All but a sample in which each value and pair of values of its parameters comes up before others are repeated."""
    mark = group[0].get_closest_marker("sampled")
    assert mark is not None
    left = sorted(group, key=lambda item: zlib.crc32(item.nodeid.encode()))
    seen: Counter[tuple[object, ...]] = Counter()
    for _ in range(min(mark.args[0], len(left))):
        chosen = min(left, key=lambda item: sum(seen[value] for value in _values(item)))
        left.remove(chosen)
        seen.update(_values(chosen))
    return left


def _values(item: pytest.Item) -> list[tuple[object, ...]]:
    """The parameters with their values, alone and in pairs; values may be of any kind, so they count by identity."""
    single = [(name, id(value)) for name, value in item.callspec.params.items()]  # type: ignore[attr-defined]
    return [*single, *itertools.combinations(single, 2)]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Handle interrupts as in a terminal: a shell's background jobs ignore them, and so does what these start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="module")
def _what_stays_set_aside() -> None:
    """Keep what was imported and collected so far out of collections of garbage.

    There are 11,000 tests and two frameworks, and the checker collects garbage in many a call: tests of leaks took
    five times as long.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def unexplained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a failure without findings, for tests that read the verdict alone.

    What is wrong is found out only after the checks have decided, and often takes longer than they do.
    """
    monkeypatch.setattr(case, "_explained", lambda result, *_: result)


@pytest.fixture
def uncorrected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave findings without a correction, and so without a patch, for tests that read neither.

    The search for what belongs in the place of a mistake, and the proof of that, take longer than the check. Folders
    of which no test reads a correction ask for this in their `conftest.py`.
    """
    monkeypatch.setattr("gradcli.diagnosis.naming._with_correction", lambda finding, *_: finding)


@pytest.fixture
def unshrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the inputs of a failure as they are, for tests that read its correction, or a note, and not these inputs.

    `shrink=False` leaves out the corrections as well.
    """
    monkeypatch.setattr(
        "gradcli.runner.outcome.failed.smallest_failing", lambda subject, *_, **__: tuple(subject.arguments)
    )


@pytest.fixture(params=["engine", "torch"])
def backend(request: pytest.FixtureRequest) -> Any:
    """The backend of each framework of PyTorch's shape."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="the torch backend needs PyTorch")
    return backend_named(request.param)


@pytest.fixture
def ns(backend: Any) -> Any:
    """The namespace of the framework: `gradcli.engine` or `torch`."""
    return backend.framework.namespace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_modules(tmp_path)
    return tmp_path


@pytest.fixture
def gradcli(folder: Path) -> Run:
    """Run the command line in a process of its own, in the folder of the user's modules.

    It is a new interpreter where options say what its environment and its streams are (`capture_output=True` for pipes
    that end with the last process that holds them). Otherwise it is a copy of a process that has imported gradcli, and
    the module that `imports` names: that takes half the time or less.
    """

    def run(*arguments: str, imports: str | None = None, **options: object) -> "subprocess.CompletedProcess[bytes]":
        if not options and hasattr(os, "fork"):
            return warm.run(arguments, folder, imports=imports)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(warm.ROOT)}
        environment.pop("PYTHONWARNINGS", None)
        environment |= options.pop("environment", {})  # type: ignore[arg-type]
        return subprocess.run(
            [sys.executable, "-m", "gradcli", *arguments],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=120, check=False,
            **({"capture_output": True} | options),
        )  # fmt: skip

    return run
