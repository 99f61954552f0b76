"""A sample of benchmarks/correct: right but awkward Functions never fail, and planted mistakes do."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the specimens are PyTorch's")

import numpy as np
import torch

import gradcli
from benchmarks.correct.entries_arrays import ARRAYS
from benchmarks.correct.entries_kinks import KINKS
from benchmarks.correct.entries_smooth import SMOOTH
from benchmarks.correct.manners import MANNERS
from benchmarks.correct.matrices import MATRICES
from benchmarks.correct.ordering import ORDER
from benchmarks.correct.planted import CURVES, MISTAKES
from benchmarks.correct.precision import ROUGH
from benchmarks.correct.reductions import REDUCTIONS
from benchmarks.correct.specimen import can_hide, hidden
from benchmarks.correct.spectra import SPECTRA
from gradcli.verdict import Verdict

NAMES = {
    "sine",
    "tangent near its pole",
    "logarithm of tiny and huge",
    "small fast ripple",
    "offset 1e8",
    "outputs of 1e-30",
    "tail of erfc",
    "saturated sigmoid (2)",
    "logistic map, twelve times",
    "one minus tanh",
    "relu (2)",
    "clamp (2)",
    "relu close to its kink",
    "root of magnitude",
    "remainder by 0.7",
    "fine kinks",
    "smoothstep",
    "Lambert W (2)",
    "Weierstrass, six terms",
    "table, linear between knots",
    "ill-conditioned solve",
    "Cholesky of the symmetric part",
    "inverse of a symmetric matrix",
    "eigenvalues, close together",
    "singular values over decades",
    "sort with ties",
    "maximum of equals, shared",
    "quantile between entries",
    "isotonic regression",
    "norm of tiny entries",
    "variance of offset entries",
    "mean of sines of ten thousand",
    "float32 sine",
    "float16 sine",
    "rounded to six digits",
    "float32 product of matrices by NumPy",
    "in place exponential",
    "maximum with places",
    "unused outputs as none",
    "linear with bias",
}
GROUPS = (SMOOTH, KINKS, ARRAYS, MATRICES, SPECTRA, ORDER, REDUCTIONS, ROUGH, MANNERS)
SAMPLE = [s for group in GROUPS for s in group if s.name in NAMES]


def test_every_name_of_the_sample_is_a_specimen():
    assert {s.name for s in SAMPLE} == NAMES


@pytest.mark.sampled(10)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(SAMPLE)), ids=[s.name for s in SAMPLE])
def test_a_right_function_does_not_fail(number):
    given = SAMPLE[number]
    specimen = hidden(given) if can_hide(given) and number % 2 else given
    with np.errstate(all="ignore"):
        report = gradcli.check(specimen.target, specimen.inputs(0), shrink=False)
    assert report.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE), str(report)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("name", ["sine", "rational"])
def test_a_mistake_of_the_second_order_fails(mistake, name):
    x = torch.tensor(np.random.default_rng(3).standard_normal(4)).requires_grad_()
    report = gradcli.check(MISTAKES[mistake](CURVES[name]), (x,), shrink=False)
    assert report.verdict is Verdict.FAILED
    assert {finding.order for finding in report.cases[0].findings} == {2}
