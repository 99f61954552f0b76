"""Words and codes that scripts rely on."""

import json
from pathlib import Path

import pytest

import gradcli as library
from gradcli.diagnosis.factor import as_fraction
from gradcli.findings import SURROGATE_ADVICE
from gradcli.reporters.console import console_case
from tests.conftest import Run

MIXED = """
from {framework}.autograd import Function

class Mixed(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight.t())

    @staticmethod
    def backward(ctx, g):
        input, weight = ctx.saved_tensors
        {returned}
"""
SCALED = """
from {framework}.autograd import Function

class Scaled(Function):
    @staticmethod
    def forward(ctx, x{parameter}):
        ctx.save_for_backward(x)
        return {value}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {gradient}{rest}
"""


def square(framework: str, factor: float, *, of: str = "x * x", derivative: str = "2 * x * g") -> str:
    return SCALED.format(framework=framework, parameter="", value=of, gradient=f"{factor} * {derivative}", rest="")


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_trace_that_names_a_wrong_node_exits_with_1_though_backward_raised(
    gradcli: Run, folder: Path, framework: str
) -> None:
    pytest.importorskip(framework)
    wrong = MIXED.format(framework=framework, returned="return g.t().mm(input), None")
    (folder / "mixed.py").write_text(wrong)
    assert gradcli("trace", "mixed.py:Mixed", "--check").returncode == 1
    assert gradcli("trace", "mixed.py:Mixed").returncode == 3
    (folder / "mixed.py").write_text(MIXED.format(framework=framework, returned="raise ValueError('no')"))
    assert gradcli("trace", "mixed.py:Mixed", "--check").returncode == 3


def test_what_is_shown_by_design_is_explained_and_no_empty_name(gradcli: Run) -> None:
    for name in ("once-differentiable", "surrogate"):
        assert gradcli("explain", name).stdout.startswith(f"{name}   shown by design".encode())
    for empty in ("", "  "):
        ended = gradcli("explain", empty)
        assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"did you mean GC" in gradcli("explain", "GC999").stderr


@pytest.mark.parametrize(
    ("text", "fraction"),
    [
        ("3/2", "3/2"),
        ("1.5", "3/2"),
        ("-0.25", "-1/4"),
        ("1/2.5", "2/5"),
        ("1/200", "1/200"),
        ("3.1415926", "3.1415926"),
    ],
)
def test_a_factor_is_a_fraction_where_it_is_one(text: str, fraction: str) -> None:
    assert as_fraction(text) == fraction


def test_the_factor_of_an_argument_is_a_fraction_too(tmp_path: Path) -> None:
    text = SCALED.format(
        framework="gradcli.engine", parameter=", k=1.5", value="x * x", gradient="1.5 * 2 * x * g", rest=", None"
    )
    (tmp_path / "of_argument.py").write_text(text)
    report = library.check(f"{tmp_path / 'of_argument.py'}:Scaled")
    assert report.cases[0].findings[0].factor == "3/2"


@pytest.mark.parametrize(("of", "derivative", "advised"), [("x * x", "2 * x * g", False), ("x.clone()", "g", True)])
def test_a_replay_takes_only_a_forward_that_returns_its_input_for_a_surrogate(
    gradcli: Run, folder: Path, of: str, derivative: str, advised: bool
) -> None:
    (folder / "scaled.py").write_text(square("gradcli.engine", 1.5, of=of, derivative=derivative))
    (case,) = json.loads(gradcli("check", "scaled.py:Scaled", "--format", "json").stdout)["cases"]
    (again,) = json.loads(gradcli("replay", case["replay"], "--format", "json").stdout)["cases"]
    assert [SURROGATE_ADVICE in each["findings"][0]["message"] for each in (case, again)] == [advised, advised]


@pytest.mark.parametrize(("error", "is_exact"), [("0", True), ("5e-8", False)])
def test_a_measured_difference_is_not_called_exact(tmp_path: Path, error: str, is_exact: bool) -> None:
    file = tmp_path / f"close_{error.replace('-', '_')}.py"
    file.write_text(square("gradcli.engine", 1.0, derivative=f"2 * (1 + {error}) * x * g"))
    (case,) = library.check(f"{file}:Scaled", order=1).cases
    assert ("✓ exact" in console_case(case).plain) is is_exact
    assert any("which is not counted as an error" in note for note in case.notes) is not is_exact
    assert "would have shown a relative error of" in console_case(case).plain


def test_an_error_does_not_tell_how_long_the_search_took(tmp_path: Path) -> None:
    text = square("gradcli.engine", 1.0).replace(
        "        ctx.save", "        raise ValueError('no')\n        ctx.save", 1
    )
    (tmp_path / "refuses.py").write_text(text)
    (case,) = library.check(f"{tmp_path / 'refuses.py'}:Scaled").cases
    assert "sets (arguments x;" in str(case.error)
