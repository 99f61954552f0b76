"""Descriptions without a colon or a verb: numbers without axes, and what stands behind an interval."""

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("x (N,) states; c 0-dim tensor; s", {"c": "scalar"}),
        ("x (N,), c and s zero-dimensional arrays", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c the 0-d tensor limit", {}),
        ("x (N,), c > 0 and s scalars (0-d tensors)", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c > 0 and s >= 0.5 scalars", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c in (-1, 1) (scalar), s", {"c": "scalar"}),
        ("x (N,), c (), s ()", {"c": "scalar", "s": "scalar"}),
        ("x (N,), c () is called with s", {}),
        ("linear if c > 0 and s scalars", {}),
        ("zero for x > 0 positive part of s", {}),
    ],
)
def test_numbers_without_axes(text: str, types: dict[str, str]) -> None:
    names = ("x", "c", "s")
    assert documented_values(names, "", text, shapes=documented_shapes(names, "", text)).types == types


def damped(ns: Any, documentation: str, factor: float) -> type:
    class Damped(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, v: Any, c: Any, s: Any) -> Any:
            ctx.save_for_backward(v, c, s)
            return s * v - c * v * v.abs()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            v, c, s = ctx.saved_tensors
            return g * (s - 2 * c * v.abs()), -factor * (g * v * v.abs()).sum(), (g * v).sum()

    return Damped


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize(
    "text",
    ["v (N, 3) velocities; c 0-dim tensor; s 0-d tensor", "v (N, 3) velocities, c > 0 and s > 0 scalars (0-d tensors)"],
)
def test_numbers_are_drawn_without_axes(ns: Any, text: str, factor: float) -> None:
    (case,) = gradcli.check(damped(ns, text, factor), order=1, shrink=False, only=("gradient",)).cases
    assert {spec.name: spec.shape for spec in case.inputs} == {"v": (4, 3), "c": (), "s": ()}
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"c"})


@pytest.mark.parametrize(
    ("words", "are_whole"),
    [
        ("integer lattice vectors (no zero vector)", True),
        ("integer grid points", True),
        ("integer shifts", True),
        ("integer lattice spacing", False),
        ("integer grid", False),
        ("integer multiples of x", False),
        ("integer power", False),
    ],
)
def test_whole_numbers_that_are_counted_in_the_plural(words: str, are_whole: bool) -> None:
    text = f"x: (N, 3) positions, c: (K, 3) {words}"
    shapes = documented_shapes(("x", "c"), "", text)
    domains = documented_values(("x", "c"), "", text, shapes=shapes).domains
    assert domains == ({"c": "indices"} if are_whole else {})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1, 1.01])
def test_lattice_vectors_are_whole_numbers(ns: Any, factor: float) -> None:
    class Waves(ns.autograd.Function):
        """x: (N, 3) positions, shells: (K, 3) integer lattice vectors"""

        @staticmethod
        def forward(ctx: Any, x: Any, shells: Any) -> Any:
            waves = shells.to(x.dtype)
            ctx.save_for_backward(x, waves)
            return (x @ waves.T).cos()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, waves = ctx.saved_tensors
            return -factor * (g * (x @ waves.T).sin()) @ waves, None

    (case,) = gradcli.check(Waves, order=1, shrink=False, only=("gradient",)).cases
    assert case.inputs[1].domain == "indices"
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"x"})


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("x (N, D) -> softmax over c (N, D): probabilities", {}),
        ("x (N, D) -> (N,), c: probabilities", {"c": "simplex"}),
        ("x (N, D) -> (N,)\n    c: probabilities", {"c": "simplex"}),
        ("x (N, D); distances to c: probabilities", {"c": "simplex"}),
    ],
)
def test_a_result_behind_an_arrow_is_not_an_argument(text: str, domains: dict[str, str]) -> None:
    shapes = documented_shapes(("x", "c"), "", text)
    assert documented_values(("x", "c"), "", text, shapes=shapes).domains == domains


def sharpest(ns: Any, documentation: str, factor: float) -> type:
    class Sharpest(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, q: Any, keys: Any) -> Any:
            scores = q @ keys.T
            best = scores.argmax(1)
            ctx.save_for_backward(q, keys, best)
            return scores.amax(1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            q, keys, best = ctx.saved_tensors
            chosen = ns.zeros((len(q), len(keys)), dtype=q.dtype)
            chosen[ns.arange(len(q)), best] = g
            return chosen @ keys, factor * chosen.T @ q

    return Sharpest


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1, 1.01])
@pytest.mark.parametrize("results", ["scores and indices", "scores, and their indices"])
def test_results_behind_a_colon(ns: Any, results: str, factor: float) -> None:
    target = sharpest(ns, f"The best of q (N, D) among keys (M, D): {results}", factor)
    (case,) = gradcli.check(target, order=1, shrink=False, only=("gradient",)).cases
    assert {spec.name: spec.domain for spec in case.inputs} == {"q": "normal", "keys": "normal"}
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"keys"})


@pytest.mark.parametrize("factor", [1, 1.01])
def test_what_has_a_gradient_is_no_index(ns: Any, factor: float) -> None:
    class Powers(ns.autograd.Function):
        """steps: (N,) integers as a rule"""

        @staticmethod
        def forward(ctx: Any, steps: Any) -> Any:
            ctx.save_for_backward(steps)
            return (0.5 * steps).exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (steps,) = ctx.saved_tensors
            return factor * 0.5 * g * (0.5 * steps).exp()

    (case,) = gradcli.check(Powers, order=1, shrink=False, only=("gradient",)).cases
    assert [spec.domain for spec in case.inputs] == ["normal"]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


@pytest.mark.parametrize(
    ("text", "domains", "constants"),
    [
        ("P(a, x) for positive x, a positive is a constant (no gradient)", {"a": "positive", "x": "positive"}, {"a"}),
        ("f(x, c) for positive x, c positive must not be differentiated", {"c": "positive", "x": "positive"}, {"c"}),
        ("log(x) for positive x and 0 otherwise", {}, set()),
        ("f(x) = x for positive x", {}, set()),
        ("root(x) for positive x, 0 for the rest", {}, set()),
        ("the power of x, a positive number", {}, set()),
    ],
)
def test_where_a_function_of_arguments_is_defined(text: str, domains: dict[str, str], constants: set[str]) -> None:
    found = documented_values(("a", "c", "x"), "", text)
    assert (found.domains, found.constants) == (domains, constants)


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_constant_that_is_called_as_the_article_is(ns: Any, factor: float) -> None:
    class Power(ns.autograd.Function):
        """Q(a, x) for positive x, a positive is a constant (no gradient), the power a of x"""

        @staticmethod
        def forward(ctx: Any, a: Any, x: Any) -> Any:
            ctx.save_for_backward(a, x)
            return (a * x.log()).exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, x = ctx.saved_tensors
            return None, factor * g * a * ((a - 1) * x.log()).exp()

    (case,) = gradcli.check(Power, order=1, shrink=False, only=("gradient",)).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)
    assert [finding.input for finding in case.findings] == ([] if factor == 1 else ["x"])
