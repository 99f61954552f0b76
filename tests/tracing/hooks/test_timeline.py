"""The hook timeline: every kind of hook, what it changed, and the hooks that cannot work as meant."""

import functools
import sys
import warnings

import pytest

import gradcli
from gradcli.errors import UserCodeError
from tests.tracing.tracing import after, at, before, fate, traced

HERE = sys.modules[__name__]


def double(gradient):  # doubles
    return gradient * 2


def halve(gradient):
    gradient.mul_(0.5)


class Recorder:
    def __init__(self):
        self.seen = []

    def __call__(self, gradient):  # an object
        self.seen.append(gradient)

    def scale(self, factor, gradient):  # a partial
        return gradient * factor


def test_every_kind_of_hook_is_seen_in_order(framework):
    nn = framework.nn
    net = nn.Linear(2, 1)
    net.register_forward_pre_hook(lambda m, a: None)
    net.register_forward_hook(lambda m, a, o: None)
    net.register_full_backward_pre_hook(lambda m, go: None)
    net.register_full_backward_hook(lambda m, gi, go: None)

    def loss():
        x = framework.ones(3, 2, requires_grad=True)
        y = net(x)
        z = y * 2
        z.grad_fn.register_prehook(lambda go: None)
        z.grad_fn.register_hook(lambda gi, go: None)
        z.register_hook(lambda g: None)
        x.register_post_accumulate_grad_hook(lambda leaf: None)
        framework.autograd.graph.register_multi_grad_hook((x, net.weight), lambda grads: None)
        z.sum().backward()

    graph = traced(framework, loss)
    assert graph.error is None
    kinds = [call.kind for call in graph.hooks]
    assert kinds[:6] == [
        "module-forward-pre",
        "module-forward",
        "tensor",
        "node-pre",
        "node-post",
        "module-backward-pre",
    ]
    assert sorted(kinds[6:]) == ["module-full", "multi-grad", "post-accumulate"]
    assert [call.number for call in graph.hooks] == list(range(1, 10))
    assert {call.effect for call in graph.hooks} == {"unchanged"}
    assert graph.hooks[3].owner == "MulBackward0"
    assert fate(graph, "weight").grad is not None


def test_functions_behind_partials_methods_objects_and_builtins_are_found(framework):
    recorder, grads = Recorder(), []

    def loss():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.register_hook(double)
        y.register_hook(recorder)
        y.register_hook(functools.partial(recorder.scale, 5.0))
        y.register_hook(grads.append)  # built in
        return y.sum()

    graph = traced(framework, loss)
    names = ["double", "Recorder", "Recorder.scale", "list.append"]
    assert [call.function for call in graph.hooks] == names
    marks = ["# doubles", "# an object", "# a partial", "# built in"]
    assert all(at(call.site, HERE, mark) for call, mark in zip(graph.hooks, marks, strict=True))
    assert [before(call) for call in graph.hooks] == [[[1.0, 1.0]], [[2.0, 2.0]], [[2.0, 2.0]], [[10.0, 10.0]]]
    assert after(graph.hooks[2]) == [[10.0, 10.0]]
    assert len(graph.effects) == 1
    assert graph.effects[0].startswith("grad of x is scaled by 10 because `double` at ")
    assert "returned a new value (2x) and `Recorder.scale` at " in graph.effects[0]
    assert graph.effects[0].endswith("returned a new value (5x)")


def test_a_gradient_changed_in_place_is_told_from_one_returned(framework):
    def loss():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.register_hook(lambda g: g.mul_(4))
        y.register_hook(halve)
        y.register_hook(lambda g: g * 3)
        return (y * framework.tensor([1.0, 5.0])).sum()

    graph = traced(framework, loss)
    assert [call.effect for call in graph.hooks] == [
        "changed the gradient in place: 4x",
        "changed the gradient in place: 0.5x",
        "returned a new value: 3x",
    ]


def test_a_post_accumulate_hook_that_changes_grad_is_seen(framework):
    x = framework.tensor([1.0, 2.0], requires_grad=True)

    def reset(leaf):
        leaf.grad.mul_(3)

    x.register_post_accumulate_grad_hook(reset)
    graph = traced(framework, lambda: (x * 2).sum(), named={"x": x})
    assert (before(graph.hooks[0]), after(graph.hooks[0])) == ([[2.0, 2.0]], [[6.0, 6.0]])
    assert graph.hooks[0].effect == "changed the gradient in place: 3x"
    assert graph.effects[0].startswith("grad of x is scaled by 3 because ")


