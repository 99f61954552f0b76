"""Functions that are right at their inputs: what is wrong elsewhere is told, counted nowhere, and nothing else is."""

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.cases import CheckSpec, Expectation, InputsFrom
from gradcli.findings import FindingKind
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.other_points.planted import MODEST, PLANTED, function_of

NOTE = re.compile(
    r"at inputs that gradcli chose \((?P<name>[\w.]+)(?P<place>(?:\[[\d, ]+\])?) = (?P<value>\S+)\), the gradient of"
)


def checked(backend: Any, target: Any, *values: Any, **options: Any) -> CheckResult:
    ns = backend.framework.namespace
    inputs = tuple(ns.tensor(v, dtype=ns.float64, requires_grad=True) if isinstance(v, list) else v for v in values)
    (result,) = gradcli.check(target, inputs, **options).cases
    return result


def notes_of(result: CheckResult) -> list[str]:
    return [note for note in result.notes if "not among them" in note]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PLANTED)
def test_what_the_given_inputs_hide_is_told_with_its_place_and_fails_nothing(backend, name):
    planted = PLANTED[name]
    target = function_of(backend.framework.namespace, planted.forward, planted.backward)
    result = checked(backend, target, list(planted.given), order=1, shrink=False)
    assert result.verdict is Verdict.PASSED
    (note,) = notes_of(result)
    assert [e.note for e in result.evidence if e.check == "other-inputs"] == [note]
    found = NOTE.match(note)
    assert found is not None
    assert found["name"] == "x"
    assert planted.wrong(float(found["value"]))
    assert "backward gives" in note
    assert "finite differences give" in note
    assert "not as a failure" in note


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["ELU, negative branch", "sinc at zero", "beyond a hundred"])
def test_the_flags_in_the_note_make_a_case_that_fails(backend, name):
    planted = PLANTED[name]
    target = function_of(backend.framework.namespace, planted.forward, planted.backward)
    only = ("gradient", "other-inputs")
    (note,) = notes_of(checked(backend, target, list(planted.given), order=1, only=only))
    given = shlex.split(note.partition("to make it a failure, run with ")[2])
    specs = tuple(parse_input(text) for text in given[1::2])
    spec = CheckSpec(target="planted:Planted", inputs=specs, inputs_from=InputsFrom.FLAGS)
    case = case_of(spec, Settings(order=1, shrink=False, only=only))
    assert given[0] == "-i"
    assert check_object(target, case).verdict is Verdict.FAILED


@pytest.mark.sampled(1)
def test_a_mistake_at_equal_entries_alone_is_told(backend):
    ns = backend.framework.namespace

    def backward(ns, x, g):
        equal = (x.reshape(-1, 1) == x.reshape(1, -1)).sum(1) > 1
        return g * ns.where(equal, 3 * x, 2 * x)

    result = checked(backend, function_of(ns, lambda ns, x: x * x, backward), MODEST, order=1)
    (note,) = notes_of(result)
    assert "at exactly this point" in note
    assert "x[" in note


def test_two_inputs_name_the_one_whose_gradient_is_wrong(backend):
    ns = backend.framework.namespace

    class Gated(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, gate):
            ctx.save_for_backward(x, gate)
            return x * ns.where(gate > 0, gate, 0.2 * gate)

        @staticmethod
        def backward(ctx, g):
            x, gate = ctx.saved_tensors
            return g * ns.where(gate > 0, gate, 0.2 * gate), g * x

    (note,) = notes_of(checked(backend, Gated, MODEST, [0.5, 1.5, 2.5, 0.7, 0.9], order=1))
    found = NOTE.match(note)
    assert found is not None
    assert found["name"] == "gate"
    assert float(found["value"]) <= 0


