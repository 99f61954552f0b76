"""Kernels in Triton's interpreter: right ones pass, wrong ones fail, accesses outside of tensors are named."""

import math
import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest

if find_spec("triton") is None:
    pytest.skip("Triton is not installed: its kernels have a CI job of their own", allow_module_level=True)
torch = pytest.importorskip("torch")
os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated, those of Triton's own library among them

import gradcli  # noqa: E402 - after Triton is known to be there
import gradcli.diagnosis.slips.search  # noqa: E402
import gradcli.runner.outcome.failed  # noqa: E402
import gradcli.watchdog.case  # noqa: E402
from gradcli.backends.torch.backend import TorchBackend, TorchFramework  # noqa: E402
from gradcli.backends.torch.interpreter import contained_kernels, interpreted_kernels  # noqa: E402
from gradcli.checks.battery import run_battery  # noqa: E402
from gradcli.results import judge  # noqa: E402
from gradcli.settings import Settings  # noqa: E402
from tests.programs import kernels  # noqa: E402


def checked(function, *arguments, **options):
    """The only case of a check at the arguments given, each tensor with a gradient unless it holds indices."""
    tensors = [a.requires_grad_() if hasattr(a, "requires_grad_") and a.is_floating_point() else a for a in arguments]
    report = gradcli.check(function, tuple(tensors), order=1, seed=3, samples=1, shrink=False, **options)
    (case,) = report.cases
    return case


def drawn(*shape):
    return torch.from_numpy(np.random.default_rng(5).normal(size=shape))


def names(case):
    return [finding.kind.value for finding in case.findings]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (kernels.Sum, (drawn(5),)),
        (kernels.Rows, (drawn(3, 4),)),
        (kernels.Gather, (drawn(6), torch.tensor([0, 5, 2, 2]))),
        (kernels.ScaledTanh, (drawn(5), 0.75)),
        (kernels.Autotuned, (drawn(5),)),
        (kernels.Turned, (drawn(4, 3),)),
    ],
)
def test_a_right_kernel_passes(function, arguments):
    case = checked(function, *arguments)
    assert (case.verdict.value, names(case), case.error) == ("passed", [], None)
    assert case.resolution < 1e-8


@pytest.fixture
def unhurried(monkeypatch):
    """Time for a name however slow the machine is."""
    monkeypatch.setattr(gradcli.diagnosis.naming, "NAMING_SECONDS", 600.0)
    monkeypatch.setattr(gradcli.diagnosis.slips.search, "_SECONDS", 300.0)
    monkeypatch.setattr(gradcli.watchdog.case, "ENTRIES_SECONDS", 600.0)
    monkeypatch.setattr(gradcli.watchdog.case, "OPTIONAL_SECONDS", 1200.0)


def test_a_kernel_is_judged_by_few_calls_and_its_body_not_differentiated(unhurried):
    """The framework sees a copy and no rotation; a row of the claim for each of 12 outputs would take 12 passes."""
    right, wrong = checked(kernels.Turned, drawn(4, 3)), checked(kernels.TurnedWithATileOff, drawn(4, 3))
    assert (right.verdict.value, right.notes) == ("passed", ())
    assert right.forwards <= 40
    assert right.backwards <= 30
    assert (wrong.verdict.value, names(wrong)) == ("failed", ["wrong-entries"])
    assert {entry.index[1] for entry in wrong.findings[0].entries} == {1}


def test_a_number_that_sets_an_accuracy_is_not_tried_at_other_values():
    class WithEps(kernels.ScaledTanh):
        @staticmethod
        def forward(ctx, x, eps=0.75):
            return kernels.ScaledTanh.forward(ctx, x, eps)

    scale, eps = (checked(f, drawn(5), 0.75, only=("constants",)).forwards for f in (kernels.ScaledTanh, WithEps))
    assert eps + 6 <= scale


def test_a_kernel_with_a_missing_square_fails_at_the_line_that_hands_it_the_wrong_number(unhurried):
    case = checked(kernels.ScaledTanhWithoutSquare, drawn(5), 0.75)
    assert (case.verdict.value, names(case)) == ("failed", ["wrong-factor"])
    assert "has `y` where `y ** 2` belongs" in case.findings[0].message
    assert len(case.findings[0].entries) == 5


@pytest.mark.parametrize(
    ("function", "given", "finding", "said"),
    [
        (
            kernels.SumReadsOutside,
            drawn(5),
            "nondeterministic-forward",
            "reads 3 entries past the end of x",
        ),
        (
            kernels.SumReadsOutside,
            drawn(4),
            "batch-size",
            "size 5, not 4, kernel square_sum_kernel reads 3",
        ),
        (kernels.SumWritesOutside, drawn(4), "batch-size", "kernel twice_kernel writes 3 entries past the end of y"),
        (
            kernels.RowsForwardUnmasked,
            drawn(4, 3),
            "batch-size",
            "kernel rows_kernel reads 3 entries past the end",
        ),
        (kernels.RowsBackwardUnmasked, drawn(4, 3), "batch-size", "kernel rows_kernel writes 3 entries past the end"),
    ],
)
def test_an_access_outside_of_a_tensor_is_named_with_its_kernel_and_line(function, given, finding, said):
    case = checked(function, given)
    assert (case.verdict.value, names(case)) == ("failed", [finding])
    assert said in case.findings[0].message
    assert case.findings[0].location.file.endswith("kernels.py")


