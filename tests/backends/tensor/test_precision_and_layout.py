"""Inputs of lower precisions, and sparse ones: right Functions pass, mistakes are named, the unseen is said."""

import numpy as np
import pytest

import gradcli
from gradcli.errors import UsageError
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_input
from gradcli.runner.case import run_case
from gradcli.runner.planning.gather import gather
from gradcli.runner.planning.plan import plan
from gradcli.runner.store.failures import load
from gradcli.runner.store.replay import replay
from gradcli.settings import Settings
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="half precision and sparse tensors are PyTorch's")
LOW = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "complex64": torch.complex64}


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x.conj() * g


class ForgetsInLow(Square):
    """Right in 64 bits, wrong in every other precision."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (2 if x.dtype in (torch.float64, torch.complex128) else 3) * x.conj() * g


class Insists(Square):
    @staticmethod
    def forward(ctx, x):
        if x.dtype is torch.float64:
            raise TypeError("expected float32")
        ctx.save_for_backward(x)
        return x * x


class InsistsAndErrs(Insists):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.02 * x * g


@pytest.mark.parametrize("dtype", LOW)
def test_lower_precisions_are_judged_in_64_bits_and_compared_in_their_own(dtype):
    report = gradcli.check(Square, dtype=dtype, shrink=False)
    assert report.ok, str(report)
    case = report.cases[0]
    assert case.resolution < 1e-10
    assert any(f"the input is {dtype}: the gradient was checked in float64" in note for note in case.notes)


@pytest.mark.parametrize("dtype", LOW)
def test_a_mistake_in_the_lower_precision_alone_is_named(dtype):
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    given = gradcli.check(ForgetsInLow, (x,), shrink=False)
    assert given.ok
    assert "because the source compares a dtype" in str(given)
    case = gradcli.check(ForgetsInLow, dtype=dtype, shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert {f.kind.value for f in case.findings} == {"low-precision"}


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_tensors_saved_in_eight_bits_are_looked_at(dtype):
    def scaled(factor):
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x.to(dtype), w)
                return x * w

            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                return factor * g * w, g * x.to(g.dtype)

        return Scaled

    x, w = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([0.7, 1.3, -0.4])
    for factor, verdict in ((1, Verdict.PASSED), (1.01, Verdict.FAILED)):
        inputs = (x.double().requires_grad_(), w.double())
        assert gradcli.check(scaled(factor), inputs, order=1, shrink=False).verdict is verdict


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_the_callers_own_tensor_keeps_its_precision(name):
    x = torch.randn(3, 4).to(LOW[name]).requires_grad_()
    case = gradcli.check(ForgetsInLow, (x,), shrink=False).cases[0]
    assert [f.kind.value for f in case.findings] == ["low-precision"]
    assert case.inputs[0].dtype == name


def test_a_forward_that_refuses_64_bits_is_judged_in_its_own_precision():
    report = gradcli.check(Insists, dtype="float32", order=1, shrink=False)
    assert report.ok, str(report)
    assert 1e-8 < report.cases[0].resolution < 1e-3
    assert any(
        "does not run in float64, so the gradients were checked in float32" in note for note in report.cases[0].notes
    )
    wrong = gradcli.check(InsistsAndErrs, dtype="float32", order=1, shrink=False).cases[0]
    assert [f.kind.value for f in wrong.findings] == ["wrong-factor"]


def with_backward_in_low_precision_only(factor):
    class OnlyInLow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sigmoid()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            code = {torch.float32: torch.float32, torch.bfloat16: torch.float32}[x.dtype]
            y = x.to(code).sigmoid()
            return (factor * g * y * (1 - y)).to(x.dtype)

    return OnlyInLow


def test_a_backward_that_refuses_64_bits_is_judged_in_the_precision_given():
    report = gradcli.check(with_backward_in_low_precision_only(1.0), dtype="float32", order=1, shrink=False)
    assert report.ok, str(report)
    assert 1e-8 < report.cases[0].resolution < 1e-2
    assert any(
        "does not run in float64, so the gradients were checked in float32" in note for note in report.cases[0].notes
    )
    wrong = gradcli.check(with_backward_in_low_precision_only(1.5), dtype="float32", order=1, shrink=False).cases[0]
    assert [f.kind.value for f in wrong.findings] == ["wrong-factor"]
    refused = gradcli.check(with_backward_in_low_precision_only(1.0), order=1, shrink=False).cases[0]
    assert refused.verdict is Verdict.ERROR
    assert "backward raised KeyError: torch.float64" in refused.error


SPARSE = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, x):
        ctx.save_for_backward(a, x)
        return a @ x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        whole = g @ x.t()
        return (whole.sparse_mask(a.coalesce()) if a.layout is torch.sparse_coo else whole), a.to_dense().t() @ g


class Twice(Product):
    @staticmethod
    def backward(ctx, g):
        of_a, of_x = Product.backward(ctx, g)
        return 2 * of_a, of_x


class OneRow(Product):
    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        whole = g @ x.t()
        whole[2] *= 3
        return whole, a.to_dense().t() @ g


def own(a, x):
    return torch.sparse.mm(a, x) * 2


def sparse_output(a):
    return a * 2
"""


