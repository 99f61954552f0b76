"""Why a .grad is None or zero: every cause is planted, and named at its line."""

import linecache
import sys
import warnings

import pytest

from gradcli.diagnosis.symptoms.rules import Symptom
from tests.tracing.tracing import at, fate, traced

HERE = sys.modules[__name__]


def pair(framework):
    x = framework.tensor([1.0, 2.0], requires_grad=True)
    w = framework.tensor([3.0, 4.0], requires_grad=True)
    return x, w


def with_detach(framework):
    def loss():
        x, w = pair(framework)
        return (x.detach() * w).sum()  # detached

    return loss, "detached", "takes it out of the graph with detach()"


def with_data(framework):
    def loss():
        x, w = pair(framework)
        return (w * x.data).sum()  # data

    return loss, "detached", "with .data"


def with_item(framework):
    def loss():
        x, w = pair(framework)
        scale = (x * 2).sum().item()  # item
        return (w * scale).sum()

    return loss, "detached", "with item()"


def with_numpy(framework):
    def loss():
        x, w = pair(framework)
        again = framework.tensor(x.detach().numpy() * 2)  # numpy
        return (w * again).sum()

    return loss, "detached", "with detach()"


def with_no_grad(framework):
    def loss():
        x, w = pair(framework)
        with framework.no_grad():  # no_grad block
            y = x * 2
        return (y * w).sum()

    return loss, "no-grad", "computes under no_grad"


def with_a_decorator(framework):
    @framework.no_grad()
    def features(x):  # decorated
        return x * 2

    def loss():
        x, w = pair(framework)
        return (features(x) * w).sum()

    return loss, "no-grad", "computes under no_grad"


def in_inference_mode(framework):
    def loss():
        x, w = pair(framework)
        with framework.inference_mode():
            size = (x * 2).sum().item()
        return (w * size).sum()

    return loss, "no-grad", "computes under inference_mode"


def unused(framework):
    def loss():
        x, w = pair(framework)
        return (w * 2).sum() + 0 * len(x)

    return loss, "not-reached", "no path leads from the result to x"


def misspelt(framework):
    def loss():
        _, w = pair(framework)
        x = framework.tensor([1.0, 2.0])
        x.require_grad = True
        return (x * w).sum()

    return loss, "misspelt-flag", "x has an attribute require_grad: did you mean requires_grad?"


def converted(framework):
    def loss():
        leaf, w = pair(framework)
        x = leaf.to(framework.float16)
        return (x.to(w.dtype) * w).sum()

    return loss, "moved-leaf", "computes it with .to(framework.float16) from leaf; leaf.grad is filled"


def scaled_at_birth(framework):
    def loss():
        w = framework.tensor([3.0, 4.0], requires_grad=True)
        x = framework.tensor([1.0, 2.0], requires_grad=True) * 0.1
        return (x * w).sum()

    return loss, "hidden-leaf", "no variable refers to the leaf behind it, so the leaf's gradient cannot be read"


def function_returns_none(framework):
    class Product(framework.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad_output):
            a, _ = ctx.saved_tensors
            return None, grad_output * a

    def loss():
        x, w = pair(framework)
        return (Product.apply(x * 1.0, w)).sum()

    return loss, "function-returned-none", "ProductBackward"


def everything_detached(framework):
    def loss():
        x, _ = pair(framework)
        return x.detach().sum()

    return loss, "detached", "with detach()"


def under_no_grad_altogether(framework):
    def loss():
        x, _ = pair(framework)
        with framework.no_grad():
            return (x * 2).sum()

    return loss, "no-grad", "computes under no_grad"


def no_backward_at_all(framework):
    def loss():
        x, _ = pair(framework)
        return len(x)

    return loss, "backward-not-run", "no backward pass ran"


def backward_raises(framework):
    def loss():
        x, w = pair(framework)
        y = x * w
        y.register_hook(lambda g: 1 / 0)
        y.sum().backward()

    return loss, "backward-raised", "backward raised before it reached this tensor: ZeroDivisionError"


def rounded(framework):
    def loss():
        x, w = pair(framework)
        return (framework.round(x) * w).sum()  # rounded

    return loss, "zero-gradient", "RoundBackward0"


def zeroed_by_a_hook(framework):
    def loss():
        x, w = pair(framework)
        y = x * w
        y.register_hook(lambda g: g * 0)
        return y.sum()

    return loss, "zero-gradient", "the hook `<lambda>` at "


def retained_too_late(framework):
    def loss():
        leaf, w = pair(framework)
        x = leaf * w
        x.sum().backward()
        x.retain_grad()

    return loss, "retained-late", "retain_grad() was called only after backward at "


def copied(framework, of=lambda x, _: x * 2):
    def loss():
        x, w = pair(framework)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch recommends detach
            return (framework.tensor(of(x, w)) * w).sum()  # copied

    return loss, "detached", "takes it out of the graph with tensor()"


def copied_in_a_list(framework):
    return copied(framework, lambda x, w: [x[0], w[1]])


def as_long(_, t):
    return t.long()  # long


def made_whole(framework, whole=as_long, name="long()"):
    def loss():
        x, w = pair(framework)
        place = whole(framework, x * 2 - 1).sum() * 0
        return (w[place] * w).sum()

    return loss, "detached", f"takes it out of the graph with {name}"


def cast_to_whole(framework):
    return made_whole(framework, lambda framework, t: t.to(framework.int64), "to(")


def taken_by_its_largest(framework):
    return made_whole(framework, lambda _, t: t.argmax(), "argmax()")


def taken_by_the_largest_of(framework):
    return made_whole(framework, lambda framework, t: framework.argmax(t), "argmax()")


