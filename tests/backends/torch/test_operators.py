"""Operators of torch.library as targets: the claim is the backward that was registered for them."""

import pytest

import gradcli
from gradcli.backends.null_backend import NullBackend
from gradcli.backends.registry import backend_for, backend_named
from gradcli.checks.battery import run_battery
from gradcli.errors import TargetError
from gradcli.results import judge
from gradcli.runner.planning.functions import functions_in
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="operators are PyTorch's")

PROGRAM = """
import torch
from torch.library import custom_op


@custom_op("gradcli_tests::cube", mutates_args=())
def cube(x: torch.Tensor, k: float) -> torch.Tensor:
    return torch.from_numpy(x.detach().numpy() ** 3 * k)


def cube_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.k = inputs[1]


def cube_backward(ctx, g):
    (x,) = ctx.saved_tensors
    return 3 * ctx.k * x * x * g, None


cube.register_autograd(cube_backward, setup_context=cube_setup)


@custom_op("gradcli_tests::linear", mutates_args=())
def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.t()


def linear_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def linear_backward(ctx, g):
    x, w = ctx.saved_tensors
    return g @ w, 2 * g.t() @ x  # the planted mistake


linear.register_autograd(linear_backward, setup_context=linear_setup)
packet = torch.ops.gradcli_tests.linear
overload = torch.ops.gradcli_tests.linear.default


@custom_op("gradcli_tests::pair", mutates_args=())
def pair(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x * y, x + y


def pair_backward(ctx, first, second):
    x, y = ctx.saved_tensors
    return first * y + second, first * x + second


pair.register_autograd(pair_backward, setup_context=linear_setup)


@custom_op("gradcli_tests::bare", mutates_args=())
def bare(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


torch.library.define("gradcli_tests::old", "(Tensor x, float s=2.0) -> Tensor")


@torch.library.impl("gradcli_tests::old", "CompositeExplicitAutograd")
def old_body(x, s=2.0):
    return x.sin() * s


def old_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def old_backward(ctx, g):
    return g * ctx.saved_tensors[0].cos(), None  # the factor s was forgotten


torch.library.register_autograd("gradcli_tests::old", old_backward, setup_context=old_setup)
old = torch.ops.gradcli_tests.old
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("operators") / "operators.py"
    path.write_text(PROGRAM)
    return path


def line_of(text):
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


@pytest.mark.parametrize("name", ["cube", "pair"])
def test_right_operators_pass(file, name):
    report = gradcli.check(f"{file}:{name}", shrink=False)
    assert report.ok, str(report)
    assert report.cases[0].orders == (1, 2)


@pytest.mark.parametrize(
    ("name", "input", "factor", "line"),
    [
        ("linear", "w", "2", "the planted mistake"),
        ("packet", "w", "2", "the planted mistake"),
        ("overload", "w", "2", "the planted mistake"),
        ("old", "x", "1/2", "the factor s was forgotten"),
    ],
)
def test_planted_mistakes_are_named_and_placed(file, name, input, factor, line):
    (finding,) = gradcli.check(f"{file}:{name}", shrink=False).cases[0].findings
    assert (finding.kind.value, finding.input, finding.factor) == ("wrong-factor", input, factor)
    assert finding.location.line == line_of(line)


def test_the_body_is_a_witness_only_where_it_can_be_differentiated(file):
    backend = backend_named("torch")
    x, y = backend.adopt([torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)])
    assert backend.bind(resolve(f"{file}:pair").object, [x, y]).body_map(1) is not None
    (k,) = backend.adopt([2.5])
    assert backend.bind(resolve(f"{file}:cube").object, [x, k]).body_map(1) is None


def test_the_null_backend_fails(file):
    target = resolve(f"{file}:pair").object
    backend = backend_for(target)
    inputs = backend.adopt([torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)])
    subject = NullBackend(backend).bind(target, inputs)
    assert judge(run_battery(subject, Settings(order=1), seed=0)) is Verdict.FAILED


def test_an_operator_without_a_backward_is_refused(file):
    with pytest.raises(TargetError, match="gradcli_tests::bare has no backward"):
        gradcli.check(f"{file}:bare", shrink=False)


def test_a_file_alone_stands_for_its_operators(file):
    assert [name.rpartition(":")[2] for name in functions_in(str(file))] == ["cube", "linear", "pair"]
