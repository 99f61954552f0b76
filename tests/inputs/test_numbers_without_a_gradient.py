"""An argument that forward computes with, and that gets no gradient from backward, may be a number."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.suggested_constants import in_order
from gradcli.results import CheckResult
from gradcli.verdict import Verdict


def dice(ns: Any, factor: float) -> type:
    class Dice(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Any, labels: Any, smooth: Any) -> Any:
            p = ns.sigmoid(logits)
            num = 2 * (p * labels).sum(1) + smooth
            den = (p + labels).sum(1) + smooth
            ctx.save_for_backward(p, labels, num, den)
            return 1 - num / den

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            p, labels, num, den = ctx.saved_tensors
            d = num[:, None] / den[:, None] ** 2 - factor * 2 * labels / den[:, None]
            return g[:, None] * d * p * (1 - p), None, None

    return Dice


def saved(ns: Any, factor: float) -> type:
    class Saved(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, level: Any) -> Any:
            row = (x * x).sum(1) + level
            ctx.save_for_backward(x, level)
            return row

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, _ = ctx.saved_tensors
            return factor * 2 * g[:, None] * x, None

    return Saved


def described(ns: Any, factor: float) -> type:
    class Described(ns.autograd.Function):
        """x: (N, C), level: (N,)"""

        @staticmethod
        def forward(ctx: Any, x: Any, level: Any) -> Any:
            ctx.save_for_backward(x)
            return (x * x).sum(1) + level

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * 2 * g[:, None] * x, None

    return Described


def checked(target: Any) -> CheckResult:
    return gradcli.check(target, shrink=False, order=1).cases[0]


@pytest.mark.sampled(1)
def test_a_number(ns: Any) -> None:
    right = checked(dice(ns, 1.0))
    assert right.verdict is Verdict.PASSED
    assert right.inputs[2].kind == "value"
    assert any(note.startswith("smooth is taken for a number") for note in right.notes)
    wrong = checked(dice(ns, 1.01))
    assert [finding.input for finding in wrong.findings] == ["logits"]


@pytest.mark.parametrize("made", [saved, described])
def test_a_tensor_that_lacks_its_gradient(ns: Any, made: Any) -> None:
    case = checked(made(ns, 1.0))
    assert [(finding.kind.value, finding.input) for finding in case.findings] == [("missing-gradient", "level")]


def staircase(ns: Any, kept: bool, factor: float = 1.0) -> type:
    """Quadratic between two knots; where they are kept, forward saves them as it saves tensors."""

    class Staircase(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, knot0: Any, knot1: Any) -> Any:
            if kept:
                ctx.save_for_backward(x, knot0, knot1)
            part = ((x - knot0) / (knot1 - knot0)).clamp(0, 1)
            ctx.slope = 2 * part * ((part > 0) & (part < 1)) / (knot1 - knot0)
            return part * part

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g * ctx.slope, None, None

    class Plain(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, knot0: Any, knot1: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.knots = knot0, knot1
            part = ((x - knot0) / (knot1 - knot0)).clamp(0, 1)
            return part * part

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,), (low, high) = ctx.saved_tensors, ctx.knots
            inside = ((x > low) & (x < high)).to(x.dtype)
            return factor * g * inside * 2 * (x - low) / (high - low) ** 2, None, None

    return Staircase if kept else Plain


def line(ns: Any, kept: bool, factor: float = 1.0) -> type:
    """a x + b, which saves nothing; where tensors are kept as attributes, a may be one."""

    class Line(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: Any, b: Any) -> Any:
            ctx.a = a
            return a * x + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g * ctx.a, None, None

    class Kept(Line):
        @staticmethod
        def forward(ctx: Any, x: Any, a: Any, b: Any) -> Any:
            ctx.x, ctx.a = x, a
            return a * x + b

    return Kept if kept else Line


def limited(ns: Any, kept: bool, factor: float = 1.0) -> type:
    """A clamp; where its limits are kept, they are tensors."""

    class Limited(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, lower: Any, upper: Any) -> Any:
            if kept:
                ctx.save_for_backward(x, lower, upper)
            ctx.inside = (x >= lower) & (x <= upper)
            return ns.clamp(x, lower, upper)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g * ctx.inside.to(g.dtype), None, None

    class Plain(Limited):
        @staticmethod
        def forward(ctx: Any, x: Any, lower: Any, upper: Any) -> Any:
            ctx.inside = (x >= lower) & (x <= upper)
            return ns.clamp(x, lower, upper)

    return Limited if kept else Plain


def swinging(ns: Any, kept: bool, factor: float = 1.0) -> type:
    """A sine whose rise and foot setup_context saves, or keeps as numbers."""

    class Swinging(ns.autograd.Function):
        @staticmethod
        def forward(x: Any, rise: Any, foot: Any) -> Any:
            return rise * x.sin() + foot

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, r, _ = inputs
            ctx.save_for_backward(x)
            ctx.rise = r

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g * ctx.rise * ctx.saved_tensors[0].cos(), None, None

    class Kept(Swinging):
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, r, _ = inputs
            ctx.save_for_backward(x, r)
            ctx.rise = r

    return Kept if kept else Swinging


UNNAMED = [staircase, line, limited, swinging]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("made", UNNAMED)
def test_all_arguments_without_a_gradient_are_numbers_in_ascending_order(ns: Any, made: Any) -> None:
    right = gradcli.check(made(ns, False), shrink=False, order=1, only=("gradient",)).cases[0]
    assert right.verdict is Verdict.PASSED
    assert [spec.kind for spec in right.inputs] == ["tensor", "value", "value"]
    assert right.inputs[1].value < right.inputs[2].value
    wrong = gradcli.check(made(ns, False, 1.25), shrink=False, order=1, only=("gradient",)).cases[0]
    assert [(f.kind.value, f.input) for f in wrong.findings] == [("wrong-factor", "x")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("made", UNNAMED)
def test_what_is_kept_as_tensors_are_lacks_its_gradient(ns: Any, made: Any) -> None:
    case = gradcli.check(made(ns, True), shrink=False, order=1, only=("gradient",)).cases[0]
    assert case.verdict is Verdict.FAILED
    missing = {f.input for f in case.findings if f.kind.value == "missing-gradient"}
    assert missing
    assert "x" not in missing


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([], []),
        ([None], [()]),
        ([None, None, None], [(0.3, 2), (0.9, 3), (1.5, 4)]),
        ([3, None], [(), (3.6, 4)]),
        ([None, None, -1.0], [(-2.2, -3.0), (-1.6, -2.0), ()]),
        ([-1.0, None, 1.0], [(), (0.0,), ()]),
        ([2.0, None, 1.0], [(), (1.5,), ()]),
    ],
)
def test_numbers_in_order_with_those_that_were_given(
    known: list[float | None], expected: list[tuple[float, ...]]
) -> None:
    assert in_order(known) == expected


def softened(ns: Any, factor: float) -> type:
    class Softened(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, b: Any) -> Any:
            r = ns.sqrt(x * x + b**2)
            ctx.save_for_backward(x / r)
            return r - b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g * ctx.saved_tensors[0], None

    return Softened


def biased(ns: Any, _: float) -> type:
    class Biased(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, b: Any) -> Any:
            y = ns.tanh(x + b)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (1 - ctx.saved_tensors[0] ** 2), None

    return Biased


def second(ns: Any, _: float) -> type:
    class Second(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a + b**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0], None

    return Second


@pytest.mark.usefixtures("unexplained")
def test_what_forward_squares_is_no_bias(ns: Any) -> None:
    right = checked(softened(ns, 1.0))
    assert right.verdict is Verdict.PASSED
    assert right.inputs[1].kind == "value"
    wrong = checked(softened(ns, 1.01))
    assert {e.input for e in wrong.evidence if e.verdict is Verdict.FAILED} == {"x"}


@pytest.mark.parametrize("made", [biased, second])
def test_a_bias_and_the_second_of_two_operands_lack_their_gradients(ns: Any, made: Any) -> None:
    case = checked(made(ns, 1.0))
    assert [(finding.kind.value, finding.input) for finding in case.findings] == [("missing-gradient", "b")]


def sharpened(ns: Any, *, is_right: bool) -> type:
    """The sharpness may be a tensor, and has a gradient then; the level may not."""

    class Sharpened(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any = 1.0, level: Any = 0.0) -> Any:
            ctx.is_tensor = ns.is_tensor(k)
            ctx.k = None if ctx.is_tensor else k
            y = ns.tanh(k * x)
            ctx.save_for_backward(x, y, k if ctx.is_tensor else None)
            return y + float(level)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y, k = ctx.saved_tensors
            inner = g * (1 - y * y)
            if not ctx.is_tensor:
                return inner * ctx.k, None, None
            return inner * k, (inner * (x if is_right else y)).sum(), None

    return Sharpened


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.usefixtures("unexplained")
def test_a_number_that_backward_has_a_gradient_for_is_also_a_tensor(ns: Any, is_right: bool) -> None:
    (case,) = gradcli.check(sharpened(ns, is_right=is_right), order=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if is_right else Verdict.FAILED), case
    wrong = {each.input for each in case.evidence if each.verdict is Verdict.FAILED}
    assert wrong == (set() if is_right else {"k"})


def faded(ns: Any, factor: float, name: str = "w") -> type:
    class Faded(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, w: Any) -> Any:
            ctx.w = w
            return x + w * (y - x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g * (1 - ctx.w), g * ctx.w, None

    class Weighted(Faded):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, weight: Any) -> Any:
            ctx.w = weight
            return x + weight * (y - x)

    return Faded if name == "w" else Weighted


@pytest.mark.usefixtures("unexplained")
def test_a_letter_that_alone_is_kept_as_an_attribute_is_a_number(ns: Any) -> None:
    right = checked(faded(ns, 1.0))
    assert right.verdict is Verdict.PASSED
    assert right.inputs[2].kind == "value"
    assert any(note.startswith("w is taken for a number") for note in right.notes)
    wrong = checked(faded(ns, 1.01))
    assert {e.input for e in wrong.evidence if e.verdict is Verdict.FAILED} == {"x"}
    missing = checked(faded(ns, 1.0, "weight"))
    assert {e.input for e in missing.evidence if e.verdict is Verdict.FAILED} == {"weight"}


def padded(ns: Any, factor: float) -> type:
    class Padded(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, b_first: Any) -> Any:
            first = ns.full((1, *x.shape[1:]), b_first, dtype=x.dtype)
            return ns.cat([first, x], 0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g[1:], None

    return Padded


@pytest.mark.usefixtures("unexplained")
def test_what_a_tensor_is_filled_with_is_a_number_though_called_as_a_bias(ns: Any) -> None:
    right = gradcli.check(padded(ns, 1.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED, right
    assert [spec.kind for spec in right.inputs] == ["tensor", "value"]
    wrong = gradcli.check(padded(ns, 1.01), shrink=False, order=1).cases[0]
    assert {each.input for each in wrong.evidence if each.verdict is Verdict.FAILED} == {"x"}
