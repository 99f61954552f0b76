"""Custom Functions of public packages run unchanged on the engine, and give what they give on PyTorch.

The packages are optional: each is tested where it is installed (`pip install --no-deps entmax sparsemax
pytorch-revgrad diffsort torchdiffeq snntorch`), and skipped with its name elsewhere.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.third_party import PACKAGES

HERE = Path(__file__).parent


@functools.cache
def run(framework: str) -> dict[str, Any]:
    """Run the installed packages' cases in a process of their own, where the framework is what `import torch` gives."""
    installed = [package for package in PACKAGES if importlib.util.find_spec(package) is not None]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "third_party.py"), framework, *installed]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def worst(ours: Any, theirs: Any) -> float:
    """Return the largest difference between two lists of arrays, of which some may be None in both."""
    assert len(ours) == len(theirs)
    largest = 0.0
    for mine, reference in zip(ours, theirs, strict=True):
        assert (mine is None) == (reference is None)
        if mine is not None:
            largest = max(largest, float(np.max(np.abs(np.asarray(mine) - np.asarray(reference)), initial=0.0)))
    return largest


@pytest.mark.sampled(4)
@pytest.mark.parametrize("package", PACKAGES)
def test_functions_of_a_package_agree_with_torch(package: str) -> None:
    project, tried, _ = PACKAGES[package]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{project} (tried with {tried}) is not installed: pip install --no-deps {project}=={tried}")
    ours = run("gradcli.engine")[package]
    assert ours
    assert isinstance(ours, dict), ours  # else a traceback
    assert all(np.isfinite(value).all() for case in ours.values() for value in map(np.asarray, case["values"]))
    if importlib.util.find_spec("torch") is None:
        pytest.skip("the values ran on the engine; the reference for them, PyTorch, is not installed")
    theirs = run("torch")[package]
    assert isinstance(theirs, dict), theirs
    assert ours.keys() == theirs.keys()
    found = importlib.metadata.version(project)
    for name, case in ours.items():
        for part in ("values", "gradients"):
            assert worst(case[part], theirs[name][part]) < 1e-6, f"{project} {found}, {name}: {part}"