RIGHT = {
    "relu, zero at zero": (lambda ns, x: ns.clamp(x, min=0.0), lambda ns, x, g: ns.where(x > 0, g, 0.0 * g)),
    "relu, one at zero": (lambda ns, x: ns.clamp(x, min=0.0), lambda ns, x, g: ns.where(x >= 0, g, 0.0 * g)),
    "magnitude": (lambda ns, x: ns.abs(x), lambda ns, x, g: g * ns.sign(x)),
    "maximum": (
        lambda ns, x: x.max(),
        lambda ns, x, g: g * (x == x.max()).to(x.dtype) / (x == x.max()).to(x.dtype).sum(),
    ),
    "exponential": (lambda ns, x: ns.exp(x), lambda ns, x, g: g * ns.exp(x)),
    "logarithm": (lambda ns, x: ns.log(x), lambda ns, x, g: g / x),
    "root": (lambda ns, x: ns.sqrt(x), lambda ns, x, g: g / (2 * ns.sqrt(x))),
    "sine": (lambda ns, x: ns.sin(x), lambda ns, x, g: g * ns.cos(x)),
    "sigmoid": (lambda ns, x: ns.sigmoid(x), lambda ns, x, g: g * ns.sigmoid(x) * (1 - ns.sigmoid(x))),
}


@pytest.mark.sampled(27)
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("size", [1, 5, 40])
def test_of_what_is_right_everywhere_nothing_is_told_for_few_runs(backend, name, size):
    forward, backward = RIGHT[name]
    given = np.random.default_rng(size).uniform(0.3, 2.0, size).round(3).tolist()
    result = checked(backend, function_of(backend.framework.namespace, forward, backward), given, order=1)
    assert result.verdict is Verdict.PASSED
    assert not notes_of(result)
    assert any(e.check == "other-inputs" and e.verdict is Verdict.PASSED for e in result.evidence)
    if name in ("exponential", "sine", "sigmoid"):
        cost = dict(result.stages)["other-inputs"]
        assert cost.forward <= 18
        assert cost.backward <= 18


def test_the_note_is_shown_once_over_samples_and_in_every_report(backend):
    ns, planted = backend.framework.namespace, PLANTED["beyond a hundred"]
    target = function_of(ns, planted.forward, planted.backward)
    samples = [(ns.tensor(row, dtype=ns.float64, requires_grad=True),) for row in ([0.5, 1.5], [2.0, -1.0], [1.0, 3.0])]
    report = gradcli.check(target, samples)
    (case,) = report.to_dict()["cases"]
    assert case["samples"] == 3
    assert report.exit_code == 0
    assert str(report).count("at inputs that gradcli chose") == 1
    assert len([note for note in case["notes"] if "at inputs that gradcli chose" in note]) == 1
    assert len([c for c in case["checks"] if c["check"] == "other-inputs" and c["note"]]) == 1
    assert json.dumps(case).isascii()


def test_what_was_drawn_stays_in_its_domain(backend):
    planted = PLANTED["ELU, negative branch"]
    target = function_of(backend.framework.namespace, planted.forward, planted.backward)
    (case,) = gradcli.check(target, {"x": {"shape": [4], "domain": "positive"}}).cases
    assert case.verdict is Verdict.PASSED
    assert not notes_of(case)


def test_where_forward_refuses_other_inputs_nothing_is_told(backend):
    planted = PLANTED["ELU, negative branch"]

    def strict(ns, x):
        if bool((x <= 0).any()):
            raise ValueError("expected positive numbers")
        return planted.forward(ns, x)

    target = function_of(backend.framework.namespace, strict, planted.backward)
    result = checked(backend, target, MODEST)
    assert result.verdict is Verdict.PASSED
    assert not notes_of(result)


@pytest.mark.sampled(1)
def test_an_iteration_that_never_ends_elsewhere_is_stopped(backend):
    def halved_until_small(ns, x):
        total = x
        while bool((ns.abs(total) > 100).any()):
            total = total * 1.0
        return total * 2.0

    target = function_of(backend.framework.namespace, halved_until_small, lambda ns, x, g: 2 * g)
    result = checked(backend, target, MODEST)
    assert result.verdict is Verdict.PASSED
    assert not notes_of(result)
    (note,) = [note for note in result.notes if "gradcli chose" in note]
    assert "stopped after" in note


