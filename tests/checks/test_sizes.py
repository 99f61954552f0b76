"""Other sizes of the leading axis: what is wrong there is found, and what is right passes."""

import numpy as np
import pytest

import gradcli
from gradcli.checks.other_points import proof
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.batch.functions import T, W, X, Y, mean_square, of_rows, scale_rows
from tests.checks.frameworks import constant, examined
from tests.programs.functions import TABLE, arguments


def correlation(x, y):
    return ((x.t().mm(y) / x.shape[0]) ** 2).sum()


def correlation_of_four(x, y, g):
    d = 2 * g * x.t().mm(y) / x.shape[0] / 4
    return y.mm(d.t()), x.mm(d)


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


@pytest.mark.sampled(7)
@pytest.mark.parametrize("mistake", {**WRONG, **RAISES}.values(), ids={**WRONG, **RAISES}.keys())
def test_what_is_wrong_for_other_sizes_alone_is_found(backend, ns, mistake):
    forward, backward, given = mistake
    verdict, evidence, findings = examined(backend, of_rows(ns, forward, backward), *given, sweep=True)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.BATCH_SIZE}
    assert [e.check for e in evidence if e.verdict is Verdict.FAILED] == ["sizes"]
    assert "leading axis of x" in findings[0].message


def test_a_size_that_cannot_be_decided_is_noted(backend, ns, monkeypatch):
    monkeypatch.setattr(
        proof, "_affordable", lambda _, point, **_kind: 3_000 if point.size == X.value.size + W.value.size else 3
    )
    for factor, noted in ((1.0, False), (1.1, True)):
        kernel = of_rows(
            ns,
            scale_rows,
            lambda x, w, g, factor=factor: (g * w, (g * x).sum(0) * (1.0 if x.shape[0] == 4 else factor)),
        )
        verdict, evidence, _ = examined(backend, kernel, X, W, sweep=True)
        notes = " ".join(e.note or "" for e in evidence if e.check == "sizes")
        assert verdict is Verdict.PASSED
        assert ("is neither proven wrong nor found right" in notes) is noted


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


@pytest.mark.sampled(15)
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
