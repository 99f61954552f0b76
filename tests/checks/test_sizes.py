"""Other sizes of the leading axis, and none: what is wrong there is found, and what is right passes."""

import math
from functools import partial

import numpy as np
import pytest

import gradcli
from gradcli.checks.base import Situation
from gradcli.checks.batch.parts import follows_from_given
from gradcli.checks.batch.resizing import TOLERANCE, Batch
from gradcli.checks.batch.rows import entries_make_statistics, entries_stand_alone
from gradcli.findings import FindingKind
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.frameworks import backend, constant, examined, ns, tensor
from tests.programs.functions import TABLE, arguments

__all__ = ["backend", "ns"]

GENERATOR = np.random.default_rng(3)
X = tensor("x", GENERATOR.normal(size=(4, 3)))
W = tensor("w", GENERATOR.normal(size=(3,)))
Y = tensor("y", GENERATOR.normal(size=(4, 5)))
T = tensor("t", GENERATOR.normal(size=(4, 3)), grad=False)


def of_rows(ns, forward, backward):
    """A Function of x and others, whose backward is given what was passed and grad_output."""

    class OfRows(ns.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            ctx.given = [value for value in given if not ns.is_tensor(value)]
            ctx.save_for_backward(*[value for value in given if ns.is_tensor(value)])
            return forward(*given)

        @staticmethod
        def backward(ctx, *cotangents):
            found = backward(*ctx.saved_tensors, *ctx.given, *cotangents)
            return found if isinstance(found, tuple) else (found, *[None] * (len(ctx.needs_input_grad) - 1))

    return OfRows


def mean_square(x, t):
    return ((x - t) ** 2).mean()


def correlation(x, y):
    return ((x.t().mm(y) / x.shape[0]) ** 2).sum()


def correlation_of_four(x, y, g):
    d = 2 * g * x.t().mm(y) / x.shape[0] / 4
    return y.mm(d.t()), x.mm(d)


def scale_rows(x, w):
    return x * w


WRONG = {
    "the size of the batch written down": (mean_square, lambda x, t, g: g * 2 * (x - t) / 12, (X, T)),
    "the same in the gradients of two inputs": (correlation, correlation_of_four, (X, Y)),
    "a sum divided by the rows given": (
        lambda x, w: (x * w).sum(1),
        lambda x, w, g: (g[:, None] * w, (g[:, None] * x).mean(0) * 4),
        (X, W),
    ),
    "squeeze that takes the batch, too": (
        lambda x, w: (x * w).sum(1, keepdim=True),
        lambda x, w, g: (g.squeeze().reshape(-1, 1) * w * (1 if x.shape[0] > 1 else 2), (g * x).sum(0)),
        (X, W),
    ),
    "wrong for odd sizes": (
        scale_rows,
        lambda x, w, g: (g * w, (g * x)[: x.shape[0] // 2 * 2].sum(0)),
        (X, W),
    ),
}
RAISES = {
    "reshaped to the size given": (scale_rows, lambda x, w, g: (g.reshape(4, 3) * w, (g * x).sum(0)), (X, W)),
    "squeeze, then an axis that is gone": (
        lambda x, w: x * w,
        lambda x, w, g: (g * w, (g * x).squeeze(0).sum(0) if x.shape[0] > 1 else (g * x).squeeze(0).sum(1)),
        (X, W),
    ),
}


@pytest.mark.parametrize("mistake", {**WRONG, **RAISES}.values(), ids={**WRONG, **RAISES}.keys())
def test_what_is_wrong_for_other_sizes_alone_is_found(backend, ns, mistake):
    forward, backward, given = mistake
    verdict, evidence, findings = examined(backend, of_rows(ns, forward, backward), *given, sweep=True)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.BATCH_SIZE}
    assert [e.check for e in evidence if e.verdict is Verdict.FAILED] == ["sizes"]
    assert "leading axis of x" in findings[0].message


def test_without_a_sweep_only_a_check_that_is_named_runs(backend, ns):
    forward, backward, given = WRONG["the size of the batch written down"]
    function = of_rows(ns, forward, backward)
    verdict, _, _ = examined(backend, function, *given)
    assert verdict is Verdict.PASSED
    verdict, _, findings = examined(backend, function, *given, only=("sizes",))
    assert verdict is Verdict.FAILED
    assert findings[0].kind is FindingKind.BATCH_SIZE


def test_what_is_wrong_at_the_size_given_is_not_told_twice(backend, ns):
    function = of_rows(ns, mean_square, lambda x, t, g: g * 2 * (x - t) / 7)
    _, _, findings = examined(backend, function, X, T, sweep=True)
    assert {finding.kind for finding in findings} == {FindingKind.WRONG_FACTOR}
    _, evidence, _ = examined(backend, function, X, T, only=("sizes",))
    assert all(e.verdict is not Verdict.FAILED for e in evidence)


def test_a_number_that_may_be_the_size_is_left_alone(backend, ns):
    function = of_rows(ns, lambda x, n: x.sum() / x.shape[0], lambda x, n, g: (g / n).expand(x.shape))
    verdict, evidence, _ = examined(backend, function, X, constant("n", 4), sweep=True, skip=("constants",))
    assert verdict is Verdict.PASSED
    assert not [e for e in evidence if e.check in ("sizes", "empty") and e.verdict is not Verdict.SKIPPED]


def written_for_these_sizes(ns):
    """Functions whose backward is right at the sizes given, of inputs whose leading axis is no batch, with an input."""
    differences = ns.tensor([[-1.0, 1.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 0.0, -1.0, 1.0]], dtype=ns.float64)
    return {
        "a matrix": (lambda x: x.diagonal().sum(), lambda x, g: g * ns.eye(3, dtype=g.dtype), (3, 3)),
        "a sequence": (
            lambda x: ((x[1:] - x[:-1]) ** 2).sum(),
            lambda x, g: 2 * g * differences.t().mm(differences).mv(x),
            (4,),
        ),
        "one row": (lambda x: x * x, lambda x, g: 2 * g.reshape(1, 3) * x, (1, 3)),
        "positions": (
            lambda x: x * ns.arange(x.shape[0], dtype=x.dtype)[:, None],
            lambda x, g: g * differences.new_tensor([[0.0], [1.0], [2.0], [3.0]]),
            (4, 2),
        ),
    }


@pytest.mark.parametrize("name", ["a matrix", "a sequence", "one row", "positions"])
def test_what_is_no_batch_may_insist_on_its_size(backend, ns, name):
    forward, backward, shape = written_for_these_sizes(ns)[name]
    x = tensor("x", GENERATOR.normal(size=shape))
    verdict, evidence, _ = examined(backend, of_rows(ns, forward, backward), x, sweep=True, order=1)
    assert verdict is Verdict.PASSED
    assert not [e for e in evidence if e.check in ("sizes", "empty")]


def test_fewer_entries_are_not_tried_where_they_are_added_up(backend, ns):
    def of_three_at_least(x, g):
        return 2 * g * x + 0 * x[2]

    function = of_rows(ns, lambda x: (x * x).sum(), of_three_at_least)
    verdict, evidence, _ = examined(backend, function, tensor("x", [0.5, -1.5, 2.0]), sweep=True, order=1)
    assert verdict is Verdict.PASSED
    assert {e.check for e in evidence} & {"sizes", "empty"} == {"sizes"}


def pairs(ns):
    """Functions of axes that are no batch, each with a backward for the size given, and an input.

    Two numbers that stand for a complex one, a quaternion, a plane's coordinates, and entries that are taken together.
    """

    def two(x, g, by_x, by_y):
        return ns.stack([g * by_x, g * by_y])

    pair, quad = [0.6, -0.8], [0.5, -1.5, 2.0, 0.7]
    return {
        "the absolute value of a complex number": (
            lambda x: (x * x).sum() ** 0.5,
            lambda x, g: two(x, g, *[x[k] / (x[0] ** 2 + x[1] ** 2) ** 0.5 for k in (0, 1)]),
            pair,
        ),
        "its logarithm": (
            lambda x: 0.5 * ns.log((x**2).sum()),
            lambda x, g: two(x, g, *[x[k] / (x[0] ** 2 + x[1] ** 2) for k in (0, 1)]),
            pair,
        ),
        "absolute values of complex numbers": (
            lambda x: (x[0] ** 2 + x[1] ** 2) ** 0.5,
            lambda x, g: ns.stack([g * x[k] / (x[0] ** 2 + x[1] ** 2) ** 0.5 for k in (0, 1)]),
            [pair * 2, [1.0, 2.0, -0.5, 0.25]],
        ),
        "the first and the last": (lambda x: x[0] * 2 + x[-1] * 2, lambda x, g: two(x, g, 2.0, 2.0), pair),
        "a product of two": (lambda x: x.prod(), lambda x, g: two(x, g, x[1], x[0]), pair),
        "a unit vector": (
            lambda x: x / (x * x).sum() ** 0.5,
            lambda x, g: (
                (g - x * (x[0] * g[0] + x[1] * g[1]) / (x[0] ** 2 + x[1] ** 2)) / (x[0] ** 2 + x[1] ** 2) ** 0.5
            ),
            pair,
        ),
        "a softmax of two": (
            lambda x: ns.softmax(x, 0),
            lambda x, g: (g[0] - g[1]) * ns.softmax(x, 0).prod() * ns.tensor([1.0, -1.0], dtype=x.dtype),
            pair,
        ),
        "a quaternion's norm": (
            lambda x: (x * x).sum() ** 0.5,
            lambda x, g: g * x.reshape(4) / (x[0] ** 2 + x[1] ** 2 + x[2] ** 2 + x[3] ** 2) ** 0.5,
            quad,
        ),
        "the largest of two": (
            lambda x: x.max(),
            lambda x, g: two(x, g, (x[0] > x[1]).to(x.dtype), (x[1] > x[0]).to(x.dtype)),
            pair,
        ),
        "a cloud of points by coordinates": (
            lambda x: ((x * x).sum(0) ** 0.5).sum(),
            lambda x, g: g * ns.stack([x[k] / (x[0] ** 2 + x[1] ** 2 + x[2] ** 2) ** 0.5 for k in (0, 1, 2)]),
            [pair * 2, [1.0, 2.0, -0.5, 0.25], [0.3, 0.1, 0.7, -0.2]],
        ),
    }


@pytest.mark.parametrize("name", pairs(None))
def test_entries_that_are_one_thing_together_are_no_batch(backend, ns, name):
    forward, backward, value = pairs(ns)[name]
    verdict, evidence, findings = examined(
        backend, of_rows(ns, forward, backward), tensor("x", value), sweep=True, order=1
    )
    assert verdict is Verdict.PASSED, findings
    assert not [e for e in evidence if e.check in ("sizes", "empty") and e.verdict is not Verdict.SKIPPED]
    wrong = of_rows(ns, forward, lambda *saved: 1.5 * backward(*saved))
    assert examined(backend, wrong, tensor("x", value), order=1)[0] is Verdict.FAILED


def normalised(x):
    return (x - x.mean(0)) / ((x - x.mean(0)) ** 2).mean(0) ** 0.5


def of_normalised(rows):
    def backward(x, g):
        y, s = normalised(x), ((x - x.mean(0)) ** 2).mean(0) ** 0.5
        n = rows or x.shape[0]
        return (g - g.sum(0) / n - y * (g * y).sum(0) / n) / s

    return backward


def weighted(x, w):
    return ((x * x).sum(1) * w).sum() / w.sum()


def of_weighted(rows):
    def backward(x, w, g):
        whole = w.sum() * x.shape[0] / (rows or x.shape[0])
        return 2 * g * x * w[:, None] / whole, g * ((x * x).sum(1) - weighted(x, w)) / whole

    return backward


WEIGHTS = tensor("w", [0.5, 1.5, 2.0, 0.25])
STATISTICS = {
    "a normalisation over the batch": (normalised, of_normalised, 4, (X,)),
    "a weighted mean": (weighted, of_weighted, 4, (X, WEIGHTS)),
    "a sum with a penalty": (
        lambda x, w: (x * x).sum() + 9 * (w * w).sum(),
        lambda rows: lambda x, w, g: (2 * g * x, 18 * g * w * (1 if rows is None else x.shape[0] / rows)),
        4,
        (X, W),
    ),
    "rows of a linear layer": (
        lambda x, w: (x * w).sum(1),
        lambda rows: (
            lambda x, w, g: (
                g[:, None] * w,
                (g[:, None] * x).mean(0) * rows if rows else (g[:, None] * x).sum(0),
            )
        ),
        4,
        (X, W),
    ),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_rows_and_statistics_of_them_are_a_batch(backend, ns, name):
    forward, made, size, given = STATISTICS[name]
    verdict, evidence, findings = examined(backend, of_rows(ns, forward, made(None)), *given, sweep=True, order=1)
    assert verdict is Verdict.PASSED, findings
    assert "sizes" in {e.check for e in evidence}
    verdict, _, findings = examined(backend, of_rows(ns, forward, made(size)), *given, sweep=True, order=1)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.BATCH_SIZE}


def test_a_bias_of_one_row_is_no_batch(backend, ns):
    def summed(x, b, g):
        return g, g.sum(0, keepdim=True)

    function = of_rows(ns, lambda x, b: x + b, summed)
    for rows in (1, 4):
        x, b = tensor("x", GENERATOR.normal(size=(rows, 3))), tensor("b", GENERATOR.normal(size=(1, 3)))
        verdict, _, _ = examined(backend, function, x, b, sweep=True)
        assert verdict is Verdict.PASSED


RAISING_WHEN_EMPTY = {
    "a division by a size": lambda x, w, g: (g.reshape(-1, x.numel() // x.shape[0]) * w, (g * x).sum(0)),
    "a size of minus one": lambda x, w, g: (g.reshape(x.shape[0], -1) * w, (g * x).sum(0)),
    "a first row": lambda x, w, g: (g * w + 0 * x[0], (g * x).sum(0)),
    "a largest entry": lambda x, w, g: (g * w + 0 * x.max(), (g * x).sum(0)),
    "an assertion": lambda x, w, g: (g * w * _positive(x.shape[0]), (g * x).sum(0)),
    "a logarithm": lambda x, w, g: (g * w + 0 * math.log(x.shape[0]), (g * x).sum(0)),
}


def _positive(count):
    assert count > 0, "no rows"
    return 1.0


@pytest.mark.parametrize("backward", RAISING_WHEN_EMPTY.values(), ids=RAISING_WHEN_EMPTY.keys())
def test_a_backward_that_raises_for_an_empty_batch_is_a_note(backend, ns, backward):
    verdict, evidence, findings = examined(backend, of_rows(ns, scale_rows, backward), X, W, sweep=True, order=1)
    assert verdict is Verdict.PASSED, findings
    (noted,) = [e for e in evidence if e.check == "empty"]
    assert noted.note.startswith("backward raises when the leading axis of x has size 0, which forward accepts")


def test_an_empty_batch_is_tried_and_what_fails_there_is_found(backend, ns):
    cases = {
        "is not finite": lambda x, w, g: (g * w, (g * x).mean(0) * float(x.shape[0])),
        "is not zero": lambda x, w, g: (g * w, (g * x).sum(0) + (0.0 if x.shape[0] else 1.0)),
    }
    for noted, backward in cases.items():
        verdict, evidence, findings = examined(backend, of_rows(ns, scale_rows, backward), X, W, sweep=True)
        assert verdict is Verdict.FAILED, noted
        assert [finding.kind for finding in findings] == [FindingKind.ZERO_SIZE]
        assert noted in findings[0].message
        assert [e.check for e in evidence if e.verdict is Verdict.FAILED] == ["empty"]


def test_a_wrong_gradient_of_what_is_not_empty_is_found(backend, ns):
    function = of_rows(
        ns,
        lambda x, w: (2 * x, x.sum(0) + w * w),
        lambda x, w, g, h: (2 * g + h.expand(x.shape), 2 * w * h if x.shape[0] else w * h),
    )
    verdict, _, findings = examined(backend, function, X, W, sweep=True)
    assert verdict is Verdict.FAILED
    assert [(finding.kind, finding.input) for finding in findings] == [(FindingKind.ZERO_SIZE, "w")]


def test_a_mean_over_nothing_is_not_finite_in_forward_and_no_finding(backend, ns):
    function = of_rows(ns, lambda x, t: ((x - t) ** 2).mean(), lambda x, t, g: g * 2 * (x - t) / (x.shape[0] * 3))
    verdict, evidence, _ = examined(backend, function, X, T, sweep=True)
    assert verdict is Verdict.PASSED
    assert [e.check for e in evidence if e.check in ("sizes", "empty")] == ["sizes"]


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_the_table_passes(backend, ns, row):
    verdict, evidence, _ = examined(backend, row.build(ns), *arguments(row), sweep=True)
    assert verdict is Verdict.PASSED
    tried = {e.check for e in evidence if e.verdict is Verdict.PASSED} & {"sizes", "empty"}
    assert tried == {"cube-scalar": set(), "square-norm": {"sizes"}}.get(row.name, {"sizes", "empty"})


def test_the_smallest_input_shows_the_same():
    forward, backward, given = WRONG["the size of the batch written down"]
    function = of_rows(gradcli.engine, forward, backward)
    report = gradcli.check(
        function, tuple(gradcli.engine.tensor(a.value, requires_grad=a.requires_grad) for a in given)
    )
    (case,) = report.cases
    assert case.verdict is Verdict.FAILED
    assert {finding.kind for finding in case.findings} == {FindingKind.BATCH_SIZE}
    assert case.smallest


def test_numpy_and_jax_are_tried_as_well():
    def squares(x):
        return (x**2).mean()

    report = gradcli.check(squares, (np.array([1.0, 2.0, -0.5]),), grad=lambda x: 2 * x / 3, shrink=False)
    assert {finding.kind for finding in report.cases[0].findings} == {FindingKind.BATCH_SIZE}
    report = gradcli.check(squares, (np.array([1.0, 2.0, -0.5]),), grad=lambda x: 2 * x / x.size, shrink=False)
    assert report.verdict is Verdict.PASSED
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")

    def of(size):
        function = jax.custom_vjp(lambda x: (x**2).mean())
        function.defvjp(lambda x: ((x**2).mean(), x), lambda x, g: (2 * x * g / (size or x.size),))
        return function

    x = (np.array([1.0, 2.0, -0.5]),)
    assert {f.kind for f in gradcli.check(of(3), x, shrink=False).cases[0].findings} == {FindingKind.BATCH_SIZE}
    report = gradcli.check(of(None), x, shrink=False)
    assert report.verdict is Verdict.PASSED
    shown = [e for e in report.cases[0].evidence if e.check == "empty"]
    assert [e.verdict for e in shown] == [Verdict.SKIPPED]
    assert "--only empty" in shown[0].note


def test_an_empty_batch_is_tried_on_jax_where_it_is_asked_for():
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    function = jax.custom_vjp(lambda x, w: x * w)
    weighted = jax.numpy.sum
    function.defvjp(
        lambda x, w: (x * w, (x, w)), lambda kept, g: (g * kept[1], weighted(g * kept[0], 0) + (not kept[0].size))
    )
    report = gradcli.check(function, (np.ones((4, 3)), np.ones(3)), only=("gradient", "empty"), shrink=False)
    assert {finding.kind for finding in report.cases[0].findings} == {FindingKind.ZERO_SIZE}


LONG = tensor("x", GENERATOR.normal(size=12_000))


def test_a_long_batch_is_known_by_its_first_entries(backend, ns) -> None:
    """A size written down shows at the others, and forward goes over all entries only where another size is tried."""
    seen: list[int] = []

    def square(x):
        seen.append(x.shape[0])
        return x * x

    wrong = of_rows(ns, square, lambda x, g: 2 * g * x * (x.shape[0] / 12_000))
    verdict, _, findings = examined(backend, wrong, LONG, sweep=True)
    assert verdict is Verdict.FAILED
    assert [f.kind for f in findings] == [FindingKind.BATCH_SIZE]
    seen.clear()
    right = of_rows(ns, square, lambda x, g: 2 * g * x)
    _, evidence, _ = examined(backend, right, LONG, sweep=True, only=("sizes",))
    assert [e.verdict for e in evidence if e.check == "sizes"] == [Verdict.PASSED]
    assert sum(size >= 10_000 for size in seen) <= 4, "the given call, another size, its steps and forward's body"


@pytest.mark.parametrize(
    "forward",
    [lambda x: x - x.mean(), lambda x: x.cumsum(0), lambda x: x * x[:1], lambda x: x * x[-1:]],
    ids=["all", "those before", "the first", "the last"],
)
def test_a_long_axis_whose_entries_depend_on_others_is_no_batch_of_independent_ones(backend, ns, forward) -> None:
    subject = backend.bind(of_rows(ns, forward, lambda x, g: g), [LONG])
    batch = Batch(size=12_000, name="x")
    situation = Situation(subject=subject, settings=Settings(), seed=0)
    with subject.session():
        outputs_of = partial(batch._outputs_of, situation)
        whole = entries_stand_alone(12_000, outputs_of, TOLERANCE) or entries_make_statistics(
            12_000, outputs_of, TOLERANCE
        )
        assert batch.is_one(situation) == whole


MANY = tensor("x", np.random.default_rng(5).normal(size=(12_000,)))
LONGER = {
    "right": (lambda x, g: 2 * x * g, Verdict.PASSED),
    "wrong above": (lambda x, g: 2 * x * g * (1.5 if len(x) > 12_000 else 1.0), Verdict.FAILED),
    "raises above": (lambda x, g: 2 * x * g[:12_000].expand(len(x)), Verdict.FAILED),
    "wrong below": (lambda x, g: 2 * x * g * (1.5 if 0 < len(x) < 12_000 else 1.0), Verdict.FAILED),
}


@pytest.mark.parametrize("name", LONGER)
def test_one_more_entry_of_a_long_batch_is_compared_with_the_given_one(backend, ns, name):
    backward, verdict = LONGER[name]
    found, _, _ = examined(backend, of_rows(ns, lambda x: x * x, backward), MANY, order=1, only=("gradient", "sizes"))
    assert found is verdict


def test_only_what_is_the_given_batch_and_one_more_entry_follows_from_it(backend, ns):
    for forward, backward, follows in (
        (lambda x: x * x, lambda x, g: 2 * x * g, True),
        (lambda x: x * x, lambda x, g: 2 * x * g * (1.01 if len(x) > 12_000 else 1.0), False),
        (lambda x: x * x / len(x), lambda x, g: 2 * x * g / len(x), False),
        (lambda x: (x * x).sum(), lambda x, g: 2 * x * g, False),
    ):
        subject = backend.bind(of_rows(ns, forward, backward), (MANY,))
        situation = Situation(subject=subject, settings=Settings(order=1), seed=0)
        assert follows_from_given(situation, Batch(size=12_000, name="x")) is follows