@pytest.mark.parametrize(
    ("factor", "last", "verdict"),
    [(1.0, 44 / 3, Verdict.PASSED), (1.5, 44 / 3, Verdict.PASSED), (1.5, 4.0, Verdict.FAILED)],
    ids=["right, singular", "wrong, singular", "wrong, regular"],
)
@pytest.mark.usefixtures("unexplained")
def test_at_a_matrix_singular_up_to_rounding_nothing_is_told(backend, monkeypatch, factor, last, verdict):
    """Gradient and reference differ there by their rounding errors, and differences are no better."""
    ns = backend.framework.namespace

    class Solved(ns.autograd.Function):
        @staticmethod
        def forward(ctx, b, a):
            found = ns.linalg.solve(a, b)
            ctx.save_for_backward(a, found)
            return found

        @staticmethod
        def backward(ctx, g):
            a, found = ctx.saved_tensors
            back = ns.linalg.solve(a.transpose(0, 1), g) * (factor if float(a.max()) > 10 else 1.0)
            return back, -back[:, None] * found[None, :]

    rows = np.array([[12.0, -37 / 3, 38 / 3], [-13.0, 40 / 3, -41 / 3], [14.0, -43 / 3, last]])

    def points(arguments, *_):
        return [iter(((arguments[0], replace(arguments[1], value=rows)),))]

    monkeypatch.setattr("gradcli.checks.other_inputs.other_points", points)
    monkeypatch.setattr("gradcli.checks.other_inputs.zero_points", lambda *_: [])
    spec = CheckSpec(target="a:B", inputs=(parse_input("b=3"), parse_input("a=3x3")), inputs_from=InputsFrom.FLAGS)
    settings = Settings(order=1, shrink=False, samples=1, only=("gradient", "other-inputs"))
    result = check_object(Solved, case_of(spec, settings))
    assert result.verdict is verdict
    if verdict is Verdict.PASSED:
        assert not any("is wrong" in note for note in result.notes)
        assert dict(result.stages)["other-inputs"].forward <= 25


def test_an_iteration_is_not_held_to_its_limit_where_it_takes_other_steps(backend):
    def root(ns, x):
        y = 0.0 * x + 1
        for _ in range(12):
            step = (x / y - y) / 2
            y = y + step
            if float(ns.abs(step).max()) < 1e-12:
                break
        return y

    def backward(ns, x, g):
        return g / (2 * ns.sqrt(x))

    result = checked(backend, function_of(backend.framework.namespace, root, backward), MODEST, order=1)
    assert result.verdict is Verdict.PASSED
    assert not notes_of(result)


def test_without_a_body_to_differentiate_it_runs_by_name_alone(backend):
    ns, planted = backend.framework.namespace, PLANTED["leaky relu, slope ignored"]

    def closed(ns, x):
        with ns.no_grad():
            return planted.forward(ns, x)

    target = function_of(ns, closed, planted.backward)
    result = checked(backend, target, MODEST)
    assert not notes_of(result)
    cost = dict(result.stages)["other-inputs"]
    assert (cost.forward, cost.backward) in [(0, 0), (1, 0)]
    asked = checked(backend, target, MODEST, only=("gradient", "other-inputs"))
    assert asked.verdict is Verdict.PASSED
    assert len(notes_of(asked)) == 1


@pytest.mark.sampled(1)
def test_a_declared_surrogate_and_a_plain_callable_are_left_alone(backend):
    ns, planted = backend.framework.namespace, PLANTED["clamp, outside lets through"]
    target = function_of(ns, planted.forward, planted.backward)
    spec = CheckSpec(
        target="planted:Planted",
        inputs=(parse_input("x=5,value=[0.6,1.2,0.9,1.7,0.3]"),),
        inputs_from=InputsFrom.SPEC,
        expect=Expectation(verdict="surrogate"),
    )
    assert not notes_of(check_object(target, case_of(spec, Settings(order=1))))
    result = checked(backend, lambda x: target.apply(x), MODEST, only=("gradient", "other-inputs"))
    assert result.verdict is Verdict.PASSED
    plain = checked(backend, lambda x: planted.forward(ns, x), MODEST, only=("gradient", "other-inputs"))
    assert not notes_of(plain)


def test_once_anything_failed_other_inputs_are_not_looked_at(backend):
    target = function_of(backend.framework.namespace, lambda ns, x: ns.exp(x), lambda ns, x, g: 2 * g)
    result = checked(backend, target, MODEST, shrink=False)
    assert result.verdict is Verdict.FAILED
    assert not any(e.check == "other-inputs" for e in result.evidence)


