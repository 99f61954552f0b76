"""An empty batch: what fails there is found, and a backward that raises there is a note."""

import math

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.batch.functions import T, W, X, of_rows, scale_rows
from tests.checks.frameworks import examined

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


def test_an_empty_batch_is_tried_on_jax_where_it_is_asked_for():
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    function = jax.custom_vjp(lambda x, w: x * w)
    weighted = jax.numpy.sum
    function.defvjp(
        lambda x, w: (x * w, (x, w)), lambda kept, g: (g * kept[1], weighted(g * kept[0], 0) + (not kept[0].size))
    )
    report = gradcli.check(function, (np.ones((4, 3)), np.ones(3)), only=("gradient", "empty"), shrink=False)
    assert {finding.kind for finding in report.cases[0].findings} == {FindingKind.ZERO_SIZE}
