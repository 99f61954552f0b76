"""Descriptions of values and kinds without a colon: what they say, of which argument, and what looks like one."""

from typing import Any

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import Documented, documented_values
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.search.candidates import slot_for
from gradcli.targets import Parameter
from gradcli.verdict import Verdict

NAMES = ("x", "tau", "a", "b", "alpha", "p")
POSITIVE = {"tau": "positive"}


@pytest.mark.parametrize(
    ("text", "domains", "types"),
    [
        ("x: (n, m), tau scalar > 0", POSITIVE, {"tau": "scalar"}),
        ("x: (n, m)\ntau: scalar temperature, positive", POSITIVE, {"tau": "scalar"}),
        ("x: (n, m), tau: positive scalar", POSITIVE, {"tau": "scalar"}),
        ("x (n, m), tau a scalar", {}, {"tau": "scalar"}),
        ("x (n, m), tau (scalar), positive", POSITIVE, {"tau": "scalar"}),
        ("x (n, m), tau a positive scalar.", POSITIVE, {"tau": "scalar"}),
        ("tau scalar tensor > 0", POSITIVE, {"tau": "scalar"}),
        ("Bends x by the angle tau * z, tau a scalar", {}, {"tau": "scalar"}),
        ("x: (n, m), tau: ()", {}, {"tau": "scalar"}),
        ("tau (0-dim tensor): temperature, positive", POSITIVE, {"tau": "scalar"}),
        ("tau: shape ()", {}, {"tau": "scalar"}),
        ("tau: single number", {}, {"tau": "scalar"}),
        ("x (n, m) over a width tau > 0 (scalar).", POSITIVE, {"tau": "scalar"}),
        ("tau -- temperature (positive)", POSITIVE, {}),
        ("x - data\ntau - positive temperature", POSITIVE, {}),
        ("all of a, b positive", {"a": "positive", "b": "positive"}, {}),
        ("log I0(tau); tau > 0", POSITIVE, {}),
        ("log I0(tau); tau >= 0.0 concentration", POSITIVE, {}),
        ("log I0(tau), tau > 0.5", {"tau": "open-interval(0.5, inf)"}, {}),
        ("log I0(tau), defined for tau > 0", POSITIVE, {}),
        ("0 < p < 1, 0 <= tau", {"p": "unit", "tau": "positive"}, {}),
        ("The root of E = 0, for a, b in (0.05, 0.2).", dict.fromkeys("ab", "open-interval(0.05, 0.2)"), {}),
        ("The root of E = 0 for p in (0, 1)", {"p": "unit"}, {}),
        ("The anomaly, for eccentricity x between 0.05 and 0.8", {"x": "open-interval(0.05, 0.8)"}, {}),
        ("The root of E = 0 for all x between -2 and 0.5", {"x": "open-interval(-2, 0.5)"}, {}),
        ("The root of E = 0, -0.5 < a, b < 0.5", dict.fromkeys("ab", "open-interval(-0.5, 0.5)"), {}),
        ("The root of E = 0 for 0.1 <= x <= 2", {"x": "open-interval(0.1, 2)"}, {}),
        ("The root of E = 0; 0 < x, 1 < tau", {"x": "positive", "tau": "open-interval(1, inf)"}, {}),
        ("a with a exp(a) = x for positive x", {"x": "positive"}, {}),
        ("a with a exp(a) = x for all x > 0", {"x": "positive"}, {}),
        ("Solves tau + log(tau) = a for positive a, b", {"a": "positive", "b": "positive"}, {}),
        ("ratio a / b. a, b positive", {"a": "positive", "b": "positive"}, {}),
        ("ratio a / b. a and b are positive", {"a": "positive", "b": "positive"}, {}),
        ("x (N, C), alpha (C,) positive", {"alpha": "positive"}, {}),
        ("x (N, C), alpha (C,), strictly positive", {"alpha": "positive"}, {}),
        ("x (N, C), positive alpha (C,)", {"alpha": "positive"}, {}),
        ("x (N, C) with positive alpha and tau", {"alpha": "positive", "tau": "positive"}, {}),
        ("x: (N, C), tau the temperature, positive", {}, {}),
        ("x: positive, tau a scalar", {"x": "positive"}, {"tau": "scalar"}),
        ("bends x to [0, tau], tau is a learnable scalar > 0", POSITIVE, {"tau": "scalar"}),
        ("bends x to [0, tau], tau a learnable scalar > 0", POSITIVE, {"tau": "scalar"}),
        ("x (n, m) with a learnable scalar tau.", {}, {"tau": "scalar"}),
        ("tau is one number in (0, 1), x: (n, m)", {"tau": "unit"}, {"tau": "scalar"}),
        ("tau: a number in (0, 1), x: (n, m)", {"tau": "unit"}, {"tau": "scalar"}),
        ("Root of positive a by iteration", {"a": "positive"}, {}),
        ("Root of a > 0 by iteration", {"a": "positive"}, {}),
        ("x (n, m) boolean mask of entries, a (n, m)", {"x": "boolean"}, {}),
        ("x (n, m), boolean mask a (n, m)", {"a": "boolean"}, {}),
        ("a (n, m), x (n, m) in {0, 1}", {"x": "binary"}, {}),
        ("x: class of each row of a tensor (0 for background and 1 for the object)", {"x": "binary"}, {}),
        ("x: a tensor. Stores the binary classification label of each row", {"x": "binary"}, {}),
        ("x (n,) integer labels, alpha (n,)", {"x": "indices"}, {}),
        ("alpha (n,), integer labels x (n,)", {"x": "indices"}, {}),
    ],
)
def test_what_is_said_of_which_argument(text: str, domains: dict[str, str], types: dict[str, str]) -> None:
    shapes = documented_shapes(NAMES, "", text)
    found = documented_values(NAMES, "", text, shapes=shapes)
    assert (found.domains, found.types) == (domains, types)