CAUSES = [
    copied, copied_in_a_list, made_whole, cast_to_whole, taken_by_its_largest, taken_by_the_largest_of,
    with_detach, with_data, with_item, with_numpy, with_no_grad, with_a_decorator, in_inference_mode,
    unused, misspelt, converted, scaled_at_birth,
    function_returns_none, everything_detached, under_no_grad_altogether, no_backward_at_all, backward_raises, rounded,
    zeroed_by_a_hook, retained_too_late,
]  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_cause_is_named(framework, cause):
    loss, symptom, text = cause(framework)
    graph = traced(framework, loss)
    x = fate(graph, "x")
    assert (x.symptom, text in x.why) == (symptom, True), x.why
    assert symptom in graph.symptoms


def test_only_the_first_named_result_of_a_hidden_leaf_is_a_symptom(framework):
    def rebound():
        w = framework.tensor([3.0, 4.0], requires_grad=True)
        for _ in range(2):
            loss = (w * 2).sum()
            loss.backward()
            w = w - 0.1

    def scaled():
        w = framework.tensor([3.0, 4.0], requires_grad=True) * 0.1
        doubled = w * 2
        loss = doubled.sum()
        loss.backward()

    for run in (rebound, scaled):
        graph = traced(framework, run)
        assert {each.name: each.symptom for each in graph.tensors if each.symptom} == {"w": "hidden-leaf"}
        assert "only after retain_grad()" in fate(graph, "loss").why


def test_every_symptom_of_a_tensor_is_planted(framework):
    planted = {cause(framework)[1] for cause in CAUSES}
    assert planted == {member.value for member in Symptom} - {"non-finite-gradient", "wrong-node", "memory-over-budget"}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("cause", "mark"),
    [
        (with_detach, "# detached"),
        (with_data, "# data"),
        (with_item, "# item"),
        (with_no_grad, "# no_grad block"),
        (copied, "# copied"),
        (made_whole, "# long"),
    ],
)
def test_the_line_that_cuts_is_named(framework, cause, mark):
    graph = traced(framework, cause(framework)[0])
    assert len(graph.cuts) == 1
    assert at(graph.cuts[0].site, HERE, mark)
    assert str(graph.cuts[0].site) in fate(graph, "x").why


def test_a_block_that_does_not_use_the_leaf_is_not_blamed(framework):
    def loss():
        x, w = pair(framework)
        with framework.no_grad():
            w.mul_(2)
        return (w * 2).sum() + 0 * len(x)

    x = fate(traced(framework, loss), "x")
    assert x.symptom == "not-reached"
    assert x.why == "no path leads from the result to x: no traced operation used it"


def test_the_gradients_that_are_there_have_no_cause(framework):
    graph = traced(framework, with_detach(framework)[0])
    assert (fate(graph, "w").why, fate(graph, "w").symptom) == (None, None)
    assert fate(graph, "w").grad.values == (1.0, 2.0)


def test_a_sound_program_has_no_symptom(framework):
    def loss():
        x, w = pair(framework)
        hidden = framework.sin(x) * w
        value = hidden.sum()
        value.backward()
        return value.item()

    graph = traced(framework, loss)
    assert graph.symptoms == ()
    assert graph.lints == ()
    assert graph.root_name == "value"
    assert fate(graph, "hidden").why.endswith("a non-leaf tensor keeps its gradient only after retain_grad()")


def test_retained_gradients_are_shown(framework):
    def loss():
        x, w = pair(framework)
        y = x * w
        y.retain_grad()
        return (y * 5).sum()

    graph = traced(framework, loss)
    assert fate(graph, "y").grad.values == (5.0, 5.0)
    assert fate(graph, "y").why is None


def test_autograd_grad_fills_nothing_and_says_so(framework):
    def gradients():
        x, w = pair(framework)
        return framework.autograd.grad((x * w).sum(), x)

    graph = traced(framework, gradients)
    assert (graph.passes, graph.fills_grad) == (1, False)
    assert "only autograd.grad was called" in fate(graph, "x").why
    assert graph.symptoms == ()


def test_a_custom_backward_is_shown_with_its_line(framework):
    loss, _, _ = function_returns_none(framework)
    graph = traced(framework, loss)
    node = next(node for node in graph.nodes if node.name == "ProductBackward")
    assert "def backward" in linecache.getline(HERE.__file__, node.rule.line + 1)
    assert f"returned None for its operand 0; its backward is at {node.rule}" in fate(graph, "x").why


def test_parameters_and_attributes_are_named_by_their_path(framework):
    class Net(framework.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = framework.nn.Linear(2, 2)
            self.second = framework.nn.Linear(2, 2)
            self.second.weight.requires_grad_(False)

        def forward(self, t):
            self.hidden = self.first(t)
            return self.second(self.hidden)

    net = Net()
    x = framework.ones(3, 2, requires_grad=True)
    graph = traced(framework, lambda: net(x).sum(), named={"x": x}, modules={"": net})
    roles = {f.name: f.role for f in graph.tensors}
    assert roles == {
        "x": "input", "first.weight": "parameter", "first.bias": "parameter", "second.weight": "parameter",
        "second.bias": "parameter", "hidden": "attribute", "result": "result",
    }  # fmt: skip
    assert fate(graph, "second.weight").why == "requires_grad is False"
    assert "hidden is not a leaf" in fate(graph, "hidden").why
    assert graph.symptoms == ()
    assert {n.variable for n in graph.nodes if n.name == "AccumulateGrad"} == {
        "x", "first.weight", "first.bias", "second.bias",
    }  # fmt: skip
