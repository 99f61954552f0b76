"""A trace changes nothing: gradients, hooks, classes, generators, warnings and lifetimes are as without it."""

import gc
import sys
import traceback
import warnings
import weakref

import pytest

from tests.tracing.tracing import fate, traced


def program(framework, log):
    framework.manual_seed(7)
    net = framework.nn.Sequential(framework.nn.Linear(4, 8), framework.nn.Tanh(), framework.nn.Linear(8, 2))
    net[0].register_forward_hook(lambda m, a, o: log.append("forward"))
    net[2].register_full_backward_hook(lambda m, gi, go: log.append("full"))
    net[0].weight.register_hook(lambda g: g * 3)
    x = framework.randn(5, 4, requires_grad=True)

    def loss():
        y = net(x)
        y.register_hook(lambda g: log.append("tensor"))
        value = (y * framework.rand(5, 2)).sum() + (x**2).mean()
        value.backward()
        return value

    return net, x, loss


def filled(net, x):
    return [t.grad.tolist() for t in (x, *net.parameters())]


def test_gradients_and_hook_order_are_those_of_an_untraced_run(framework):
    plain_log, traced_log = [], []
    net, x, loss = program(framework, plain_log)
    plain_value = loss().item()
    plain = filled(net, x), plain_log, framework.rand(3).tolist()
    net, x, loss = program(framework, traced_log)
    graph = traced(framework, loss)
    assert (filled(net, x), traced_log, framework.rand(3).tolist()) == plain
    assert graph.result.values == (plain_value,)
    assert [call.kind for call in graph.hooks] == ["module-forward", "tensor", "module-full", "tensor"]


def test_gradients_accumulate_as_without(framework):
    x = framework.tensor([1.0, 2.0], requires_grad=True)
    traced(framework, lambda: (x * 3).sum())
    traced(framework, lambda: (x * 4).sum().backward())
    assert x.grad.tolist() == [7.0, 7.0]


def everything_patched(framework):
    kind, module = framework.Tensor, framework.nn.Module
    graph = framework.autograd.graph
    owners = (
        kind,
        module,
        framework.autograd,
        graph,
        graph.saved_tensors_hooks,
        framework.no_grad,
        framework.inference_mode,
    )
    settings = (
        warnings,
        traceback,
        framework.autograd.detect_anomaly,
        framework.autograd.set_detect_anomaly,
        framework.nn.Linear,
    )
    return [dict(vars(owner)) for owner in (*owners, *settings)]


def raising_forward(framework, net, x):
    def loss():
        net(x)
        raise KeyError("forward")

    return loss


def raising_hook(framework, net, x):
    def loss():
        y = net(x)
        y.register_hook(lambda g: 1 / 0)
        y.sum().backward()

    return loss


def leaving(framework, net, x):
    def loss():
        net(x)
        sys.exit(3)

    return loss


def sound(framework, net, x):
    return lambda: net(x).sum()


@pytest.mark.parametrize("build", [sound, raising_forward, raising_hook, leaving])
def test_hooks_and_classes_are_put_back(framework, build):
    net = framework.nn.Linear(2, 1)
    x = framework.ones(3, 2, requires_grad=True)

    def on_module(m, gi, go):
        return None

    def on_tensor(g):
        return None

    net.register_full_backward_hook(on_module)
    net.register_forward_hook(lambda m, a, o: None)
    net.register_full_backward_pre_hook(lambda m, go: None)
    handle = net.weight.register_hook(on_tensor)
    x.register_post_accumulate_grad_hook(on_tensor)
    hooks = [net._forward_hooks, net._backward_hooks, net._backward_pre_hooks, net.weight._backward_hooks]
    hooks.append(x._post_accumulate_grad_hooks)
    hooks_before, classes = [list(entries.items()) for entries in hooks], everything_patched(framework)
    graph = traced(framework, build(framework, net, x))
    assert (graph.error is None) == (build is sound)
    assert [list(entries.items()) for entries in hooks] == hooks_before
    assert everything_patched(framework) == classes
    assert sys.getprofile() is None
    assert "traceback_" not in (x * 1).grad_fn.metadata
    handle.remove()
    assert list(net.weight._backward_hooks or {}) == []


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_goes_through_and_everything_is_put_back(framework):
    classes = everything_patched(framework)

    def loss():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        traced(framework, loss)
    assert everything_patched(framework) == classes