@pytest.mark.parametrize(
    "text",
    [
        "x if x > 0 else 0",
        "quadratic for x in (-1, 1) and linear beyond",
        "x for x in (0, 1), 0 elsewhere",
        "slope 1 for -1 < x < 1, constant outside",
        "clips x in (0, 1)",
        "x where x > 0, 0 elsewhere",
        "sqrt(x) where positive, else 0",
        "x for x > 0, exp(x) - 1 for x <= 0",
        "Zero for positive x",
        "f(x) = x for positive x",
        "a linear unit with f(x) = x for positive x",
        "a with a = x for positive x, and 0 otherwise",
        "a - x positive: the first branch",
        "Clips x; tau is the limit when x is positive",
        "Turns about the positive x axis",
        "Multiplies x by a positive number",
        "x > 0: linear; x < 0: constant",
        "x, positive or negative",
        "The scalar field x",
        "x: scalar field of shape (N, N)",
        "x: scalar weights per row",
        "gives x > 0 (scalar fields)",
        "x: one number per row",
        "anchor a, positive x and negative tau",
        "the probability of x > 0",
        "each scalar x of a field",
        "x: axis, 0 or 1",
        "x (n, m) binary cross entropy input",
        "x (n, m) integer multiple of a",
    ],
)
def test_what_says_nothing(text: str) -> None:
    found = documented_values(("x", "tau", "a"), "", text, shapes=documented_shapes(("x", "tau", "a"), "", text))
    assert (found.domains, found.types) == ({}, {})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("y = ns.where(x > 0, x, 0 * x)", False),
        ("y = x * (0 < x)", False),
        ("assert (x > 0).all()", True),
        ("if (x <= 0).any():\n        raise ValueError", True),
        ("y = ns.log(x)", True),
    ],
)
def test_code_that_branches_makes_a_comparison_a_case(line: str, says: bool) -> None:
    source = f"def forward(ctx, x):\n    # x > 0\n    {line}\n    return y\n"
    assert documented_values(("x",), source).domains == ({"x": "positive"} if says else {})


