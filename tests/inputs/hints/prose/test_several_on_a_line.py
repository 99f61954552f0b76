"""Several arguments on one line, of which some are fixed, labels or positive."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("x: (N,) returns, fixed. y: (N,)", {"x"}),
        ("x (N,) prices, y (N,) times > 0 [fixed], m scalar > 0", {"y"}),
        ("price m scalar > 0, flows x (N,) positive, times y (N,) positive, fixed.", {"y"}),
        ("x (N,) weights, fixed; y (N,)", {"x"}),
        ("moves x (N,) by drawn normals y, m (noise)", {"y", "m"}),
        ("x (N,) probabilities, y (N,) labels", {"y"}),
        ("x: probabilities, y: class labels of the rows", {"y"}),
        ("x (N,), y (N,) label smoothing", set()),
        ("x (N,) and y fixed -> (N, N)", {"y"}),
        ("x (N,) scores near y, fixed", set()),
        ("the fixed point of x (N,), fixed number m of steps", set()),
        ("x (N, C) scores, one for each of the labels, y (N,)", set()),
        ("x (N,) returns y (N,)", set()),
    ],
)
def test_which_of_several_is_fixed(text: str, fixed: set[str]) -> None:
    shapes = documented_shapes(("x", "y", "m"), "", text)
    assert documented_values(("x", "y", "m"), "", text, shapes=shapes).fixed == fixed


def test_the_next_argument_is_not_a_word_about_the_one_before() -> None:
    text = "scores (N, C), labels: class labels (N,); scores (labels)"
    assert documented_values(("scores", "labels"), "", text).fixed == {"labels"}


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("x (N,), y (N,) maturities > 0", {"y": "positive"}),
        ("x (N,), y (N,) spot levels in (0, 1)", {}),
        ("weights x (N,) positive, edges y (N,) increasing, scale m (K,) positive", {"x": "positive", "m": "positive"}),
        ("x (N,), y (N,) > 0", {"y": "positive"}),
        ("x: (N,), positive   y: (N,) negative", {"x": "positive"}),
        ("keeps x (N,) entries > 0", {}),
        ("x (N,) where y > 0, else m (K,) positive", {}),
        ("the part of x (N,) positive and of y (N,) negative", {}),
    ],
)
def test_which_of_several_is_positive(text: str, domains: dict[str, str]) -> None:
    shapes = documented_shapes(("x", "y", "m"), "", text)
    found = documented_values(("x", "y", "m"), "", text, shapes=shapes).domains
    assert {name: domain for name, domain in found.items() if domain == "positive"} == domains


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("x: (N,), boolean\ny: (N,) floats", {"x": "boolean"}),
        ("x: (N,), positive\ny: (N,) floats", {"x": "positive"}),
        ("x (N,), positive\n`y` (N,)\nm (K,), binary", {"x": "positive", "m": "binary"}),
        ("x: (N,)\n  real and positive\ny: (N,)", {"x": "positive"}),
        ("sums x (N,) with positive\ny (N,)", {"y": "positive"}),
        ("x (N,) where allowed by the boolean\nmask m (N,)", {"m": "boolean"}),
    ],
)
def test_the_end_of_a_line_is_not_about_the_argument_of_the_next(text: str, domains: dict[str, str]) -> None:
    shapes = documented_shapes(("x", "y", "m"), "", text)
    assert documented_values(("x", "y", "m"), "", text, shapes=shapes).domains == domains


@pytest.mark.parametrize(
    ("text", "complexes", "reals"),
    [
        ("x: (N,), complex\ny: (N,), real\nm: (N,)", {"x"}, {"y"}),
        ("complex wave field x (N,) times a real mean gain m (N,)", {"x"}, {"m"}),
        ("x (N,) complex, y (N,) real-valued", {"x"}, {"y"}),
        ("x complex or real, y: real part, m: real and imaginary part", set(), set()),
        ("the complex conjugate of x (N,), real if complex phases y (N,) cancel", set(), set()),
        ("for real x the same; the complex modulus of y", set(), set()),
    ],
)
def test_which_are_complex_and_which_real(text: str, complexes: set[str], reals: set[str]) -> None:
    found = documented_values(("x", "y", "m"), "", text)
    assert (found.complexes, found.reals) == (complexes, reals)


def discounted(ns: Any, documentation: str, factor: float, *, forgets: bool = False) -> type:
    class Discounted(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, a: Any, t: Any, r: Any) -> Any:
            left = (-r * t).exp()
            ctx.save_for_backward(a, t, left)
            return a * left

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, t, left = ctx.saved_tensors
            return g * left, None, -factor * (g * a * t * left).sum()

    class Forgetful(Discounted):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, t, left = ctx.saved_tensors
            return None, None, -(g * a * t * left).sum()

    return Forgetful if forgets else Discounted


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("factor", "forgets", "wrong"), [(1, False, set()), (1.01, False, {"r"}), (1, True, {"a"})], ids=str
)
@pytest.mark.parametrize(
    "text",
    [
        "payments a (N,) positive, times t (N,) positive, fixed; rate r scalar > 0",
        "a (N,) payments, t (N,) times > 0 [fixed], r scalar > 0",
        "a: (N,) payments. t: (N,) returns, fixed. r: positive scalar",
        "a (N,) payments, t (N,) labels, r scalar",
        "a (N,), r scalar, with given times t (fixed)",
    ],
)
def test_a_fixed_argument_among_others(ns: Any, text: str, factor: float, forgets: bool, wrong: set[str]) -> None:
    target = discounted(ns, text, factor, forgets=forgets)
    (case,) = gradcli.check(target, order=1, shrink=False, only=("gradient",)).cases
    assert {finding.input for finding in case.findings} == wrong
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED)
    assert [spec.name for spec in case.inputs if spec.requires_grad is False] == ["t"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("payments a (N,) positive, times t (N,) positive; rate r scalar > 0", {"t"}),
        ("a (N,) and t (N,) fixed; r scalar", set()),
        ("a (N,) fixed payments, t (N,) times, r scalar", {"t"}),
    ],
)
def test_without_a_word_for_it_the_gradient_is_missing(ns: Any, text: str, wrong: set[str]) -> None:
    (case,) = gradcli.check(discounted(ns, text, 1), order=1, shrink=False, only=("gradient",)).cases
    assert {finding.input for finding in case.findings} == wrong


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize("text", ["t (N,) and r both fixed", "t (N,) and r (1,) fixed -> (N,)", "t (N,), r (1,) fixed"])
def test_two_that_are_fixed(ns: Any, text: str, factor: float) -> None:
    class Damped(ns.autograd.Function):
        __doc__ = f"a (N,), {text}"

        @staticmethod
        def forward(ctx: Any, a: Any, t: Any, r: Any) -> Any:
            left = (-r * t).exp()
            ctx.save_for_backward(left)
            return a * left

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (left,) = ctx.saved_tensors
            return factor * g * left, None, None

    (case,) = gradcli.check(Damped, order=1, shrink=False, only=("gradient",)).cases
    missing = {"t"} if "and" not in text else set()
    assert {finding.input for finding in case.findings} == missing | (set() if factor == 1 else {"a"})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize("text", ["scores; seen: 0/1 indicator", "score (N,), seen (N,) 0/1 indicator"])
def test_an_indicator_is_data(ns: Any, text: str, factor: float) -> None:
    class Censored(ns.autograd.Function):
        __doc__ = text

        @staticmethod
        def forward(ctx: Any, score: Any, seen: Any) -> Any:
            ctx.save_for_backward(score, seen)
            return (score.exp() - seen * score).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            score, seen = ctx.saved_tensors
            return factor * g * (score.exp() - seen), None

    (case,) = gradcli.check(Censored, order=1, shrink=False, only=("gradient",)).cases
    assert [(spec.domain, spec.requires_grad) for spec in case.inputs] == [("normal", None), ("binary", False)]
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"score"})
