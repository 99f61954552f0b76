"""Lists, tuples, dicts and dataclasses: each tensor in an argument is an input, each in a result an output."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.verdict import Verdict

Pair = namedtuple("Pair", "one other")


@dataclass
class Batch:
    """A dataclass as a program passes it to its model."""

    one: object
    rest: object
    times: int = 2


@pytest.fixture(params=["engine", "torch"])
def framework(request):
    """A namespace of PyTorch's shape."""
    return engine if request.param == "engine" else pytest.importorskip("torch", reason="one of the two is PyTorch")


def product(framework, *, wrong):
    class Product(framework.autograd.Function):
        @staticmethod
        def forward(ctx, one, other):
            ctx.save_for_backward(one, other)
            return one * other

        @staticmethod
        def backward(ctx, grad_output):
            one, other = ctx.saved_tensors
            return grad_output * other, grad_output * (other if wrong else one)

    return Product.apply


def vector(framework, values):
    return framework.tensor(values, dtype=framework.float64, requires_grad=True)


WAYS = {
    "list": (lambda f: lambda xs: f(*xs), lambda one, other: ([one, other],), "xs[1]"),
    "tuple": (lambda f: lambda x, rest: f(x, rest[0]), lambda one, other: (one, (other, None)), "rest[0]"),
    "dict": (lambda f: lambda d: f(d["a"], d["b"]), lambda one, other: ({"a": one, "b": other},), "d['b']"),
    "ordered": (
        lambda f: lambda d: f(*d.values()),
        lambda one, other: (OrderedDict(a=one, b=other),),
        "d['b']",
    ),
    "named tuple": (lambda f: lambda p: f(p.one, p.other), lambda one, other: (Pair(one, other),), "p[1]"),
    "dataclass": (
        lambda f: lambda b: f(b.one, b.rest["x"][0]) * b.times,
        lambda one, other: (Batch(one, {"x": [other]}),),
        "b.rest['x'][0]",
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS)
def test_a_right_function_of_a_container_passes_and_a_wrong_one_fails_at_its_leaf(framework, way):
    function_of, inputs_of, name = WAYS[way]
    given = inputs_of(vector(framework, [0.5, -1.25]), vector(framework, [1.5, 0.75]))
    assert gradcli.check(function_of(product(framework, wrong=False)), given, shrink=False).verdict is Verdict.PASSED
    (case,) = gradcli.check(function_of(product(framework, wrong=True)), given, shrink=False).cases
    assert {finding.input for finding in case.findings} == {name}


def test_a_container_may_be_given_by_name(framework):
    given = {"d": {"a": vector(framework, [0.5, -1.25]), "b": vector(framework, [1.5, 0.75])}}
    apply = product(framework, wrong=True)
    (case,) = gradcli.check(lambda d: apply(d["a"], d["b"]), given, shrink=False).cases
    assert {finding.input for finding in case.findings} == {"d['b']"}


def test_tensors_in_a_dict_that_is_returned_are_outputs(framework):
    apply = product(framework, wrong=True)
    given = (vector(framework, [0.5, -1.25]), vector(framework, [1.5, 0.75]))
    report = gradcli.check(lambda x, y: {"sum": x + y, "more": [None, (apply(x, y),)]}, given, shrink=False)
    assert report.verdict is Verdict.FAILED
    assert report.cases[0].findings[0].output == 2


def test_the_callers_containers_are_left_alone(framework):
    given = [vector(framework, [0.5, -1.25]), vector(framework, [1.5, 0.75])]
    gradcli.check(lambda xs: xs[0] * xs[1], (given,), shrink=False)
    assert [np.asarray(x.detach()).tolist() for x in given] == [[0.5, -1.25], [1.5, 0.75]]
    assert [x.grad for x in given] == [None, None]


@pytest.mark.sampled(1)
def test_a_module_that_takes_a_dict_is_checked_by_its_tensors(framework):
    apply = product(framework, wrong=True)

    class Model(framework.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = framework.nn.Parameter(framework.tensor([2.0, 3.0], dtype=framework.float64))

        def forward(self, batch):
            return {"y": apply(batch["x"], self.scale)}

    (case,) = gradcli.check(Model(), ({"x": vector(framework, [0.5, -1.25])},), shrink=False).cases
    assert {finding.input for finding in case.findings} == {"scale"}


def test_a_function_is_told_that_it_sees_no_tensors_in_a_list(framework):
    class Blind(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x, others):
            ctx.others = others
            return x * others[0]

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.others[0], None

    given = (vector(framework, [0.5, -1.25]), [vector(framework, [1.5, 0.75])])
    report = gradcli.check(Blind, given, order=1, shrink=False)
    assert report.verdict is Verdict.PASSED
    assert any("the tensors in others get no gradient" in note for note in report.cases[0].notes)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("passed", "note"),
    [
        (0, "the tensors in d get no gradient: apply sees only tensors passed as separate arguments, not those inside "
            "a dict; pass them as separate arguments"),
        (1, "d['b'] gets no gradient: apply sees only tensors passed as separate arguments, not those inside a dict; "
            "pass it as a separate one"),
        (2, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_tensors_that_are_passed_beside_their_container_need_no_advice(framework, passed, note, factor, verdict):
    class Known(framework.autograd.Function):
        @staticmethod
        def forward(ctx, d, x, *rest):
            ctx.d = d
            ctx.save_for_backward(x, *rest)
            return x * d["a"] * d["b"]

        @staticmethod
        def backward(ctx, g):
            x, *rest = ctx.saved_tensors
            a, b = ctx.d["a"], ctx.d["b"]
            return (None, factor * g * a * b, *[g * x * other for other in (b, a)][: len(rest)])

    held = {"a": vector(framework, [1.5, 0.75]), "b": vector(framework, [0.25, -0.75])}
    given = (held, vector(framework, [0.5, -1.25]), *list(held.values())[:passed])
    (case,) = gradcli.check(Known, given, order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    said = "; ".join(case.notes)
    assert note in said if note else "no gradient: apply" not in said


def test_gradcheck_differentiates_by_tensors_in_containers(framework):
    given = ([vector(framework, [0.5, -1.25]), vector(framework, [1.5, 0.75])],)
    right, wrong = product(framework, wrong=False), product(framework, wrong=True)
    assert gradcli.gradcheck(lambda xs: right(*xs), given)
    assert gradcli.gradgradcheck(lambda xs: right(*xs), given)
    assert not gradcli.gradcheck(lambda xs: wrong(*xs), given, raise_exception=False)


def test_gradcheck_refuses_to_pass_over_tensors_in_a_dict_that_is_returned(framework):
    with pytest.raises(ValueError, match="output 0 is a dict that holds tensors"):
        gradcli.gradcheck(lambda x: {"y": x * 2}, (vector(framework, [0.5, -1.25]),))


def test_an_operator_that_takes_a_list_is_checked():
    torch = pytest.importorskip("torch", reason="operators are PyTorch's")
    library = torch.library.Library("containers_of_gradcli", "DEF")
    library.define("joined(Tensor[] xs) -> Tensor")
    library.impl("joined", lambda xs: torch.cat(xs) ** 2, "CompositeExplicitAutograd")

    def backward(ctx, grad_output):
        parts = grad_output.split([len(x) for x in ctx.xs])
        return [2 * x * parts[0][: len(x)] for x in ctx.xs]

    def keep(ctx, inputs, output):
        (ctx.xs,) = inputs

    torch.library.register_autograd("containers_of_gradcli::joined", backward, setup_context=keep)
    given = ([vector(torch, [0.5, -1.25]), vector(torch, [1.5, 0.75])],)
    (case,) = gradcli.check(torch.ops.containers_of_gradcli.joined, given, shrink=False).cases
    assert {finding.input for finding in case.findings} == {"xs[1]"}
