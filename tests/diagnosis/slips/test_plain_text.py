"""What is proposed is written as one would write it: no -0, no ~ of a number, no transposition that changes nothing."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest

import gradcli
from gradcli.edits.expressions import swaps
from gradcli.verdict import Verdict

HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
STACK = """class Stack(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.transpose(-1, -2)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.transpose(-1, -2), g.transpose(-1, -2) @ x
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("text", "shape", "right", "said", "not_said"),
    [
        (STACK, [2, 3, 3], ("g @ w.transpose(-1, -2)", "g @ w"), "return g @ w,", "transpose(1"),
    ],
)
def test_the_plain_edit_is_proposed(
    tmp_path: Any, framework: str, text: str, shape: list[int], right: tuple[str, str], said: str, not_said: str
) -> None:
    pytest.importorskip(framework.partition(".")[0])
    name = text[len("class ") : text.index("(")]
    for verdict, code in ((Verdict.FAILED, text), (Verdict.PASSED, text.replace(*right))):
        file = tmp_path / f"{verdict.value}.py"
        file.write_text(HEADER.format(framework=framework) + code)
        inputs = {"x": {"shape": shape}, "w": {"shape": shape}}
        case = gradcli.check(f"{file}:{name}", inputs, order=1, samples=1, shrink=False, only=["gradient"]).cases[0]
        assert case.verdict is verdict
        for finding in case.findings:
            assert finding.corrected is not None
            assert said in finding.corrected
            assert not_said not in finding.corrected


def test_a_number_with_a_sign_becomes_another_number() -> None:
    """`-1` as a whole: its `1` as `0` is written `-0`."""
    scope: Any = SimpleNamespace(numbers=(), atoms=(), tensors=())
    idiom: Any = SimpleNamespace(from_last=True)
    texts = {
        ast.unparse(new)
        for candidate in swaps(ast.parse("-1", mode="eval").body, scope, idiom)
        if isinstance(new := candidate.changes[0].new, ast.AST)
    }
    assert {"0", "1", "-2"} <= texts
    assert not texts & {"-0", "--1", "--2"}