def test_pack_and_unpack_hooks_are_seen(framework):
    def loss():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        with framework.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = framework.exp(x)
        return y.sum()

    graph = traced(framework, loss)
    assert [call.kind for call in graph.hooks] == ["pack", "unpack"]
    assert graph.hooks[1].effect == "returned Tensor"


def test_a_part_of_a_gradient_is_not_called_the_whole(framework):
    def loss():
        x = framework.tensor([1.0], requires_grad=True)
        w = framework.tensor([1.0], requires_grad=True)
        y = x * w
        y.register_hook(double)
        return (y + x * 3).sum()

    graph = traced(framework, loss)
    told = [line.split(" because")[0] for line in graph.effects]
    assert told == ["grad of w is scaled by 2", "a part of the gradient of x is scaled by 2"]


def test_no_factor_is_claimed_where_another_hook_bends_the_gradient(framework):
    def loss():
        x = framework.tensor([1.0, -1.0], requires_grad=True)
        y = x * 3
        y.register_hook(double)
        x.register_hook(lambda g: g.clamp(max=1.0) + framework.tensor([0.0, 1.0]))
        return (y * framework.tensor([1.0, -2.0])).sum()

    graph = traced(framework, loss)
    (effect,) = graph.effects
    assert effect.split(" because")[0] == "grad of x differs from the gradient that autograd computed"


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (lambda g: g.sum(), "returned a gradient of shape [] where [2] was expected"),
        (lambda g: g.double(), "returned a gradient of dtype float64 where float32 was expected"),
        (lambda g: 5, "returned int; a tensor, or None, was expected"),
    ],
)
def test_a_tensor_hooks_wrong_reply_is_named(framework, reply, problem):
    def loss():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.register_hook(reply)
        y.sum().backward()

    graph = traced(framework, loss)
    assert graph.error_phase == "backward"
    assert graph.hooks[-1].problem == problem
    assert problem in graph.error_hint
    assert graph.effects == ()


def test_a_hook_that_computes_in_another_precision_and_returns_that_of_the_gradient_is_right(framework):
    def loss():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.register_hook(lambda g: (g.double() * 2).to(g.dtype))
        y.sum().backward()

    graph = traced(framework, loss)
    assert (graph.error, graph.hooks[-1].problem) == (None, None)
    assert "is scaled by 2 because" in graph.effects[0]


def test_a_legacy_hook_on_a_single_operation_is_no_reason_to_warn(framework):
    class Twice(framework.nn.Module):
        def forward(self, t):
            return t * 2

    net = Twice()
    net.register_backward_hook(lambda m, gi, go: None)
    x = framework.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = traced(framework, lambda: net(x * 3).sum())
    assert [call.kind for call in graph.hooks] == ["module-legacy"]
    assert (graph.hooks[0].warning, graph.lints) == (None, ())