@pytest.fixture
def sparse(tmp_path, monkeypatch):
    path = tmp_path / "sparse.py"
    path.write_text(SPARSE)
    monkeypatch.chdir(tmp_path)
    return path


def case_of(path, name, layout, **options):
    inputs = {"a": {"shape": [3, 4], "layout": layout}}
    if name != "sparse_output":
        inputs["x"] = {"shape": [4, 2]}
    return gradcli.check(f"{path.name}:{name}", inputs, **options, shrink=False).cases[
        0
    ]  # the seed comes from the target's name


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", ["Product", "own", "sparse_output"])
def test_right_functions_of_sparse_inputs_pass(sparse, name, layout):
    case = case_of(sparse, name, layout)
    assert case.verdict is Verdict.PASSED, case.notes
    assert case.orders == (1,)
    assert any("input is sparse" in str(e.note) for e in case.evidence if e.verdict is Verdict.SKIPPED)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_mistakes_for_sparse_inputs_are_named(sparse, layout):
    (finding,) = case_of(sparse, "Twice", layout).findings
    assert (finding.kind.value, finding.input, finding.factor) == ("wrong-factor", "a", "2")
    (finding,) = case_of(sparse, "OneRow", layout).findings
    assert (finding.kind.value, finding.input) == ("wrong-entries", "a")


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")  # the first time in a process
def test_a_callers_sparse_tensors_are_taken_apart(sparse):
    from gradcli.spec.resolve import resolve

    a = torch.tensor([[0.0, 2.0], [3.0, 0.0]], dtype=torch.float64).to_sparse().requires_grad_()
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    product, twice = (resolve(f"{sparse}:{name}").object for name in ("Product", "Twice"))
    assert gradcli.check(product, (a, x), shrink=False).ok
    assert not gradcli.check(twice, (a, x), shrink=False).ok
    with pytest.raises(UsageError, match="COO or CSR layout without dense dimensions, got sparse_csc"):
        gradcli.check(product, (a.detach().to_sparse_csc(), x), shrink=False)


def test_a_sparse_failure_is_replayed(sparse):
    flags = [parse_input("a=3x4,layout=coo"), parse_input("x=4x2")]
    (case,) = plan(gather([f"{sparse}:Twice"], flags), Settings(order=1))
    run_case(case, failures=sparse.parent)
    failure = load(next(sparse.parent.glob("Twice-*.json")))
    assert failure.arguments[0].sparsity is not None
    assert replay(failure).verdict is Verdict.FAILED


