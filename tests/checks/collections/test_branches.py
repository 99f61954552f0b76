"""Functions with a jump where a branch of their code changes: judged by the formula in use, at full resolution."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the specimens are PyTorch's as well as the engine's")

import numpy as np
import torch

import gradcli
from benchmarks.correct.branches import BRANCHED, MISTAKE, function
from gradcli import engine
from gradcli.verdict import Verdict

NAMESPACES = (torch, engine)
CASES = [
    pytest.param(branch, side, NAMESPACES[(number + side) % 2], id=f"{branch.name}, {('below', 'above')[side]}")
    for number, branch in enumerate(BRANCHED)
    for side in (0, 1)
]


def gradient_of(ns, branch, side, factor):
    x = branch.draws[side](np.random.default_rng(len(branch.name))).detach().numpy()
    inputs = (ns.tensor(x, requires_grad=True),)
    target = function(ns, branch, factor=factor)
    (case,) = gradcli.check(target, inputs, order=1, seed=2, shrink=False, only=("gradient",)).cases
    (evidence,) = (e for e in case.evidence if e.check == "gradient")
    return evidence


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("branch", "side", "ns"), CASES)
@pytest.mark.usefixtures("unexplained")
def test_a_right_gradient_passes_to_rounding_and_a_slightly_wrong_one_fails(branch, side, ns) -> None:
    right = gradient_of(ns, branch, side, 1.0)
    assert right.verdict is Verdict.PASSED
    assert right.resolution < 1e-9
    assert gradient_of(ns, branch, side, MISTAKE).verdict is Verdict.FAILED
