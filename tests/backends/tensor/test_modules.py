"""Modules as targets: parameters are inputs, what a module holds stays as it was, and a mistake inside is placed."""

import warnings

import numpy as np
import pytest

import gradcli
from gradcli.backends.null_backend import NullBackend
from gradcli.backends.registry import backend_for
from gradcli.checks.battery import run_battery
from gradcli.errors import TargetError, UsageError
from gradcli.results import judge
from gradcli.runner.arguments.module_parameters import complete
from gradcli.runner.store.failures import load
from gradcli.runner.store.replay import replay
from gradcli.settings import Settings
from gradcli.spec.load import load_specs
from gradcli.spec.resolve import resolve
from gradcli.verdict import Verdict
from tests.programs.modules import HEADS, PROGRAM


@pytest.fixture(params=["engine", "torch"])
def file(request, tmp_path, monkeypatch):
    """The program on disk, under a name of its own for each framework."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="one of the two frameworks is PyTorch")
    path = tmp_path / f"modules_{request.param}.py"
    path.write_text(HEADS[request.param] + PROGRAM)
    monkeypatch.chdir(tmp_path)
    return path


def line_of(file, text):
    return next(n for n, line in enumerate(file.read_text().splitlines(), 1) if text in line)


def held(case):
    return [spec.name for spec in case.inputs if spec.domain == "parameter"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["Layer", "Stack", "stack", "counting"])
def test_right_modules_pass_with_their_parameters_as_inputs(file, name):
    report = gradcli.check(f"{file}:{name}", order=2, samples=1, shrink=False)
    assert report.ok, str(report)
    expected = {
        "Layer": ["weight", "norm.weight", "norm.bias"],
        "counting": ["w"],
    }.get(name, ["fc.weight", "fc.bias", "out.weight", "out.bias"])
    assert held(report.cases[0]) == expected
    assert {e.input for e in report.cases[0].evidence if e.check == "gradient"} >= set(expected)


def test_a_planted_mistake_is_named_and_placed_in_the_function_inside(file):
    case = gradcli.check(f"{file}:MeanLayer", shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    (finding,) = case.findings
    assert (finding.kind.value, finding.input) == ("wrong-factor", "weight")
    assert finding.location.line == line_of(file, "the planted mistake")


@pytest.mark.sampled(1)
def test_parameters_move_off_their_initial_values(file):
    case = gradcli.check(f"{file}:Gate", shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert [(f.input, f.order) for f in case.findings] == [("x", 1), ("x", 2)]


@pytest.mark.sampled(1)
def test_the_null_backend_fails(file):
    target = resolve(f"{file}:stack").object
    backend = backend_for(target)
    x = backend.adopt([np.random.default_rng(0).normal(size=(5, 4))])
    subject = NullBackend(backend).bind(target, complete(x, backend.describe(target), 0, None))
    assert judge(run_battery(subject, Settings(order=1), seed=0)) is Verdict.FAILED


def test_what_the_module_holds_is_as_before(file):
    module = resolve(f"{file}:counting").object
    before = [(name, np.array(t.detach().numpy())) for name, t in (*module.named_parameters(), *module.named_buffers())]
    assert gradcli.check(module, samples=2, shrink=False).ok
    for (name, value), (_, tensor) in zip(before, (*module.named_parameters(), *module.named_buffers()), strict=True):
        assert np.array_equal(value, tensor.detach().numpy()), name
        assert tensor.grad is None


@pytest.mark.sampled(1)
def test_values_for_the_constructor_come_from_flags_and_specs(file):
    (case,) = gradcli.check(f"{file}:MeanLayer", shrink=False).cases
    assert any("constructed as MeanLayer(features=" in note for note in case.notes)
    spec = file.with_suffix(".yaml")
    spec.write_text(
        f"target: {file.name}:MeanLayer\nconstruct: {{features: 3, gain: 5.0}}\nexpect: failed\n"
        "findings: wrong-factor\ncases:\n  - inputs: {x: {shape: [7, 3]}, weight: {shape: [3], domain: positive}}\n"
    )
    (read,) = load_specs(spec)
    assert read.construct == (("features", 3), ("gain", 5.0))
    assert gradcli.check(str(spec), shrink=False).ok


def test_a_constructor_is_told_what_it_does_not_take(file):
    spec = file.with_suffix(".yaml")
    spec.write_text(f"target: {file.name}:MeanLayer\nconstruct: {{sizes: 3}}\n")
    with pytest.raises(UsageError, match="no argument 'sizes'; it has features, gain"):
        gradcli.check(str(spec), shrink=False)


def test_a_class_that_cannot_be_made_says_what_to_give(file):
    case = gradcli.check(f"{file}:Demanding", shrink=False).cases[0]
    assert case.verdict is Verdict.ERROR
    assert "found no values for table" in case.error


@pytest.mark.sampled(1)
def test_a_saved_failure_is_replayed_with_the_same_instance(file):
    from gradcli.runner.case import run_case
    from gradcli.runner.planning.gather import gather
    from gradcli.runner.planning.plan import plan

    (case,) = plan(gather([f"{file}:MeanLayer"]), Settings(order=1))
    run_case(case, failures=file.parent)
    failure = load(next(file.parent.glob("MeanLayer-*.json")))
    assert dict(failure.construct)["features"] > 0
    again = replay(failure)
    assert again.verdict is Verdict.FAILED
    assert again.findings[0].kind.value == "wrong-factor"


def test_a_module_without_sizes_is_refused():
    nn = pytest.importorskip("torch", reason="lazy modules are PyTorch's").nn
    with pytest.raises(UsageError, match="has no shape yet"):
        gradcli.check(nn.LazyLinear(3), shrink=False)


def test_a_compiled_module_is_refused_in_words():
    torch = pytest.importorskip("torch", reason="only PyTorch compiles modules")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch means to give compilation up
        compiled = torch.jit.script(torch.nn.Linear(3, 2))
    with pytest.raises(TargetError, match="give the Python module"):
        gradcli.check(compiled, (torch.ones(4, 3),), shrink=False)


def test_what_is_checkpointed_is_computed_again_with_the_parameters_of_its_call(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="checkpoints are PyTorch's")
    from torch.utils.checkpoint import checkpoint

    class Block(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.a, self.b, self.factor = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3), factor

        def part(self, x):
            y = self.b(torch.tanh(self.a(x)))
            return y + (self.factor - 1) * (y - y.detach())

        def forward(self, x):
            return x + checkpoint(self.part, x, use_reentrant=False)

    monkeypatch.chdir(tmp_path)
    x = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    for module in (Block(1), Block(1).double()):
        report = gradcli.check(module, (x,))
        assert report.ok, str(report)
    report = gradcli.check(Block(2).double(), (x,), order=1, shrink=False, only=["gradient"])
    assert {(f.kind.value, f.input) for f in report.cases[0].findings if f.kind.value == "wrong-factor"} == {
        ("wrong-factor", name) for name in ("a.weight", "a.bias", "b.weight", "b.bias")
    }
