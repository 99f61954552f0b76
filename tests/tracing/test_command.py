"""`gradcli trace` as a process: targets, formats, exit codes, and what goes to which stream."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm

PROGRAM = """
from gradcli import engine as torch

nn = torch.nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.constant, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f1 = nn.Linear(4, 2)

    def forward(self, t):
        self.input = t
        print("forward prints")
        return self.f1(t)


class Needs(nn.Module):
    def __init__(self, size):
        super().__init__()


instance = Net()


def moved():
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    x = leaf.to(torch.float64) if leaf.dtype is torch.float32 else leaf.to(torch.float32)
    loss = (x * 3).sum()
    loss.backward()


def sound():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return (x * 3).sum()


def product(left, right, scale=2.0):
    return left @ right * scale


def broken_forward():
    x = torch.tensor([1.0], requires_grad=True)
    return x @ torch.ones(3, 3)


def broken_backward():
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    return y.sum()


def draws():
    x = torch.randn(3, requires_grad=True)
    return (x * torch.rand(3)).sum()


number = 5
"""


@pytest.fixture
def gradcli(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)

    def run(*arguments, **environment):
        if not environment:
            return warm.run_for_text(("trace", *arguments), tmp_path)
        settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1", **environment}
        settings.pop("PYTHONWARNINGS", None)
        command = [sys.executable, "-m", "gradcli", "trace", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=settings, capture_output=True, encoding="utf-8", timeout=120, check=False
        )

    return run


def test_a_functions_tree_names_lines_of_the_users_file(gradcli):
    done = gradcli("train.py:moved")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("loss = 9   forward ")
    line = PROGRAM.splitlines().index(
        "    x = leaf.to(torch.float64) if leaf.dtype is torch.float32 else leaf.to(torch.float32)"
    )
    assert f"└─ MulBackward0           train.py:{line + 2} " in done.stdout
    assert f"why is x.grad None?   x is not a leaf: train.py:{line + 1} computes it with .to(" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["train:moved", "--check"], 1),
        (["train:moved"], 0),
        (["train:sound", "--check"], 0),
        (["train:broken_forward"], 3),
        (["train:broken_backward", "--check"], 3),
        (["train:absent"], 2),
        (["train:number"], 2),
        (["train:Needs"], 2),
        (["train:moved", "--format", "tre"], 2),
        (["train:product", "-i", "lefft=2x3"], 2),
        (["train:moved", "--output", "missing/folder/x.json"], 2),
        (["train:sound", "--memory", "1B", "--check"], 1),
        (["--memory", "train:sound", "--check"], 0),
        (["train:sound", "--memory", "20apples"], 2),
        ([], 2),
    ],
)
def test_exit_codes(gradcli, arguments, code):
    done = gradcli(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert "internal error in gradcli" not in done.stderr


def test_modules_and_functions_get_inferred_inputs(gradcli):
    for target in ("train:Net", "train:instance"):
        done = gradcli(target)
        assert done.returncode == 0, done.stderr
        assert "inputs inferred: -i t=" in done.stdout
        assert "f1.weight" in done.stdout
        assert "forward prints" not in done.stdout
        assert "forward prints" in done.stderr
    done = gradcli("train:Scale", "-a", "constant=5", "-i", "tensor=2")
    assert "ScaleBackward" in done.stdout
    assert f"train.py:{PROGRAM.splitlines().index('    def backward(ctx, grad_output):')} " in done.stdout
    assert "site-packages" not in done.stdout
    assert "-i tensor=2" in done.stdout


def test_callables_with_parameters_take_flags(gradcli):
    done = gradcli("train:product", "-i", "left=2x3", "-i", "right=3x4")
    assert done.returncode == 0, done.stderr
    assert "inputs flags: -i left=2x3 -i right=3x4" in done.stdout
    assert "f64[2×3]" in done.stdout


def test_json_is_all_there_is_on_stdout(gradcli):
    done = gradcli("train:Net", "--format", "json")
    document = json.loads(done.stdout)
    assert (document["schema"], document["target"], document["backend"]) == ("gradcli.trace/1", "train:Net", "engine")
    assert document["inputs_from"] == "inferred"


def test_output_goes_to_a_file(gradcli, tmp_path):
    done = gradcli("train:sound", "--format", "mermaid", "--output", "graph.mmd")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "graph.mmd").read_text().startswith("flowchart TD\n")


def test_the_users_traceback_goes_to_stderr_without_frames_of_gradcli(gradcli):
    for target, phase in (("train:broken_forward", "forward"), ("train:broken_backward", "backward")):
        done = gradcli(target)
        assert "train.py" in done.stderr
        assert "Traceback (most recent call last):" in done.stderr
        assert "gradcli/" not in done.stderr
        assert phase in done.stderr + done.stdout
    assert "backward raised ZeroDivisionError" in done.stdout
    assert "did not finish" in done.stdout or "not run" in done.stdout


def test_the_seed_fixes_everything(gradcli):
    first, again, other = (gradcli("train:draws", "--seed", seed).stdout for seed in ("1", "1", "2"))
    assert first == again
    assert first != other
    assert gradcli("train:Net", "--seed", "1").stdout == gradcli("train:Net", "--seed", "1").stdout


def test_ascii_where_the_encoding_has_no_other_glyphs(gradcli):
    done = gradcli("train:sound", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "`- SumBackward0" in done.stdout


def test_the_python_api_gives_the_same_graph(framework):
    import gradcli

    x = framework.tensor([[1.0, 2.0]], requires_grad=True)
    net = framework.nn.Linear(2, 1)
    net.register_full_backward_hook(lambda m, gi, go: None)
    state = framework.get_rng_state()
    graph = gradcli.trace(net, (x,))
    again = framework.get_rng_state()
    assert str(state) == str(again)
    assert [call.kind for call in graph.hooks] == ["module-full"]
    assert graph.to_dict()["schema"] == "gradcli.trace/1"
    assert {fate.name for fate in graph.tensors} == {"weight", "bias", "input", "result"}
    assert x.grad is None


def test_a_program_that_names_numpy_beside_pytorch_is_traced_on_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "seeded.py").write_text(
        "import numpy as np\nimport torch\n\n\ndef made():\n    return torch.nn.Linear(2, 1)\n\n\n"
        "def loss():\n    np.random.seed(0)\n    return made().weight.sum()\n"
    )
    done = warm.run_for_text(["trace", "seeded.py:loss"], tmp_path, imports="torch")
    assert done.returncode == 0, done.stderr
    assert "SumBackward0" in done.stdout


@pytest.mark.parametrize("place", ["missing/x.html", "folder"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(gradcli, tmp_path, place):
    (tmp_path / "folder").mkdir()
    done = gradcli("train:Net", "--output", place)
    assert done.returncode == 2
    assert f"--output {place}" in done.stderr
    assert "forward prints" not in done.stdout + done.stderr
