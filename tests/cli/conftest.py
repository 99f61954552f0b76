import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import warm
from tests.cli.programs import DEADLY, FUNCTIONS, NOISY

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
TIMEOUT = 120.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("functions", FUNCTIONS), ("noisy", NOISY), ("deadly", DEADLY)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


@pytest.fixture
def gradcli(folder: Path) -> Run:
    """Run the command line in a process of its own, in the folder of the user's modules.

    Streams and environments other than the usual ones need a new interpreter; without them the process is a copy of one
    that has imported gradcli, which saves half of the time.
    """

    def run(*arguments: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(warm.ROOT)}
        environment.pop("PYTHONWARNINGS", None)
        if not options and hasattr(os, "fork"):
            environment.pop("PYTEST_CURRENT_TEST", None)  # the only one that differs from test to test
            return warm.server(os.getpid(), frozenset(environment.items())).run(arguments, folder, TIMEOUT)
        environment |= options.pop("environment", {})  # type: ignore[arg-type]
        return subprocess.run(
            [sys.executable, "-m", "gradcli", *arguments],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=TIMEOUT, check=False,
            **({"capture_output": True} | options),
        )  # fmt: skip

    return run
