"""A kernel that fails makes the device unusable for the rest of its process, as CUDA does at an index out of range."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run

pytest.importorskip("torch", reason="the devices are PyTorch's")

MODULE = """
import torch
from torch.autograd import Function


class Device:
    lost = False


def kernel(index, size):
    Device.lost = Device.lost or bool((index >= size).any())
    synchronize()


def synchronize():
    if Device.lost:
        raise RuntimeError("CUDA error: device-side assert triggered")


torch.cuda.is_initialized, torch.cuda.synchronize = lambda: True, synchronize


class Rows(Function):
    @staticmethod
    def forward(ctx, w, index):
        kernel(index, len(w))
        ctx.save_for_backward(w, index)
        return w[index]

    @staticmethod
    def backward(ctx, g):
        w, index = ctx.saved_tensors
        return torch.zeros_like(w).index_add(0, index, g), None


class Overwrites(Rows):
    @staticmethod
    def backward(ctx, g):
        w, index = ctx.saved_tensors
        return torch.zeros_like(w).index_copy(0, index, g), None


class Beyond(Rows):
    @staticmethod
    def backward(ctx, g):
        kernel(torch.tensor(3), 3)
        return g, None


class Later(Rows):
    @staticmethod
    def backward(ctx, g):
        Device.lost = True  # a kernel was launched, and has not run yet
        return g[:3], None
"""
INPUTS = ("-i", "w=3x2", "-i", "index=5,domain=indices,high=3", "--order", "1")
NO_LONGER_RUN = "lost its GPU because a kernel failed, for example at an index out of range"


@pytest.fixture
def rows(folder: Path) -> Path:
    (folder / "rows.py").write_text(MODULE)
    return folder


def test_a_right_function_passes_without_the_inputs_at_which_a_kernel_failed(gradcli: Run, rows: Path) -> None:
    ended = gradcli("check", "rows:Rows", *INPUTS, "--format", "json", imports="torch")
    (case,) = json.loads(ended.stdout)["cases"]
    assert (ended.returncode, case["verdict"]) == (0, "passed"), ended.stderr
    assert any(f"the worker process {NO_LONGER_RUN}" in note for note in case["notes"])


def test_a_wrong_one_fails(gradcli: Run, rows: Path) -> None:
    ended = gradcli("check", "rows:Overwrites", *INPUTS, "--format", "json", imports="torch")
    (case,) = json.loads(ended.stdout)["cases"]
    assert (ended.returncode, case["verdict"]) == (1, "failed"), ended.stderr
    assert [finding["input"] for finding in case["findings"]] == ["w"]


@pytest.mark.parametrize("name", ["Beyond", "Later"])
def test_a_kernel_that_fails_at_the_given_inputs_is_an_error_of_that_case_alone(
    gradcli: Run, rows: Path, name: str
) -> None:
    ended = gradcli("check", f"rows:{name}", "rows:Rows", *INPUTS, "-j", "1", "--format", "json", imports="torch")
    beyond, right = json.loads(ended.stdout)["cases"]
    assert (ended.returncode, beyond["verdict"], right["verdict"]) == (3, "error", "passed"), ended.stderr
    assert beyond["error"].startswith("backward raised RuntimeError: CUDA error: device-side assert triggered")


def test_in_the_callers_own_process_the_case_ends_as_an_error(rows: Path) -> None:
    code = (
        "import gradcli, rows, torch\n"
        "w, index = torch.randn(3, 2, dtype=torch.float64, requires_grad=True), torch.tensor([0, 1, 2, 0, 2])\n"
        "report = gradcli.check(rows.Rows, (w, index), order=1)\n"
        "print(report.cases[0].verdict.value, report.cases[0].error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=rows, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("error forward raised RuntimeError: CUDA error")
    assert "`gradcli check` runs the case again without these" in done.stdout
