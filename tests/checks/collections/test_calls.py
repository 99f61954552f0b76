"""Functions called with accuracies, pairs, buffers and few digits: right ones pass and wrong ones fail."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the specimens are PyTorch's as well as the engine's")

import numpy as np
import torch

import gradcli
from benchmarks.correct.calls import CALLED, arguments, function
from gradcli import engine
from gradcli.verdict import Verdict

CASES = [pytest.param(called, (torch, engine)[k % 2], id=called.name) for k, called in enumerate(CALLED)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spoilt", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize(("called", "ns"), CASES)
@pytest.mark.usefixtures("unexplained")
def test_the_right_one_passes_and_the_wrong_one_fails(called, ns, spoilt) -> None:
    given = arguments(ns, called, np.random.default_rng(1))
    (case,) = gradcli.check(function(ns, called, spoilt=spoilt), given, order=1, seed=0, shrink=False).cases
    assert case.verdict is (Verdict.FAILED if spoilt else Verdict.PASSED), case.findings
