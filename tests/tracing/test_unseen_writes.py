"""A write that autograd does not record, to a result that gradients flow through, is named with its line."""

import pytest

import gradcli


def through_detach(f, values):
    x = values * 2
    alias = x.detach()
    alias.zero_()
    return (x * x).sum()


def through_data(f, values):
    x = values.sigmoid()
    x.data.mul_(3)
    return x.sum()


def to_a_view(f, values):
    x = values + 1
    x.detach()[0] = 7.0
    return x.sum()


@pytest.mark.parametrize("program", [through_detach, through_data, to_a_view])
def test_the_line_of_a_write_through_an_alias_is_named(framework, program):
    leaf = framework.tensor([0.5, 1.0, 2.0], requires_grad=True)
    graph = gradcli.trace(lambda: program(framework, leaf))
    line = program.__code__.co_firstlineno + (3 if program is through_detach else 2)
    (lint,) = graph.lints
    assert f"{__file__.rpartition('/')[2]}:{line} writes to the memory of x" in lint


def to_a_copy(f, values):
    x = values * 2
    x.detach().clone().zero_()
    return (x * x).sum()


def to_itself(f, values):
    x = values * 2
    x.mul_(3)
    return x.sum()


def before_it_is_made(f, values):
    start = f.zeros(3)
    start.add_(1)
    x = values + start
    return x.sum()


def where_recording_is_off(f, values):
    x = values * 2
    with f.no_grad():
        x.detach().mul_(3)
    return x.sum()


def after_the_last_operation(f, values):
    x = values * 2
    loss = x.sum()
    x.detach().zero_()
    return loss


def by_a_function(f, values):
    class Doubled(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = values.exp()
    return Doubled.apply(x).sum()


@pytest.mark.parametrize(
    "program",
    [by_a_function, to_a_copy, to_itself, before_it_is_made, where_recording_is_off, after_the_last_operation],
)
def test_other_writes_are_not(framework, program):
    leaf = framework.tensor([0.5, 1.0, 2.0], requires_grad=True)
    assert gradcli.trace(lambda: program(framework, leaf)).lints == ()


def test_a_hook_on_one_of_two_paths_is_not_said_to_change_entries(framework):
    def program():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        x.register_hook(lambda g: g * 0.5)
        y = x * 2
        y.register_hook(lambda g: g * 0)
        return y.sum() + x.sum()

    (effect,) = gradcli.trace(program).effects
    assert effect.count("(0x) (on some of the paths to it)") == 1
    assert "entries" not in effect