def test_nothing_is_kept_alive(framework):
    alive = []

    def loss():
        net = framework.nn.Linear(2, 1)
        x = framework.ones(3, 2, requires_grad=True)
        y = net(x)
        y.register_hook(lambda g: None)
        net.register_full_backward_hook(lambda m, gi, go: None)
        alive.extend(map(weakref.ref, (net, x, y, net.weight)))
        return net(y @ framework.ones(1, 2)).sum()

    graph = traced(framework, loss)
    gc.collect()
    assert [reference() for reference in alive] == [None] * 4
    assert len(graph.hooks) == 2


def test_hooks_registered_inside_still_work_and_can_be_removed_afterwards(framework):
    x = framework.tensor([1.0, 2.0], requires_grad=True)
    kept = {}

    def loss():
        y = x * 3
        kept["handle"] = y.register_hook(lambda g: g * 10)
        kept["y"] = y
        y.sum().backward(retain_graph=True)

    graph = traced(framework, loss)
    assert [call.effect for call in graph.hooks] == ["returned a new value: 10x"]
    kept["y"].sum().backward(retain_graph=True)
    assert x.grad.tolist() == [60.0, 60.0]
    kept["handle"].remove()
    kept["y"].sum().backward()
    assert x.grad.tolist() == [63.0, 63.0]


def test_copies_of_a_module_made_inside_hold_the_users_hooks(framework):
    import copy

    net = framework.nn.Linear(2, 1)
    log = []
    kept = {}

    def hook(m, a, o):
        log.append("fired")

    net.register_forward_hook(hook)

    def loss():
        value = net(framework.ones(1, 2)).sum()
        kept["copy"] = copy.deepcopy(net)
        return value

    traced(framework, loss)
    assert list(kept["copy"]._forward_hooks.values()) == [hook]


def test_warnings_are_neither_added_nor_swallowed(framework):
    def loss():
        x = framework.tensor([1.0], requires_grad=True)
        y = x * 2
        warnings.warn("mine", UserWarning, stacklevel=1)
        z = y.sum()
        z.backward()
        return y.grad

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        graph = traced(framework, loss)
    texts = [str(warning.message) for warning in seen]
    assert len(texts) == 2
    assert texts[0] == "mine"
    assert ".grad attribute of a Tensor that is not a leaf" in texts[1]
    assert fate(graph, "x").grad.values == (2.0,)


def test_warnings_are_attributed_to_the_same_lines_as_without(framework):
    class Old(framework.nn.Module):
        def forward(self, t):
            warnings.warn("from forward", DeprecationWarning, stacklevel=2)
            return t * 2 / 4

    def loss():
        net = Old()
        net.register_backward_hook(lambda m, gi, go: None)
        y = net(framework.ones(2, requires_grad=True))
        return y.sum().backward()

    found = []
    for run in (loss, lambda: traced(framework, loss)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            run()
        found.append([(w.category, str(w.message), w.filename, w.lineno) for w in seen])
    assert found[0] == found[1]
    assert len(found[0]) >= 2


def test_an_error_of_backward_adds_no_warning_of_anomaly_mode(framework):
    def loss():
        x = framework.tensor([1.0], requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: 1 / 0)
        y.sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = traced(framework, loss)
    assert graph.error == "ZeroDivisionError: division by zero"
    assert "in loss" in graph.error_traceback
    assert "passes.py" not in graph.error_traceback


def test_the_users_own_anomaly_mode_is_respected(framework):
    def loss():
        with framework.autograd.set_detect_anomaly(True):
            x = framework.tensor([0.0], requires_grad=True)
            (framework.sqrt(x) * 0).sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = traced(framework, loss)
    assert "nan" in graph.error.lower()
    x = framework.tensor([1.0], requires_grad=True)
    assert "traceback_" not in (x * 1).grad_fn.metadata


def test_what_the_user_catches_stays_caught(framework):
    def loss():
        x = framework.tensor([2.0], requires_grad=True)
        with pytest.raises(RuntimeError):
            (x * 2).backward(framework.ones(3))
        (x * x).backward()

    graph = traced(framework, loss)
    assert graph.error is None
    assert fate(graph, "x").grad.values == (4.0,)
