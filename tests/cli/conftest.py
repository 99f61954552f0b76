import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import warm
from tests.programs.users_modules import DEADLY, FUNCTIONS, NOISY

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("functions", FUNCTIONS), ("noisy", NOISY), ("deadly", DEADLY)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


@pytest.fixture
def gradcli(folder: Path) -> Run:
    """Run the command line in a process of its own, in the folder of the user's modules.

    It is a new interpreter where options say what its environment and its streams are (`capture_output=True` for pipes
    that end with the last process that holds them). Otherwise it is a copy of a process that has imported gradcli: that
    takes half the time.
    """

    def run(*arguments: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        if not options and hasattr(os, "fork"):
            return warm.run(arguments, folder)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(warm.ROOT)}
        environment.pop("PYTHONWARNINGS", None)
        environment |= options.pop("environment", {})  # type: ignore[arg-type]
        return subprocess.run(
            [sys.executable, "-m", "gradcli", *arguments],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=120, check=False,
            **({"capture_output": True} | options),
        )  # fmt: skip

    return run
