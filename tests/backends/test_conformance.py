"""One table of right Functions: every backend passes it, and the null backend fails every row."""

import numpy as np
import pytest

from gradcli.backends.null_backend import NullBackend
from gradcli.backends.registry import backend_named
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.findings import FindingKind
from gradcli.results import judge
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.pairs import FRAMEWORKS, each_pair
from tests.programs.functions import TABLE, arguments

ROWS = pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])


@pytest.mark.sampled(15)
@ROWS
@pytest.mark.parametrize("seed", [0])
def test_right_functions_pass_at_orders_one_to_three(backend, row, seed):
    subject = backend.bind(row.build(backend.framework.namespace), arguments(row, seed))
    evidence = run_battery(subject, Settings(order=3), seed=seed)
    assert judge(evidence) is Verdict.PASSED, [e for e in evidence if e.verdict is not Verdict.PASSED]
    bounded = [e for e in evidence if e.check == "gradient" and e.resolution is not None]
    assert bounded
    assert max(e.resolution for e in bounded) < 1e-8
    assert {e.order for e in evidence if e.check == "higher-order"} == {2, 3}


@ROWS
def test_the_null_backend_fails(row):
    engine = backend_named("engine")
    null = NullBackend(engine)
    subject = null.bind(row.build(engine.framework.namespace), arguments(row))
    evidence = run_battery(subject, Settings(order=1), seed=0)
    assert judge(evidence) is Verdict.FAILED
    assert {f.kind for f in name_findings(evidence, subject)} == {FindingKind.MISSING_GRADIENT}


def planted(row, ns, spoil):
    """The row's Function with its first gradient spoilt."""
    right = row.build(ns)

    class Spoilt(right):
        @staticmethod
        def backward(ctx, *cotangents):
            returned = right.backward(ctx, *cotangents)
            single = not isinstance(returned, tuple)
            gradients = [returned] if single else list(returned)
            gradients[0] = spoil(gradients[0])
            return gradients[0] if single else tuple(gradients)

    return Spoilt


def one_entry(gradient):
    changed = gradient.clone()
    place = (0,) * gradient.dim()
    changed[place] = changed[place] * 1.001
    return changed


SPOILT = {
    "factor-1e-3": (lambda g: g * 1.001, FindingKind.WRONG_FACTOR),
    "factor-1e-6": (lambda g: g * (1 + 1e-6), FindingKind.WRONG_FACTOR),
    "sign": (lambda g: -g, FindingKind.WRONG_SIGN),
    "one-entry-1e-3": (one_entry, FindingKind.WRONG_ENTRIES),
}
SPOILABLE = {row.name: row for row in TABLE if row.name not in ("in-place", "cube-scalar")}


@pytest.mark.sampled(8)
@each_pair(["backend"], backend=FRAMEWORKS, name=SPOILABLE, error=SPOILT)
def test_a_planted_error_is_caught_at_the_right_input(backend, name, error):
    row, (spoil, kind) = SPOILABLE[name], SPOILT[error]
    given = arguments(row)
    subject = backend.bind(planted(row, backend.framework.namespace, spoil), given)
    evidence = run_battery(subject, Settings(order=1), seed=0)
    assert judge(evidence) is Verdict.FAILED
    findings = name_findings(evidence, subject)
    assert {f.input for f in findings} == {given[0].name}
    assert findings[0].kind is kind, findings[0].message
    if kind is FindingKind.WRONG_ENTRIES:
        assert findings[0].wrong_total == 1
        assert (0,) * given[0].value.ndim in {e.index for e in findings[0].entries}


def test_the_same_numbers_on_both_backends():
    pytest.importorskip("torch", reason="compares the engine with PyTorch")
    for row in TABLE:
        values = []
        for name in ("engine", "torch"):
            backend = backend_named(name)
            subject = backend.bind(row.build(backend.framework.namespace), arguments(row))
            map_ = subject.derivative_map(2)
            x = subject.base_point(2, 3)
            cotangent = np.random.default_rng(5).normal(size=map_.codomain.size)
            values.append((map_.value(x), map_.vjp(x, cotangent)))
        for ours, theirs in zip(*values, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
