"""PyTorch's own operators as Functions: right ones never fail, planted errors always do."""

import pytest

import gradcli
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="the operators are PyTorch's")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it to be imported")

from benchmarks.operators.database import fresh, operators, samples, title  # noqa: E402
from benchmarks.operators.functions import PLANTS, visible, wrapped  # noqa: E402

NAMES = [
    "as_strided",
    "atan2",
    "cat",
    "addmm",
    "cumprod",
    "gather",
    "kron",
    "linalg.cholesky",
    "linalg.solve",
    "linalg.svdvals",
    "logsumexp",
    "matmul",
    "nn.functional.conv1d",
    "nn.functional.cross_entropy",
    "nn.functional.dropout",
    "nn.functional.gelu",
    "nn.functional.group_norm",
    "nn.functional.layer_norm",
    "prod",
    "sort",
    "special.erfcx",
    "split",
    "var_mean",
]
COMPLEX = ["fft.rfft", "mul", "abs", "linalg.inv"]


@pytest.fixture(scope="module")
def database():
    kinds = (torch.float64, torch.complex128)
    return {(title(o), dtype): o for dtype in kinds for o in operators(dtype) if title(o) in NAMES + COMPLEX}


@pytest.fixture
def sample(database, request):
    name, dtype = request.param
    return samples(database[name, dtype], dtype, 1)[0]


def named(names, dtype):
    return [pytest.param((name, dtype), id=f"{name}-{dtype}".replace("torch.", "")) for name in names]


EVERY = [
    *named(NAMES, torch.float64),
    *named([n for n in COMPLEX if n != "fft.rfft"], torch.complex128),
    *named(["fft.rfft"], torch.float64),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sample", EVERY, indirect=True)
def test_a_right_operator_passes(sample):
    report = gradcli.check(wrapped(sample.function, sample.tensors), fresh(sample.tensors), order=1, shrink=False)
    assert report.verdict is Verdict.PASSED, str(report)
    assert report.cases[0].resolution < 1e-6


@pytest.mark.parametrize("sample", EVERY[::4], indirect=True)
def test_a_right_operator_passes_whose_forward_is_hidden_from_autodiff(sample):
    target = wrapped(sample.function, sample.tensors, opaque=True)
    report = gradcli.check(target, fresh(sample.tensors), order=1, shrink=False)
    assert report.verdict is Verdict.PASSED, str(report)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("sample", EVERY, indirect=True)
@pytest.mark.usefixtures("unexplained")
def test_planted_errors_fail(sample):
    first = sum(sample.operator.encode()) % len(PLANTS)
    turned = [*PLANTS[first:], *PLANTS[:first]]
    plant = next(p for p in turned if p.order == 1 and visible(sample.function, sample.tensors, p))
    target = wrapped(sample.function, sample.tensors, plant=plant)
    report = gradcli.check(target, fresh(sample.tensors), order=1, shrink=False)
    assert report.verdict is Verdict.FAILED, f"{plant.name}: {report}"