def scaled_of(ns: Any, documentation: str, factor: float) -> type:
    class Scaled(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, x: Any, tau: Any) -> Any:
            ctx.save_for_backward(x, tau)
            return ns.tanh(x / tau.abs())

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, tau = ctx.saved_tensors
            d = g * (1 - ns.tanh(x / tau) ** 2) / tau
            return d, factor * -(d * x).sum() / tau

    return Scaled


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01, -1])
@pytest.mark.parametrize(
    "documentation",
    [
        "x: (n, m), tau scalar > 0",
        "x: (n, m)\ntau: scalar temperature, positive",
        "tanh of x (n, m) over tau, tau is a learnable scalar > 0",
    ],
)
def test_a_gradient_for_a_positive_number(ns: Any, documentation: str, factor: float) -> None:
    (case,) = gradcli.check(scaled_of(ns, documentation, factor), order=1, shrink=False).cases
    assert [(spec.shape, spec.domain) for spec in case.inputs] == [((3, 4), "normal"), ((), "positive")]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {f.input for f in case.findings} == (set() if factor == 1 else {"tau"})


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("a (n, n) symmetric positive definite, b (n,)", {"a": "spd"}),
        ("b (n,), a (n, n), symmetric positive definite", {"a": "spd"}),
        ("b (n,); a (n, n) SPD", {"a": "spd"}),
        ("a (n, n) lower triangular, b (n,)", {"a": "triangular"}),
        ("a, b (n, n) orthogonal", {"a": "orthogonal", "b": "orthogonal"}),
        ("x (N, D) one-hot", {"x": "one-hot"}),
        ("solves a (n, n) symmetric system", {}),
        ("the inverse of a (n, n) symmetric matrix", {}),
        ("if a (n, n) symmetric: faster", {}),
        ("a (n, n) non-symmetric", {}),
        ("a (n, n) symmetric part of the Jacobian", {}),
    ],
)
def test_what_follows_a_shape(text: str, domains: dict[str, str]) -> None:
    assert documented_values(NAMES, "", text, shapes=documented_shapes(NAMES, "", text)).domains == domains


def solve(ns: Any, factor: float) -> type:
    class Solve(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            # a (n, n) symmetric positive definite, b (n,)
            x = ns.linalg.solve(a, b)
            ctx.save_for_backward(a, x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, x = ctx.saved_tensors
            u = ns.linalg.solve(a, g)  # of the transposed matrix, were it not symmetric
            return -factor * ns.outer(u, x), u

    return Solve


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED), (-1, Verdict.FAILED), (0, Verdict.FAILED)]
)
def test_a_comment_in_forward(ns: Any, factor: float, verdict: Verdict) -> None:
    (case,) = gradcli.check(solve(ns, factor), order=1, shrink=False).cases
    assert [(spec.shape, spec.domain) for spec in case.inputs] == [((3, 3), "spd"), ((3,), "normal")]
    assert case.verdict is verdict, (case.findings, case.error)


