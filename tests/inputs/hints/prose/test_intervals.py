"""Intervals that a text gives for arguments, wherever they stand in a sentence, and what only looks like one."""

import math
from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.inputs.hints.prose.sentences import tells_apart
from gradcli.verdict import Verdict

NAMES = ("x", "y", "u", "v", "rho", "theta", "scale")


def domains_of(text: str, code: str = "", only: str | None = None) -> dict[str, str]:
    shapes = documented_shapes(NAMES, code, text)
    return dict(documented_values(NAMES, code, text, only=only, shapes=shapes).domains)


@pytest.mark.parametrize(
    "text",
    [
        "Gaussian quantile u in (0, 1), found by Newton steps until 1e-9",
        "The clipped log-odds of rates u between 0 and 1.",
        "Takes u in the open interval (0, 1).",
        "u (Tensor): numbers strictly inside the unit interval (0, 1)",
        "u lies in the unit interval",
        "Warps the uniform noise u ~ U(0, 1)",
        "u is drawn uniformly from [0, 1)",
        "The clipped log-odds for 0 < u < 1.",
        "Entropy of u (0 <= u <= 1)",
        "Sends u in (0, 1) to the real line",
        "u (B, Q) in (0, 1)",
        "u (N,) levels in (0, 1)",
        "u (K,) mixing weights in (0, 1)",
        "x (N,), u (N,) rates between 0 and 1",
        "u of shape (B, Q), with entries in (0, 1)",
        "u > 0 and u < 1",
        "1 > u > 0",
        "u: greater than 0 and less than 1",
        "Quantile at levels `u` in `(0, 1)`, NaN outside",
        r"The quantile at :math:`u \in (0, 1)`",
        r":math:`0 < u \le 1`",
    ],
)
def test_the_unit_interval(text: str) -> None:
    assert domains_of(text) == {"u": "unit"}


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("Density of the copula at (u, v) in [0, 1]^2", {"u": "unit", "v": "unit"}),
        ("Density of the copula at levels u and v, both in (0, 1)", {"u": "unit", "v": "unit"}),
        ("Fisher's transform of correlations rho, |rho| < 1", {"rho": "open-interval(-1, 1)"}),
        ("The area hyperbolic tangent of x for -1 < x < 1", {"x": "open-interval(-1, 1)"}),
        ("Arcsine of x, abs(x) <= 0.5", {"x": "open-interval(-0.5, 0.5)"}),
        ("Rotation by angles theta between -pi and pi", {"theta": "open-interval(-3.14159, 3.14159)"}),
        ("theta: an angle in [0, pi/2]", {"theta": "open-interval(0, 1.5708)"}),
        ("Dithers by y ~ Uniform(-0.5, 0.5)", {"y": "open-interval(-0.5, 0.5)"}),
        ("Logarithm of x in (0, inf)", {"x": "positive"}),
        ("Real root of t^3 + x t = y, x > 0, by regula falsi.", {"x": "positive"}),
        ("Divides x by the learned scale > 0.", {"scale": "positive"}),
        ("scale: the width, greater than zero", {"scale": "positive"}),
        ("x (N,) in the range -2 to 2", {"x": "open-interval(-2, 2)"}),
        ("scale > 0.5 and scale < 2", {"scale": "open-interval(0.5, 2)"}),
        ("probabilities u in (0, 1)", {"u": "unit"}),
        ("Inverse hyperbolic cosine of x, x > 1", {"x": "open-interval(1, inf)"}),
        ("Decay at the scale; scale <= -0.5, any x", {"scale": "open-interval(-inf, -0.5)"}),
        ("log(1 - exp(x)) for x < 0", {"x": "open-interval(-inf, 0)"}),
    ],
)
def test_other_intervals(text: str, domains: dict[str, str]) -> None:
    assert domains_of(text) == domains


@pytest.mark.parametrize(
    "text",
    [
        "the output is in (0, 1)",
        "Returns values in (0, 1).",
        "u need not be in (0, 1)",
        "Logit, which does not require u in (0, 1)",
        "x with some weights in (0, 1)",
        "Squashes x into (0, 1)",
        "Clamps the input x in [0, 1]",
        "clamped x in (0, 1)",
        "The sigmoid of x in (0, 1)",
        "The fraction of x in (0, 1)",
        "x - y in (0, 1)",
        "as many weights as x with values in (0, 1)",
        "sigmoid(x) in (0, 1)",
        "sums x over axes (0, 1)",
        "Hard tangent: x for |x| < 1, its sign otherwise",
        "linear for |x| < 1 and constant outside",
        "zero for x < 0",
        "f(x) = x, x > 1; f(x) = x^2, x <= 1",
        "the classes y in [0, 9]",
        "integrates over x in (0, 1)",
        "x > 0 passes, the rest is zero",
        "keeps the entries x > 0",
        "x > 0: the square; x <= 0: zero",
        "cubic for x in (-1, 1); for x in (-2, 2) its tail",
        "u (N,) clipped in (0, 1)",
        "u (N,) linear in (0, 1)",
        "u (N,) logits of rates in (0, 1)",
    ],
)
def test_what_is_not_the_interval_of_an_input(text: str) -> None:
    assert domains_of(text) == {}


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Log-odds of rates in (0, 1)", "unit"),
        ("Inputs must lie in (-1, 1).", "open-interval(-1, 1)"),
        ("Softmax of scores in (0, 1)", None),
        ("Returns a vector of values in (0, 1)", None),
    ],
)
def test_a_noun_for_the_only_argument(text: str, domain: str | None) -> None:
    assert domains_of(text, only="x").get("x") == domain


