"""User code on tensors is clean under mypy --strict."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from typing import Any

import gradcli.engine as torch
from gradcli.engine import Tensor, nn
from gradcli.engine.autograd import Function
from gradcli.engine.autograd.function import FunctionCtx


class Scale(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.factor, None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.attention = nn.MultiheadAttention(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.first(x).relu()
        return hidden.softmax(-1)


def train(net: Net, x: Tensor) -> float:
    optimiser = torch.optim.Adam(net.parameters(), lr=0.1)
    loss = ((net(x) - 1) ** 2).mean() + x.T.matmul(x).sum() / x.numel()
    loss = loss - 2.0 * x[0, :2].exp().sum() + (-x).abs().max() + (3 % x).floor().sum()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    grad = x.grad
    if grad is not None:
        x.data -= 0.1 * grad
        grad.zero_()
    values, indices = x.max(dim=1)
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    mask: Tensor = (x > 0) & ~(x == 1)
    kept: Tensor = x.masked_fill(mask, 0.0).view(-1, 3).unsqueeze(0).sum(dim=(0, 1), keepdim=True)
    (first,) = torch.autograd.grad(kept.sum(), x, create_graph=True, allow_unused=True)
    y: Tensor = Scale.apply(x, 2.0)
    handle = y.register_hook(lambda g: g * 2)
    handle.remove()
    shape: tuple[int, ...] = x.shape
    total = float(loss.item()) + float(values.sum()) + int(indices[0])
    return total + len(shape) + x.dim() + float((u @ vh).sum() + s[0])
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_user_code_is_clean_under_mypy_strict(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    root = Path(__file__).parent.parent.parent
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--follow-imports=silent"]
    finished = subprocess.run(
        [*command, "--cache-dir", str(root / ".mypy_cache"), str(program)],
        capture_output=True, text=True, cwd=root, timeout=300, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
