"""`-v` shows entries of every gradient beside differences of forward, for a pass as well, and the hooks that fired."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli.figures
from gradcli import engine
from gradcli.backends.registry import backend_for, backend_named
from gradcli.cases import CheckSpec
from gradcli.checks.gradient_tables import LARGEST, gradient_tables
from gradcli.figures import GradientEntry, GradientTable, in_bounds
from gradcli.reporters.gradient_table import table_lines
from gradcli.reporters.plain import plain_case
from gradcli.results import CheckResult, Evidence
from gradcli.runner.arguments.given import supply_from
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.conftest import Run
from tests.programs.functions import TABLE, Row, arguments

GENERATOR = np.random.default_rng(11)


def namespace(name: str) -> Any:
    if name == "torch":
        pytest.importorskip("torch", reason="the torch backend needs PyTorch")
    return backend_named(name).framework.namespace


def checked(target: Any, inputs: tuple[Any, ...], **settings: Any) -> CheckResult:
    """The result with what `-v` asks for."""
    backend = backend_for(target, inputs)
    info = backend.describe(target)
    case = case_of(CheckSpec(target="tests:Target"), Settings(tables=True, samples=1, **settings))
    supply = supply_from(inputs, backend, info, case)
    return check_object(target, case, supply=supply, backends=(backend,), info=info)


def tables_of(result: CheckResult) -> tuple[GradientTable, ...]:
    assert result.figures is not None
    return result.figures.tables


def shown(result: CheckResult) -> str:
    return plain_case(result, verbose=True)


def sine(ns: Any, factor: float = 1.0) -> type:
    class Sine(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return ns.sin(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return factor * g * ns.cos(x)

    return Sine


def tensor(ns: Any, value: Any) -> Any:
    return ns.tensor(np.asarray(value), requires_grad=True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("framework", ["engine", "torch"])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 5), (2, 3, 4)])
def test_the_numbers_of_a_pass_are_the_derivative_within_their_bounds(framework: str, shape: tuple[int, ...]) -> None:
    ns = namespace(framework)
    x = GENERATOR.standard_normal(shape)
    result = checked(sine(ns), (tensor(ns, x),))
    assert result.verdict is Verdict.PASSED
    first = next(t for t in tables_of(result) if t.order == 1)
    assert first.shape == shape
    assert first.entries_total == x.size
    for entry in first.entries:
        exact = float(np.cos(x[entry.index]))
        assert abs(entry.analytic - exact) < 1e-12
        assert abs(entry.numeric - exact) <= 2 * entry.bound + 1e-15
        assert entry.bound < 1e-6
        assert entry.in_bounds < 3
    assert {t.order for t in tables_of(result)} == {1, 2}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("framework", ["engine", "torch"])
@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_every_input_and_order_of_a_right_function_has_its_entries(framework: str, row: Row) -> None:
    ns = namespace(framework)
    given = arguments(row, 1)
    values = tuple(
        tensor(ns, a.value) if a.requires_grad else ns.tensor(a.value) if a.is_tensor else a.value for a in given
    )
    result = checked(row.build(ns), values)
    assert result.verdict is Verdict.PASSED, shown(result)
    required = {a.name for a in given if a.is_tensor and a.requires_grad}
    assert {t.input for t in tables_of(result) if t.order == 1} == required
    measured = [entry for table in tables_of(result) for entry in table.entries if entry.why is None]
    assert measured
    assert all(entry.in_bounds <= 3 for entry in measured)


@pytest.mark.parametrize("framework", ["engine", "torch"])
def test_a_failure_shows_its_errors_in_bounds(framework: str) -> None:
    ns = namespace(framework)
    result = checked(sine(ns, 1.01), (tensor(ns, GENERATOR.standard_normal((3, 5))),), shrink=False)
    assert result.verdict is Verdict.FAILED
    (table,) = tables_of(result)
    assert all(entry.in_bounds > 1e3 for entry in table.entries)
    assert len(table.errors) == 15
    assert all(error > 3 for error in table.errors)
    assert "###############" in shown(result)


def test_one_wrong_entry_shows_at_its_place_in_the_map() -> None:
    class OneOff(sine(engine)):  # type: ignore[misc]
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            factors = np.ones(40)
            factors[17] = 1.5
            return g * engine.cos(x) * engine.tensor(factors)

    result = checked(OneOff, (tensor(engine, GENERATOR.standard_normal(40)),), shrink=False)
    (table,) = tables_of(result)
    assert [place for place, error in enumerate(table.errors) if error > 3] == [17]


def test_complex_entries_are_complex_numbers() -> None:
    class Square(engine.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return g * (2 * z).conj()

    z = np.array([1 + 2j, 0.5 - 0.75j])
    result = checked(Square, (tensor(engine, z),), order=1)
    assert result.verdict is Verdict.PASSED
    (table,) = tables_of(result)
    for entry in table.entries:
        seed = 1 + 1j
        assert abs(entry.numeric - seed * np.conj(2 * z[entry.index])) < 1e-8 if table.of_ones else True
        assert abs(entry.analytic - entry.numeric) <= 3 * entry.bound + 1e-14


def test_where_ones_show_nothing_other_numbers_are_taken() -> None:
    row = next(row for row in TABLE if row.name == "softmax")
    result = checked(row.build(engine), (tensor(engine, GENERATOR.standard_normal((3, 2))),), order=1)
    (table,) = tables_of(result)
    assert not table.of_ones
    assert max(abs(entry.analytic) for entry in table.entries) > 1e-3
    assert "since ones would hide errors" in shown(result)


def weighted_softplus(ns: Any, slope: float = 1.0) -> type:
    class Weighted(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return w * ns.nn.functional.softplus(x)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w * x.sigmoid() * slope, (g * ns.nn.functional.softplus(x)).sum(1)[:, None]

    return Weighted


@pytest.mark.parametrize("slope", [1.0, 1.25])
def test_a_second_derivative_is_what_torch_gives_for_a_grad_output_of_ones(slope: float) -> None:
    torch = namespace("torch")
    target = weighted_softplus(torch, slope)
    x, w = (tensor(torch, GENERATOR.standard_normal(shape)) for shape in ((2, 3), (2, 1)))
    backend = backend_named("torch")
    subject = backend.bind(target, backend.adopt([x, w]))
    asked = [Evidence(check="higher-order", order=2, verdict=Verdict.PASSED, input="x", output=0)]
    tables = gradient_tables(subject, asked, seed=0)
    ones = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    gradients = torch.autograd.grad(target.apply(x, w), (x, w), ones, create_graph=True)
    seconds = torch.autograd.grad(sum(g.sum() for g in gradients), (x, w, ones))
    assert [table.input for table in tables] == ["arg0", "arg1", "grad_output"]
    for table, second in zip(tables, seconds, strict=True):
        assert table.of_ones
        assert table.at_ones
        for entry in table.entries:
            assert abs(entry.analytic - float(second[entry.index])) < 1e-6
    assert "of the sum of backward's gradients for a grad_output of ones" in next(table_lines(tables, passed=True))[0]


def test_a_second_derivative_that_ones_hide_is_of_other_numbers() -> None:
    row = next(row for row in TABLE if row.name == "softmax")
    result = checked(row.build(engine), (tensor(engine, GENERATOR.standard_normal((3, 2))),))
    second = [table for table in tables_of(result) if table.order == 2]
    assert not any(table.at_ones for table in second)
    assert max(abs(entry.analytic) for entry in second[0].entries) > 1e-3
    assert "backward's gradients for a grad_output of random numbers, since ones would hide" in shown(result)


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_the_runs_of_all_rows_add_up_to_those_of_the_case(factor: float) -> None:
    result = checked(sine(engine, factor), (tensor(engine, [0.3, -1.2]),), shrink=False)
    stages = [stage for _, stage in result.stages]
    assert result.forwards == sum(stage.forward for stage in stages) > 0
    assert result.backwards == sum(stage.backward for stage in stages) > 0
    assert next(iter(result.stages))[0] == "binding"


def test_an_entry_on_a_kink_says_so() -> None:
    row = next(row for row in TABLE if row.name == "relu")
    result = checked(row.build(engine), (tensor(engine, np.array([0.0, 1.5])),), order=1)
    (table,) = tables_of(result)
    assert [entry.why for entry in table.entries] == ["a kink", None]
    assert "a kink" in shown(result)


def test_an_empty_input_beside_another_has_no_table() -> None:
    class Joined(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return engine.cat([2 * x, 3 * y])

        @staticmethod
        def backward(ctx, g):
            return 2 * g[:0], 3 * g

    result = checked(Joined, (tensor(engine, np.zeros(0)), tensor(engine, np.ones(3))), order=1)
    assert {t.input for t in tables_of(result)} == {"y"}


def test_a_million_entries_have_the_largest_and_a_map() -> None:
    x = GENERATOR.standard_normal(1_000_000)
    subject = backend_named("engine").bind(sine(engine), backend_named("engine").adopt([tensor(engine, x)]))
    evidence = [Evidence(check="gradient", verdict=Verdict.PASSED, input="x", output=0, reference="autodiff")]
    (table,) = gradient_tables(subject, evidence, seed=0)
    assert len(table.entries) == LARGEST
    assert all(abs(entry.analytic) > 0.999 for entry in table.entries)
    assert len(table.errors) == 64
    text = [line for line, _ in table_lines([table], passed=True)]
    assert any("1,000,000 entries, 15,625 per mark" in line for line in text)
    assert all(len(line) <= 96 for line, fold in table_lines([table], passed=True) if not fold)


def test_numpy_and_jax_targets_have_tables_too() -> None:
    jax = pytest.importorskip("jax", reason="the JAX backend needs JAX")

    @jax.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * g * x**2,))
    x = GENERATOR.standard_normal(3)
    result = checked(cube, (jax.numpy.asarray(x),), order=1)
    (table,) = tables_of(result)
    assert np.allclose([entry.numeric for entry in table.entries], 3 * x**2, rtol=1e-5)


def test_a_numpy_function_with_its_gradient_has_a_table() -> None:
    x = GENERATOR.standard_normal(3)
    function = gradcli.backends.registry.with_gradient(lambda x: (x**3).sum(), lambda x: 3 * x**2)
    result = checked(function, (x,), order=1)
    (table,) = tables_of(result)
    assert result.verdict is Verdict.PASSED
    assert np.allclose([entry.numeric for entry in table.entries], 3 * x**2, rtol=1e-9)


def test_nothing_is_measured_unless_it_is_asked_for() -> None:
    given = (tensor(engine, GENERATOR.standard_normal(3)),)
    backend = backend_for(sine(engine), given)
    info = backend.describe(sine(engine))
    case = case_of(CheckSpec(target="tests:Target"), Settings(samples=1))
    result = check_object(
        sine(engine), case, supply=supply_from(given, backend, info, case), backends=(backend,), info=info
    )
    assert result.figures is None
    asked = checked(sine(engine), given)
    assert (asked.forwards, asked.backwards) == (result.forwards, result.backwards)
    assert asked.to_dict().keys() == result.to_dict().keys()


def test_the_error_is_told_in_bounds() -> None:
    assert in_bounds(1.0, 1.0, 0.0) == 0.0
    assert in_bounds(2.0, 1.0, 0.5) == 2.0
    assert in_bounds(2.0, 1.0, 0.0) == float("inf")
    entry = GradientEntry(index=(0,), analytic=1.5, numeric=1.0, bound=0.25)
    assert entry.in_bounds == 2.0
    table = GradientTable(
        input="x", order=1, shape=(9,), of_ones=True, references=(), entries=(entry,), entries_total=9,
        errors=(0.1, 2.0, 5.0, float("nan")),
    )  # fmt: skip
    text = "\n".join(line for line, _ in table_lines([table], passed=True))
    assert "·+#?" in text
    assert "3 per mark" in text


HOOKED = """
{head}

