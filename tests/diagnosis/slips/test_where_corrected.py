"""A mistake of backward is corrected there, where another value that forward saves would make up for it."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict

HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
FUNCTIONS = {
    "recovered": """
class Recovered(Function):
    @staticmethod
    def forward(ctx, a, b, w):
        top = a + torch.tanh(b * w)
        low = b + torch.sin(top)
        ctx.save_for_backward(top, low, w)
        return top, low

    @staticmethod
    def backward(ctx, g, h):
        top, low, w = ctx.saved_tensors
        turned = torch.sin(top)
        b = {wrong}  # marked
        g = g + h * torch.cos(top)
        inner = g * (1 - torch.tanh(b * w) ** 2)
        return g, h + inner * w, inner * b
""",
    "turned": """
class Turned(Function):
    @staticmethod
    def forward(ctx, x, w):
        n = len(w)
        ctx.save_for_backward(x, w)
        padded = torch.cat([torch.zeros(n - 1, dtype=x.dtype), x])
        return sum(w[k] * padded[k : k + len(x)] for k in range(n))

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        n = len(w)
        padded = torch.cat([torch.zeros(n - 1, dtype=x.dtype), x])
        after = torch.cat([g, torch.zeros(n - 1, dtype=x.dtype)])
        of_x = sum(w[k] * after[{wrong} : {wrong} + len(x)] for k in range(n))  # marked
        return of_x, torch.stack([(g * padded[k : k + len(x)]).sum() for k in range(n)])
""",
}
WRONG = {"recovered": ("low - turned", "low"), "turned": ("n - 1 - k", "k")}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_line_of_backward_is_named(tmp_path: Any, framework: str, name: str) -> None:
    pytest.importorskip(framework.partition(".")[0])
    results = []
    for which, text in zip(("right", "wrong"), WRONG[name], strict=True):
        file = tmp_path / f"{which}.py"
        file.write_text((HEADER + FUNCTIONS[name]).replace("{framework}", framework).replace("{wrong}", text))
        inputs = {
            "recovered": {n: {"shape": [3, 4]} for n in "abw"},
            "turned": {"x": {"shape": [5]}, "w": {"shape": [3]}},
        }
        results += gradcli.check(
            f"{file}:{name.capitalize()}", inputs[name], order=1, samples=1, shrink=False, only=["gradient"]
        ).cases
    assert [each.verdict for each in results] == [Verdict.PASSED, Verdict.FAILED]
    marked = [n for n, line in enumerate(file.read_text().splitlines(), 1) if "# marked" in line]
    assert {finding.location.line for finding in results[1].findings if finding.location} == set(marked)


BASE = """
from gradcli import engine
from gradcli.engine.autograd import Function


class Between(Function):
    @staticmethod
    def forward(ctx, ends, x):
        part = x - x.floor()
        ctx.save_for_backward(ends, part)
        return ends[0] * (1 - part) + ends[1] * part

    @staticmethod
    def backward(ctx, g):
        ends, part = ctx.saved_tensors
        of_ends = engine.zeros_like(ends)
        of_ends[0] += g * (1 - part)
        of_ends[1] += g * part
        return of_ends, g * (ends[1] - ends[0])


class Exchanged(Between):
    @staticmethod
    def backward(ctx, g):
        ends, part = ctx.saved_tensors
        of_ends = engine.zeros_like(ends)
        of_ends[0] += g * part
        of_ends[1] += g * (1 - part)
        return of_ends, g * (ends[1] - ends[0])
"""


@pytest.mark.parametrize("name", ["Between", "Exchanged"])
def test_what_the_forward_of_a_right_class_saves_is_not_edited_for_another(tmp_path: Any, name: str) -> None:
    file = tmp_path / "based.py"
    file.write_text(BASE)
    inputs = {"ends": {"shape": [2, 3]}, "x": {"shape": [3], "domain": "unit"}}
    case = gradcli.check(f"{file}:{name}", inputs, order=1, samples=1, shrink=False, only=["gradient"]).cases[0]
    assert case.verdict is (Verdict.PASSED if name == "Between" else Verdict.FAILED)
    for finding in case.findings:
        assert finding.location is None or finding.location.line > BASE[: BASE.index("class Exchanged")].count("\n")
