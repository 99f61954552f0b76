"""Whole numbers that change together, where a mistake shows only if two are not neutral, and numbers kept in order."""

from typing import Any

import pytest

import gradcli
from gradcli.cases import Argument
from gradcli.checks.other_points.numbers import changes_in_order, keeps_order, values_to_try
from gradcli.engine import float64
from gradcli.engine import tensor as engine_tensor
from gradcli.engine.autograd import Function
from gradcli.verdict import Verdict
from tests.checks.frameworks import decided, tensor

X = tensor("x", [[0.6, -1.2, 0.9, -1.7, 0.2, 1.3, -0.5], [0.4, 1.1, -0.8, 0.3, 1.9, -0.7, 1.6]])
W = tensor("w", [0.7, -1.3])


def convolution(ns, mistake=None):
    class Convolution(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, stride=1, padding=0, dilation=1):
            sides = ns.zeros((x.shape[0], padding), dtype=x.dtype)
            wide = ns.cat([sides, x, sides], 1)
            count = (wide.shape[1] - dilation * (w.shape[0] - 1) - 1) // stride + 1
            if count < 1:
                raise ValueError("the kernel is larger than the input")
            places = [slice(k * dilation, k * dilation + stride * (count - 1) + 1, stride) for k in range(w.shape[0])]
            ctx.save_for_backward(wide, w)
            ctx.rest = stride, padding, dilation, x.shape[1], places
            return sum(w[k] * wide[:, places[k]] for k in range(w.shape[0]))

        @staticmethod
        def backward(ctx, g):
            wide, w = ctx.saved_tensors
            stride, padding, dilation, length, places = ctx.rest
            if mistake == "stride and dilation" and stride > 1 and dilation > 1:
                places = [slice(k * dilation, k * dilation + g.shape[1]) for k in range(w.shape[0])]
            gw = ns.stack([(g * wide[:, place]).sum() for place in places])
            gx = ns.zeros_like(wide)
            for k, place in enumerate(places):
                gx[:, place] += w[k] * g
            shift = 1 if mistake == "padding and dilation" and padding and dilation > 1 else 0
            return gx[:, padding - shift : padding - shift + length], gw, None, None, None

    return Convolution


def polynomial(ns, mistake=None):
    class Polynomial(ns.autograd.Function):
        """Two whole exponents that any inputs go with."""

        @staticmethod
        def forward(ctx, x, p=2, q=1):
            ctx.save_for_backward(x)
            ctx.exponents = p, q
            return x**p + x**q

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            p, q = ctx.exponents
            slope = p * x ** (p - 1) + q * x ** (q - 1)
            return g * (slope + (x if mistake == "both" and p > 2 and q > 1 else 0 * x)), None, None

    return Polynomial


def pulled(ns, mistake=None):
    class Pulled(ns.autograd.Function):
        """A bend of some width and a pull towards zero; the cross term matters only where both numbers do."""

        @staticmethod
        def forward(ctx, x, width=0.2, pull=0.0):
            ctx.save_for_backward(x)
            ctx.numbers = width, pull
            return ns.tanh(width * x) + pull * x * width + pull * pull * x

        @staticmethod
        def backward(ctx, g):
            (x,), (width, pull) = ctx.saved_tensors, ctx.numbers
            cross = 2 * pull**2 if mistake == "half of the other" else pull * width
            cross = cross + (pull * (width - 0.2) if mistake == "both real" else 0)
            return g * (width * (1 - ns.tanh(width * x) ** 2) + cross + pull * pull), None, None

    return Pulled


CASES = [
    (convolution, (X, W), "stride and dilation"),
    (convolution, (X, W), "padding and dilation"),
    (polynomial, (X,), "both"),
    (pulled, (X,), "both real"),
]


@pytest.mark.parametrize(("made", "inputs"), [(convolution, (X, W)), (polynomial, (X,)), (pulled, (X,))])
def test_a_right_function_passes_without_a_note(backend, ns, made, inputs):
    verdict, evidence = decided(backend, made(ns), *inputs, order=1)
    assert verdict is Verdict.PASSED
    assert not [e.note for e in evidence if e.check == "constants" and e.note]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("made", "inputs", "mistake"), CASES)
def test_its_wrong_twin_fails_where_all_numbers_change(backend, ns, made, inputs, mistake):
    verdict, evidence = decided(backend, made(ns, mistake), *inputs, order=1)
    assert verdict is Verdict.FAILED
    wrong = [e for e in evidence if e.verdict is Verdict.FAILED]
    assert {e.check for e in wrong} == {"constants"}
    assert all(" and " in e.note for e in wrong), wrong


