"""Modules and names that attack whoever imports or reads them: each is its own case's problem, told in a sentence."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.runner.jobs import Lost, NamesJob
from gradcli.runner.process.interrupts import Interrupts
from gradcli.runner.workers import worker_pool
from tests.conftest import Run

_F = "\nfrom functions import Square\nclass F(Square): pass\n"
_ENGINE = "from gradcli.engine.autograd import Function\n"
MODULES = {
    "metaclass": (
        f"{_ENGINE}class M(type(Function)):\n    def __getattribute__(cls, name): raise RuntimeError(name)\n"
        "class F(Function, metaclass=M): pass", "error",
    ),
    "built_in": (
        f"{_ENGINE}class F(Function):\n    forward = staticmethod(lambda ctx, x: x * 1)\n"
        "    backward = staticmethod(len)", "error",
    ),
    "drops_gradcli": (
        "import sys\nfor name in list(sys.modules):\n    name.startswith('gradcli') and sys.modules.pop(name)" + _F,
        None,
    ),
    "hides_a_module": ("import sys; sys.modules['functions'] = None" + _F, "error"),
    "exits_with_text": ("import sys; sys.exit('text')", "error"),
    "lazy": ("def __getattr__(name): raise BaseException(name)", "error"),
    "number": ("F = 3", "error"),
}  # fmt: skip
"""What the module is and what its F comes to; None where that is left open."""


def test_a_module_that_attacks_harms_its_own_case_alone(gradcli: Run, folder: Path) -> None:
    for name, (text, _) in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    targets = [part for name in MODULES for part in (f"{name}.py:F", f"functions:{_NEXT[name]}")]
    ended = gradcli("check", *targets, "-i", "x=3", "--samples", "1", "--order", "1", "--format", "json")
    error = ended.stderr.decode()
    assert ended.returncode == 2, error
    assert not re.search(r'File "[^"]*/gradcli/(runner|cli|checks|backends)/|internal error', error)
    cases = {case["target"]: case for case in json.loads(ended.stdout)["cases"]}
    for name, (_, verdict) in MODULES.items():
        case = cases[f"{name}.py:F"]
        assert verdict in (None, case["verdict"]), case["error"]
        assert cases[f"functions:{_NEXT[name]}"]["verdict"] == _VERDICTS[_NEXT[name]], name
    assert "number.py:F: expected a Function class or a callable, got int: 3" in error


_VERDICTS = {"Square": "passed", "Forgets": "failed", "Product": "passed"}
_NEXT = {name: list(_VERDICTS)[number % 3] for number, name in enumerate(MODULES)}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (b"functions:\xff", "is not valid UTF-8"),
        (b"\xff.py:F", "is not valid UTF-8"),
        (b"x" * 5000 + b".py:F", "no file x"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused(folder: Path, target: bytes, said: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    ended = subprocess.run(
        [sys.executable, "-m", "gradcli", "check", target],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert said in ended.stderr.decode()
    assert b"Traceback" not in ended.stderr


def test_no_module_of_the_working_directory_takes_the_place_of_the_library_s(gradcli: Run, folder: Path) -> None:
    for name in ("json", "numpy", "dataclasses", "selectors"):
        (folder / f"{name}.py").write_text("raise SystemExit(0)\n")
    ended = gradcli("check", "functions:Forgets", "-i", "x=3")
    assert ended.returncode == 1, ended.stderr
    assert b"functions:Forgets" in ended.stdout


def test_a_target_that_removes_modules_of_gradcli_is_refused_and_harms_no_other(gradcli: Run, folder: Path) -> None:
    names = "[name for name in sys.modules if name.startswith('gradcli')]"
    (folder / "drops.py").write_text(
        f"import sys\nfor name in {names}: del sys.modules[name]\nfrom functions import Square"
    )
    ended = gradcli("check", "drops.py:Square", "functions.py:Square", "functions.py:Forgets", "-i", "x=3")
    assert ended.returncode == 2, ended.stderr
    assert b"drops.py:Square removed or replaced modules of gradcli" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert b"PASS functions.py:Square" in ended.stdout
    assert b"FAIL functions.py:Forgets" in ended.stdout


def test_a_folder_that_a_target_removes_is_told(folder: Path) -> None:
    (folder / "gone").mkdir()
    (folder / "gone" / "m.py").write_text("import os, shutil\nshutil.rmtree(os.getcwd())\nclass F: pass\n")
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[3]}:{folder}"}
    command = f"cd gone && {shlex.quote(sys.executable)} -m gradcli check m.py:F m.py:Again functions:Square"
    ended = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, timeout=120, check=False
    )
    assert ended.returncode == 2
    assert b"the working directory" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_an_import_that_hangs_is_stopped_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_SHORTEST_IMPORT", 4.0)
    (folder / "hangs.py").write_text("while True: pass\n")
    jobs = [NamesJob(target="hangs.py"), NamesJob(target="functions.py")]
    with worker_pool.WorkerPool(
        size=1, timeout=2.0, start=folder, path=[*sys.path], interrupts=Interrupts()
    ) as pool:  # fmt: skip
        hangs, fine = pool.outcomes(jobs)
    assert isinstance(hangs, Lost)
    assert hangs.exit_code == 2
    said = hangs.message_for("hangs.py")
    assert "hangs.py: ran over its time limit of 4 s and was stopped while it was imported" in said
    assert not isinstance(fine, Lost)


_TORCH = """
import torch
class Right(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
"""
TORCH = {
    "MetaGradient": ("backward", "return torch.empty(3, device='meta')", "failed"),
    "MetaOutput": ("forward", "return torch.empty(3, device='meta')", "error"),
    "MetaDevice": ("backward", "torch.set_default_device('meta')", None),
    "PatchesMul": ("backward", "torch.Tensor.__mul__ = lambda a, b: 1 / 0", "error"),
    "HalfDefault": ("backward", "torch.set_default_dtype(torch.float16)", "passed"),
}


def test_a_framework_that_is_changed_harms_no_other_case(gradcli: Run, folder: Path) -> None:
    pytest.importorskip("torch")
    text = _TORCH
    for name, (where, statement, _) in TORCH.items():
        given = {"forward": "x", "backward": "g"}[where]
        text += (
            f"class {name}(Right):\n    @staticmethod\n    def {where}(ctx, {given}):\n        {statement}\n"
            f"        return Right.{where}(ctx, {given})\n"
            f"class Wrong{name}(Right):\n    @staticmethod\n    def backward(ctx, g):\n"
            "        return 3 * Right.backward(ctx, g)\n"
        )
    (folder / "patches.py").write_text(text)
    flags = ("-i", "x=3", "--samples", "1", "--order", "1", "--format", "json", "--timeout", "120")
    ended = gradcli("check", "patches.py", *flags, imports="torch")
    assert ended.returncode == 1, ended.stderr
    cases = {case["target"].partition(":")[2]: case for case in json.loads(ended.stdout)["cases"]}
    for name, (_, _, verdict) in TORCH.items():
        assert verdict in (None, cases[name]["verdict"]), (name, cases[name]["error"], cases[name]["findings"])
        assert [found["name"] for found in cases[f"Wrong{name}"]["findings"]] == ["wrong-factor"], name
    assert cases["Right"]["verdict"] == "passed"
