"""What the source of backward says of the arguments: which of them have a gradient."""

from typing import Any

import pytest

import gradcli
from gradcli.cases import CheckSpec
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.reading import read_hints
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.targets import TargetInfo
from gradcli.verdict import Verdict


def in_a_tuple(ctx: Any, g: Any) -> Any:
    return g, None


def by_name(ctx: Any, g: Any) -> Any:
    grads = 2 * g, 3 * g
    return grads  # noqa: RET504 - by name


def computed(ctx: Any, g: Any) -> Any:
    return tuple(g * n for n in range(2))


@pytest.mark.parametrize(
    ("backward", "has"), [(in_a_tuple, (True, False)), (by_name, (True, True)), (computed, (None, None))]
)
def test_which_arguments_have_a_gradient(backward: Any, has: tuple[bool | None, ...]) -> None:
    hints = read_hints(
        TargetInfo(name="f", backend="torch", parameters=(), forward=None, backward=backward), ["x", "p"]
    )
    assert tuple(hints.gradient_of(position) for position in (0, 1)) == has


@pytest.mark.parametrize("factor", [1, 1.001])
def test_an_argument_whose_gradient_is_returned_by_name_is_no_constant_in_jax(factor: float) -> None:
    """`p` stands for a whole number elsewhere; JAX would drop the gradient of a number."""
    jax = pytest.importorskip("jax", reason="the jax backend needs JAX")
    target = jax.custom_vjp(lambda x, p: x * p)

    def backward(kept, g):
        x, p = kept
        grads = (g * p, factor * (g * x).sum())
        return grads  # noqa: RET504 - by name

    target.defvjp(lambda *tensors: (target(*tensors), tensors), backward)
    result = check_object(
        target, case_of(CheckSpec(target="module:Target"), Settings(order=1, samples=1, shrink=False))
    )
    assert [spec.kind for spec in result.inputs] == ["tensor", "tensor"]
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


class Dequantised(Function):
    """x times a table of integers, each row with its own scale."""

    @staticmethod
    def forward(ctx, x, qweight, scale):
        ctx.save_for_backward(x, qweight, scale)
        return x.mm((qweight.to(x.dtype) * scale[:, None]).t())

    @staticmethod
    def backward(ctx, g):
        x, qweight, scale = ctx.saved_tensors
        table = qweight.to(x.dtype)
        return g.mm(table * scale[:, None]), None, (g.t().mm(x) * table).sum(1)


class WithoutScale(Dequantised):
    @staticmethod
    def backward(ctx, g):
        x, qweight, _ = ctx.saved_tensors
        table = qweight.to(x.dtype)
        return g.mm(table), None, (g.t().mm(x) * table).sum(1)


