"""A backward that overwrites what it saved: a finding unless it is allowed, and its gradient judged where it is."""

import numpy as np
import pytest

import gradcli
from gradcli import engine

ALLOW = {"mutates-input": "saves memory"}


def multiplied(framework, factor=1.0):
    """The product of two tensors; backward puts the gradients where it has saved them, as fused kernels do."""

    class Multiplied(framework.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            for_b = factor * g * a
            with framework.no_grad():
                a.copy_(g * b)
                b.copy_(for_b)
            return a, b

    return Multiplied


@pytest.fixture(params=["engine", "torch"])
def framework(request):
    return engine if request.param == "engine" else pytest.importorskip("torch")


def checked(framework, factor, **options):
    inputs = [np.random.default_rng(seed).normal(size=(3, 4)) for seed in range(2)]
    report = gradcli.check(multiplied(framework, factor), tuple(inputs), order=1, seed=2, shrink=False, **options)
    (case,) = report.cases
    return case


def test_it_fails_where_nothing_is_allowed(framework):
    case = checked(framework, 1.0)
    assert case.verdict.value == "failed"
    assert {finding.kind.value for finding in case.findings} == {"mutates-input"}


def test_it_passes_where_it_is_allowed_with_the_reason_and_a_resolution(framework):
    case = checked(framework, 1.0, allow=ALLOW)
    assert (case.verdict.value, case.findings) == ("passed", ())
    assert any("mutates-input, allowed: saves memory" in note for note in case.notes)
    assert case.resolution < 1e-9


def test_a_wrong_gradient_fails_all_the_same(framework):
    case = checked(framework, 1.001, allow=ALLOW)
    assert case.verdict.value == "failed"
    assert {(finding.kind.value, finding.input) for finding in case.findings} == {("wrong-factor", "b")}
