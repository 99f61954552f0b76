"""A gradient that carries no graph fails order 2 by one entry, and what cuts the graph is named."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.results import CheckResult

FRAMEWORKS = ["gradcli.engine", "torch"]
BLOCKS = """
import {framework} as torch
from {framework}.autograd import Function

{before}
class Gauss(Function):
    \"\"\"exp(-x²) @ w, a row at a time, with an intermediate result that forward saves.\"\"\"

    @staticmethod
    def forward(ctx, x, w):
        e = torch.exp(-x * x)
        ctx.save_for_backward(x, w{saved})
        return e @ w

    @staticmethod
    {decorator}
    def backward(ctx, g):
        x, w{saved} = ctx.saved_tensors
        {context}
            e = torch.exp(-x * x)
            gx, gw = {value}, e.t() @ g
        return {returned}
"""
WHOLE = {
    "before": "",
    "saved": "",
    "decorator": "",
    "context": "if True:",
    "value": "-2 * x * e * (g @ w.t())",
    "returned": "gx, gw",
}
HELPER = "@torch.no_grad()\ndef slopes(x, e, g, w):\n    return -2 * x * e * (g @ w.t()), e.t() @ g\n"


def checked(framework: str, path: Path, **changes: str) -> CheckResult:
    """The case of the Function with some of its parts changed."""
    pytest.importorskip(framework)
    file = path / "gauss.py"
    file.write_text(BLOCKS.format(framework=framework, **{**WHOLE, **changes}))
    inputs = {"x": {"shape": [3, 4]}, "w": {"shape": [4, 2]}}
    return gradcli.check(f"{file}:Gauss", inputs, only=("gradient", "higher-order"), samples=1).cases[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"decorator": "@torch.no_grad()"}, "backward is decorated with @torch.no_grad() at line 16"),
        ({"context": "with torch.no_grad():"}, "backward switches gradients off (torch.no_grad()) at line 19"),
        ({"returned": "gx.detach(), gw.detach()"}, "backward detaches at line 22"),
        ({"saved": ", e", "decorator": "@torch.no_grad()"}, "backward is decorated with @torch.no_grad() at line 16"),
    ],
)
def test_what_cuts_the_graph_is_named_and_not_what_forward_saves(
    framework: str, changes: dict[str, str], says: str, tmp_path: Path
) -> None:
    case = checked(framework, tmp_path, **changes)
    (finding,) = case.findings
    assert finding.kind is FindingKind.NOT_TWICE_DIFFERENTIABLE
    assert "the gradients of x, w that backward returns carry no graph" in finding.message
    assert finding.message.endswith(f"because {says}"), finding.message
    assert finding.location is not None
    assert str(finding.location.line) == says.rsplit(maxsplit=1)[1]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_same_formula_with_a_graph_passes(framework: str, tmp_path: Path) -> None:
    case = checked(framework, tmp_path)
    assert case.verdict.value == "passed", case


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_one_gradient_without_a_graph_is_named_alone(framework: str, tmp_path: Path) -> None:
    case = checked(framework, tmp_path, returned="gx, gw.detach()")
    (finding,) = case.findings
    assert "the gradient of w that backward returns carries no graph" in finding.message
    assert "detaches at line 22" in finding.message


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_gradient_that_is_cut_from_its_inputs_only_is_no_gradient_without_a_graph(
    framework: str, tmp_path: Path
) -> None:
    case = checked(framework, tmp_path, value="(-2 * x * e).detach() * (g @ w.t())")
    (finding,) = case.findings
    assert "with respect to x" in finding.message
    assert "no graph" not in finding.message
    assert "detaches at line 21" in finding.message


ZERO = """
from {framework} import no_grad, zeros_like
from {framework}.autograd import Function

class Sign(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    @no_grad()
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return zeros_like(x)
"""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_gradient_that_is_zero_needs_no_graph(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework)
    file = tmp_path / "sign.py"
    file.write_text(ZERO.replace("{framework}", framework))
    case = gradcli.check(f"{file}:Sign", {"x": {"shape": [3]}}, only=("gradient", "higher-order")).cases[0]
    assert case.verdict.value == "passed", case


def test_the_helper_that_records_nothing_is_named(tmp_path: Path) -> None:
    case = checked("gradcli.engine", tmp_path, before=HELPER, returned="slopes(x, e, g, w)")
    (finding,) = case.findings
    assert finding.message.endswith("because backward calls slopes, which is decorated with @torch.no_grad() at line 5")
