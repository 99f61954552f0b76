import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.programs import DEADLY, FUNCTIONS, NOISY

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("functions", FUNCTIONS), ("noisy", NOISY), ("deadly", DEADLY)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


@pytest.fixture
def gradcli(folder: Path) -> Run:
    """Run the command line in a process of its own, in the folder of the user's modules."""

    def run(*arguments: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
        environment.pop("PYTHONWARNINGS", None)
        environment |= options.pop("environment", {})  # type: ignore[arg-type]
        return subprocess.run(
            [sys.executable, "-m", "gradcli", *arguments],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=120, check=False,
            **({"capture_output": True} | options),
        )  # fmt: skip

    return run
