"""Every recorded program gives, on the engine, what it gave on PyTorch: values, graphs, wording and printed forms."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
GOLDEN: dict[str, Any] = json.loads((HERE / "golden.json").read_text())


def run(name: str) -> Any:
    """Run one program on the engine in a process of its own, and return what it printed."""
    root = str(HERE.parent.parent)
    environment = {
        **os.environ,
        "TORCH_LIKE": "gradcli.engine",
        "PYTHONPATH": os.pathsep.join([str(HERE / "programs"), root]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, str(HERE / "programs" / f"{name}.py")]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def differences(want: Any, got: Any, path: tuple[str | int, ...] = ()) -> list[str]:
    """Say where two records differ."""
    keys = [key for key in path if isinstance(key, str)]
    if any(key.endswith("_info") for key in keys):
        return []
    if isinstance(want, dict) and isinstance(got, dict):
        names = sorted(want.keys() | got.keys())
        return [
            line for key in names for line in differences(want.get(key, "absent"), got.get(key, "absent"), (*path, key))
        ]
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        pairs = enumerate(zip(want, got, strict=True))
        return [line for place, (a, b) in pairs for line in differences(a, b, (*path, place))]
    if any(key.endswith("_text") for key in keys):
        agree = " ".join(str(want).split()).lower() == " ".join(str(got).split()).lower()
    elif isinstance(want, float) and isinstance(got, (int, float)):
        tolerance = 1e-3 if any(key.endswith("_f32") for key in keys) else 1e-9
        agree = (math.isnan(want) and math.isnan(got)) or math.isclose(want, got, rel_tol=tolerance, abs_tol=tolerance)
    else:
        agree = bool(want == got) and isinstance(want, bool) == isinstance(got, bool)
    return [] if agree else [f"{'/'.join(map(str, path))}: want {want!r}, got {got!r}"]


def test_every_recorded_program_is_here() -> None:
    programs = {path.stem for path in (HERE / "programs").glob("p*.py")}
    assert programs == GOLDEN.keys()
    assert len(programs) == 32


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_program_gives_the_recorded_results(name: str) -> None:
    found = differences(GOLDEN[name], run(name))
    assert not found, "\n".join(found[:20])


def test_a_wrong_record_is_noticed() -> None:
    record = GOLDEN["p001_basics"]
    spoilt = json.loads(json.dumps(record))
    spoilt["after"]["x_grad"][0][0] *= 1.001
    assert differences(record, spoilt)