def test_no_number_becomes_a_simple_part_of_another(backend, ns):
    verdict, evidence = decided(backend, pulled(ns, "half of the other"), X, order=1)
    assert verdict is Verdict.FAILED
    assert {e.check for e in evidence if e.verdict is Verdict.FAILED} == {"constants"}


def numbers(values: dict[str, Any]) -> list[Argument]:
    return [Argument(name=name, value=value, is_tensor=False) for name, value in values.items()]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"u": 0, "v": 1}, [{0: 3, 1: 4}, {0: 2, 1: 3}]),
        ({"v": 1, "u": 0}, [{0: 2}, {0: 3}]),
        ({"u": 1, "v": 5}, [{0: 2}, {0: 3}]),
        ({"u": 4, "v": 3}, [{0: 5}, {0: 3, 1: 2}]),
        ({"u": 2, "v": 3, "w": 3.5}, [{0: 3, 1: 4, 2: 4.5}, {0: 1}]),
        ({"u": 0.8, "v": 0.7}, [{0: 0.757}, {0: 1.25}]),
        ({"u": 0.0, "v": 0.25}, [{0: 0.1075}, {0: 0.1075}]),
        ({"u": 2, "v": 2}, [{0: 3}, {0: 1}]),
        ({"u": 1.0, "eps": 0.8}, [{0: 0.75}, {0: 1.5625}]),
        ({"dim": 0, "v": 1}, []),
    ],
)
def test_changes_that_keep_the_order(values: dict[str, Any], expected: list[dict[int, Any]]) -> None:
    given = numbers(values)
    found = changes_in_order(0, values_to_try(given[0], given), given)
    assert found == expected
    assert all(keeps_order(changes, given) for changes in found)


def test_an_order_is_broken_by_what_passes_or_reaches_another_number() -> None:
    given = numbers({"u": -1, "v": 0, "w": 2.5})
    assert keeps_order({1: 2}, given)
    assert not keeps_order({1: 3}, given)
    assert not keeps_order({0: 0}, given)
    assert keeps_order({0: 3, 1: 4, 2: 5.0}, given)


def tent(factor: str) -> type[Function]:
    """Rises from one foot to a top and falls to the other; wrong: a slope does not depend on where its foot is."""

    class Tent(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, start: Any, top: Any, end: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.corners = start, top, end
            rise, fall = (x - start) / (top - start), (end - x) / (end - top)
            return ((x > start) & (x <= top)).to(x.dtype) * rise + ((x > top) & (x < end)).to(x.dtype) * fall

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,), (start, top, end) = ctx.saved_tensors, ctx.corners
            rise, fall = 1 / (top - start), 1 / (end - top)
            rise = 1 if factor == "rise" else rise
            fall = 1 if factor == "fall" else fall
            rises, falls = ((x > start) & (x <= top)).to(x.dtype), ((x > top) & (x < end)).to(x.dtype)
            return g * (rises * rise - falls * fall), None, None, None

    return Tent


POINTS = [-1.75, -0.5, 0.25, 0.625, 1.5, 1.75]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("corners", [(-1, 0, 1), (0, 1, 2), (-1.0, 0.0, 1.0)])
def test_corners_that_are_given_in_order(corners: tuple[Any, ...]) -> None:
    x = engine_tensor(POINTS, dtype=float64, requires_grad=True)
    right = gradcli.check(tent(""), (x, *corners), shrink=False, order=1, only=("gradient", "constants"))
    assert right.verdict is Verdict.PASSED
    for factor in ("rise", "fall"):
        wrong = gradcli.check(tent(factor), (x, *corners), order=1, only=("gradient", "constants")).cases[0]
        assert wrong.verdict is Verdict.FAILED
        assert {finding.input for finding in wrong.findings} == {"x"}
        assert all("(given: " in finding.message for finding in wrong.findings)


def test_the_smallest_failing_input_has_the_number_at_which_it_fails() -> None:
    x = engine_tensor(POINTS, dtype=float64, requires_grad=True)
    case = gradcli.check(tent("fall"), (x, -1, 0, 1), order=1, only=("gradient", "constants")).cases[0]
    assert "the error appears with end=2 (given: 1)" in case.findings[0].message
    assert case.smallest[1:] == ("start = -1", "top = 0", "end = 2")