def test_a_write_outside_of_a_tensor_ends_the_case_at_its_line():
    case = checked(kernels.SumWritesOutside, drawn(5))
    assert case.verdict.value == "error"
    assert "kernel twice_kernel writes 3 entries past the end of y, which has 5 entries" in case.error
    assert "mask the store" in case.notes[0]
    assert "tl.store(y + at, result)" in case.error_traceback


def test_a_read_outside_of_a_tensor_that_changes_no_result_is_a_note():
    case = checked(kernels.SumReadsOutsideAndDropsIt, drawn(5))
    assert (case.verdict.value, names(case), case.error) == ("passed", [], None)
    assert any("no result depends on what is read there" in note for note in case.notes)


def test_an_index_past_the_end_of_a_table_is_found():
    case = checked(kernels.Gather, drawn(6), torch.tensor([0, 6, 2]))
    assert case.verdict.value == "error"
    assert "writes 1 entry past the end of y, which has 6 entries" in case.error


@pytest.mark.parametrize(
    ("function", "said", "hint"),
    [
        (kernels.Assembly, "inline_asm not supported in interpreter mode", "--device cuda --triton gpu"),
        (kernels.AsksForAGpu, "Torch not compiled with CUDA enabled", "this machine has none"),
    ],
)
def test_what_only_a_gpu_can_do_is_told_with_what_to_do(function, said, hint):
    if "CUDA" in said and torch.version.cuda is not None:
        pytest.skip("a build for GPUs words this error in another way")
    case = checked(function, drawn(5))
    assert case.verdict.value == "error"
    assert said in case.error
    assert "InterpreterError" not in case.error
    assert hint in case.notes[0]


def test_the_device_library_agrees_with_the_standard_library():
    x = drawn(7)
    y = torch.empty_like(x)
    with interpreted_kernels():
        kernels.erf_kernel[(1,)](x, y, 7, BLOCK=8)
    assert y.tolist() == pytest.approx([math.erf(value) for value in x.tolist()], rel=1e-15)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_values_are_rounded_to_bfloat16_as_the_framework_does(dtype):
    x = torch.cat([drawn(61), torch.tensor([math.inf, -0.0, 3.0e4], dtype=torch.float64)]).to(dtype)
    y = torch.empty(64, dtype=torch.bfloat16)
    with interpreted_kernels():
        kernels.to_bfloat16_kernel[(1,)](x, y, BLOCK=64)
    assert torch.equal(y, x.to(torch.bfloat16))


def test_a_kernel_computes_in_bfloat16_as_the_framework_does():
    x, w = drawn(64).to(torch.bfloat16), drawn(64).flip(0).to(torch.bfloat16)
    y = torch.empty_like(x)
    with interpreted_kernels():
        kernels.bfloat16_kernel[(1,)](x, w, y, BLOCK=64)
    assert torch.equal(y, torch.where(x > w, x * w - 0.5 * x, -x / 3))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_kernel_of_any_precision_is_judged_in_float64_and_compared_in_its_own(dtype):
    case = checked(kernels.Rows, drawn(2, 3).to(getattr(torch, dtype)))
    assert (case.verdict.value, names(case), case.error) == ("passed", [], None)
    assert case.resolution < 1e-8
    assert any(f"the input is {dtype}" in note and "gives the same gradient" in note for note in case.notes)


def test_a_kernel_that_computes_in_float32_is_judged_at_its_resolution():
    case = checked(kernels.InFloat32, drawn(3))
    assert (case.verdict.value, names(case), case.error) == ("passed", [], None)
    assert 1e-9 < case.resolution < 1e-2
    assert checked(kernels.InFloat32OffByAThird, drawn(3), only=("gradient",)).verdict.value == "failed"


def test_the_interpreter_is_as_it_was_afterwards():
    interpreter = sys.modules["triton.runtime.interpreter"]
    watched = (interpreter.InterpreterBuilder, interpreter.GridExecutor, interpreter.InterpretedFunction, interpreter)
    before = [dict(vars(each)) for each in watched]
    tanh = kernels.tanh
    with interpreted_kernels() as memory:
        kernels.scaled_tanh_kernel[(1,)](drawn(5), drawn(5), 0.5, 5, BLOCK=16)
        assert memory is not None
        assert kernels.tanh is not tanh
    assert kernels.tanh is tanh
    assert [dict(vars(each)) for each in watched] == before
    with contained_kernels() as found:
        assert found == {}


def test_no_memory_is_touched_outside_of_a_tensor():
    whole = torch.full((12,), 7.0, dtype=torch.float64)
    part = torch.from_numpy(whole.numpy()[3:8])
    with interpreted_kernels(), contained_kernels() as found:
        kernels.twice_kernel[(2,)](
            drawn(8), part, torch.ones((), dtype=torch.float64), 5, BLOCK=4, MASK=True, STORE=False
        )
    assert whole[8:].tolist() == [7.0] * 4
    assert whole[:3].tolist() == [7.0] * 3
    (access,) = found.values()
    assert (access.writes, access.count, access.first) == (True, 3, 5)


@pytest.mark.parametrize(("function", "verdict"), [(kernels.Rows, "passed"), (kernels.RowsBackwardWrong, "failed")])
def test_kernels_take_tensors_of_another_device(monkeypatch, function, verdict):
    """An index of the CPU stands in for a GPU: every tensor is copied there and back."""
    monkeypatch.setattr(TorchFramework, "_accelerator", property(lambda _: torch.random))
    backend = TorchBackend("cpu:0")
    with interpreted_kernels():
        subject = backend.bind(function, backend.adopt([drawn(3, 4).numpy()]))
        evidence = run_battery(subject, Settings(order=1, skip=("constants",)), seed=0)
    assert judge(evidence).value == verdict