def double(grad):
    return grad * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 2)
        self.f.register_full_backward_hook(self.seen)

    def seen(self, module, grad_input, grad_output):
        return None

    def forward(self, x):
        h = self.f(x)
        if h.requires_grad:
            h.register_hook(double)
        return h * 3


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 2)

    def forward(self, x):
        return self.f(x) * 3
"""
HEADS = {
    "engine": "import gradcli.engine as torch\nfrom gradcli.engine import nn\n",
    "torch": "import torch\nfrom torch import nn\n",
}


@pytest.fixture
def hooked(folder: Path) -> Path:
    """The folder of the commands, with the engine's modules in it."""
    (folder / "hooked.py").write_text(HOOKED.format(head=HEADS["engine"]))
    return folder


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["engine", "torch"])
def test_hooks_that_fire_are_shown_as_by_trace(framework: str, gradcli: Run, hooked: Path) -> None:
    namespace(framework)
    (hooked / "hooked.py").write_text(HOOKED.format(head=HEADS[framework]))
    imports = "torch" if framework == "torch" else None
    flags = ("-v", "--order", "1", "--samples", "1", "--only", "gradient")
    told = gradcli("check", "hooked:Net", "hooked:Plain", *flags, imports=imports).stdout.decode()
    traced = gradcli("trace", "hooked:Net", imports=imports).stdout.decode()
    calls = re.compile(r"^\s*\d  (tensor|module-full)  .*?(hooked\.py:\d+)", re.M)
    assert calls.findall(told) == calls.findall(traced) != []
    assert "`double` at hooked.py" in told
    assert told.count("hooks, in the order") == 1
    assert told.index("hooked:Net") < told.index("hooks, in the order") < told.index("hooked:Plain")


def test_the_screen_is_ascii_where_the_encoding_has_no_more(gradcli: Run, hooked: Path) -> None:
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    told = gradcli("check", "hooked:Plain", "-v", environment=environment).stdout.decode("ascii")
    assert "error / bound" in told
    assert "+- " in told


def test_a_replay_shows_the_entries_too_and_only_if_asked(gradcli: Run, hooked: Path) -> None:
    flags = ("--order", "1", "--samples", "1", "--only", "gradient")
    told = gradcli("check", "hooked:Net", *flags).stdout.decode()
    assert "hooks, in the order" not in told
    file = re.search(r"replay=(\S+)", told)
    assert file is not None
    assert b"error / bound" in gradcli("replay", file[1], "-v").stdout
    assert b"error / bound" not in gradcli("replay", file[1]).stdout


def test_tables_survive_the_way_from_a_worker() -> None:
    import pickle

    result = checked(sine(engine), (tensor(engine, GENERATOR.standard_normal((2, 3))),), order=1)
    again = pickle.loads(pickle.dumps(replace(result, arguments=())))
    assert tables_of(again) == tables_of(result)