def test_a_full_hook_without_a_tracked_input_gets_none_and_says_why(framework):
    net = framework.nn.Linear(2, 1)
    net.register_full_backward_hook(lambda m, gi, go: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = traced(framework, lambda: net(framework.ones(3, 2)).sum())
    assert before(graph.hooks[0]) == [None]
    assert "grad_input is (None,) because no input of Linear requires grad" in graph.lints[0]


def test_a_module_hook_registered_after_forward_never_fires_and_a_tensor_hook_does(framework):
    net = framework.nn.Linear(2, 1)

    def loss():
        x = framework.ones(3, 2, requires_grad=True)
        y = net(x)
        net.register_full_backward_hook(lambda m, gi, go: None)  # too late
        y.register_hook(lambda g: None)
        y.sum().backward()

    graph = traced(framework, loss)
    assert [call.kind for call in graph.hooks] == ["tensor"]
    assert len(graph.lints) == 1
    assert "on Linear did not fire: it was registered after forward" in graph.lints[0]
    late = next(found for found in graph.registrations if found.after_forward)
    assert at(late.site, HERE, "# too late")


def test_calling_forward_directly_skips_hooks_and_is_named(framework):
    class Net(framework.nn.Module):
        def forward(self, t):
            return t * 2

    def loss():
        net = Net()
        net.register_forward_hook(lambda m, a, o: None)
        x = framework.ones(2, requires_grad=True)
        return net.forward(x).sum()  # called directly

    graph = traced(framework, loss)
    assert graph.hooks == ()
    assert at(graph.registrations[0].forward_called_directly_at, HERE, "# called directly")
    assert "calls Net.forward directly, which skips hooks; call the module itself" in graph.lints[0]


def test_calling_super_forward_is_not_a_direct_call(framework):
    class Base(framework.nn.Module):
        def forward(self, t):
            return t * 2

    class Net(Base):
        def forward(self, t):
            return super().forward(t) + 1

    net = Net()
    net.register_forward_hook(lambda m, a, o: None)
    graph = traced(framework, lambda: net(framework.ones(2, requires_grad=True)).sum(), modules={"": net})
    assert len(graph.hooks) == 1
    assert graph.lints == ()


def test_a_tensor_hook_that_no_gradient_passes_is_reported(framework):
    def loss():
        x = framework.ones(2, requires_grad=True)
        side = x * 2
        side.register_hook(lambda g: None)
        return (x * 3).sum()

    graph = traced(framework, loss)
    assert "on side did not fire: side is not part of the graph that backward ran through" in graph.lints[0]


def test_hooks_registered_before_the_trace_are_seen_on_results_too(framework):
    x = framework.tensor([1.0], requires_grad=True)
    y = x * 2
    y.register_hook(double)

    def loss():
        return (y * 5).sum()

    graph = traced(framework, loss)
    assert [(call.owner, call.effect) for call in graph.hooks] == [("y", "returned a new value: 2x")]
    assert list(y._backward_hooks.values()) == [double]


def test_a_forward_hook_with_keywords_may_replace_them(framework):
    class Scale(framework.nn.Module):
        def forward(self, t, *, by):
            return t * by

    net = Scale()
    net.register_forward_pre_hook(lambda m, args, kwargs: ((args[0] * 2,), {"by": 3}), with_kwargs=True)
    net.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)
    x = framework.tensor([1.0], requires_grad=True)
    graph = traced(framework, lambda: net(x, by=5).sum())
    assert [call.effect for call in graph.hooks] == ["returned a new value: 2x", "returned a new value: 1.16667x"]
    assert graph.result.values == (7.0,)


def test_a_node_hook_given_by_module_level_code_is_put_back(framework):
    x = framework.tensor([1.0], requires_grad=True)
    y = x * 2
    calls = []
    y.grad_fn.register_hook(lambda gi, go: calls.append("post"))
    y.grad_fn.register_prehook(lambda go: (go[0] * 7,))
    graph = traced(framework, lambda: y.sum().backward(retain_graph=True))
    assert [call.kind for call in graph.hooks] == ["node-pre", "node-post"]
    assert graph.hooks[0].effect == "returned a new value: 7x"
    assert x.grad.tolist() == [14.0]
    y.sum().backward()
    assert calls == ["post", "post"]
    assert x.grad.tolist() == [28.0]


def clamped_after_a_hook(f, register, *, in_place, size=2):
    f.manual_seed(0)
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Tanh(), f.nn.ReLU(inplace=in_place))
    getattr(net[1], register)(unused_hook)
    return net(f.ones(1, size)).sum()


def unused_hook(*_):
    return None


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_an_error_of_a_view_that_a_module_hook_made_names_the_hook_and_the_module(framework, register):
    with pytest.raises(UserCodeError, match="modified inplace") as caught:
        gradcli.trace(lambda: clamped_after_a_hook(framework, register, in_place=True))
    hint = str(caught.value).splitlines()[-1]
    assert "hook `unused_hook` at " in hint
    assert f"test_timeline.py:{unused_hook.__code__.co_firstlineno} on Tanh" in hint
    assert "such a hook makes the inputs and outputs of its module views" in hint
    graph = gradcli.trace(lambda: clamped_after_a_hook(framework, register, in_place=False))
    assert (graph.error, graph.error_hint) == (None, None)
    with pytest.raises(UserCodeError) as caught:
        gradcli.trace(lambda: clamped_after_a_hook(framework, register, in_place=True, size=3))
    assert "unused_hook" not in str(caught.value)
