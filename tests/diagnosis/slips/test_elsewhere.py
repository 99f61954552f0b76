"""A correction is told only if it is right at other numbers, sizes and values, too."""

import pytest

import gradcli
from gradcli.verdict import Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n"
SIZES = (
    HEADER
    + """
class Mean(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x.tanh() * w).mean()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * (1 - x.tanh() ** 2), g * x.tanh() / x.numel()
"""
)
NUMBERS = (
    HEADER
    + """
class Step(Function):
    @staticmethod
    def forward(ctx, angle, speed, dt: float = 0.5):
        half = speed - 0.5 * dt * torch.sin(angle)
        ctx.save_for_backward(angle)
        ctx.dt = dt
        return angle + dt * half

    @staticmethod
    def backward(ctx, g):
        angle, = ctx.saved_tensors
        return g - 0.25 * ctx.dt * torch.cos(angle) * g, g * ctx.dt, None
"""
)
VALUES = (
    HEADER
    + """
class Clipped(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return torch.minimum(x.clamp(min=0), alpha)

    @staticmethod
    def backward(ctx, g):
        x, alpha = ctx.saved_tensors
        above = (x >= alpha).double()
        return g * (1 - above) * (x > 0).double(), (g * above).sum().reshape(alpha.shape)
"""
)
GATE = (
    HEADER
    + """
class Gate(Function):
    @staticmethod
    def forward(ctx, x, update, gate):
        s = torch.sigmoid(gate)
        ctx.save_for_backward(x, update, gate)
        return x + s * (update - x)

    @staticmethod
    def backward(ctx, g):
        x, update, gate = ctx.saved_tensors
        s = torch.sigmoid(gate)
        to_x = g * (1 - s)
        to_update = None
        if ctx.needs_input_grad[1]:
            to_update = g.mul_(s)
        return to_x, to_update, g * (update - x) * s * (1 - s)
"""
)
CAUCHY = (
    HEADER
    + """
class Cauchy(Function):
    @staticmethod
    def forward(ctx, x, c=2.0):
        ctx.save_for_backward(x)
        ctx.c = c
        return c * c / 2 * torch.log(1 + (x / c) ** 2)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * x / (1 + x**2 / ctx.c), None
"""
)
POWER = (
    HEADER
    + """
class Power(Function):
    @staticmethod
    def forward(ctx, x, n: int = 3):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 3 * x**2, None
"""
)
HARD = (
    HEADER
    + """
class Hard(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x + 3).clamp(0, 6) * x / 6

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        inner = torch.where(x < 3, torch.ones_like(x) / 6, torch.zeros_like(x))
        return g * ((x + 3).clamp(0, 6) / 6 + inner * x)
"""
)
LOGARITHM = (
    HEADER
    + """
class Logarithm(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log(x * x + 3)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2 * x
"""
)


@pytest.fixture(params=FRAMEWORKS)
def failed(request, tmp_path):
    """The failed case of a Function."""
    if request.param == "torch":
        pytest.importorskip("torch")

    def case(text: str, name: str):
        file = tmp_path / "written.py"
        file.write_text(text.format(framework=request.param))
        (case,) = gradcli.check(f"{file}:{name}", order=1).cases
        assert case.verdict is Verdict.FAILED
        return case

    return case


@pytest.mark.sampled(1)
def test_a_factor_that_depends_on_a_size_is_corrected_with_the_size(failed):
    patch = failed(SIZES, "Mean").patch
    assert patch is not None
    assert "numel()" in patch.after.replace("x.tanh() / x.numel()", "")
    assert "12" not in patch.after


@pytest.mark.sampled(1)
def test_a_term_that_depends_on_a_number_is_told_with_the_number(failed):
    (finding,) = failed(NUMBERS, "Step").findings
    assert "ctx.dt" in finding.message
    assert "with this corrected, the returned gradient is right" in finding.message


@pytest.mark.sampled(1)
def test_a_factor_is_corrected_for_other_values_of_a_number_that_was_left_out(failed):
    """With c=2, half of x²/c is right as well."""
    case = failed(CAUCHY, "Cauchy")
    (finding,) = case.findings
    assert "x ** 2 / ctx.c / ctx.c)` belongs; with this corrected, the returned gradient is right" in finding.message
    assert "other checks" not in finding.message
    assert case.patch is not None


@pytest.mark.sampled(1)
def test_a_correction_that_spoils_the_gradient_at_other_values_is_not_told(failed):
    case = failed(VALUES, "Clipped")
    assert [finding.input for finding in case.findings] == ["alpha"]
    assert "with this corrected" not in case.findings[0].message
    assert case.patch is None


@pytest.mark.sampled(1)
def test_a_correction_that_other_checks_refute_says_so(failed):
    case = failed(GATE, "Gate")
    (message,) = [finding.message for finding in case.findings if finding.input == "gate"]
    assert "with this corrected, the returned gradient is right at these inputs, but other checks still" in message
    assert case.patch is None


@pytest.mark.sampled(1)
def test_a_correction_that_is_wrong_at_the_inputs_of_the_case_is_not_told(failed):
    """`4/3 * x` is missing for n=4, and would be wrong for the n=3 at which the gradient is right."""
    (finding,) = failed(POWER, "Power").findings
    assert "n=4" in finding.message
    assert "with this corrected" not in finding.message


@pytest.mark.sampled(1)
def test_a_correction_that_divides_by_zero_at_a_constant_is_not_told(failed):
    """`(x + 3).clamp(0, 6) / (x + 3)` is one or zero, except where x is -3."""
    (finding,) = failed(HARD, "Hard").findings
    if finding.corrected is not None:
        names = {}
        exec(finding.corrected, names)
        x = names["torch"].tensor([-3.0, 1.0, -4.0], requires_grad=True)
        names["Hard"].apply(x).sum().backward()
        assert float(x.grad.abs().sum()) == pytest.approx(1 / 6 + 4 / 6)
    assert "/ (x + 3)" not in finding.message


@pytest.mark.sampled(1)
def test_a_correction_that_divides_by_what_is_never_zero_is_told(failed):
    case = failed(LOGARITHM, "Logarithm")
    assert "with this corrected, the returned gradient is right" in case.findings[0].message
    assert "x * x + 3" in case.findings[0].message
    assert case.patch is not None
