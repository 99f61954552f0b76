"""Slips of a whole expression: a multiple of itself is a factor, and opposite signs are corrected in backward."""

import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
ENERGY = """class Energy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        rough = x.detach().to(torch.float32)
        return (-(1 / torch.sqrt(rough * rough + 0.25)).sum()).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        r = torch.sqrt(x * x + 0.25)
        return g * {factor}(x / r**3)
"""
ROTATION = """class Rotation(Function):
    @staticmethod
    def forward(ctx, x):
        t = torch.arange(x.shape[0], dtype=x.dtype)
        c, s = t.cos(), t.sin()
        ctx.save_for_backward(c, s)
        a, b = x[:, 0], x[:, 1]
        return torch.stack([a * c - b * s, a * s + b * c], -1)

    @staticmethod
    def backward(ctx, g):
        c, s = ctx.saved_tensors
        a, b = g[:, 0], g[:, 1]
        return torch.stack({opened}a * c {one} b * s, b * c {two} a * s{closed}, -1)
"""
FRAMEWORKS = ("gradcli.engine", "torch")


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    pytest.importorskip(request.param.partition(".")[0])
    return request.param


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    monkeypatch.setattr("gradcli.watchdog.case.OPTIONAL_SECONDS", 3600.0)
    monkeypatch.setattr("gradcli.diagnosis.slips.search._SECONDS", 1800.0)


def checked(folder, framework, text, name, inputs):
    path = folder / f"{name.lower()}.py"
    path.write_text(HEADER.format(framework=framework) + text)
    given = {argument: {"shape": shape} for argument, shape in inputs.items()}
    (case,) = gradcli.check(f"{path}:{name}", given, order=1, samples=1, shrink=False).cases
    return case


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("framework", "factor"), [("gradcli.engine", "0.5 * "), ("torch", "0.99 * ")], indirect=["framework"]
)
def test_a_factor_of_a_gradient_in_low_precision_is_not_called_a_term(factor, framework, tmp_path):
    case = checked(tmp_path, framework, ENERGY.format(factor=factor), "Energy", {"x": [7, 3]})
    assert case.verdict is Verdict.FAILED
    assert case.findings[0].kind is FindingKind.WRONG_FACTOR, case.findings[0].message


def test_the_right_gradient_in_low_precision_passes(framework, tmp_path):
    case = checked(tmp_path, framework, ENERGY.format(factor=""), "Energy", {"x": [7, 3]})
    assert case.verdict is Verdict.PASSED, case.findings


@pytest.mark.sampled(2)
@pytest.mark.parametrize("brackets", ["[]", "()"])
def test_opposite_signs_are_corrected_where_they_are(brackets, framework, tmp_path):
    opened, closed = brackets
    inputs = {"x": [5, 2]}
    right = ROTATION.format(one="+", two="-", opened=opened, closed=closed)
    (tmp_path / "right").mkdir()
    assert checked(tmp_path / "right", framework, right, "Rotation", inputs).verdict is Verdict.PASSED
    wrong = ROTATION.format(one="-", two="+", opened=opened, closed=closed)
    case = checked(tmp_path, framework, wrong, "Rotation", inputs)
    assert case.verdict is Verdict.FAILED
    belongs = f"`torch.stack({opened}a * c + b * s, b * c - a * s{closed}, -1)` belongs"
    assert belongs in case.findings[0].message
    assert "ctx.save_for_backward" not in case.findings[0].message


class Product(Function):
    """The product, with the mean of both factors in the place of the other one."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * (a + b) / 2, g * a


def test_a_correction_holds_no_sum_of_a_thing_with_itself():
    a, b = (engine.tensor(v, requires_grad=True) for v in ([0.5, -1.25, 2.0], [1.5, 0.75, -0.5]))
    (finding,) = gradcli.check(Product, (a, b), shrink=False).cases[0].findings
    assert "where `g * b` belongs" in finding.message
    assert finding.kind is FindingKind.WRONG_FACTOR
    assert finding.corrected is None or "return g * b, g * a" in finding.corrected
