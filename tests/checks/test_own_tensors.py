"""Inputs that forward reaches by another way than its arguments: moved in place, judged as they are, and put back."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict

X, W, B = [[0.5, -1.25, 0.75], [1.5, 0.25, -0.5]], [[0.3, -0.7, 1.1], [0.9, 0.4, -0.2]], [0.1, -0.6]
FACTOR = {"right": 1.0, "wrong": 1.5}
GLOBAL: dict[str, Any] = {}


def leaf(ns, value):
    return ns.tensor(value, dtype=ns.float64, requires_grad=True)


def affine(x, w, b):
    return x.mm(w.t()).tanh() + b


def gradients(x, w, g, factor):
    """Of `affine` by x, w and b; `factor` is the mistake."""
    s = g * (1 - x.mm(w.t()).tanh() ** 2)
    return s.mm(w), factor * s.t().mm(x), g.sum(0)


def linear(ns):
    layer = ns.nn.Linear(3, 2).double()
    with ns.no_grad():
        layer.weight.copy_(ns.tensor(W, dtype=ns.float64))
        layer.bias.copy_(ns.tensor(B, dtype=ns.float64))
    return layer


def module_and_parameters(ns, factor):
    class OfModule(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, module, *parameters):
            ctx.save_for_backward(x, *parameters)
            return affine(x, module.weight, module.bias)

        @staticmethod
        def backward(ctx, g):
            x, w, _ = ctx.saved_tensors
            by_x, by_w, by_b = gradients(x, w, g, factor)
            return by_x, None, by_w, by_b

    module = linear(ns)
    return OfModule, (leaf(ns, X), module, *module.parameters())


def of_three(ns, read, factor):
    """A Function of x, w and b that takes w and b from elsewhere."""

    class OfThree(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b):
            ctx.save_for_backward(x, w)
            return affine(x, *read())

        @staticmethod
        def backward(ctx, g):
            return gradients(*ctx.saved_tensors, g, factor)

    return OfThree


def closure(ns, factor):
    w, b = leaf(ns, W), leaf(ns, B)
    return of_three(ns, lambda: (w, b), factor), (leaf(ns, X), w, b)


def globally(ns, factor):
    GLOBAL["w"], GLOBAL["b"] = leaf(ns, W), leaf(ns, B)
    return of_three(ns, lambda: (GLOBAL["w"], GLOBAL["b"]), factor), (leaf(ns, X), GLOBAL["w"], GLOBAL["b"])


def on_an_object(ns, factor):
    layer = SimpleNamespace(w=leaf(ns, W), inner=SimpleNamespace(b=leaf(ns, B)))
    return of_three(ns, lambda: (layer.w, layer.inner.b), factor), (leaf(ns, X), layer.w, layer.inner.b)


@dataclass
class Config:
    """Tensors of a layer."""

    w: Any
    b: Any


def with_config(ns, factor):
    class OfConfig(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, config, w, b):
            ctx.save_for_backward(x, w)
            return affine(x, config.w, config.b)

        @staticmethod
        def backward(ctx, g):
            by_x, by_w, by_b = gradients(*ctx.saved_tensors, g, factor)
            return by_x, None, by_w, by_b

    config = Config(leaf(ns, W), leaf(ns, B))
    return OfConfig, (leaf(ns, X), config, config.w, config.b)


def callable_with_config(ns, factor):
    function, given = with_config(ns, factor)
    return (lambda x, config, w, b: function.apply(x, config, w, b)), given


def shared_list(ns, factor):
    class OfList(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, tensors, *same):
            ctx.save_for_backward(x, *same)
            return affine(x, *tensors)

        @staticmethod
        def backward(ctx, g):
            x, w, _ = ctx.saved_tensors
            by_x, by_w, by_b = gradients(x, w, g, factor)
            return by_x, None, by_w, by_b

    tensors = [leaf(ns, W), leaf(ns, B)]
    return OfList, (leaf(ns, X), tensors, *tensors)


def views_of_one(ns, factor):
    class OfFlat(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, views, flat):
            ctx.save_for_backward(x, flat)
            return affine(x, *views)

        @staticmethod
        def backward(ctx, g):
            x, flat = ctx.saved_tensors
            by_x, by_w, by_b = gradients(x, flat[:6].reshape(2, 3), g, factor)
            return by_x, None, ns.cat([by_w.reshape(-1), by_b])

    flat = leaf(ns, [*W[0], *W[1], *B])
    data = flat.detach()
    return OfFlat, (leaf(ns, X), (data[:6].reshape(2, 3), data[6:]), flat)


def checkpoint(ns, factor):
    class Checkpoint(ns.autograd.Function):
        @staticmethod
        def forward(ctx, run, length, *given):
            ctx.run, ctx.length, ctx.given = run, length, given
            with ns.no_grad():
                return run(*given[:length])

        @staticmethod
        def backward(ctx, g):
            inputs = [value.detach().requires_grad_() for value in ctx.given[: ctx.length]]
            with ns.enable_grad():
                out = ctx.run(*inputs)
            found = ns.autograd.grad(out, [*inputs, *ctx.given[ctx.length :]], g, allow_unused=True)
            return (None, None, *[f * factor for f in found])

    w, b = leaf(ns, W), leaf(ns, B)
    return Checkpoint, (lambda x: affine(x, w, b), 1, leaf(ns, X), w, b)


def module_with_buffer(ns, factor):
    class OfModule(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, module, shift, weight):
            ctx.save_for_backward(x, weight)
            return affine(x, module.weight, module.shift)

        @staticmethod
        def backward(ctx, g):
            by_x, by_w, _ = gradients(*ctx.saved_tensors, g, factor)
            return by_x, None, None, by_w

    module = linear(ns)
    module.register_buffer("shift", ns.tensor(B, dtype=ns.float64))
    return OfModule, (leaf(ns, X), module, module.shift, module.weight)


def backward_alone(ns, factor):
    class Recomputed(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, module, w, b):
            ctx.save_for_backward(x)
            ctx.module = module
            return affine(x, w, b)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            by_x, by_w, by_b = gradients(x, ctx.module.weight, g, factor)
            return by_x, None, by_w, by_b

    module = linear(ns)
    return Recomputed, (leaf(ns, X), module, *module.parameters())


KINDS = {
    "a module and its parameters": module_and_parameters,
    "a closure": closure,
    "a global": globally,
    "an object": on_an_object,
    "a dataclass": with_config,
    "a dataclass of a callable": callable_with_config,
    "a shared list": shared_list,
    "views of one tensor": views_of_one,
    "a checkpoint": checkpoint,
    "a module with a buffer": module_with_buffer,
    "a module read in backward": backward_alone,
}


def tensors_of(ns, given):
    return [value for value in given if ns.is_tensor(value)]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("twin", FACTOR)
def test_what_forward_reads_elsewhere_is_moved_there_and_put_back(backend, ns, kind, twin):
    target, given = KINDS[kind](ns, FACTOR[twin])
    tensors = tensors_of(ns, given)
    before = [np.array(t.detach().numpy()) for t in tensors]
    report = gradcli.check(
        target, given, order=1 if kind == "a checkpoint" else 2, shrink=False
    )  # it detaches, as checkpoints do
    assert report.verdict is (Verdict.PASSED if twin == "right" else Verdict.FAILED), str(report)
    for tensor, values in zip(tensors, before, strict=True):
        np.testing.assert_array_equal(tensor.detach().numpy(), values)
        assert tensor.grad is None
    if twin == "right":
        assert any("in place for the check and restored them" in note for note in report.cases[0].notes)
    else:
        assert {finding.order for finding in report.cases[0].findings} == {1}


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_an_expanded_tensor_is_checked_with_copies(backend, ns, factor):
    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return factor * 2 * x * g

    expanded = ns.tensor([1.5, -0.5], dtype=ns.float64).expand(3, 2).detach().requires_grad_(True)
    report = gradcli.check(Square, (expanded,), shrink=False)
    assert report.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED), str(report)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a shared list"])  # its gradcheck takes no lists
def test_pytorch_says_the_same(kind):
    torch = pytest.importorskip("torch", reason="the comparison needs PyTorch")
    for twin, factor in FACTOR.items():
        target, given = KINDS[kind](torch, factor)
        function = target.apply if isinstance(target, type) else target
        assert torch.autograd.gradcheck(function, given, raise_exception=False) is (twin == "right")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["a module and its parameters", "a closure", "a checkpoint"])
def test_gradcheck_with_our_bounds_says_the_same(backend, ns, kind):
    for twin, factor in FACTOR.items():
        target, given = KINDS[kind](ns, factor)
        assert gradcli.gradcheck(target.apply, given, raise_exception=False) is (twin == "right")


def test_tensors_are_put_back_where_forward_raises_half_way(backend, ns):
    w = leaf(ns, W)
    calls = []

    class Failing(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, same):
            calls.append(1)
            if len(calls) > 9:
                raise ValueError("no more")
            ctx.save_for_backward(x)
            return x.mm(w.t())

        @staticmethod
        def backward(ctx, g):
            return g.mm(w), g.t().mm(ctx.saved_tensors[0])

    report = gradcli.check(Failing, (leaf(ns, X), w), shrink=False)
    assert report.verdict is not Verdict.PASSED
    np.testing.assert_array_equal(w.detach().numpy(), W)


def test_what_forward_takes_from_its_arguments_is_copied(backend, ns):
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, g * x

    (case,) = gradcli.check(Product, (leaf(ns, X), leaf(ns, W)), shrink=False).cases
    assert case.verdict is Verdict.PASSED
    assert not any("moved in place" in note for note in case.notes)


def test_a_gradient_of_another_shape_is_no_reason_to_move_the_callers_tensors(backend, ns):
    class Exchanged(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, g):
            x, _ = ctx.saved_tensors
            return x.T @ g, None

    x, w = (leaf(ns, np.random.default_rng(1).standard_normal(shape)) for shape in ((3, 4), (4, 5)))
    (case,) = gradcli.check(Exchanged, (x, w), order=1, shrink=False).cases
    assert {(finding.kind.value, finding.input) for finding in case.findings} == {
        ("swapped-gradients", "x"),
        ("swapped-gradients", "w"),
    }
    assert not any("from elsewhere than its arguments" in note for note in case.notes)


def test_an_input_that_backward_changes_is_not_said_to_be_changed_by_forward():
    torch = pytest.importorskip("torch", reason="the Function is one of PyTorch")

    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            found = 2 * x * g
            x.data[0] = 0.25
            return found

    given = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    messages = [f.message for f in gradcli.check(Writes, (given,), order=1).cases[0].findings]
    assert any("backward changes the input" in message for message in messages)
    assert not any("by forward" in message for message in messages)