class InMixedPrecision(Function):
    """Backward forgets the weight, which forward brings to the input's precision."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.mm(weight.to(x.dtype))

    @staticmethod
    def backward(ctx, g):
        _, weight = ctx.saved_tensors
        return g.mm(weight.t()), None


def test_what_forward_converts_and_backward_has_no_gradient_for_is_a_table_of_integers() -> None:
    case = gradcli.check(Dequantised, shrink=False).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [spec.domain for spec in case.inputs] == ["normal", "indices", "normal"]
    assert any("give these inputs if every tensor should get a gradient" in note for note in case.notes)


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [(WithoutScale, "wrong-factor", "x"), (InMixedPrecision, "missing-gradient", "weight")],
)
def test_a_wrong_or_forgotten_gradient_beside_a_conversion_fails(target: type[Function], kind: str, name: str) -> None:
    case = gradcli.check(target, shrink=False).cases[0]
    assert (kind, name) in [(finding.kind.value, finding.input) for finding in case.findings]


@pytest.mark.parametrize(
    ("forward", "gradients", "name", "is_table"),
    [
        ("q.to(x.dtype)", (True, False), "q", True),
        ("q.type_as(x)", (True, False), "q", True),
        ("q.astype(x.dtype)", (True, False), "q", True),
        ("q.to(x.dtype) + zero.to(x.dtype)", (True, False, False), "q", True),
        ("q.to(x.dtype) + zero.to(x.dtype)", (True, False, True), "q", False),
        ("q.to(x.dtype)", (True, True), "q", False),
        ("q.to(x.dtype)", (True, None), "q", False),
        ("weight.to(x.dtype)", (True, False), "weight", False),
        ("q.to(torch.float32)", (True, False), "q", False),
        ("q.to(q.dtype)", (True, False), "q", False),
        ("seq.to(x.dtype)", (True, False), "q", False),
    ],
)
def test_which_arguments_are_tables(
    forward: str, gradients: tuple[bool | None, ...], name: str, is_table: bool
) -> None:
    hints = SourceHints(forward=forward, backward="", gradients=gradients)
    assert hints.is_table(name, ["x", name, "zero"][: len(gradients)]) is is_table


def test_hints_that_were_read_are_given_for_the_same_functions_and_names_alone() -> None:
    info = TargetInfo(name="f", backend="torch", parameters=(), forward=None, backward=in_a_tuple)
    first = read_hints(info, ["x", "p"])
    assert read_hints(info, ["x", "p"]) is first
    other = TargetInfo(name="f", backend="torch", parameters=(), forward=None, backward=computed)
    assert read_hints(other, ["x", "p"]).gradients == (None, None)
    assert read_hints(info, ["x", "p", "q"]).gradients == (True, False, None)
    said = TargetInfo(
        name="f", backend="torch", parameters=(), forward=None, backward=in_a_tuple, documentation="p: (N,) labels"
    )
    assert read_hints(said, ["x", "p"]).documented != first.documented


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("return eps * ((x - y) / eps).exp()", "tau"),
        ("ctx.eps = eps\n    return (-x / eps).softmax(1)", "tau"),
        ("return x / (x.norm() + eps)", "eps"),
        ("return x / x.norm().clamp(min=eps)", "eps"),
        ("return x / (x.norm() + eps * y)", "eps"),
        ("return (f(x + eps) - f(x)) / eps", "eps"),
        ("return x.clamp(max=1 / eps)", "eps"),
        ("return solve(x / eps, eps)", "eps"),
    ],
)
def test_what_a_small_number_is_for(body: str, word: str) -> None:
    hints = SourceHints(forward=f"def forward(ctx, x, y, eps):\n    {body}", backward="", gradients=())
    assert hints.meant_by("eps", "eps") == word


def smoothed(ns: Any, *, is_hard: bool) -> Any:
    class Smoothed(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, eps: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.eps = eps
            return x * ns.sigmoid(x / eps)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            s = ns.sigmoid(x / ctx.eps)
            return g * (s if is_hard else s + x / ctx.eps * s * (1 - s)), None

    return Smoothed


@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.usefixtures("unexplained")
def test_a_width_that_is_called_eps_is_not_small(ns: Any, is_hard: bool) -> None:
    """At a width of 1e-5 the limit of the gradient is right."""
    (case,) = gradcli.check(smoothed(ns, is_hard=is_hard), order=1, samples=1, shrink=False, only=("gradient",)).cases
    assert [spec.value for spec in case.inputs[1:]] == [0.7]
    assert case.verdict is (Verdict.FAILED if is_hard else Verdict.PASSED)


@pytest.mark.parametrize(
    ("line", "axes"),
    [
        ("rows, columns = x.shape", {2}),
        ("if p: (b, c, d) = x.size()", {3}),
        ("return pooled(x, p, 1, groups=x.shape[1])", set()),
        ("return filled(p, 1, size=x.shape)", set()),
    ],
)
def test_a_shape_is_unpacked_by_a_statement_and_not_by_an_argument(line: str, axes: set[int]) -> None:
    hints = SourceHints(forward=f"def forward(ctx, x, p):\n    {line}\n", backward="", gradients=())
    assert hints.rank_bonuses("x", first=False).keys() == axes