@pytest.mark.parametrize(
    ("line", "apart"),
    [
        ("u.clamp(1e-6, 1 - 1e-6)", False),
        ("u.clamp(eps, 1 - eps)", False),
        ("torch.clamp(u, min=torch.finfo(u.dtype).eps)", False),
        ("u.clamp(0, 1)", True),
        ("torch.where(u.abs() < 1, u, 0)", True),
        ("torch.where(u < 0.5, u, 1 - u)", False),
        ("torch.where(torch.sigmoid(c) < u, c, u)", False),
    ],
)
def test_code_that_cuts_at_the_ends(line: str, apart: bool) -> None:
    """Inputs from inside the interval lie on both sides of a number there, but on one side of its ends."""
    assert tells_apart(("u",), f"def forward(ctx, u, c, eps):\n    return {line}", (0, 1), cuts=True) is apart


def deviation(ns: Any, documentation: str, factor: float) -> type:
    class Deviation(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, u: Any) -> Any:
            ctx.save_for_backward(u)
            return ns.sqrt(ns.abs(u - u * u))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (u,) = ctx.saved_tensors
            return factor * g * (0.5 - u) / ns.sqrt(ns.abs(u - u * u))  # of the other sign outside (0, 1)

    return Deviation


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize(
    "documentation",
    [
        "Deviation of a coin, for rates u in (0, 1), summed until 1e-9",
        "Clamped deviation, 0 < u < 1",
        "u: numbers strictly inside the unit interval (0, 1)",
        "the deviation of a coin with noise u ~ U(0, 1)",
    ],
)
def test_a_gradient_that_is_right_inside_the_interval(ns: Any, documentation: str, factor: float) -> None:
    (case,) = gradcli.check(deviation(ns, documentation, factor), order=1, shrink=False).cases
    assert case.inputs[0].domain == "unit"
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), (case.findings, case.error)


@pytest.mark.parametrize("documentation", ["Clips u in (0, 1) for the deviation", "A deviation in (0, 1) or above"])
@pytest.mark.usefixtures("unexplained")
def test_outside_the_interval_it_is_wrong(ns: Any, documentation: str) -> None:
    (case,) = gradcli.check(deviation(ns, documentation, 1), order=1, shrink=False).cases
    assert case.verdict is Verdict.FAILED


def test_a_half_line_at_whose_end_forward_branches_is_none() -> None:
    assert domains_of("twice x where x > 1", "def f(x):\n    return where(x > 1, 2 * x, x)") == {}
    assert domains_of("twice x where x > 1", "def f(x):\n    return 2 * x") == {"x": "open-interval(1, inf)"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1, 1.001])
@pytest.mark.parametrize(("documentation", "low", "high"), [("u > 1", 1, math.inf), ("u < -2", -math.inf, -2)])
def test_a_half_line(ns: Any, documentation: str, low: float, high: float, factor: float) -> None:
    class Distance(ns.autograd.Function):
        __doc__ = f"Distance from an end, {documentation}"

        @staticmethod
        def forward(ctx: Any, u: Any) -> Any:
            ctx.save_for_backward(u)
            return ns.abs(u * u - (1 if low == 1 else 4)) * u

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (u,) = ctx.saved_tensors
            return factor * g * (3 * u * u - (1 if low == 1 else 4))  # of the other sign nearer to zero

    (case,) = gradcli.check(Distance, order=1, shrink=False).cases
    assert dict(case.inputs[0].parameters) == {"lo": low, "hi": high}
    assert case.inputs[0].as_flag().endswith(f"lo={float(low)},hi={float(high)}")
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), (case.findings, case.error)


def spread(ns: Any, factor: float) -> type:
    class Spread(ns.autograd.Function):
        """v (N,) success rates in (0, 1)"""

        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.save_for_backward(v)
            return (v - v * v).abs().sqrt()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (v,) = ctx.saved_tensors
            return factor * g * (0.5 - v) / (v - v * v).sqrt()

    return Spread


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1, 1.001])
def test_nouns_may_stand_before_an_interval(ns: Any, factor: float) -> None:
    """Outside the interval the right gradient is NaN."""
    (case,) = gradcli.check(spread(ns, factor), order=1, shrink=False, only=("gradient",)).cases
    assert [spec.domain for spec in case.inputs] == ["unit"]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [finding.input for finding in case.findings] == ([] if factor == 1 else ["v"])