def test_arguments_are_pinned_with_their_fixed_values(backend):
    ns = backend.framework.namespace

    class Power(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, p=2):
            ctx.save_for_backward(x)
            ctx.p = p
            return x**p

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.p * ns.abs(x) ** (ctx.p - 1), None

    (note,) = notes_of(checked(backend, Power, MODEST, 2, order=1))
    flags = shlex.split(note.partition("to make it a failure, run with ")[2])
    assert flags[0::2] == ["-i", "-a"]
    assert parse_argument(flags[3]).value == 2


def largest_of_rows(ns, backward):
    class Largest(ns.autograd.Function):
        """The softmax-weighted sum of the entries that a mask leaves, zero in a row without any."""

        @staticmethod
        def forward(ctx, x, mask):
            kept = ns.where(mask, x, -1e9 + 0.0 * x)
            weights = ns.exp(kept - kept.max(1, keepdim=True).values) * mask
            weights = weights / ns.clamp(weights.sum(1, keepdim=True), min=1e-20)
            ctx.save_for_backward(x, mask, weights)
            return (weights * x).sum(1)

        @staticmethod
        def backward(ctx, g):
            x, mask, weights = ctx.saved_tensors
            right = g[:, None] * weights * (1 + x - (weights * x).sum(1, keepdim=True))
            return backward(ns, g[:, None], right, mask), None

    return Largest


def relative_to_kept(ns, backward):
    class Relative(ns.autograd.Function):
        """What share of `b` the entries of `a` are, zero in the padding."""

        @staticmethod
        def forward(ctx, a, b, mask):
            ctx.save_for_backward(a, b, mask)
            return ns.where(mask, a / b, 0.0 * a)

        @staticmethod
        def backward(ctx, g):
            a, b, mask = ctx.saved_tensors
            kept = ns.where(mask, b, 0 * b + 1)
            good = (ns.where(mask, g / kept, 0 * g), ns.where(mask, -g * a / kept**2, 0 * g))
            return (*backward(g, a, b, mask.to(a.dtype), good), None)

    return Relative


def shapes_of(*names):
    return {name: {"shape": [3, 4]} for name in names} | {"mask": {"shape": [3, 4], "domain": "boolean"}}


@pytest.mark.sampled(1)
def test_a_row_that_a_mask_leaves_without_entries_is_tried(ns):
    right = largest_of_rows(ns, lambda ns, g, right, mask: right)
    wrong = largest_of_rows(ns, lambda ns, g, right, mask: ns.where(mask.any(1, keepdim=True), right, g + 0 * right))
    (result,) = gradcli.check(right, shapes_of("x"), order=1).cases
    assert (result.verdict, result.notes) == (Verdict.PASSED, ())
    (result,) = gradcli.check(wrong, shapes_of("x"), order=1, shrink=False).cases
    assert [e.check for e in result.evidence if e.verdict is Verdict.FAILED] == ["other-inputs"]
    assert "where a row of mask holds one value only" in result.findings[0].message


def test_a_row_that_forward_fills_with_a_large_number_is_only_noted(ns):
    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, mask):
            weights = ns.softmax(ns.where(mask, x, -1e9 + 0.0 * x), -1)
            ctx.save_for_backward(weights)
            return weights

        @staticmethod
        def backward(ctx, g):
            (weights,) = ctx.saved_tensors
            return weights * (g - (weights * g).sum(-1, keepdim=True)), None

    (result,) = gradcli.check(Softmax, shapes_of("x"), order=1, shrink=False).cases
    assert result.verdict is Verdict.PASSED
    assert any("not as a failure, because forward fills what a mask leaves out" in note for note in result.notes)


@pytest.mark.sampled(1)
def test_zeros_are_tried_where_a_mask_leaves_entries_out(ns):
    right = relative_to_kept(ns, lambda g, a, b, kept, good: good)
    wrong = relative_to_kept(ns, lambda g, a, b, kept, good: (kept * g / b, -kept * g * a / b**2))
    (result,) = gradcli.check(right, shapes_of("a", "b"), order=1).cases
    assert (result.verdict, result.notes) == (Verdict.PASSED, ())
    (result,) = gradcli.check(wrong, shapes_of("a", "b"), order=1, shrink=False).cases
    assert result.verdict is Verdict.FAILED
    assert {finding.kind for finding in result.findings} == {FindingKind.NON_FINITE_GRADIENT}
    assert "where entries that mask leaves out are zero" in result.findings[0].message
