"""A gradient that is wrong only at the negative numbers that gradcli drew comes with the flag that excludes these."""

import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.runner.case import run_case
from gradcli.runner.planning.gather import gather
from gradcli.runner.planning.plan import plan
from gradcli.settings import Settings
from gradcli.verdict import Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

class Huber(Function):
    @staticmethod
    def forward(ctx, x, delta):
        ctx.save_for_backward(x, delta)
        size = x.abs()
        return torch.where(size <= delta, 0.5 * x * x, delta * (size - 0.5 * delta))

    @staticmethod
    def backward(ctx, g):
        x, delta = ctx.saved_tensors
        size = x.abs()
        grad_x = g * torch.minimum(torch.maximum(x, -delta), delta)
        return {factor} * grad_x, torch.where(size <= delta, 0.0 * size, size - delta) * g

class Mean(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a * a * b * b + 1).sqrt()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        y = (a * a * b * b + 1).sqrt()
        return g * a.abs() * b * b.abs() / y, g * b.abs() * a * a.abs() / y
"""


@pytest.fixture(params=FRAMEWORKS)
def written(request, tmp_path):
    if request.param == "torch":
        pytest.importorskip("torch")

    def write(factor: float = 1.0) -> str:
        file = tmp_path / "losses.py"
        file.write_text(SOURCE.format(framework=request.param, factor=factor))
        return str(file)

    return write


def first_note(target: str) -> str:
    report = gradcli.check(target, order=1, only=["gradient"])
    assert report.verdict is Verdict.FAILED, str(report)
    return next(iter(report.cases[0].notes), "")


@pytest.mark.sampled(1)
def test_each_input_whose_sign_decides_is_listed_with_its_flag(written):
    note = first_note(f"{written()}:Huber")
    assert "right where x > 0, or where delta > 0: if one of these always holds" in note
    assert "add its flag: -i x=3x4,domain=positive, or -i delta=3x4,domain=positive" in note


def test_the_flag_makes_the_check_pass(written):
    target = written()
    from gradcli.inputs.flags import parse_input

    (case,) = plan(gather([f"{target}:Huber"], [parse_input("delta=3x4,domain=positive")]), Settings())
    assert run_case(case).verdict is Verdict.PASSED


@pytest.mark.sampled(1)
def test_inputs_that_have_to_be_positive_together_are_listed_together(written):
    note = first_note(f"{written()}:Mean")
    assert "right where a > 0 and b > 0:" in note


@pytest.mark.sampled(1)
def test_no_domain_excuses_a_gradient_that_is_wrong_at_positive_numbers_too(written):
    assert "domain=positive" not in first_note(f"{written(1.001)}:Huber")


@pytest.mark.sampled(1)
def test_inputs_that_were_given_are_not_put_in_question(written):
    import numpy as np

    values = np.array([-1.0, 2.0, -0.5])
    report = gradcli.check(f"{written()}:Huber", (values, np.array([0.5, -1.0, -0.1])))
    assert report.verdict is Verdict.FAILED
    assert "domain=positive" not in str(report)


CLIPPED = """
import {framework} as torch
from {framework}.autograd import Function

class Clipped(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return torch.minimum(x.clamp(min=0), alpha)

    @staticmethod
    def backward(ctx, g):
        x, alpha = ctx.saved_tensors
        above = (x >= alpha).double()
        return g * (1 - above) * (x > 0).double(), ({factor} * (g * above).sum()).reshape(alpha.shape)
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("factor", "is_right"), [(1, True), (0.5, False)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.usefixtures("unshrunk")
def test_positive_numbers_excuse_only_a_gradient_that_is_right_there(framework, factor, is_right, tmp_path):
    """The flag is told in a note, or in the finding if alpha was drawn positive and made negative later."""
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "clipped.py"
    file.write_text(CLIPPED.format(framework=framework, factor=factor))
    only = ["gradient", "other-inputs"]
    case = gradcli.check(f"{file}:Clipped", order=1, samples=1, only=only).cases[0]
    assert case.verdict is Verdict.FAILED
    assert [f.input for f in case.findings] == ["alpha"]
    told = (case.findings[0].message, *case.notes)
    assert any("domain=positive" in text for text in told) is is_right


SWAPPED = """
import {framework} as torch
from {framework}.autograd import Function

class Nearest(Function):
    @staticmethod
    def forward(ctx, a, p, n):
        near = (a - n) ** 2 < (p - n) ** 2
        ctx.save_for_backward(a, p, n, near)
        return torch.where(near, (a - n) ** 2, (p - n) ** 2)

    @staticmethod
    def backward(ctx, g):
        a, p, n, near = ctx.saved_tensors
        gp = torch.where(near, 0 * g, {slope} * g * (p - n))
        return torch.where(near, 2 * g * (a - n), 0 * g), gp, -2 * g * torch.where(near, a - n, p - n)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_flag_is_given_under_which_other_inputs_of_its_domain_fail(tmp_path, framework):
    if framework == "torch":
        pytest.importorskip("torch")
    for name, slope in (("wrong", "torch.where(p > n, 2.0 + 0 * p, 1.0 + 0 * p)"), ("right", "2")):
        (tmp_path / f"{name}.py").write_text(SWAPPED.format(framework=framework, slope=slope))
    assert "always holds" not in first_note(f"{tmp_path / 'wrong.py'}:Nearest")  # p > n decides, not p > 0
    assert gradcli.check(f"{tmp_path / 'right.py'}:Nearest").verdict is Verdict.PASSED


def weighted_log_sum(words, *, drops_zeros=False):
    class WeightedLogSum(Function):
        @staticmethod
        def forward(ctx, x, w):
            total = (w * x.exp()).sum()
            ctx.save_for_backward(x, w, total)
            return total.log()

        @staticmethod
        def backward(ctx, g):
            x, w, total = ctx.saved_tensors
            share = x.exp() / total
            return g * share * w, g * share * (w > 0) if drops_zeros else g * share

    WeightedLogSum.__doc__ = f"log sum_i w_i exp(x_i). x: (N,), w: (N,) {words}."
    return WeightedLogSum


def of_one(words, forward, backward):
    class Rate(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * backward(x)

    Rate.__doc__ = f"x: (N,) {words}"
    return Rate


def cube_of(words):
    return of_one(words, lambda x: x * x * x, lambda x: 3 * x * x * (x < 1))


@pytest.mark.parametrize(
    "target",
    [
        weighted_log_sum("non-negative weights"),
        weighted_log_sum("positive weights", drops_zeros=True),
        cube_of("in [0, 1)"),
        of_one("in [0, 1], with a guard at 0", lambda x: x.clamp(min=1e-10).log(), lambda x: 1 / x.clamp(min=1e-10)),
        of_one(">= 0", lambda x: x.sqrt(), lambda x: (x > 0) / (2 * (x + (x == 0)).sqrt())),
    ],
)
def test_a_gradient_that_is_right_at_the_documented_ends_passes(target):
    case = gradcli.check(target, order=1).cases[0]
    assert case.verdict is Verdict.PASSED, case.findings


@pytest.mark.parametrize(
    ("target", "name"), [(weighted_log_sum("non-negative", drops_zeros=True), "w"), (cube_of("in [0, 1]"), "x")]
)
def test_a_gradient_that_is_wrong_at_a_documented_end_fails(target, name):
    case = gradcli.check(target, order=1, shrink=False).cases[0]
    assert [finding.input for finding in case.findings] == [name]
