"""Outputs in units that lie decades apart: a mistake in one whose derivatives are small fails like any other."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="the specimens are PyTorch's as well as the engine's")
pytest.importorskip("jax", reason="some of the recorded specimens are JAX's")

import numpy as np
import torch

import gradcli
from benchmarks.alarms import ALL, form
from benchmarks.correct.units import SCALED, TAILS, function
from benchmarks.resolutions import by
from benchmarks.resolutions import spoilt as spoilt_by
from gradcli import engine
from gradcli.verdict import Verdict

WAYS = ((torch, False), (engine, True), (engine, False), (torch, True))
"""The framework, and whether forward's body is hidden."""


def in_ways(cases, count):
    """Every case in some of the ways, the next one in the next."""
    ways = [(scaled, *WAYS[(k + n) % len(WAYS)]) for k, scaled in enumerate(cases) for n in range(count)]
    return [pytest.param(*way, id=f"{way[0].name}, {way[1].__name__}, {way[2]}") for way in ways]


SEEN = [scaled for scaled in SCALED if scaled.seen]
UNSEEN = [pytest.param(scaled, id=scaled.name) for scaled in SCALED if not scaled.seen]


def check(ns, scaled, *, spoilt, hidden, order=1):
    x = scaled.draw(np.random.default_rng(len(scaled.name))).detach().numpy()
    target = function(ns, scaled, spoilt=spoilt, hidden=hidden)
    only = ("gradient",) if spoilt else ()
    inputs = (ns.tensor(x, requires_grad=True),)
    (case,) = gradcli.check(target, inputs, order=order, seed=1, shrink=False, only=only).cases
    return case


@pytest.mark.sampled(14)
@pytest.mark.parametrize(("scaled", "ns", "hidden"), in_ways((*SCALED, *TAILS), 2))
def test_a_right_gradient_passes_at_both_orders(scaled, ns, hidden) -> None:
    case = check(ns, scaled, spoilt=False, hidden=hidden, order=2)
    assert case.verdict is Verdict.PASSED, case.findings


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("scaled", "ns", "hidden"), in_ways(SEEN, 2))
def test_a_mistake_in_one_small_output_fails_and_is_told_of_that_output(scaled, ns, hidden) -> None:
    case = check(ns, scaled, spoilt=True, hidden=hidden)
    assert case.verdict is Verdict.FAILED
    (row,) = (k for k, weight in enumerate(scaled.wrong) if weight != 1)
    (finding,) = case.findings
    assert f"the part of the gradient that comes from output[{row}], whose" in finding.message
    assert {entry.output_index for entry in finding.entries} == {(row,)}
    (error,) = {e.max_rel_error for e in case.evidence if e.verdict is Verdict.FAILED}
    assert error == pytest.approx(abs(scaled.wrong[row] - 1) / max(1, scaled.wrong[row]), rel=0.2)


@pytest.mark.parametrize("weights", [(1, 1, 1, 1, 1, -1), (1, 0.99, 1, 1, 1, 1), (1, 1, 0.9, 1, 1, 1)])
def test_only_what_the_values_can_show_counts_in_the_tail_of_a_union(weights) -> None:
    (discs,) = (each for each in TAILS if each.name == "a union of soft discs")
    case = check(torch, replace(discs, wrong=weights), spoilt=True, hidden=True)
    assert case.verdict is (Verdict.PASSED if weights[-1] < 0 else Verdict.FAILED), case.findings


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("scaled", UNSEEN)
def test_what_rounding_of_the_output_itself_hides_is_never_held_against_anyone(scaled, hidden) -> None:
    case = check(torch, scaled, spoilt=True, hidden=hidden)
    assert case.verdict is Verdict.PASSED
    noted = [e.note for e in case.evidence if e.check == "gradient"]
    assert any("hidden by rounding of forward's values" in str(note) for note in noted)


@pytest.mark.parametrize("spoilt", [False, True])
@pytest.mark.usefixtures("unexplained")
def test_rows_that_are_rounding_errors_only_are_not_failed_for_them(spoilt):
    """Attention so sharp that one gradient is 3e-17, the difference of numbers that are known to 2e-16."""
    number, given = next((n, each) for n, each in enumerate(ALL) if each.name == "sharp attention")
    specimen = form(given, number, 3)
    target = spoilt_by(specimen.target, by(1.001), []) if spoilt else specimen.target
    only = ("gradient", "higher-order")
    (case,) = gradcli.check(target, specimen.inputs(3), order=2, seed=3, shrink=False, only=only).cases
    assert case.verdict is (Verdict.FAILED if spoilt else Verdict.PASSED), case.findings


def test_a_gradient_lacking_from_a_small_output_alone_is_not_called_missing_everywhere():
    class Rates(engine.autograd.Function):
        @staticmethod
        def forward(ctx, energy):
            rates = engine.tensor([1e8, 1.0, 1e-7]) * engine.exp(-energy)
            ctx.save_for_backward(rates)
            return rates

        @staticmethod
        def backward(ctx, g):
            (rates,) = ctx.saved_tensors
            return -g * rates * engine.tensor([1.0, 1.0, 0.0])

    (case,) = gradcli.check(Rates, (engine.tensor([1.0, 0.5, 2.0], requires_grad=True),), order=1, shrink=False).cases
    (finding,) = case.findings
    assert finding.message.startswith("energy gets no gradient from some of the outputs: backward returns zeros"), case
    assert "output[2]" in finding.message


@pytest.mark.parametrize("scale", [0.3, float(np.float32(0.3))])
def test_a_rounded_scale_in_the_tail_of_a_bell_is_named_without_a_contradiction(scale) -> None:
    class Normal(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 0.5 + 0.5 * engine.erf(x / (0.3 * np.sqrt(2)))

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * engine.exp(-((x / scale) ** 2) / 2) / (0.3 * np.sqrt(2 * np.pi))

    x = engine.tensor([0.1, -1.45, 0.25], requires_grad=True, dtype=engine.float64)
    (case,) = gradcli.check(Normal, (x,), order=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if scale == 0.3 else Verdict.FAILED)
    for finding in case.findings:
        assert "it may come from a number that was rounded to float32; the error is in the part" in finding.message
        assert "everywhere" not in finding.message
