"""Where tensors lie, and results that vary from call to call: declared, bounded, no licence for a wrong gradient."""

import numpy as np
import pytest

import gradcli
from gradcli.backends.registry import backend_for
from gradcli.backends.torch.backend import TorchBackend, TorchFramework
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.errors import SpecError, UsageError
from gradcli.results import judge
from gradcli.settings import Settings
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="devices are PyTorch's")


class Product(torch.autograd.Function):
    seen: tuple[object, ...] = ()

    @staticmethod
    def forward(ctx, x, w):
        Product.seen = (x.device, w.device)
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g


class Forgets(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), 2 * x.t() @ g


@pytest.fixture
def elsewhere(monkeypatch):
    """PyTorch's backend with its tensors on another device, for which an index of the CPU must do."""
    monkeypatch.setattr(TorchFramework, "_accelerator", property(lambda _: torch.random))
    return TorchBackend("cpu:0")


def inputs():
    generator = np.random.default_rng(0)
    return [generator.normal(size=shape) for shape in ((3, 4), (4, 2))]


@pytest.mark.parametrize(("function", "verdict"), [(Product, Verdict.PASSED), (Forgets, Verdict.FAILED)])
def test_what_lies_elsewhere_is_judged_on_the_host(elsewhere, function, verdict):
    assert not elsewhere.framework.is_plain
    subject = elsewhere.bind(function, elsewhere.adopt(inputs()))
    evidence = run_battery(subject, Settings(), seed=0)
    assert judge(evidence) is verdict
    if verdict is Verdict.FAILED:
        (finding,) = name_findings(evidence, subject)
        assert (finding.kind.value, finding.input) == ("wrong-factor", "arg1")


def test_generators_of_the_device_are_put_back(elsewhere):
    before = torch.random.get_rng_state()
    noisy = elsewhere.bind(lambda x: x * torch.rand(1).item() * torch.rand_like(x), elsewhere.adopt(inputs()[:1]))
    assert judge(run_battery(noisy, Settings(order=1), seed=0)) is Verdict.PASSED
    assert torch.equal(before, torch.random.get_rng_state())


def test_autocast_is_off_while_the_users_code_runs():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        report = gradcli.check(torch.nn.Linear(3, 2), (torch.randn(5, 3),), order=1, shrink=False)
    assert report.ok, str(report)
    assert report.cases[0].resolution < 1e-6


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="PyTorch has no such device on this machine; available: cpu"):
        gradcli.check(Product, device="cuda:77", shrink=False)
    with pytest.raises(UsageError, match="the engine backend computes on the CPU only"):
        gradcli.check("gradcli.examples.cube:Cube", device="cuda", shrink=False)
    backend = backend_for(Product)
    assert backend.on("cpu") is backend
    assert gradcli.check(Product, tuple(map(torch.tensor, inputs())), device="cpu", order=1, shrink=False).cases


PROGRAM = """
import numpy
import torch

own = numpy.random.default_rng()


def shaken(tensor):
    return tensor * (1 + 1e-10 * own.standard_normal())


class Shaken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return shaken(x.sin())

    @staticmethod
    def backward(ctx, g):
        return shaken(g * ctx.saved_tensors[0].cos())


class Wrong(Shaken):
    @staticmethod
    def backward(ctx, g):
        return shaken(1.001 * g * ctx.saved_tensors[0].cos())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "shaken.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spec(folder, name, text):
    path = folder / f"{name}.yaml"
    path.write_text(f"target: shaken.py:{name}\n{text}")
    return str(path)


DECLARED = "defaults: {nondeterminism: 1e-9, reason: own generator, order: 1}\n"


def test_what_varies_fails_until_it_is_declared(folder):
    case = gradcli.check(f"{folder}/shaken.py:Shaken", order=1, shrink=False).cases[0]
    assert "nondeterministic-forward" in {f.kind.value for f in case.findings}
    report = gradcli.check(spec(folder, "Shaken", DECLARED), shrink=False)
    assert report.ok, str(report)
    assert "results may differ between calls by 1e-09 of their largest entry: own generator" in report.cases[0].notes
    assert 1e-10 < report.cases[0].resolution < 1e-4


def test_a_declared_nondeterminism_excuses_no_wrong_gradient(folder):
    case = gradcli.check(spec(folder, "Wrong", DECLARED), shrink=False).cases[0]
    assert [f.kind.value for f in case.findings] == ["wrong-factor"]


@pytest.mark.parametrize(
    ("defaults", "problem"),
    [
        ("{nondeterminism: 1e-9}", "nondeterminism needs the key 'reason'"),
        ("{reason: atomics}", "'nondeterminism' or 'allow', and neither"),
        ("{nondeterminism: 0.5, reason: atomics}", "at most 0.01, got 0.5"),
    ],
)
def test_a_nondeterminism_is_bounded_and_gives_its_reason(folder, defaults, problem):
    with pytest.raises(SpecError, match=problem):
        gradcli.check(spec(folder, "Shaken", f"defaults: {defaults}\n"), shrink=False)
