"""A Function's own jvp and its rule for vmap: right ones pass, planted mistakes are named and placed."""

import inspect

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="forward mode and vmap of Functions are PyTorch's")


def product(ns):
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x * w, x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            x, w = ctx.saved_tensors
            return g * w + h * x.cos(), g * x

        @staticmethod
        def jvp(ctx, dx, dw):
            x, w = ctx.saved_tensors
            return dx * w + x * dw, dx * x.cos()

    return Product


def with_jvp(ns, rule):
    class Spoilt(product(ns)):
        jvp = staticmethod(rule)

    return Spoilt


def forgets_a_term(ctx, dx, dw):
    x, w = ctx.saved_tensors
    return dx * w, dx * x.cos()


def slightly_off(ctx, dx, dw):
    x, w = ctx.saved_tensors
    return dx * w + x * dw, dx * x.cos() * (1 + 1e-5)


def zeros_for_one(ctx, dx, dw):
    x, w = ctx.saved_tensors
    return dx * w + x * dw, 0 * dx


def test_a_right_jvp_passes(ns):
    case = gradcli.check(product(ns), {"x": {"shape": [3, 4]}, "w": {"shape": [3, 4]}}, order=1, shrink=False).cases[0]
    assert case.verdict is Verdict.PASSED, case.findings
    assert [e.verdict for e in case.evidence if e.check == "forward-mode"] == [Verdict.PASSED]


@pytest.mark.parametrize(
    ("rule", "input"),
    [(forgets_a_term, "w"), (slightly_off, "x"), (zeros_for_one, "x")],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_wrong_jvp_is_named_and_placed(ns, rule, input):
    case = gradcli.check(
        with_jvp(ns, rule), {"x": {"shape": [3, 4]}, "w": {"shape": [3, 4]}}, order=1, shrink=False
    ).cases[0]
    assert case.verdict is Verdict.FAILED
    (finding,) = case.findings
    assert (finding.kind, finding.input) == (FindingKind.JVP_MISMATCH, input)
    first = inspect.getsourcelines(rule)[1]
    assert first <= finding.location.line <= first + 2


def test_a_jvp_with_many_outputs_is_compared_along_directions():
    inputs = {"x": {"shape": [20, 30]}, "w": {"shape": [20, 30]}}
    assert gradcli.check(product(torch), inputs, order=1, samples=1).ok
    case = gradcli.check(with_jvp(torch, slightly_off), inputs, order=1, samples=1, shrink=False).cases[0]
    assert [f.kind for f in case.findings] == [FindingKind.JVP_MISMATCH]


class Rows(torch.autograd.Function):
    """Softmax over the last axis, with a rule for vmap that PyTorch makes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, scale):
        return (x * scale).softmax(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], inputs[1], output)

    @staticmethod
    def backward(ctx, g):
        x, scale, y = ctx.saved_tensors
        inner = y * (g - (g * y).sum(-1, keepdim=True))
        return inner * scale, (inner * x).sum()


class ByHand(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return x.cumsum(0) * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w).flip(0).cumsum(0).flip(0), (g * x.cumsum(0)).sum()

    @staticmethod
    def vmap(info, in_dims, x, w):
        x = x.movedim(in_dims[0], 0) if in_dims[0] is not None else x.expand(info.batch_size, *x.shape)
        w = w.movedim(in_dims[1], 0) if in_dims[1] is not None else w.expand(info.batch_size)
        return torch.stack([ByHand.apply(a, b) for a, b in zip(x, w, strict=True)]), 0


class ForgetsTheBatch(ByHand):
    @staticmethod
    def vmap(info, in_dims, x, w):
        if in_dims[0] is None or in_dims[1] is None:
            return ByHand.vmap(info, in_dims, x, w)
        x, w = x.movedim(in_dims[0], 0), w.movedim(in_dims[1], 0)
        return x.cumsum(0) * w.reshape(-1, *[1] * (x.dim() - 1)), 0  # sums over the batch


class WrongAlone(ByHand):
    """Wrong only where one input has a batch and the other has none."""

    @staticmethod
    def vmap(info, in_dims, x, w):
        outputs, place = ByHand.vmap(info, in_dims, x, w)
        return (outputs * 1.001 if in_dims[1] is None else outputs), place


@pytest.mark.parametrize("function", [Rows, ByHand])
def test_right_rules_for_vmap_pass(function):
    inputs = {next(iter(inspect.signature(function.forward).parameters)): {"shape": [3, 4]}}
    inputs["scale" if function is Rows else "w"] = {"shape": []}
    case = gradcli.check(function, inputs, order=1, shrink=False).cases[0]
    assert case.verdict is Verdict.PASSED, case.findings
    assert [e.verdict for e in case.evidence if e.check == "batching"] == [Verdict.PASSED]


@pytest.mark.parametrize("function", [ForgetsTheBatch, WrongAlone])
def test_wrong_rules_for_vmap_are_named_and_placed(function):
    case = gradcli.check(function, {"x": {"shape": [3, 4]}, "w": {"shape": []}}, order=1, shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert [f.kind for f in case.findings] == [FindingKind.VMAP_MISMATCH]
    lines, first = inspect.getsourcelines(function.vmap)
    assert case.findings[0].location.line == first + len(lines) - 1


class RefusesTheLastAxis(ByHand):
    @staticmethod
    def vmap(info, in_dims, x, w):
        if in_dims[0] not in (0, None):
            raise NotImplementedError("the batch has to be in front")
        return ByHand.vmap(info, in_dims, x, w)


class RefusesAndIsWrongAlone(ByHand):
    @staticmethod
    def vmap(info, in_dims, x, w):
        outputs, place = RefusesTheLastAxis.vmap(info, in_dims, x, w)
        return (outputs * 1.001 if in_dims[1] is None else outputs), place


def test_what_a_rule_for_vmap_refuses_is_a_note() -> None:
    inputs = {"x": {"shape": [3, 4]}, "w": {"shape": []}}
    right, wrong = (
        gradcli.check(function, inputs, order=1, shrink=False).cases[0]
        for function in (RefusesTheLastAxis, RefusesAndIsWrongAlone)
    )
    assert right.verdict is Verdict.PASSED
    (note,) = (e.note for e in right.evidence if e.check == "batching")
    assert "the batch has to be in front" in note
    assert [f.kind for f in wrong.findings] == [FindingKind.VMAP_MISMATCH]
