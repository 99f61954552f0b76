"""What the framework refuses of backward's result is a finding, whichever checks run."""

import pytest

from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, examined, tensor

X = tensor("x", [[0.5, -1.5, 2.0], [0.25, 1.0, -0.75]])
INPUT = tensor("input", X.value)
W = tensor("w", [1.5, 0.5, -2.0])


def product(ns, returned):
    """x·w, with a backward that returns what `returned` makes of the two gradients."""

    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return returned(g * w, (g * x).sum(0))

    return Product


def doubled(ns, returned):
    """2x by a backward that returns what `returned` makes of the gradient."""

    class Doubled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return returned(2 * g)

    return Doubled


OF_TWO = {
    "one too few": (lambda a, b: a, FindingKind.WRONG_ARITY),
    "one too many": (lambda a, b: (a, b, a), FindingKind.WRONG_ARITY),
    "a list": (lambda a, b: [a, b], FindingKind.WRONG_ARITY),
    "a row short": (lambda a, b: (a[:1], b), FindingKind.WRONG_SHAPE),
    "an axis too many": (lambda a, b: (a, b.reshape(3, 1)), FindingKind.MISSING_REDUCTION),
    "a number": (lambda a, b: (a, 3.0), FindingKind.WRONG_SHAPE),
    "a complex gradient": (lambda a, b: (a, b + 0j), FindingKind.WRONG_DTYPE),
    "a nested tuple": (lambda a, b: ((a, b), None), FindingKind.WRONG_SHAPE),
}
OF_ONE = {
    "a list of one": (lambda a: [a], FindingKind.WRONG_ARITY),
    "a list of two": (lambda a: [a, None], FindingKind.WRONG_ARITY),
    "an empty list": (lambda a: [], FindingKind.WRONG_ARITY),
    "two tensors": (lambda a: (a, a), FindingKind.WRONG_ARITY),
    "an empty tuple": (lambda a: (), FindingKind.WRONG_ARITY),
    "a float": (lambda a: 2.0, FindingKind.WRONG_SHAPE),
}
ALONE = [(), ("gradient",), ("linearity",), ("repeat",), ("subsets",)]


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("returned", "kind"), OF_TWO.values(), ids=OF_TWO.keys())
@pytest.mark.parametrize("only", ALONE, ids=lambda only: " ".join(only) or "all")
def test_gradients_of_two_that_are_refused_fail_whichever_checks_run(backend, ns, returned, kind, only):
    verdict, _, findings = examined(backend, product(ns, returned), X, W, only=only, order=1)
    assert verdict is Verdict.FAILED
    assert kind in {finding.kind for finding in findings}
    verdict, _, _ = examined(backend, product(ns, lambda a, b: (a, b)), X, W, only=(*only, "gradient"), order=1)
    assert verdict is Verdict.PASSED


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("returned", "kind"), OF_ONE.values(), ids=OF_ONE.keys())
@pytest.mark.parametrize("only", ALONE[:2], ids=lambda only: " ".join(only) or "all")
def test_a_gradient_of_one_that_is_refused_fails_whichever_checks_run(backend, ns, returned, kind, only):
    verdict, _, findings = examined(backend, doubled(ns, returned), X, only=only, order=1)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {kind}
    for right in (lambda a: a, lambda a: (a,), lambda a: (a, None)):
        verdict, _, _ = examined(backend, doubled(ns, right), X, only=only, order=1)
        assert verdict is Verdict.PASSED


def test_a_callable_around_it_fails_likewise(backend, ns):
    for returned, _ in OF_ONE.values():
        function = doubled(ns, returned)
        for only in ALONE[:2]:
            verdict, _, findings = examined(backend, lambda x, f=function: f.apply(x) * 1.5, X, only=only, order=1)
            assert verdict is Verdict.FAILED
            assert findings


def test_a_list_is_told_as_such(backend, ns):
    _, _, findings = examined(backend, doubled(ns, lambda a: [a]), X)
    assert findings[0].message == "backward returns a list where a tensor or a tuple of one is expected"
    _, _, findings = examined(backend, product(ns, lambda a, b: [a, b]), X, W)
    assert findings[0].message == (
        "backward returns a list where a tuple with one gradient for each argument is expected"
    )


def test_what_the_users_own_code_raises_is_an_error_still(backend, ns):
    from gradcli.errors import UserCodeError

    def failing(a):
        raise RuntimeError("function DoubledBackward returned an incorrect number of gradients (expected 1, got 2)")

    with pytest.raises(UserCodeError):
        examined(backend, doubled(ns, failing), X, only=("gradient",))


def linear(ns, last, *, middle=None):
    class Linear(ns.autograd.Function):
        @staticmethod
        def forward(ctx, input, weight, bias=None, mode="plain"):
            ctx.save_for_backward(input, weight)
            product = input @ weight.t()
            return product if bias is None else product + bias

        @staticmethod
        def backward(ctx, g):
            input, weight = ctx.saved_tensors
            return g @ weight, g.t() @ input, middle(g) if middle else None, last(g)

    return Linear


def test_parameters_that_were_left_out_are_named_where_they_get_a_gradient(backend, ns):
    weight = tensor("weight", [[1.0, 0.5, -1.0], [0.25, 2.0, 1.5]])
    verdict, _, _ = examined(backend, linear(ns, lambda g: None), INPUT, weight, order=1)
    assert verdict is Verdict.PASSED
    noted = {
        "bias was left at the default: return None as its gradient": linear(
            ns, lambda g: None, middle=lambda g: g.sum(0)
        ),
        "mode was left at the default: return None as its gradient": linear(ns, lambda g: g.sum()),
        "bias and mode were left at the default: return None as their gradients": linear(
            ns, lambda g: g.sum(), middle=lambda g: g.sum(0)
        ),
    }
    for tail, function in noted.items():
        verdict, _, findings = examined(backend, function, INPUT, weight, order=1)
        assert verdict is Verdict.FAILED
        assert findings[0].kind is FindingKind.WRONG_ARITY
        assert findings[0].message == (
            f"backward returns 4 values, but forward was called with 2 arguments: input, weight; {tail}"
        )
    bias = constant("bias", None)
    verdict, _, findings = examined(backend, linear(ns, lambda g: g.sum()), INPUT, weight, bias, order=1)
    assert verdict is Verdict.FAILED
    assert "3 arguments: input, weight, bias; mode was left at the default" in findings[0].message


@pytest.mark.parametrize("returned", [lambda g: (g, None, None, g), lambda g: (g, g, g)])
def test_more_gradients_than_parameters_are_held_against_all_parameters(backend, ns, returned):
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=3.0):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return returned(3 * g)

    verdict, _, findings = examined(backend, Scaled, X, order=1)
    assert verdict is Verdict.FAILED
    assert findings[0].message.endswith("values, but forward has 2 arguments: x, k; k was left at the default")
    verdict, _, findings = examined(backend, Scaled, X, constant("k", 3.0), order=1)
    assert findings[0].message.endswith("values, but forward has 2 arguments: x, k")