def test_the_entries_are_those_of_the_pattern():
    (argument,) = build([parse_input("a=3x4,layout=csr")], seed=3)
    dense = argument.sparsity.dense(argument.value)
    assert argument.shape == dense.shape == (3, 4)
    assert np.array_equal(argument.sparsity.entries_of(dense), argument.value)
    assert 0 < argument.value.size < 12
    (given,) = build([parse_input("a=2x2,value=[[0.0,1.5],[0.0,2.0]],layout=coo")], seed=0)
    assert given.sparsity.indices == ((0, 1), (1, 1))


def test_other_frameworks_and_layouts_refuse():
    with pytest.raises(UsageError, match="expected one of coo, csr"):
        parse_input("a=3x4,layout=bsr")
    with pytest.raises(UsageError, match="the numpy backend takes dense inputs only"):
        gradcli.check(np.sum, {"a": {"shape": [3], "layout": "coo"}}, grad=np.ones_like, shrink=False)
    with pytest.raises(UsageError, match="the engine backend has no sparse tensors"):
        gradcli.check("gradcli.examples.cube:Cube", {"x": {"shape": [3], "layout": "coo"}}, shrink=False)


@pytest.mark.parametrize("turned", [False, True], ids=["right", "wrong"])
def test_a_sparse_gradient_of_a_dense_input_is_taken_in_every_layout(turned):
    class LookedUp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight, index):
            ctx.save_for_backward(index)
            ctx.shape = weight.shape
            return weight[index]

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad_output):
            (index,) = ctx.saved_tensors
            places = index.flip(0) if turned else index
            return torch.sparse_coo_tensor(places[None], grad_output, ctx.shape, check_invariants=True), None

    weight = torch.tensor([[0.5, -1.0], [2.0, 0.25], [1.5, 0.75]], dtype=torch.float64, requires_grad=True)
    report = gradcli.check(LookedUp, (weight, torch.tensor([0, 2, 2, 1])), shrink=False)
    assert report.verdict is (Verdict.FAILED if turned else Verdict.PASSED), str(report)


class TanhInSingle(torch.autograd.Function):
    """Saves its output where the input is float32, and a copy that is in no graph where it is anything else."""

    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x.to(torch.float32))
        ctx.save_for_backward(y)
        return y.to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return (g.to(torch.float32) * (1 - y * y)).to(g.dtype)


class DetachedInSingle(TanhInSingle):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return (g.to(torch.float32) * (1 - y * y.detach())).to(g.dtype)


@pytest.mark.parametrize(
    ("made", "dtype", "verdict"),
    [
        (TanhInSingle, torch.float32, Verdict.PASSED),
        (TanhInSingle, torch.float16, Verdict.FAILED),
        (TanhInSingle, torch.float64, Verdict.FAILED),
        (DetachedInSingle, torch.float32, Verdict.FAILED),
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_a_second_order_that_only_64_bits_cut_is_judged_as_given(made, dtype, verdict):
    x = torch.linspace(-1.1, 1.3, 6).to(dtype).requires_grad_()
    report = gradcli.check(made, (x,), samples=1, only=("gradient", "higher-order"), shrink=False)
    assert report.verdict is verdict, str(report)
    noted = any("is right in float32" in note for note in report.cases[0].notes)
    assert noted == (verdict is Verdict.PASSED)


def branching(of_half, of_others):
    """The square, with a branch of backward for half precision."""

    class Branching(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if x.dtype == torch.float16:
                return g * (of_half * x)
            return g * (of_others * x)

    return Branching


@pytest.mark.parametrize(("of_half", "of_others", "line"), [(3, 2, 6), (2, 3, 7), (2, 2, None)])
def test_the_line_of_a_mistake_in_a_branch_for_a_precision_is_one_that_ran(of_half, of_others, line):
    made = branching(of_half, of_others)
    findings = gradcli.check(made, shrink=False).cases[0].findings
    first = made.backward.__code__.co_firstlineno
    assert [f.location.line - first + 2 for f in findings if f.input == "x"][:1] == ([] if line is None else [line])
