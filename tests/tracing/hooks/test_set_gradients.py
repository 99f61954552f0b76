"""Hooks that set `.grad` while backward runs: what they did, and at which line."""

import sys

import pytest

from gradcli.reporters.graph.tree import change
from tests.tracing.tracing import fate, line_of, traced

HERE = sys.modules[__name__]


def parameter(f):
    return f.nn.Parameter(f.tensor([1.0, 2.0]))


def to_none(f):
    w = parameter(f)

    def post(p):
        p.grad = None  # to none

    w.register_post_accumulate_grad_hook(post)
    (w * w).sum().backward()


def by_an_optimiser(f):
    w = parameter(f)
    optimiser = f.optim.SGD([w], lr=0.1)

    def post(_):
        optimiser.step()
        optimiser.zero_grad()  # by an optimiser

    w.register_post_accumulate_grad_hook(post)
    (w * w).sum().backward()


def by_a_hook_of_another_tensor(f):
    w, x = parameter(f), parameter(f)
    y = x * 1

    def hook(_):
        w.grad = None  # by the other

    y.register_hook(hook)
    (y * 2 + (w * w)).sum().backward()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("program", "mark"), [(to_none, "# to none"), (by_an_optimiser, "# by an optimiser")])
def test_the_line_of_a_hook_that_removes_a_gradient_is_named(framework, program, mark):
    graph = traced(framework, lambda: program(framework))
    why = fate(graph, "w").why
    assert f":{line_of(HERE, mark)}; read .grad before that" in why
    assert graph.hooks[-1].effect == "set .grad to None"
    assert "set .grad to None" in graph.effects[0]


def test_a_gradient_that_another_hook_removes_too_early_is_filled(framework):
    graph = traced(framework, lambda: by_a_hook_of_another_tensor(framework))
    assert fate(graph, "w").grad is not None or ".grad was set to None again at" in fate(graph, "w").why


def test_a_gradient_that_was_removed_before_the_pass_is_no_reason(framework):
    def program():
        w = parameter(framework)
        (w * w).sum().backward()
        w.grad = None
        (w * w).sum().backward()

    graph = traced(framework, program)
    assert fate(graph, "w").grad.values == (2.0, 4.0)
    assert fate(graph, "w").why is None


def tripled(p):
    p.grad.mul_(3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "effect"),
    [
        (lambda p: setattr(p, "grad", p.grad * 2), "set .grad to another tensor: 2x"),
        (tripled, "changed the gradient in place: 3x"),
        (lambda p: None, "unchanged"),
    ],
)
def test_another_tensor_is_told_from_the_same_one_changed(framework, change, effect):
    def program():
        w = parameter(framework)
        w.register_post_accumulate_grad_hook(change)
        (w * w).sum().backward()

    assert traced(framework, program).hooks[-1].effect == effect


@pytest.mark.parametrize("in_place", [True, False])
def test_zeros_that_a_hook_leaves_are_its_doing(framework, in_place):
    def zero(p):
        if in_place:
            p.grad.zero_()
        else:
            p.grad = framework.zeros(2)

    def program():
        w = parameter(framework)
        w.register_post_accumulate_grad_hook(zero)
        (w * w).sum().backward()

    assert "made it zero" in fate(traced(framework, program), "w").why


def tripled_and_returned(p):
    return p.grad.mul_(3)


def tripled_and_raised(p):
    p.grad.mul_(3)
    raise ValueError("too large")


def put_and_returned(p):
    p.grad = p.grad * 3
    return p.grad


def only_returned(p):
    return p.grad * 3


@pytest.mark.parametrize("hook", [tripled_and_returned, tripled_and_raised, put_and_returned, only_returned])
def test_what_a_hook_did_to_a_gradient_is_told_beside_what_it_must_not_return(framework, hook):
    def program():
        w = parameter(framework)
        y = w * 2
        y.register_hook(lambda g: g + 1)
        w.register_post_accumulate_grad_hook(hook)
        (y * y).sum().backward()

    graph = traced(framework, program)
    call = graph.hooks[-1]
    changes = hook is not only_returned
    assert call.problem is not None
    assert call.effect.endswith(call.problem)
    assert graph.error_hint is not None
    assert call.problem in graph.error_hint
    assert (call.factor, call.changed_slots) == ((3.0, (0,)) if changes else (None, ()))
    assert (f"`{hook.__name__}`" in graph.effects[0]) is changes
    assert ("3x" in change(call) + call.effect) is changes
    assert (" → " in change(call)) is changes