@pytest.mark.parametrize("code", ["torch.where(x.abs() < 1, x, 0)", "x.clamp(-1, 1)", "np.clip(x, -1, 1)", "1 > x"])
@pytest.mark.parametrize("words", ["f(x) for x in (-1, 1)", "f(x) for -1 < x < 1"])
def test_code_that_tells_cases_apart(code: str, words: str) -> None:
    assert not documented_values(["x"], f"def f(x):\n    return {code}", words).domains
    assert documented_values(["x"], "def f(x):\n    return x * x", words).domains == {"x": "open-interval(-1, 1)"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", ["the root of x = a exp(x), for a in (0.05, 0.3)", "the root for 0.05 < a < 0.3"])
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_root_that_exists_in_an_interval(ns: Any, words: str, factor: float, verdict: Verdict) -> None:
    class Root(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            x = a * 0
            for _ in range(60):
                x = a * x.exp()
            ctx.save_for_backward(a, x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, x = ctx.saved_tensors
            return factor * g * x / a / (1 - x)

    Root.__doc__ = words
    (case,) = gradcli.check(Root, order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert case.inputs[0].domain == "open-interval"


@pytest.mark.parametrize(
    ("text", "complexes"),
    [
        ("z complex (B, D), b real (D,)", {"z"}),
        ("z (B, D) complex, b (D,)", {"z"}),
        ("z: a complex tensor, b: shift", {"z"}),
        ("z is complex-valued", {"z"}),
        ("product of complex z and b", {"z", "b"}),
        ("z (complex64): signal", {"z"}),
        ("z: real or complex", set()),
        ("z: (N, 2), complex numbers stored as pairs", set()),
        ("the complex conjugate of z, shifted by b", set()),
        ("z is complex only behind the root", set()),
    ],
)
def test_what_says_that_an_argument_is_complex(text: str, complexes: set[str]) -> None:
    shapes = documented_shapes(("z", "b"), "", text)
    assert documented_values(("z", "b"), "", text, shapes=shapes).complexes == complexes


def scaled_square(ns: Any, conjugates: bool) -> type:
    def conj(z: Any) -> Any:  # by hand: nothing else in the code says that z is complex
        return 2 * z.real - z

    class ScaledSquare(ns.autograd.Function):
        # b * z * z for z complex (B, D), b real (D,)
        @staticmethod
        def forward(ctx: Any, z: Any, b: Any) -> Any:
            ctx.save_for_backward(z, b)
            return b * z * z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, b = ctx.saved_tensors
            inner = conj(z) if conjugates else z
            return 2 * g * b * inner, (g * inner * inner).real.sum(0)

    return ScaledSquare


@pytest.mark.parametrize("conjugates", [True, False])
def test_a_documented_complex_input_is_complex(ns: Any, conjugates: bool) -> None:
    (case,) = gradcli.check(scaled_square(ns, conjugates), order=1, shrink=False).cases
    assert [(spec.shape, spec.dtype) for spec in case.inputs] == [((3, 4), "complex128"), ((4,), None)]
    assert case.verdict is (Verdict.PASSED if conjugates else Verdict.FAILED)
    assert conjugates or FindingKind.MISSING_CONJUGATE in {f.kind for f in case.findings}


def logistic(ns: Any, documentation: str, factor: float) -> type:
    class Logistic(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, x: Any, of: Any) -> Any:
            side = 1 - 2 * of
            ctx.save_for_backward(x, side)
            return ns.log(1 + ns.exp(side * x)).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, side = ctx.saved_tensors  # side is -1 or 1, so that its square is 1
            return factor * g * side / (1 + ns.exp(-side * x)) * side * side, None

    return Logistic


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01, -1])
@pytest.mark.parametrize(
    "documentation",
    [
        "x (N, K), of (N, K) ground truth in {0, 1}",
        "x: a tensor of scores. of: a tensor with the class of each (0 for the background and 1 for the object)",
        "x: scores (N, K), of: binary labels (N, K)",
    ],
)
def test_labels_of_two_classes(ns: Any, documentation: str, factor: float) -> None:
    (case,) = gradcli.check(logistic(ns, documentation, factor), order=1, shrink=False).cases
    assert [(spec.domain, spec.requires_grad) for spec in case.inputs] == [("normal", None), ("binary", False)]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {f.input for f in case.findings} == (set() if factor == 1 else {"x"})


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_mask_that_forward_subtracts(factor: float) -> None:
    """PyTorch refuses `1 - w` of booleans: w is then drawn as numbers that are 0 and 1."""
    torch = pytest.importorskip("torch")

    class Kept(torch.autograd.Function):
        """x (N, K), w (N, K) boolean"""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return (1 - w) * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return factor * 2 * g * (1 - w) * x, None

    (case,) = gradcli.check(Kept, order=1, shrink=False).cases
    assert case.inputs[1].domain == "binary"
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


def corner_mean(ns: Any, divides: bool) -> type:
    class CornerMean(ns.autograd.Function):
        """The means of corners of x (N, C); ends (K, 2) int as counts of rows and columns"""

        @staticmethod
        def forward(ctx: Any, x: Any, ends: Any) -> Any:
            rows, columns = ns.arange(x.shape[0])[None], ns.arange(x.shape[1])[None]
            inside = (rows < ends[:, 0:1])[:, :, None] & (columns < ends[:, 1:2])[:, None, :]
            inside = inside.to(x.dtype)
            count = inside.sum((1, 2)).clamp(min=1)
            ctx.save_for_backward(inside, count)
            return (inside * x).sum((1, 2)) / count

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inside, count = ctx.saved_tensors
            each = g / count if divides else g
            return (inside * each[:, None, None]).sum(0), None

    return CornerMean


@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.usefixtures("unexplained")
def test_integers_behind_a_shape_reach_beyond_one(ns: Any, divides: bool) -> None:
    """The mean of one entry is its sum."""
    (case,) = gradcli.check(corner_mean(ns, divides), order=1, samples=1, shrink=False, only=("gradient",)).cases
    assert case.verdict is (Verdict.PASSED if divides else Verdict.FAILED)


@pytest.mark.parametrize(("gradient", "kind"), [(False, "index"), (None, "index"), (True, "float")])
def test_what_is_documented_as_indices_is_tried_as_such_first(gradient: bool | None, kind: str) -> None:
    values = Documented(domains={"ends": "indices"})
    hints = SourceHints(
        forward="", backward="", gradients=(True, gradient), values=values, documented={"ends": ("K", 2)}
    )
    slot = slot_for("ends", Parameter(name="ends"), 1, ("x", "ends"), hints)
    assert (slot.choices[0][1].kind, slot.choices[0][1].rank) == (kind, 2)
