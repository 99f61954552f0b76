"""A gradient that backward returned keeps its values in later backward passes, whatever memory backward uses again."""

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.frameworks import examined, tensor

X = tensor("x", [[0.6, -1.2, 0.9, -1.7], [0.3, 2.2, -0.4, 1.1], [-0.8, 1.3, -0.5, 0.7]])
Y = tensor("y", [[1.6, -0.2, 0.4, 1.7], [0.9, -2.2, 0.7, 1.3], [0.8, 1.1, -1.5, -0.6]])


def into(ns, gradient, buffers):
    """The gradient in a buffer of its shape, made when it is first needed."""
    buffer = buffers.setdefault(tuple(gradient.shape), ns.empty_like(gradient))
    with ns.no_grad():
        buffer.copy_(gradient.detach())
    return buffer


def fresh(ns, ctx, gradient, buffers):
    return gradient


def shared(ns, ctx, gradient, buffers):
    return into(ns, gradient, buffers)


def view(ns, ctx, gradient, buffers):
    return into(ns, gradient, buffers)[...]


def on_ctx(ns, ctx, gradient, buffers):
    if not hasattr(ctx, "buffers"):
        ctx.buffers = {}
    return into(ns, gradient, ctx.buffers)


def copied(ns, ctx, gradient, buffers):
    return into(ns, gradient, buffers).clone()


MANNERS = {"new": fresh, "copied": copied, "shared": shared, "a view": view, "on ctx": on_ctx}
RIGHT = ("new", "copied")


def product(ns, manner, sign=1):
    """x y, whose gradient of x is returned in a manner; both gradients are wrong for another sign."""
    returned, buffers = MANNERS[manner], {}

    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return returned(ns, ctx, sign * g * y, buffers), sign * g * x

    return Product


@pytest.mark.parametrize("manner", MANNERS)
def test_a_tensor_that_is_returned_and_written_into_again(backend, ns, manner):
    verdict, evidence, findings = examined(backend, product(ns, manner), X, Y, order=1)
    if manner in RIGHT:
        assert verdict is Verdict.PASSED
    else:
        assert verdict is Verdict.FAILED
        assert [(f.kind, f.input) for f in findings] == [(FindingKind.STATEFUL, "x")]
        assert "changes in the next backward pass" in findings[0].message
        assert "clone" in findings[0].hint
    assert all(e.check == "repeat" for e in evidence if e.verdict is Verdict.FAILED)


def test_one_buffer_for_both_gradients(backend, ns):
    buffers = {}

    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return into(ns, g * y, buffers), into(ns, g * x, buffers)

    assert examined(backend, Product, X, Y, order=1)[0] is Verdict.FAILED


def test_what_is_returned_again_unchanged_passes(backend, ns):
    """grad_output itself, a saved constant and a tensor of zeros that is kept."""
    zeros = {}

    class Shift(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.shape = tuple(y.shape)
            return x + 0 * y

        @staticmethod
        def backward(ctx, g):
            return g, zeros.setdefault(ctx.shape, ns.zeros_like(g))

    verdict, _, findings = examined(backend, Shift, X, Y, order=1)
    assert verdict is Verdict.PASSED, findings


def test_a_caller_that_copies_may_allow_it(ns):
    buffers = {}

    class Double(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return shared(ns, ctx, 2 * g, buffers)

    only = ("repeat", "gradient")
    assert not gradcli.check(Double, (X.value,), order=1, only=only, shrink=False).ok
    assert gradcli.check(Double, (X.value,), order=1, only=only, allow={"stateful": "the caller copies it"}).ok


@pytest.mark.sampled(6)
@pytest.mark.parametrize("manner", ["shared", "a view", "on ctx"])
@pytest.mark.parametrize("of_y", [1, -1])
def test_a_gradient_that_is_wrong_in_the_first_pass_is_named_beside(backend, ns, manner, of_y):
    wrong = [] if of_y == 1 else [(FindingKind.WRONG_SIGN, "x"), (FindingKind.WRONG_SIGN, "y")]
    _, _, findings = examined(backend, product(ns, manner, of_y), X, Y, order=1)
    assert [(f.kind, f.input) for f in findings] == [(FindingKind.STATEFUL, "x"), *wrong]


@pytest.mark.parametrize("factor", [1, 3])
def test_a_gradient_that_is_added_to_a_kept_one_is_compared_in_the_first_pass(backend, ns, factor):
    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.total = 0
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            ctx.total = ctx.total + 2 * factor * g * x
            return ctx.total * 1

    wrong = [] if factor == 1 else [FindingKind.WRONG_FACTOR]
    _, _, findings = examined(backend, Square, X, order=1)
    assert [f.kind for f in findings] == [FindingKind.SECOND_BACKWARD_FAILS, *wrong]
